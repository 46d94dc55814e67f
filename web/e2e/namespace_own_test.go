//go:build linux

package e2e

import (
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/consent/consenttest"
)

// A server of the organization's own, at a public name that a person types.
const (
	own       = "mcp.harborpine.example.com"
	ownSigned = "crm.harborpine.example.com" // the one that is signed in to
	ownHeader = "X-Harbor-Key"
	ownKey    = "harbor-7d20b1c4-key-of-the-test"
)

// ownServer connects the organization's own server by the form, which takes public HTTPS alone; what the server says of its tools counts
// once an admin has confirmed it; and a name that turns inward later is not followed.
func (o *outside) ownServer(t *testing.T) {
	o.sites[own] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(ownHeader) != ownKey || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Header.Set("Authorization", "Bearer "+behind)
		o.crm.ServeHTTP(w, r)
	})
	o.typedWrong(t)
	o.installs(t, "custom-mcp", url.Values{"contract": {"token"}, "named": {"1"}, "url": {"https://" + own + "/mcp"}, "header": {ownHeader}, "token": {ownKey}})
	if page := o.tested(t, "custom-mcp"); !strings.Contains(page, "Working") {
		t.Fatalf("the connection does not work: %.800s", page)
	}
	list := o.keys["custom-mcp"] + "__contacts_list"
	o.grants(t, "custom-mcp").stages(t, list, `{"limit":1}`) // the server says that it reads, and nobody else does

	page := o.admin.get(t, o.path("custom-mcp")).body
	value := html.UnescapeString(first(t, page, `name="read" value="([0-9a-f]+:`+regexp.QuoteMeta("contacts_list")+`)"`))
	o.admin.form(t, o.path("custom-mcp")+"/reads", url.Values{"version": {hidden(t, page, "version")}, "read": {value}}).clear(t, "confirming", http.StatusSeeOther)
	o.another(t, "custom-mcp").reads(t, list, `{"limit":1}`)

	if got := o.checked(t, "custom-mcp"); !strings.Contains(got, "Its addresses are public") || !strings.Contains(got, "The certificate is valid until") || strings.Contains(got, "Not tried") {
		t.Errorf("the way is open, and the page says %.1500s", got)
	}
	o.resolves(t, own, func(int) []netip.Addr { return []netip.Addr{publicAddress, netip.MustParseAddr("10.0.0.1")} })
	if got := o.checked(t, "custom-mcp"); !strings.Contains(got, "leads to an address that is not public") || strings.Contains(got, "10.0.0.1") {
		t.Errorf("the name leads inward, and the page says %.1500s", got)
	}
	if at := o.hosts(ownKey); len(at) != 1 || at[0] != own {
		t.Errorf("the key was heard at %v", at)
	}
	o.nothingInward(t)
}

// ownServerByConsent connects one more of the organization's own servers, which is signed in to: nothing about it is compiled in, so where a
// person signs in, who asks and where the code goes is all found from the address that was typed.
func (o *outside) ownServerByConsent(t *testing.T) {
	v := consenttest.New(t, o.crm, behind)
	v.URL = "https://" + ownSigned
	o.sites[ownSigned] = v.Config.Handler
	o.installs(t, "custom-mcp", url.Values{"contract": {"oauth2"}, "url": {v.MCP()}})
	for _, leads := range []string{"https://169.254.169.254/x", "https://127.1/x", "http://" + elsewhere + "/x"} {
		v.Rule(func(r *consenttest.Rules) { r.Metadata = map[string]any{"token_endpoint": leads} })
		o.refusesToAsk(t, "custom-mcp", leads)
	}
	v.Rule(func(r *consenttest.Rules) { r.Metadata = nil })
	asked := o.asks(t, "custom-mcp")
	if text := html.UnescapeString(plainText(asked.body)); asked.status != http.StatusOK || !strings.Contains(text, "You will sign in at "+ownSigned) {
		t.Fatalf("asking answers %d: %.900s", asked.status, text)
	}
	if got := o.consents(t, "custom-mcp"); got.status != http.StatusSeeOther {
		t.Fatalf("the callback answers %d %.900s", got.status, plainText(got.body))
	}
	if page := html.UnescapeString(plainText(o.admin.get(t, o.path("custom-mcp")).body)); !strings.Contains(page, "Working") {
		t.Fatalf("the connection does not work: %.800s", page)
	}
	codes := v.Journal("code")
	if len(codes) != 1 || codes[0].Form.Get("resource") != v.MCP() || codes[0].Form.Get("code_verifier") == "" {
		t.Errorf("the code was traded by %+v", codes)
	}
	list := o.keys["custom-mcp"] + "__contacts_list"
	o.grants(t, "custom-mcp").stages(t, list, `{"limit":1}`) // nobody has confirmed that it reads
	o.nothingInward(t)
}

// checked presses the button that takes the way step by step.
func (o *outside) checked(t *testing.T, integration string) string {
	t.Helper()
	got := o.admin.form(t, o.path(integration)+"/check", nil)
	got.clear(t, "checking "+integration, http.StatusOK)
	return html.UnescapeString(plainText(got.body))
}

// typedWrong types what no server of this kind can be reached by; nothing is stored and nobody is asked.
func (o *outside) typedWrong(t *testing.T) {
	t.Helper()
	form := func(address, header string) url.Values {
		v := url.Values{"contract": {"token"}, "name": {"Ours"}, "url": {address}, "token": {ownKey}}
		if header != "" {
			v.Set("header", header)
			v.Set("named", "1")
		}
		return v
	}
	wrong := []url.Values{form("https://"+own+"/mcp", "Authorization"), form("https://"+own+"/mcp", "Cookie"), form("https://"+own+"/mcp", "Mcp-Session-Id"), form("https://"+own+"/mcp", "X Key")}
	for _, address := range []string{
		"", "mcp", "http://" + own + "/mcp", "https://" + own + ":8443/mcp", "https://user:word@" + own + "/mcp", "https://" + own + "/mcp#here", "https://" + own + "/mcp?key=1",
		"https://10.0.0.1/mcp", "https://127.1/mcp", "https://2130706433/mcp", "https://0x7f000001/mcp", "https://[::1]/mcp", "https://localhost/mcp", "https://crm/mcp", "https://crm.internal/mcp",
		"https://crm.svc.cluster.local/mcp", "https://metadata.google.internal/mcp", "https://host.test/mcp", "https://ⓛocalhost/mcp", "file:///etc/passwd", "https://" + own + "/{tenant}/mcp",
	} {
		wrong = append(wrong, form(address, ""))
	}
	before := o.heard(own)
	for _, v := range wrong {
		v.Set("form", hidden(t, o.admin.get(t, "/connections/new/custom-mcp").body, "form"))
		got := o.admin.form(t, "/connections/new/custom-mcp", v)
		got.clear(t, "typing "+v.Get("url")+" "+v.Get("header"), http.StatusUnprocessableEntity)
		if !strings.Contains(got.body, `aria-invalid="true"`) || strings.Contains(got.body, ownKey) {
			t.Errorf("%s %s: %.600s", v.Get("url"), v.Get("header"), plainText(got.body))
		}
	}
	if list := o.admin.get(t, "/connections").body; strings.Contains(list, "custom-mcp-") || o.heard(own) != before {
		t.Errorf("something of it was stored or tried: %.400s", plainText(list))
	}
}
