package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/catalog"
	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/dispatch"
	"countersign/internal/gateway"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/reach"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/run"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
	"countersign/web/agent"
)

const (
	crmToken     = "crm-credential-3b1f8a0c5d7e"
	controlToken = "crm-control-9a2b4c6d8e0f"
	publicURL    = "http://countersign.test"
)

// world is the gateway over a real database and the Sandbox CRM, with a second upstream whose list and answers the test writes.
type world struct {
	t           testing.TB
	db          *db.DB
	org         identity.Org
	admin       identity.Person
	approver    identity.Person
	asker       identity.Person
	token       servicetoken.Token
	crm         *httptest.Server
	odd         *upstream
	connections *installation.Connections
	actions     db.Actions
	runs        db.Runs
	recorder    *db.Recorder
	gateway     *gateway.Gateway
	server      *httptest.Server
	profileAt   map[string]int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	d, err := db.Open(t.Context(), dbtest.New(t, db.Migrate))
	check(t, err)
	t.Cleanup(d.Close)
	w := &world{t: t, db: d, actions: db.Actions{DB: d}, runs: db.Runs{DB: d}, profileAt: map[string]int{}, odd: newUpstream(t)}
	w.people()
	w.crm = httptest.NewServer(crm.New(crm.Config{BearerToken: crmToken, ControlToken: controlToken}).Handler())
	t.Cleanup(w.crm.Close)

	table := registry.Trusted()
	toCRM, err := table.NewOverride("sandbox_crm.v1", w.crm.URL+"/mcp")
	check(t, err)
	toOdd, err := table.NewOverride("deepwiki.v1", w.odd.URL+"/mcp")
	check(t, err)
	table = table.With(toCRM, toOdd)
	releases := db.NewReleases(d, table)
	_, err = release.Publish(t.Context(), releases, catalog.Files(), table)
	check(t, err)
	keys, err := secret.Generate()
	check(t, err)
	credentials, stored := db.Credentials{DB: d}, db.Connections{DB: d}
	lines := reach.New(releases, table, credential.NewVault(keys, credentials), map[registry.Kind]provider.Provider{hosted.Kind: hosted.New("test")})
	t.Cleanup(lines.Close)
	w.connections = &installation.Connections{Read: stored, Write: stored, Prober: lines, Releases: releases, Credentials: credentials, Registry: table, Keys: keys}
	w.recorder = d.NewRecorder(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { check(t, w.recorder.Close(context.Background())) })
	w.gateway = gateway.New(gateway.Config{
		Lines: lines, Actions: w.actions, Recorder: w.recorder, Observer: w.connections, PublicURL: publicURL,
		Dispatch: &dispatch.Dispatcher{Actions: w.actions, Connections: stored, Lines: lines, Log: slog.New(slog.DiscardHandler)},
	})
	t.Cleanup(func() { w.gateway.Drain(context.Background()) })
	mux := http.NewServeMux()
	endpoint := agent.NewMCP(w.runs, w.gateway, "test")
	mux.Handle("/gateway/mcp", endpoint)
	mux.Handle("/gateway/mcp/{connection}", endpoint)
	mux.Handle("GET /gateway/config", agent.NewConfig(w.runs, publicURL))
	w.server = httptest.NewServer(mux)
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) people() {
	w.t.Helper()
	w.org = identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: "home", Name: "Home"}
	person := func(name string, roles ...identity.Role) identity.Person {
		return identity.Person{ID: identity.PersonID(identity.NewID("per_")), Org: w.org.ID, Email: name + "@home.test", Roles: roles, Active: true}
	}
	store := db.People{DB: w.db}
	note := audit.Entry{Org: w.org.ID, Actor: audit.Operator, Event: audit.PersonAdded, Object: audit.Object{Kind: "person", ID: "x"}}
	w.admin, w.approver, w.asker = person("admin", identity.Owner, identity.Admin), person("approver", identity.Approver), person("asker", identity.Member)
	check(w.t, store.CreateOrganization(w.t.Context(), w.org, w.admin, "hash", note))
	check(w.t, store.AddPerson(w.t.Context(), w.approver, "hash", note))
	check(w.t, store.AddPerson(w.t.Context(), w.asker, "hash", note))
	token, _, hash, err := servicetoken.New(w.admin, "runtime", []string{"runs:write"})
	check(w.t, err)
	w.token, err = db.ServiceTokens{DB: w.db}.SaveToken(w.t.Context(), token, hash, time.Hour, note)
	check(w.t, err)
}

// install connects an integration and grants it: every eligible tool of the mode, or those named.
func (w *world) install(integration, name string, mode policy.Mode, tools ...string) installation.Connection {
	w.t.Helper()
	setup := installation.Setup{Integration: integration, Name: name}
	if integration == "sandbox-crm" {
		setup.Secrets = map[string]secret.Value{"api_key": secret.New(crmToken)}
	}
	c, err := w.connections.Install(w.t.Context(), w.admin, setup)
	check(w.t, err)
	if !c.Health.OK {
		w.t.Fatalf("%s does not work: %s", integration, c.Health.What)
	}
	return w.access(c, mode, tools...)
}

func (w *world) access(c installation.Connection, mode policy.Mode, tools ...string) installation.Connection {
	w.t.Helper()
	c, err := w.connections.SaveAccess(w.t.Context(), w.admin, installation.Access{Key: c.Key, Choice: policy.Choice{Mode: mode, Listed: len(tools) > 0, Tools: tools}})
	check(w.t, err)
	return c
}

func (w *world) profile(name string, connections ...installation.Connection) {
	w.t.Helper()
	p := profile.Profile{Org: w.org.ID, Name: name, Budget: 500, Version: w.profileAt[name]}
	for _, c := range connections {
		p.Uses = append(p.Uses, profile.Use{Connection: c.Key})
	}
	w.saveProfile(p)
}

func (w *world) saveProfile(p profile.Profile) {
	w.t.Helper()
	check(w.t, db.Profiles{DB: w.db}.SaveProfile(w.t.Context(), p, audit.Entry{Org: w.org.ID, Actor: audit.Person(w.admin), Event: audit.ProfileSaved, Object: audit.Object{Kind: "profile", ID: p.Name}}))
	w.profileAt[p.Name]++
}

// started is a run with its token.
type started struct {
	capability.Live
	bearer string
}

func (w *world) start(surface policy.Surface, profile string) started {
	w.t.Helper()
	token, hash := run.NewToken()
	o := capability.Order{Order: run.Order{Surface: surface, Profile: profile, TTL: time.Hour}, Token: w.token, TokenHash: hash}
	if surface == policy.Task {
		o.Task, o.OnBehalfOf = "ENG-12", w.asker.Email
	}
	l, _, err := w.runs.Mint(w.t.Context(), o, audit.Entry{Org: w.org.ID, Actor: audit.Actor{Kind: audit.ByService, ID: w.token.ID, Name: w.token.Name}, Event: audit.RunStarted, Object: audit.Object{Kind: "run"}})
	check(w.t, err)
	return started{l, token}
}

func (w *world) approve(id action.ID) {
	w.t.Helper()
	a, err := w.actions.Action(w.t.Context(), w.org.ID, id)
	check(w.t, err)
	_, err = w.actions.Approve(w.t.Context(), action.Decision{Org: w.org.ID, Action: id, By: w.approver, ArgsDigest: a.ArgsDigest, Version: a.Version})
	check(w.t, err)
}

// dispatch sends an approved action as the worker would.
func (w *world) dispatch(id action.ID) {
	w.t.Helper()
	_, err := w.gateway.Dispatch.Dispatch(w.t.Context(), w.org.ID, id)
	check(w.t, err)
}

// journal is what the CRM really did.
func (w *world) journal() (tools []string) {
	w.t.Helper()
	var entries []struct{ Tool string }
	check(w.t, json.Unmarshal(w.control(http.MethodGet, "/journal", ""), &entries))
	for _, e := range entries {
		tools = append(tools, e.Tool)
	}
	return tools
}

func (w *world) control(method, path, body string) []byte {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.crm.URL+path, strings.NewReader(body))
	check(w.t, err)
	req.Header.Set("Authorization", "Bearer "+controlToken)
	res, err := http.DefaultClient.Do(req)
	check(w.t, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	check(w.t, err)
	if res.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, out)
	}
	return out
}

// eras are the revisions the official SDK's client is made to speak, unmodified.
var eras = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// client connects the official SDK's client, to all connections or, with a key, to one.
func (w *world) client(r started, era string, only connector.Key) *mcp.ClientSession {
	w.t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(w.t.Context(), &mcp.StreamableClientTransport{Endpoint: w.url(only), HTTPClient: &http.Client{Transport: bearing{r.bearer}}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	check(w.t, err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) url(only connector.Key) string {
	if only == "" {
		return w.server.URL + "/gateway/mcp"
	}
	return w.server.URL + "/gateway/mcp/" + only.String()
}

type bearing struct{ token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// names lists what a client sees.
func names(t *testing.T, s *mcp.ClientSession) (out []string) {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	check(t, err)
	for _, tool := range list.Tools {
		out = append(out, tool.Name)
	}
	return out
}

// called is an answer in the form the tests ask about.
type called struct {
	*mcp.CallToolResult
	text string
	data map[string]any
}

func (c called) code() string {
	e, _ := c.data["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

func (c called) id() action.ID {
	id, _ := c.data["action_id"].(string)
	return action.ID(id)
}

func call(t *testing.T, s *mcp.ClientSession, tool, arguments string, meta ...string) called {
	t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}
	if len(meta) == 2 {
		p.Meta = mcp.Meta{meta[0]: meta[1]}
	}
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	c := called{CallToolResult: r}
	c.data, _ = r.StructuredContent.(map[string]any)
	for _, item := range r.Content {
		if text, ok := item.(*mcp.TextContent); ok {
			c.text += text.Text
		}
	}
	return c
}

// post sends raw bytes as a client of our own would.
func (w *world) post(r started, path, body string, headers ...string) (int, http.Header, string) {
	w.t.Helper()
	return w.send(http.MethodPost, r.bearer, path, body, headers...)
}

func (w *world) send(method, bearer, path, body string, headers ...string) (int, http.Header, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	check(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultClient.Do(req)
	check(w.t, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	check(w.t, err)
	return res.StatusCode, res.Header, string(out)
}

func (w *world) trail(event audit.Event) []audit.Recorded {
	w.t.Helper()
	var out []audit.Recorded
	deadline := time.Now().Add(10 * time.Second) // the recorder writes in batches
	for {
		var err error
		out, err = db.Audit{DB: w.db}.Entries(w.t.Context(), w.org.ID, audit.Filter{Event: string(event), Limit: 500})
		check(w.t, err)
		if len(out) > 0 || time.Now().After(deadline) {
			return out
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func fact(r audit.Recorded, name string) string {
	for _, f := range r.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustHave(t *testing.T, list []string, want ...string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(list, name) {
			t.Errorf("%s is missing from %v", name, list)
		}
	}
}

func mustLack(t *testing.T, list []string, unwanted ...string) {
	t.Helper()
	for _, name := range unwanted {
		if slices.Contains(list, name) {
			t.Errorf("%s is in %v", name, list)
		}
	}
}

// upstream is an MCP server of the 2025 kind whose list is written by the test, byte for byte.
type upstream struct {
	*httptest.Server
	tools chan []string // holds the list
	calls chan []string // holds the names called
	down  chan bool
	hold  chan chan struct{} // until it is closed, nothing is answered, where there is one
	next  chan *url.URL      // answers in its place, where there is one
}

func newUpstream(t testing.TB) *upstream {
	u := &upstream{tools: make(chan []string, 1), calls: make(chan []string, 1), down: make(chan bool, 1), next: make(chan *url.URL, 1), hold: make(chan chan struct{}, 1)}
	u.hold <- nil
	u.next <- nil
	u.tools <- nil
	u.calls <- nil
	u.down <- false
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func swap[T any](c chan T, v T) T {
	old := <-c
	c <- v
	return old
}

func peek[T any](c chan T) T {
	v := <-c
	c <- v
	return v
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if next := peek(u.next); next != nil {
		forward(w, r, next)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if hold := peek(u.hold); hold != nil {
		<-hold
	}
	switch {
	case peek(u.down):
		panic(http.ErrAbortHandler)
	case json.Unmarshal(body, &m) != nil || r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := `"error":{"code":-32601,"message":"no such method"}`
	switch m.Method {
	case "initialize":
		answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
	case "tools/list":
		answer = `"result":{"tools":[` + strings.Join(peek(u.tools), ",") + `]}`
	case "tools/call":
		u.calls <- append(<-u.calls, m.Params.Name)
		answer = `"result":{"content":[{"type":"text","text":` + quoted(m.Params.Name+" "+string(m.Params.Arguments)) + `}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`))
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSpace(b.String())
}

// reading is the raw definition of a tool that says it reads.
func reading(name, schema string) string {
	return `{"name":` + quoted(name) + `,"description":"Reads.","inputSchema":` + schema + `,"outputSchema":{"type":"object"},"icons":[{"src":"https://evil.example/i.png"}],"_meta":{"x":1},"annotations":{"readOnlyHint":true}}`
}
