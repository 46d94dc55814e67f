package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"countersign/catalog"
	"countersign/db"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/reach"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
	"countersign/web"
	"countersign/web/admin"
)

const (
	crmKey     = "crm-bearer-9Qx7Lw2Tn4Vb"
	crmControl = "crm-control-5Hs8"
)

// shop is a site with the real Sandbox CRM behind its catalog, reached as in production.
type shop struct {
	*site
	crm   *httptest.Server
	table registry.Table
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := newSite(t)
	upstream := httptest.NewServer(crm.New(crm.Config{BearerToken: crmKey, ControlToken: crmControl}).Handler())
	t.Cleanup(upstream.Close)
	moved, err := registry.Trusted().NewOverride("sandbox_crm.v1", upstream.URL+"/mcp")
	s.must(err)
	table := registry.Trusted().With(moved)
	s.publish()

	keys, err := secret.Generate()
	s.must(err)
	releases, connections := db.NewReleases(s.db, table), db.Connections{DB: s.db}
	vault := credential.NewVault(keys, db.Credentials{DB: s.db})
	lines := reach.New(releases, table, vault, map[registry.Kind]provider.Provider{hosted.Kind: hosted.New("test")})
	t.Cleanup(lines.Close)
	service := &installation.Connections{Read: connections, Write: connections, Prober: lines, Releases: releases, Credentials: db.Credentials{DB: s.db}, Registry: table, Keys: keys}

	s.server = httptest.NewUnstartedServer(nil)
	origin := "http://" + s.server.Listener.Addr().String()
	h := s.handlers(origin)
	h.Catalog = &admin.Catalog{Releases: releases, Read: connections, Registry: table}
	h.Connections = &admin.Connections{Service: service, Vault: vault, Trail: db.Audit{DB: s.db}, Profiles: db.Profiles{DB: s.db}, Actions: db.Actions{DB: s.db}}
	handler, err := web.New(s.config(origin), h)
	s.must(err)
	s.server.Config.Handler = handler
	s.server.Start()
	t.Cleanup(s.server.Close)
	return &shop{s, upstream, table}
}

// patch changes a tool of the CRM, as a vendor does overnight.
func (s *shop) patch(name string, patch any) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "patch": patch})
	s.must(err)
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.crm.URL+"/tools", bytes.NewReader(body))
	s.must(err)
	r.Header.Set("Authorization", "Bearer "+crmControl)
	res, err := http.DefaultClient.Do(r)
	s.must(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("the CRM does not change %s: %d", name, res.StatusCode)
	}
}

// installed is a tested connection to the CRM, made through the form.
func (b *browser) installed() connector.Key {
	b.t.Helper()
	form := b.get("/connections/new/sandbox-crm").is(b.t, http.StatusOK).between(b.t, `name="form" value="`, `"`)
	p := b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "name", "Sandbox CRM", "api_key", crmKey).is(b.t, http.StatusSeeOther)
	return keyOf(b.t, p)
}

func keyOf(t *testing.T, p page) connector.Key {
	t.Helper()
	key, err := connector.Parse(strings.TrimPrefix(p.Header.Get("Location"), "/connections/"))
	if err != nil {
		t.Fatalf("it goes to %q", p.Header.Get("Location"))
	}
	return key
}

// version is the version the page's forms carry.
func (b *browser) version(key connector.Key) string {
	b.t.Helper()
	return b.get("/connections/"+key.String()).is(b.t, http.StatusOK).between(b.t, `name="version" value="`, `"`)
}

// save posts the access form as a browser does: mode, the radio, and the ticks.
func (b *browser) save(key connector.Key, mode, supplied string, tools ...string) page {
	b.t.Helper()
	pairs := []string{"version", b.version(key), "mode", mode, "tools_supplied", supplied}
	for _, t := range tools {
		pairs = append(pairs, "tools", t)
	}
	return b.post("/connections/"+key.String()+"/access", pairs...)
}

// standing is what agents get, from the store.
func (s *site) standing(key connector.Key) policy.Standing {
	s.t.Helper()
	c, err := db.Connections{DB: s.db}.Connection(s.t.Context(), s.org.ID, key)
	s.must(err)
	return c.Standing
}

func (s *site) grants(key connector.Key, mode policy.Mode, tools ...string) {
	s.t.Helper()
	got := s.standing(key)
	slices.Sort(tools)
	if got.Mode != mode || !slices.Equal(got.Snapshot.Tools(), tools) {
		s.t.Fatalf("it grants %s %v, want %s %v", got.Mode, got.Snapshot.Tools(), mode, tools)
	}
}

var (
	crmReads = []string{"contacts_get", "contacts_list", "contacts_search", "report_export", "wait"}
	crmAll   = append([]string{"contacts_create", "contacts_delete", "contacts_update", "deals_move", "notes_add", "refund_issue"}, crmReads...)
)

func TestFromTheCatalogToAgents(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")

	b.get("/catalog").is(t, 200, "Sandbox CRM", "Customers and money", "Asks for a key", "Install").lacks(t, "Needs a review")
	b.get("/catalog?q=refund+a+customer").is(t, 200, "Best first", "Sandbox CRM").lacks(t, "Microsoft Learn")
	b.get("/catalog?kind=git").is(t, 200, "Nothing in this release does that")
	b.get("/catalog/sandbox-crm").is(t, 200, "What agents could do", "Refund ", "Money leaves the account.", "Authorization",
		strings.TrimPrefix(s.crm.URL, "http://"), "Why it is made this way", `href="/connections/new/sandbox-crm"`)
	b.get("/connections").is(t, 200, "No service is connected")

	key := b.installed()
	found := b.get("/connections/"+key.String()).is(t, 200, "Working", "The credential works", "offers 11 tools", "Agents may use nothing here yet", "5 tools today", "11 tools today")
	found.lacks(t, crmKey)
	s.grants(key, "")

	b.save(key, "ask_user_on_write", "").goes(t, "/connections/"+key.String())
	b.get("/connections/"+key.String()).is(t, 200, "Saved. Ask before writing, 11 tools.")
	s.grants(key, policy.AskUserOnWrite, crmAll...)

	b.get("/connections").is(t, 200, "Sandbox CRM", "11 of 11", "Ask before writing", "nothing waits for a review")
	b.get("/catalog").is(t, 200, "Installed").lacks(t, "Install<span class=\"vh\"> Sandbox CRM")
	events := s.events(s.org.ID)
	for _, want := range []audit.Event{audit.ConnectionInstalled, audit.ConnectionTested, audit.AccessSaved} {
		if !slices.Contains(events, want) {
			t.Errorf("the trail lacks %s: %v", want, events)
		}
	}
}

func TestModeAndTools(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()

	b.save(key, "", "").is(t, 422, "Choose how freely agents may act here")
	b.save(key, "root", "").is(t, 422, "There is no mode")
	s.grants(key, "")

	b.save(key, "read_only", "").goes(t, path)
	s.grants(key, policy.ReadOnly, crmReads...)

	// An explicit list wins over what the mode would select, and an explicit empty one means none.
	b.save(key, "autonomous", "1", "contacts_get", "refund_issue").goes(t, path)
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")
	if !strings.Contains(b.get(path).body, `name="tools_supplied" value="1" checked`) {
		t.Error("a narrower list does not open as a list")
	}

	// An unchanged mode without a list changes nothing, and says so.
	b.save(key, "autonomous", "").goes(t, path)
	b.get(path).is(t, 200, "Nothing to change")
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")
	b.save(key, "autonomous", "", "contacts_get", "refund_issue").goes(t, path)
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")

	// A browser without a script can post ticks beside "every tool": the question is asked back, with the ticks kept.
	asked := b.save(key, "autonomous", "", "contacts_get").is(t, 409, "Not saved. You ticked single tools")
	ticks(t, asked, "contacts_get")
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")

	// What the mode does not allow refuses the whole save, and keeps mode and ticks.
	refused := b.save(key, "read_only", "1", "contacts_get", "contacts_delete", "nowhere").is(t, 422, "“contacts_delete” writes", "no tool “nowhere” any more", `value="read_only" checked`)
	ticks(t, refused, "contacts_delete", "contacts_get")
	s.grants(key, policy.Autonomous, "contacts_get", "refund_issue")

	b.save(key, "read_only", "1").goes(t, path)
	s.grants(key, policy.ReadOnly)
}

var checkedTool = regexp.MustCompile(`name="tools" value="([^"]*)" checked`)

// ticks fails unless exactly these tools are ticked.
func ticks(t *testing.T, p page, want ...string) {
	t.Helper()
	var got []string
	for _, m := range checkedTool.FindAllStringSubmatch(p.body, -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("ticked: %v, want %v", got, want)
	}
}

func TestAChangedToolIsHeldBackUntilSomebodyReadIt(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.save(key, "ask_user_on_write", "").goes(t, path)

	s.patch("deals_move", map[string]any{"description": "Moves a deal to another stage and emails the contact.", "inputSchema": map[string]any{"properties": map[string]any{"notify": map[string]any{"type": "boolean", "default": true}}}})
	s.patch("deals_archive", map[string]any{"description": "Archives a deal.", "inputSchema": map[string]any{"type": "object"}})
	b.post(path+"/test").goes(t, path)

	p := b.get(path).is(t, 200, "changed and is held back", "emails the contact", `data-test="accept-definition"`, "Difference of deals_move", "definition_changed", ">New<")
	if strings.Index(p.body, "held back") > strings.Index(p.body, `data-test="save-access"`) {
		t.Error("the change does not stand first")
	}
	if !regexp.MustCompile(`value="deals_move" disabled`).MatchString(p.body) {
		t.Error("a held-back tool can be ticked")
	}
	b.get("/catalog").is(t, 200, "Needs a review")
	b.get("/connections").is(t, 200, "1 is held back", "1 is new and not granted")
	s.grants(key, policy.AskUserOnWrite, crmAll...)

	b.save(key, "ask_user_on_write", "1", "deals_move").is(t, 422, "“deals_move” changed and is held back")

	accept := func(version, digest string) page {
		return b.post(path+"/accept", "tool", "deals_move", "digest", digest, "version", version)
	}
	digest := p.between(t, `name="digest" value="`, `"`)
	accept(b.version(key), strings.Repeat("0", 64)).is(t, 409, "changed again while you read")

	// It changes once more before the press: what was read is not what would be accepted.
	stale := b.version(key)
	s.patch("deals_move", map[string]any{"description": "Moves a deal and deletes the contact."})
	b.post(path + "/test")
	accept(stale, digest).is(t, 409)
	accept(b.version(key), digest).is(t, 409, "changed again while you read", "deletes the contact")

	digest = b.get(path).between(t, `name="digest" value="`, `"`)
	version := b.version(key)
	accept(version, digest).goes(t, path)
	accept(version, digest).is(t, 409)
	b.get(path).is(t, 200, "Accepted.").lacks(t, "changed and is held back")
	if pin, _ := s.standing(key).Snapshot.Find("deals_move"); pin.Digest != digest {
		t.Errorf("pinned %s, want %s", pin.Digest, digest)
	}
	if _, granted := s.standing(key).Snapshot.Find("deals_archive"); granted {
		t.Error("a tool that appeared was granted")
	}
}

// A held-back tool has no tick to post: moving the mode alone is no question, and leaves it out.
func TestMovingTheModeWhileSomethingIsHeldBack(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.save(key, "read_only", "").goes(t, path)
	s.patch("contacts_get", map[string]any{"description": "Something else."})
	b.post(path+"/test").goes(t, path)
	left := slices.DeleteFunc(slices.Clone(crmReads), func(n string) bool { return n == "contacts_get" })
	b.save(key, "ask_user_on_write", "", left...).goes(t, path)
	got := s.standing(key).Snapshot
	if _, ok := got.Find("contacts_get"); ok || got.Len() != 10 {
		t.Fatalf("granted: %v", got.Tools())
	}
}

func TestAStaleFormChangesNothing(t *testing.T) {
	s := newShop(t)
	b, other := s.as("admin@harbor.test"), s.as("owner@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	seen := b.version(key)
	other.save(key, "read_only", "").goes(t, path)
	b.post(path+"/access", "version", seen, "mode", "autonomous", "tools_supplied", "").is(t, 409, "Somebody else changed this connection while you read", `value="read_only" checked`)
	for _, part := range []string{"/rename", "/disconnect", "/retire"} {
		b.post(path+part, "version", seen, "name", "Mine").is(t, 409)
		b.post(path+part, "version", "-1", "name", "Mine").is(t, 422)
	}
	for _, part := range []string{"/disconnect", "/retire"} {
		b.post(path+part).is(t, 422, "Not ended.")
	}
	s.grants(key, policy.ReadOnly, crmReads...)

	// Mode and tools may be posted without a version: then the connection is meant as it is.
	b.post(path+"/access", "mode", "read_only", "tools_supplied", "1", "tools", "wait").goes(t, path)
	s.grants(key, policy.ReadOnly, "wait")
}

func TestOneFormMakesOneConnection(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	form := b.get("/connections/new/sandbox-crm").between(t, `name="form" value="`, `"`)
	places := make([]string, 6)
	var all sync.WaitGroup
	for i := range places {
		all.Go(func() {
			places[i] = b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "api_key", crmKey).Header.Get("Location")
		})
	}
	all.Wait()
	for _, p := range places {
		if p == "" || p != places[0] {
			t.Fatalf("the presses lead to %q", places)
		}
	}
	found, err := db.Connections{DB: s.db}.Connections(t.Context(), s.org.ID)
	s.must(err)
	if len(found) != 1 {
		t.Fatalf("%d connections", len(found))
	}
	b.post("/connections/new/sandbox-crm", "form", "con_mine", "contract", "token", "api_key", crmKey).is(t, 422, "This form was not drawn here")
	// Another organization's id is nobody's to look at.
	alien := s.as("owner@elsewhere.test")
	if p := alien.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "api_key", crmKey); p.StatusCode == http.StatusSeeOther && p.Header.Get("Location") == places[0] {
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
	b.post("/connections/new/sandbox-crm", "form", form, "contract", "oauth2", "api_key", crmKey).is(t, 422, "does not offer this way")

	// A key the service refuses is stored, and the page says what is wrong.
	p := b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "api_key", "not-the-key-of-the-crm")
	key := keyOf(t, p)
	path := "/connections/" + key.String()
	b.get(path).is(t, 200, "The last test failed.", "Not working", "but the test failed").lacks(t, "not-the-key-of-the-crm")

	b.post(path+"/credential", "api_key", "").is(t, 422, "it is needed to connect")
	b.post(path+"/credential", "api_key", "two lines\nof it").is(t, 422).lacks(t, "two lines")
	b.post(path+"/credential", "api_key", crmKey).goes(t, path)
	b.get(path).is(t, 200, "Working", "…"+crmKey[len(crmKey)-4:], "Credential replaced", `data-test="save-credential"`).lacks(t, crmKey, "The last test failed.")
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
	for _, part := range []string{"/access", "/accept", "/credential", "/test", "/rename", "/disconnect", "/retire"} {
		m.post(path+part, "version", version, "mode", "autonomous", "api_key", crmKey).is(t, 403)
	}
	m.post("/connections/new/sandbox-crm", "api_key", crmKey).is(t, 403)
	s.as("auditor@harbor.test").get(path).is(t, 200, "Mode and tools saved")

	alien := s.as("owner@elsewhere.test")
	alien.get(path).is(t, 404)
	for _, part := range []string{"/access", "/accept", "/credential", "/test", "/rename", "/disconnect", "/retire"} {
		alien.post(path+part, "version", version, "mode", "autonomous", "tool", "wait", "digest", "d", "name", "Mine", "api_key", crmKey).is(t, 404)
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
	b.post(path+"/credential", "api_key", crmKey).goes(t, path)
	b.get(path).is(t, 200, "Working")
	s.grants(key, policy.ReadOnly, crmReads...)

	version := b.version(key)
	b.get(path).is(t, 200, "Retiring ends this connection for good", `data-test="retire"`)
	b.post(path+"/retire", "version", version).goes(t, path)
	b.post(path+"/retire", "version", version).is(t, 409, "retired; that cannot be undone")
	b.get(path).is(t, 200, "This connection is retired.", "Connection retired").lacks(t, "save-access", "save-credential", `data-test="retire"`)
	b.post(path+"/credential", "api_key", crmKey).is(t, 409)
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

// Nobody waits for the catalog: a thousand integrations are searched from memory.
func TestAThousandIntegrations(t *testing.T) {
	s := newShop(t)
	b := s.as("member@harbor.test")
	files := fstest.MapFS{}
	raw, err := fs.ReadFile(catalog.Files(), "deepwiki.toml")
	s.must(err)
	for i := range 1000 {
		key := fmt.Sprintf("wiki-%04d", i)
		text := strings.Replace(string(raw), `key = "deepwiki"`, `key = "`+key+`"`, 1)
		text = regexp.MustCompile(`(?m)^name = .*$`).ReplaceAllString(text, fmt.Sprintf("name = \"Wiki %04d\"", i))
		files[key+".toml"] = &fstest.MapFile{Data: []byte(text)}
	}
	_, err = release.Publish(t.Context(), db.NewReleases(s.db, s.table), files, s.table)
	s.must(err)
	b.get("/catalog").is(t, 200, "1,000 integrations", "The other 976 in")
	fastest := time.Hour
	for range 5 {
		began := time.Now()
		b.get("/catalog?q="+url.QueryEscape("wiki 0777")).is(t, 200, "Wiki 0777", "1 of 1,000 integrations")
		fastest = min(fastest, time.Since(began))
	}
	if fastest > 250*time.Millisecond {
		t.Errorf("a question takes %v", fastest)
	}
}
