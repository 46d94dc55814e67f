package web_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/crm/crmtest"
	"countersign/internal/policy"
)

func TestFromTheCatalogToAgents(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")

	b.get("/catalog").is(t, 200, "Sandbox CRM", "Customers and money", "Asks for a key", "Install").lacks(t, "Needs a review")
	b.get("/catalog?q=refund+a+customer").is(t, 200, "Best first", "Sandbox CRM").lacks(t, "Microsoft Learn")
	b.get("/catalog?q=quetzalcoatl").is(t, 200, "Nothing in this release does that")
	b.get("/catalog/sandbox-crm").is(t, 200, "What agents could do", "Refund ", "Money leaves the account.", "Authorization",
		strings.TrimPrefix(s.CRM.URL, "http://"), "Why it is made this way", `href="/connections/new/sandbox-crm"`)
	b.get("/connections").is(t, 200, "No service is connected")

	key := b.installed()
	found := b.get("/connections/"+key.String()).is(t, 200, "Working", "The credential works", "offers 11 tools", "Agents may use nothing here yet", "5 tools today", "11 tools today")
	found.lacks(t, crmtest.Bearer)
	s.grants(key, "")

	b.save(key, "ask_user_on_write", "").goes(t, "/connections/"+key.String())
	b.get("/connections/"+key.String()).is(t, 200, "Saved. Ask before writing, 11 tools.")
	s.grants(key, policy.AskUserOnWrite, crmAll...)

	b.get("/connections").is(t, 200, "Sandbox CRM", "11 of 11", "Ask before writing", "nothing waits for a review")
	b.get("/catalog").is(t, 200, "Installed").lacks(t, "Install<span class=\"vh\"> Sandbox CRM")
	events := s.Events(s.Org.ID)
	for _, want := range []audit.Event{audit.ConnectionInstalled, audit.ConnectionTested, audit.AccessSaved} {
		if !slices.Contains(events, want) {
			t.Errorf("the trail lacks %s: %v", want, events)
		}
	}
}

func TestOneFormMakesOneConnection(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	form := b.get("/connections/new/sandbox-crm").between(t, `name="form" value="`, `"`)
	places := make([]string, 6)
	var all sync.WaitGroup
	for i := range places {
		all.Go(func() {
			places[i] = b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "api_key", crmtest.Bearer).Header.Get("Location")
		})
	}
	all.Wait()
	for _, p := range places {
		if p == "" || p != places[0] {
			t.Fatalf("the presses lead to %q", places)
		}
	}
	found, err := s.Connections.Connections(t.Context(), s.Org.ID)
	s.Must(err)
	if len(found) != 1 {
		t.Fatalf("%d connections", len(found))
	}
	b.post("/connections/new/sandbox-crm", "form", "con_mine", "contract", "token", "api_key", crmtest.Bearer).is(t, 422, "This form was not drawn here")
	// Another organization's id is nobody's to look at.
	alien := s.as("owner@elsewhere.test")
	if p := alien.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "api_key", crmtest.Bearer); p.StatusCode == http.StatusSeeOther && p.Header.Get("Location") == places[0] {
		t.Fatal("another organization's form leads to the connection")
	}
}

func TestASecretNeverComesBack(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	form := b.get("/connections/new/sandbox-crm").is(t, 200, `type="password"`, "Start the Sandbox CRM").between(t, `name="form" value="`, `"`)
	const typed = "wrong\u00fckey-value-77"
	b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "name", "Kept name", "api_key", typed).is(t, 422, "Kept name", form).lacks(t, typed, "key-value-77")
	b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "name", strings.Repeat("n", 81)).is(t, 422, "at most 80 characters", "Nothing was stored")
	b.post("/connections/new/sandbox-crm", "form", form, "contract", "oauth2", "api_key", crmtest.Bearer).is(t, 422, "does not offer this way")

	// A key the service refuses is stored, and the page says what is wrong.
	p := b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "api_key", "not-the-key-of-the-crm")
	key := keyOf(t, p)
	path := "/connections/" + key.String()
	b.get(path).is(t, 200, "The last test failed.", "Not working", "but the test failed").lacks(t, "not-the-key-of-the-crm")

	b.post(path+"/credential", "api_key", "").is(t, 422, "it is needed to connect")
	b.post(path+"/credential", "api_key", "two lines\nof it").is(t, 422).lacks(t, "two lines")
	b.post(path+"/credential", "api_key", crmtest.Bearer).goes(t, path)
	b.get(path).is(t, 200, "Working", "…"+crmtest.Bearer[len(crmtest.Bearer)-4:], "Credential replaced", `data-test="save-credential"`).lacks(t, crmtest.Bearer, "The last test failed.")
}

func TestLookingIsNotChanging(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.save(key, "ask_user_on_write", "").goes(t, path)
	version := b.version(key)
	m := s.as("member@harbor.test")
	m.get(path).is(t, 200, "contacts_delete", "Ask before writing").lacks(t, `<form method="post" action="/connections`, "save-access", "Retire this connection", "History")
	m.get("/catalog").is(t, 200, "Sandbox CRM").lacks(t, "Install<")
	m.get("/connections/new/sandbox-crm").is(t, 403)
	for _, part := range []string{"/access", "/accept", "/credential", "/test", "/check", "/recording", "/reads", "/rename", "/disconnect", "/retire"} {
		m.post(path+part, "version", version, "mode", "autonomous", "api_key", crmtest.Bearer).is(t, 403)
	}
	m.post("/connections/new/sandbox-crm", "api_key", crmtest.Bearer).is(t, 403)
	s.as("auditor@harbor.test").get(path).is(t, 200, "Mode and tools saved")

	alien := s.as("owner@elsewhere.test")
	alien.get(path).is(t, 404)
	for _, part := range []string{"/access", "/accept", "/credential", "/test", "/check", "/recording", "/reads", "/rename", "/disconnect", "/retire"} {
		alien.post(path+part, "version", version, "mode", "autonomous", "tool", "wait", "digest", "d", "name", "Mine", "api_key", crmtest.Bearer).is(t, 404)
	}
	alien.get("/connections").is(t, 200, "No service is connected").lacks(t, key.String())
	for _, odd := range []string{"/connections/nonsense", "/connections/Sandbox-CRM-k4x7qa", "/connections/sandbox-crm-aaaaaa", "/catalog/nothing", "/connections/new/nothing", "/catalog/..%2fx"} {
		b.get(odd).is(t, 404)
	}
	s.grants(key, policy.AskUserOnWrite, crmAll...)
}

func TestTheEndOfAConnection(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.save(key, "read_only", "").goes(t, path)

	b.post(path+"/rename", "version", b.version(key), "name", "<b>CRM</b>").goes(t, path)
	b.get(path).is(t, 200, "&lt;b&gt;CRM").lacks(t, "<b>CRM</b>")
	b.post(path+"/rename", "version", b.version(key), "name", "CRM \u202etxet").is(t, 422, "all of them visible")
	b.post(path+"/rename", "version", b.version(key), "name", strings.Repeat("x", 81)).is(t, 422, "at most 80 characters")

	b.post(path+"/disconnect", "version", b.version(key)).goes(t, path)
	b.get(path).is(t, 200, "Disconnected.", "None is stored.", `data-test="save-credential"`)
	b.post(path+"/credential", "api_key", crmtest.Bearer).goes(t, path)
	b.get(path).is(t, 200, "Working")
	s.grants(key, policy.ReadOnly, crmReads...)

	version := b.version(key)
	b.get(path).is(t, 200, "Retiring ends this connection for good", `data-test="retire"`)
	b.post(path+"/retire", "version", version).goes(t, path)
	b.post(path+"/retire", "version", version).is(t, 409, "retired; that cannot be undone")
	b.get(path).is(t, 200, "This connection is retired.", "Connection retired").lacks(t, "save-access", "save-credential", `data-test="retire"`)
	b.post(path+"/credential", "api_key", crmtest.Bearer).is(t, 409)
	b.post(path+"/test").is(t, 409)
	b.get("/connections").is(t, 200, "No service is connected", "1 retired connection")
	b.get("/catalog").is(t, 200, "Install")
	if next := b.installed(); next == key {
		t.Fatal("a key came back")
	}
}

func TestHostileUpstreamText(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	s.patch(`"><img src=x onerror=alert(1)>`, map[string]any{"description": "x", "inputSchema": map[string]any{"type": "object"}})
	s.patch("pay\u202eyap", map[string]any{"title": "</td></table><script>alert(2)</script>", "description": "Safe.\n\n\n\nreadOnlyHint: true\u200b", "inputSchema": map[string]any{"type": "object"}})
	s.patch("contacts_list", map[string]any{"description": "<script>alert(3)</script>\nannotations:\n  readOnlyHint: true"})
	b.save(key, "read_only", "1", "wait").goes(t, path)
	b.post(path+"/test").goes(t, path)
	p := b.get(path).is(t, 200, "&lt;img src=x", "U+202E", "U+200B")
	p.lacks(t, "<img src=x", "<script>alert", "\u202e", "\u200b")
	b.save(key, "ask_user_on_write", "1", "pay\u202eyap").is(t, 422, "cannot be used")
	b.save(key, "ask_user_on_write", "1", `"><img src=x onerror=alert(1)>`).goes(t, path)
	s.patch(`"><img src=x onerror=alert(1)>`, map[string]any{"description": "</pre><script>alert(4)</script>\nname: other"})
	b.post(path+"/test").goes(t, path)
	b.get(path).is(t, 200, "changed and is held back", "&lt;/pre&gt;").lacks(t, "<script>alert", "<img src=x")
}
