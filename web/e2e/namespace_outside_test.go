//go:build linux

package e2e

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"countersign/internal/consent/consenttest"
	sandboxcrm "countersign/internal/crm"
)

// The two vendors of this network are entries of the catalog at their own names. Exa's key travels in a header of its own, which a client
// that follows redirects would carry along; Linear is signed in to.
const (
	exa       = "mcp.exa.ai"
	exaKey    = "exa-0c3f7d51-key-of-the-test"
	linear    = "mcp.linear.app"
	elsewhere = "collector.example.com" // public, and nobody's vendor
	behind    = "what-stands-behind-the-vendors"
)

// outside is the server among the services of its network.
type outside struct {
	*internet
	s               *server
	admin, approver *wire
	crm             http.Handler
	linear          *consenttest.Server
	keys            map[string]string // of the connections, by integration: the newest
}

func newOutside(t *testing.T, n *internet) *outside {
	t.Helper()
	o := &outside{internet: n, keys: map[string]string{}, s: newServer(t, append(n.trust(t), "COUNTERSIGN_DEMO=1")...)}
	o.crm = sandboxcrm.New(sandboxcrm.Config{BearerToken: behind, ControlToken: "control"}).Handler()
	o.linear = consenttest.New(t, o.crm, behind)
	o.linear.URL = "https://" + linear // its documents name it so; the server that was started for it is never asked
	n.sites[exa] = http.HandlerFunc(o.keyed)
	n.sites[linear] = o.linear.Config.Handler
	n.sites[elsewhere] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("{}")) })
	o.s.start(t)
	o.admin = o.s.signedIn(t, "admin@sandbox.test", o.s.password(t, "admin@sandbox.test"))
	o.approver = o.s.signedIn(t, "approver@sandbox.test", o.s.password(t, "approver@sandbox.test"))
	o.installs(t, "exa", url.Values{"contract": {"token"}, "api_key": {exaKey}})
	o.installs(t, "linear", url.Values{"contract": {"oauth2"}})
	return o
}

// keyed is the CRM behind Exa's own header.
func (o *outside) keyed(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Api-Key") != exaKey {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.Header.Set("Authorization", "Bearer "+behind)
	o.crm.ServeHTTP(w, r)
}

func (o *outside) installs(t *testing.T, integration string, form url.Values) {
	t.Helper()
	path := "/connections/new/" + integration
	form.Set("form", hidden(t, o.admin.get(t, path).body, "form"))
	form.Set("name", integration)
	got := o.admin.form(t, path, form)
	if got.status != http.StatusSeeOther {
		t.Fatalf("installing %s answers %d: %s", integration, got.status, plainText(got.body))
	}
	o.keys[integration] = strings.Split(strings.TrimPrefix(got.header.Get("Location"), "/connections/"), "/")[0]
}

func (o *outside) path(integration string) string { return "/connections/" + o.keys[integration] }

// tested presses the button that tests a connection, and answers what its page says then.
func (o *outside) tested(t *testing.T, integration string) string {
	t.Helper()
	got := o.admin.form(t, o.path(integration)+"/test", nil)
	got.clear(t, "testing "+integration, http.StatusSeeOther)
	return html.UnescapeString(plainText(o.admin.get(t, o.path(integration)).body))
}

// fails tests a connection that must fail with a sentence.
func (o *outside) fails(t *testing.T, integration, sentence string) {
	t.Helper()
	if page := o.tested(t, integration); !strings.Contains(page, "The test failed.") || !strings.Contains(page, sentence) {
		t.Errorf("the page does not say “%s”: %.1200s", sentence, page)
	}
	o.nothingInward(t)
}

// asks presses the button that starts a consent.
func (o *outside) asks(t *testing.T, integration string) got {
	t.Helper()
	return o.admin.form(t, o.path(integration)+"/consent", nil)
}

// consents goes to the vendor and comes back with its answer.
func (o *outside) consents(t *testing.T, integration string) got {
	t.Helper()
	page := o.asks(t, integration)
	if page.status != http.StatusOK {
		t.Fatalf("asking answers %d: %s", page.status, plainText(page.body))
	}
	res, err := o.browser().Get(html.UnescapeString(first(t, page.body, `href="([^"]+)"[^>]*data-test="leave"`)))
	must(t, err)
	must(t, res.Body.Close())
	back := res.Header.Get("Location")
	if !strings.HasPrefix(back, o.s.url+"/oauth/callback?") {
		t.Fatalf("the vendor answers %s and sends to %q", res.Status, back)
	}
	return o.admin.get(t, strings.TrimPrefix(back, o.s.url))
}

// grants lets agents of a profile of its own use a connection, and starts one.
func (o *outside) grants(t *testing.T, integration string) agent {
	t.Helper()
	got := o.admin.form(t, o.path(integration)+"/access", url.Values{"mode": {"ask_user_on_write"}})
	got.clear(t, "granting "+integration, http.StatusSeeOther)
	got = o.admin.form(t, "/profiles", url.Values{"name": {"outside-" + o.keys[integration]}, "budget": {"9"}, "version": {"0"}, "use": {o.keys[integration]}})
	got.clear(t, "a profile for "+integration, http.StatusSeeOther)
	return o.another(t, integration)
}

// another is one more agent of that profile.
func (o *outside) another(t *testing.T, integration string) agent {
	t.Helper()
	return o.s.runtime().starts(t, task("outside-"+o.keys[integration], "OUT-1")).connects(t, eras[0])
}

// acts reads, stages, approves and finds the effect: the whole way of a call over the real network.
func (o *outside) acts(t *testing.T, integration string) {
	t.Helper()
	a := o.grants(t, integration)
	key := o.keys[integration]
	a.reads(t, key+"__contacts_list", `{"limit":1}`)
	name := "Contact of " + integration
	id := a.stages(t, key+"__contacts_create", `{"name":"`+name+`","email":"`+integration+`@example.com"}`)
	p := decides(t, o.approver, id, "approve")
	p.by.form(t, p.path, p.form).clear(t, "approving", http.StatusSeeOther)
	o.s.runtime().settles(t, id, "succeeded")
	if found := a.reads(t, key+"__contacts_list", `{"limit":50}`); !strings.Contains(found, name) {
		t.Errorf("after it succeeded the vendor has %s", found)
	}
}

// answers is a JSON-RPC answer to whatever was asked.
func answers(w http.ResponseWriter, r *http.Request, member string) {
	var m struct{ ID json.RawMessage }
	_ = json.NewDecoder(r.Body).Decode(&m) // our own client wrote it
	if len(m.ID) == 0 {
		m.ID = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + member + `}`))
}

// keptSecrets makes sure that what was entered or given reached its own service alone, and nothing that people, operators or agents read.
func (o *outside) keptSecrets(t *testing.T) {
	t.Helper()
	if at := o.hosts(exaKey); len(at) != 1 || at[0] != exa {
		t.Errorf("the key of %s was heard at %v", exa, at)
	}
	if at := o.hosts("Bearer "); !slices.Equal(slices.Sorted(slices.Values(at)), []string{ownSigned, linear}) {
		t.Errorf("access tokens were heard at %v", at)
	}
	if strings.Contains(o.s.output.String(), exaKey) {
		t.Error("the server's log holds the key")
	}
}
