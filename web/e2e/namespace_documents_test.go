//go:build linux

package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"countersign/internal/consent/consenttest"
)

// spellings of what is not the address of a public service, as a hostile document could write them.
var spellings = []string{
	"https://127.0.0.1/x", "https://127.1/x", "https://2130706433/x", "https://0x7f000001/x", "https://0x7f.1/x", "https://0177.0.0.1/x", "https://017700000001/x", "https://127.0.0.1./x",
	"https://10.0.0.1/x", "https://0xa.0.0.1/x", "https://169.254.169.254/x", "https://2852039166/x", "https://93.184.216.34/x", "https://[::1]/x", "https://[::]/x", "https://[::ffff:127.0.0.1]/x",
	"https://[::ffff:7f00:1]/x", "https://[0:0:0:0:0:ffff:a00:1]/x", "https://[fe80::1%25lo]/x", "https://[2606:2800:220:1::1]/x", "https://localhost/x", "https://LOCALHOST/x", "https://localhost./x",
	"https://a.localhost/x", "https://intranet/x", "https://metadata.google.internal/x", "https://kubernetes.default.svc/x", "https://api.default.svc.cluster.local/x", "https://printer.local/x",
	"https://router.home.arpa/x", "https://hidden.onion/x", "https://service.test/x", "https://１２７.0.0.1/x", "https://127。0。0。1/x", "https://%31%32%37.0.0.1/x", "https://ⓛocalhost/x",
	"https://mcp.linear.app@127.0.0.1/x", "https://user:pass@" + elsewhere + "/x", "https://" + elsewhere + ":8443/x", "https://" + elsewhere + ":80/x", "https://" + elsewhere + ":/x",
	"http://" + elsewhere + "/x", "http://127.0.0.1/x", "ftp://" + elsewhere + "/x", "file:///etc/passwd", "gopher://127.0.0.1:6379/_x", "javascript:alert(1)", "https:///x", "https:127.0.0.1/x",
	"//127.0.0.1/x", "https://127.0.0.1\\@" + elsewhere + "/x", "https://" + elsewhere + "/x#y", "https://" + elsewhere + ".",
}

// inside are names that a stranger can register and point inward; only the dial tells.
var inside = map[string][]netip.Addr{
	"one.example.com":  {netip.MustParseAddr("10.0.0.1")},
	"both.example.com": {publicAddress, netip.MustParseAddr("127.0.0.1")},
	"six.example.com":  {netip.MustParseAddr("::1")},
}

// documents are what a service says of itself. Each address in them passes the rule before anything is sent there.
func (o *outside) documents(t *testing.T) {
	o.installs(t, "linear", url.Values{"contract": {"oauth2"}}) // a connection without a client, which has to ask everywhere
	strangers := o.heard(elsewhere)
	for place, p := range map[string]struct {
		write   func(*testing.T, string)
		fetched bool // the server itself asks there before a person does
	}{
		"WWW-Authenticate": {o.challenges, true}, "authorization_servers": {o.issues, true}, "registration_endpoint": {o.names("registration_endpoint"), true},
		"token_endpoint": {o.names("token_endpoint"), false}, "revocation_endpoint": {o.names("revocation_endpoint"), false}, "authorization_endpoint": {o.names("authorization_endpoint"), false},
	} {
		t.Run(place, func(t *testing.T) {
			for _, address := range spellings {
				p.write(t, address)
				o.refusesToAsk(t, "linear", address)
			}
			for name, leads := range inside {
				if p.fetched {
					o.resolves(t, name, func(int) []netip.Addr { return leads })
					p.write(t, "https://"+name+"/x")
					o.refusesToAsk(t, "linear", name)
				}
			}
		})
	}
	o.nothingInward(t)
	if o.heard(elsewhere) != strangers {
		t.Error("a stranger was asked")
	}
}

// challenges has the service's refusal point to an address.
func (o *outside) challenges(t *testing.T, address string) {
	o.becomes(t, linear, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+address+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// issues has the service name an authorization server.
func (o *outside) issues(t *testing.T, address string) {
	o.becomes(t, linear, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-protected-resource/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": "https://" + linear + "/mcp", "authorization_servers": []string{address}})
	})
}

// names has the authorization server name an endpoint.
func (o *outside) names(endpoint string) func(*testing.T, string) {
	return func(t *testing.T, address string) {
		o.becomes(t, linear, o.linear.Config.Handler.ServeHTTP)
		o.linear.Rule(func(r *consenttest.Rules) { r.Metadata = map[string]any{endpoint: address} })
	}
}

// refusesToAsk presses the button that starts a consent: the page must say that nothing was asked, and not that it may work later.
func (o *outside) refusesToAsk(t *testing.T, integration, address string) {
	t.Helper()
	got := o.asks(t, integration)
	if text := plainText(got.body); got.status != http.StatusBadGateway || !strings.Contains(text, "Nothing was asked and nothing was stored.") {
		t.Errorf("%s is answered %d %.900s", address, got.status, text)
	}
}

// tokenEndpoint is public while a person is asked, and inside when the code is traded. The code, which is worth a consent, stays here.
func (o *outside) tokenEndpoint(t *testing.T) {
	const host = "tokens.example.com"
	turned := false
	o.resolves(t, host, func(int) []netip.Addr {
		if turned {
			return []netip.Addr{netip.MustParseAddr("169.254.169.254")}
		}
		return []netip.Addr{publicAddress}
	})
	o.names("token_endpoint")(t, "https://"+host+"/token")
	o.installs(t, "linear", url.Values{"contract": {"oauth2"}})
	turned = true
	got := o.consents(t, "linear")
	if text := plainText(got.body); got.status != http.StatusBadGateway || !strings.Contains(text, "Nothing was stored") {
		t.Errorf("the callback answers %d %.900s", got.status, text)
	}
	o.becomes(t, host, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+elsewhere+"/token", http.StatusTemporaryRedirect)
	})
	turned = false
	if got := o.consents(t, "linear"); got.status == http.StatusSeeOther || o.heard(elsewhere) != 0 || o.heard(host) == 0 {
		t.Errorf("a token endpoint that redirects is answered %d", got.status)
	}
	o.nothingInward(t)
}

// disguises are the ways in which a service could hand back what it was sent.
func disguises(s string) []string {
	escaped, _ := json.Marshal(s) // a text always encodes
	return []string{s, base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)), hex.EncodeToString([]byte(s)), url.QueryEscape(s), string(escaped)}
}

// reflects has both vendors hand back their credential, in every place and spelling an answer has room for.
func (o *outside) reflects(t *testing.T) {
	for integration, header := range map[string]string{"exa": "X-Api-Key", "linear": "Authorization"} {
		t.Run(integration, func(t *testing.T) {
			host := map[string]string{"exa": exa, "linear": linear}[integration]
			o.mu.Lock()
			real := o.sites[host]
			o.mu.Unlock()
			var sent string
			way := "result"
			o.becomes(t, host, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(header) == "" || r.Header.Get("Mcp-Method") != "tools/call" {
					real.ServeHTTP(w, r)
					return
				}
				sent = strings.TrimPrefix(r.Header.Get(header), "Bearer ")
				text, _ := json.Marshal("You sent " + strings.Join(disguises(sent), " and "))
				w.Header().Set("X-Echo", sent)
				switch way {
				case "result":
					answers(w, r, `"result":{"resultType":"complete","content":[{"type":"text","text":`+string(text)+`}],"structuredContent":{"echo":`+string(text)+`},"_meta":{"echo":`+string(text)+`}}`)
				case "error":
					answers(w, r, `"error":{"code":-32000,"message":`+string(text)+`,"data":`+string(text)+`}`)
				default:
					w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+sent+`"`)
					w.WriteHeader(http.StatusForbidden)
				}
			})
			a := o.another(t, integration)
			for _, way = range []string{"result", "error", "refusal"} {
				sent = ""
				told := a.calls(t, o.keys[integration]+"__contacts_list", `{"limit":1}`)
				page := o.admin.get(t, o.path(integration)).body
				if sent == "" {
					t.Fatalf("the service was not asked: %s", told.text)
				}
				said, _ := json.Marshal(told.data)
				for _, disguise := range disguises(sent) {
					for where, text := range map[string]string{"the agent": told.text + string(said), "the page": page, "the log": o.s.output.String()} {
						if strings.Contains(text, disguise) {
							t.Errorf("%s of %s gives away the credential as %q to %s", way, integration, disguise, where)
						}
					}
				}
			}
		})
	}
}
