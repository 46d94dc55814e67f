//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/internal/consent/consenttest"
)

// The sentences a page has for a refusal.
const (
	notAllowed = "This destination is not allowed."
	noAnswer   = "The service cannot be reached, or broke the connection."
)

func (o *outside) works(t *testing.T) {
	if page := o.tested(t, "exa"); !strings.Contains(page, "Working") {
		t.Fatalf("the connection does not work: %.800s", page)
	}
	o.acts(t, "exa")
	o.nothingInward(t)
}

// worksByConsent also has the authorization server name keys, a registration and icons inside the network: what nothing needs is never
// fetched, and what is needed is at its public name.
func (o *outside) worksByConsent(t *testing.T) {
	o.linear.Rule(func(r *consenttest.Rules) {
		r.Metadata = map[string]any{"jwks_uri": "https://169.254.169.254/keys", "introspection_endpoint": "https://10.0.0.1/introspect", "op_policy_uri": "http://127.0.0.1/policy", "logo_uri": "http://10.0.0.1/logo.png"}
	})
	defer o.linear.Rule(func(r *consenttest.Rules) { r.Metadata = nil })
	if got := o.consents(t, "linear"); got.status != http.StatusSeeOther {
		t.Fatalf("the answer is not taken: %d %s", got.status, plainText(got.body))
	}
	if page := plainText(o.admin.get(t, o.path("linear")).body); !strings.Contains(page, "Working") {
		t.Fatalf("the connection does not work: %.800s", page)
	}
	o.acts(t, "linear")
	o.nothingInward(t)
}

// addresses are what a vendor's name could be made to lead to.
func (o *outside) addresses(t *testing.T) {
	alone := append([]string{
		"0.0.0.0", "127.8.8.8", "10.255.255.255", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.19.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
		"255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::",
		"2002:a00:1::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
	}, inward...)
	refused := func(name string, list ...netip.Addr) {
		t.Run(name, func(t *testing.T) {
			before := o.heard(exa)
			o.resolves(t, exa, func(int) []netip.Addr { return list })
			o.fails(t, "exa", notAllowed)
			if n := o.heard(exa) - before; n != 0 {
				t.Errorf("the vendor was asked %d times", n)
			}
		})
	}
	for _, address := range alone {
		refused(address, netip.MustParseAddr(address))
	}
	private, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	refused("one private among public ones", publicAddress, netip.MustParseAddr("93.184.216.35"), private)
	refused("a private one first", private, publicAddress)
	refused("a private one of the other kind", publicAddress, six)
}

// rebinds has a name answer truly once and then lie. There is one look-up a connection, and what it answered is what is dialled, so the
// lie is met by the next connection, and refused there.
func (o *outside) rebinds(t *testing.T) {
	before := o.heard(exa)
	o.resolves(t, exa, func(question int) []netip.Addr {
		if question == 1 {
			return []netip.Addr{publicAddress}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	})
	o.fails(t, "exa", notAllowed)
	if asked, heard := o.looked(exa), o.heard(exa)-before; heard != 1 || asked != 2 {
		t.Errorf("%d requests arrived after %d look-ups, want one and its look-up, and the refused one's", heard, asked)
	}
}

func (o *outside) certificates(t *testing.T) {
	for name, c := range map[string]certificate{
		"self-signed":                      {name: exa, selfSigned: true},
		"of another name":                  {name: "mcp.exa.example.com"},
		"expired":                          {name: exa, expired: true},
		"of tomorrow":                      {name: exa, notYet: true},
		"of an authority of the same name": {name: exa, unknownAuthority: true},
		"for clients":                      {name: exa, forAnotherPurpose: true},
		"TLS 1.1":                          {name: exa, oldest: true},
	} {
		t.Run(name, func(t *testing.T) {
			before, greeted := o.heard(exa), 0
			o.greets(t, exa, func(*tls.ClientHelloInfo) (*tls.Config, error) { greeted++; return o.ca.serving(c), nil })
			o.fails(t, "exa", noAnswer)
			if n := o.heard(exa) - before; n != 0 || greeted == 0 {
				t.Errorf("%d requests arrived after %d handshakes", n, greeted)
			}
		})
	}
	t.Run("a handshake that breaks off", func(t *testing.T) {
		o.greets(t, exa, func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("no") })
		o.fails(t, "exa", noAnswer)
	})
}

// redirects are never followed, whether they lead inside or to a public stranger, and so the key goes nowhere.
func (o *outside) redirects(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, to := range []string{"https://" + elsewhere + "/mcp", "https://10.0.0.1/mcp", "http://169.254.169.254/latest/meta-data/", "http://" + exa + "/mcp", "https://" + exa + "/other", "//127.0.0.1/"} {
			t.Run(fmt.Sprint(status, " to ", to), func(t *testing.T) {
				o.becomes(t, exa, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", to); w.WriteHeader(status) })
				before := o.heard(exa)
				o.fails(t, "exa", "redirects to another address, which is never followed")
				if o.heard(elsewhere) != 0 {
					t.Error("the redirect was followed")
				}
				if o.heard(exa) == before {
					t.Error("the vendor was not asked at all")
				}
			})
		}
	}
	t.Run("of a registration and of the documents", func(t *testing.T) {
		o.becomes(t, linear, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		})
		if got := o.asks(t, "linear"); got.status != http.StatusBadGateway || o.heard(elsewhere) != 0 {
			t.Errorf("a consent whose documents redirect is answered %d, and the stranger was asked %d times", got.status, o.heard(elsewhere))
		}
	})
}

// gibibyte is a gibibyte of spaces in a megabyte: as many small members as it takes, which gzip reads as one.
func gibibyte() []byte {
	var member bytes.Buffer
	z, _ := gzip.NewWriterLevel(&member, gzip.BestCompression) // a level that exists
	_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	_ = z.Close()
	return bytes.Repeat(member.Bytes(), 1<<10)
}

func (o *outside) bombs(t *testing.T) {
	bomb := gibibyte()
	explode := func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("the client offers no compression, so this shows nothing")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	}
	t.Run("compressed", func(t *testing.T) {
		o.becomes(t, exa, explode)
		o.fails(t, "exa", "The service's answer is larger than allowed.")
	})
	t.Run("compressed document", func(t *testing.T) {
		o.becomes(t, linear, explode)
		if got := o.asks(t, "linear"); got.status != http.StatusBadGateway {
			t.Errorf("a document that explodes is answered %d", got.status)
		}
	})
	t.Run("as it is", func(t *testing.T) {
		o.becomes(t, exa, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for chunk := bytes.Repeat([]byte(" "), 1<<16); r.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		o.fails(t, "exa", "The service's answer is larger than allowed.")
	})
	t.Run("in its headers", func(t *testing.T) {
		o.becomes(t, exa, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
			answers(w, r, `"result":{}`)
		})
		o.fails(t, "exa", noAnswer)
	})
	o.nothingInward(t)
}

// drips starts a vendor whose document never ends, and answers what to look at when the rest was done meanwhile.
func (o *outside) drips(t *testing.T) func(*testing.T) {
	t.Helper()
	const host = "mcp.buildkite.com"
	o.becomes(t, host, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	o.installs(t, "buildkite", url.Values{"contract": {"oauth2"}})
	type end struct {
		got
		error
		after time.Duration
	}
	done := make(chan end, 1)
	begun := time.Now()
	go func() {
		answer, err := o.admin.try(context.WithoutCancel(t.Context()), http.MethodPost, o.path("buildkite")+"/consent", formType, nil)
		done <- end{answer, err, time.Since(begun)}
	}()
	return func(t *testing.T) {
		e := <-done
		must(t, e.error)
		if e.status != http.StatusBadGateway || e.after > 40*time.Second || !strings.Contains(plainText(e.body), "cannot be reached") {
			t.Errorf("after %s it is answered %d %.600s", e.after, e.status, plainText(e.body))
		}
	}
}
