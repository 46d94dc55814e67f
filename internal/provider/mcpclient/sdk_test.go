package mcpclient_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/action"
	"countersign/internal/provider"
)

// sdkServer is a server made with the official SDK, in front of which requests are noted.
type sdkServer struct {
	url     string
	mu      sync.Mutex
	methods []string // of the requests, in order; DELETE for the end of a session
	handler atomic.Pointer[http.Handler]
	applied atomic.Int64
}

// tool definitions of the SDK's server: an effect, and a read that echoes what a client sent.
func (s *sdkServer) newServer() *mcp.Server {
	m := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "9"}, &mcp.ServerOptions{PageSize: 2})
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"},"n":{"type":"integer"}}}`)
	m.AddTool(&mcp.Tool{Name: "apply", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.applied.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}, Meta: mcp.Meta{"hidden": "channel"}}, nil
	})
	m.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema, Icons: []mcp.Icon{{Source: "https://icons.example/i.png"}}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments), Meta: mcp.Meta{"k": "v"}}, &mcp.TextContent{Text: r.Extra.Header.Get("Mcp-Param-City")}},
		}, nil
	})
	for _, name := range []string{"c", "d", "e"} {
		m.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	}
	return m
}

func (s *sdkServer) serve(o *mcp.StreamableHTTPOptions) {
	server := s.newServer()
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, o)
	s.handler.Store(&h)
}

func startSDK(t *testing.T, o *mcp.StreamableHTTPOptions) *sdkServer {
	t.Helper()
	s := &sdkServer{}
	s.serve(o)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		(*s.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *sdkServer) note(r *http.Request) {
	name := r.Method
	if r.Method == http.MethodPost {
		body := newPeek(r)
		var m struct{ Method string }
		_ = json.Unmarshal(body, &m)
		name = m.Method
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.methods = append(s.methods, name)
}

// since returns the methods that came since the last call.
func (s *sdkServer) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.methods
	s.methods = nil
	return out
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

var (
	echo  = provider.Call{Tool: "echo", Arguments: json.RawMessage(`{"city":"Zürich","n":12345678901234567890}`)}
	apply = provider.Call{Tool: "apply", Arguments: json.RawMessage(`{}`)}
)

func TestAStatelessServerIsSpokenToWithoutASession(t *testing.T) {
	for _, jsonAnswers := range []bool{true, false} {
		s := startSDK(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: jsonAnswers})
		c := connTo(t, s.url, "", provider.Settings{})
		list, err := client.Tools(t.Context(), c)
		if err != nil || len(list) != 5 {
			t.Fatal(len(list), err)
		}
		same(t, s.since(), []string{"server/discover", "tools/list", "tools/list", "tools/list"})
		r, err := client.Read(t.Context(), c, echo)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"content":[{"type":"text","text":"{\"city\":\"Zürich\",\"n\":12345678901234567890}"},{"type":"text","text":"=?base64?WsO8cmljaA==?="}]}`; string(r.Raw) != want {
			t.Errorf("answered %s\nwant     %s", r.Raw, want)
		}
		same(t, s.since(), []string{"tools/call"})
		o := client.Execute(t.Context(), c, apply)
		if o.Kind() != action.OutcomeSucceeded || strings.Contains(string(o.Result()), "hidden") || s.applied.Load() != 1 {
			t.Errorf("%s %s %s", o.Kind(), o.Sentence(), o.Result())
		}
		same(t, s.since(), []string{"tools/call"})
		f, err := client.Test(t.Context(), c)
		if err != nil || f.Protocol != "MCP 2026-07-28" || f.Server != "sdk 9" || f.Tools != 5 {
			t.Errorf("%+v %v", f, err)
		}
	}
}

func TestA2025ServerGetsASessionForReadsAndOneOfItsOwnForEachWrite(t *testing.T) {
	s := startSDK(t, nil)
	c := connTo(t, s.url, "", provider.Settings{})
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
	same(t, s.since(), []string{"server/discover", "initialize", "notifications/initialized", "tools/call"})
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
	same(t, s.since(), []string{"tools/call"})
	o := client.Execute(t.Context(), c, apply)
	if o.Kind() != action.OutcomeSucceeded || s.applied.Load() != 1 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
	same(t, s.since(), []string{"initialize", "notifications/initialized", "tools/call", "DELETE"})
	f, err := client.Test(t.Context(), c)
	if err != nil || f.Protocol != "MCP 2025-11-25" || f.Tools != 5 {
		t.Errorf("%+v %v", f, err)
	}
}

func TestALostSessionIsReplacedForAReadAndProvesThatAWriteWasNotApplied(t *testing.T) {
	s := startSDK(t, nil)
	c := connTo(t, s.url, "", provider.Settings{})
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
	s.since()
	s.serve(nil) // a restart: the same address, no memory of sessions
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
	same(t, s.since(), []string{"tools/call", "server/discover", "initialize", "notifications/initialized", "tools/call"})

	s.forgetBefore("tools/call")
	o := client.Execute(t.Context(), c, apply)
	if o.Kind() != action.OutcomeFailed || s.applied.Load() != 0 || o.Evidence().Status != http.StatusNotFound {
		t.Errorf("%s %s %+v", o.Kind(), o.Sentence(), o.Evidence())
	}
	if n := count(s.since(), "tools/call"); n != 1 {
		t.Errorf("the write was sent %d times", n)
	}
}

// forgetBefore makes the server lose its sessions just before the next request of a method.
func (s *sdkServer) forgetBefore(method string) {
	old := *s.handler.Load()
	var once sync.Once
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := newPeek(r)
		if strings.Contains(string(body), `"method":"`+method+`"`) {
			once.Do(func() { s.serve(nil) })
			(*s.handler.Load()).ServeHTTP(w, r)
			return
		}
		old.ServeHTTP(w, r)
	})
	s.handler.Store(&h)
}

func count(list []string, s string) (n int) {
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}

func TestAServerThatWasUpgradedOrDowngradedIsAgreedWithAnew(t *testing.T) {
	s := startSDK(t, &mcp.StreamableHTTPOptions{Stateless: true})
	c := connTo(t, s.url, "", provider.Settings{})
	for i, o := range []*mcp.StreamableHTTPOptions{nil, {Stateless: true}, nil} {
		if _, err := client.Read(t.Context(), c, echo); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		s.serve(o)
	}
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
}

func TestAWriteFollowsAServerToAnotherRevision(t *testing.T) {
	s := startSDK(t, nil)
	c := connTo(t, s.url, "", provider.Settings{})
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
	s.serve(&mcp.StreamableHTTPOptions{Stateless: true}) // upgraded: initialize is still answered there, without a session
	if o := client.Execute(t.Context(), c, apply); o.Kind() != action.OutcomeSucceeded || s.applied.Load() != 1 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
	s.serve(&mcp.StreamableHTTPOptions{Stateless: true})
	c = connTo(t, s.url, "", provider.Settings{})
	if _, err := client.Tools(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.serve(nil) // downgraded: the revision agreed on is refused, which proves that nothing was applied
	if o := client.Execute(t.Context(), c, apply); o.Kind() != action.OutcomeFailed || s.applied.Load() != 1 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
	if o := client.Execute(t.Context(), c, apply); o.Kind() != action.OutcomeSucceeded || s.applied.Load() != 2 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
}

func TestWarmReadsKeepTheirConnectionWhateverTheFormOfAnswers(t *testing.T) {
	for _, jsonAnswers := range []bool{true, false} {
		var opened atomic.Int64
		s := &sdkServer{}
		s.serve(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: jsonAnswers})
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) }))
		srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		srv.Start()
		c := connTo(t, srv.URL, "", provider.Settings{})
		for range 10 {
			if _, err := client.Read(t.Context(), c, provider.Call{Tool: "c"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := opened.Load(); n > 3 { // a machine under load may miss the moment in which a stream ends, but not each time
			t.Errorf("json %v: %d connections for ten reads", jsonAnswers, n)
		}
		srv.Close()
	}
}

func TestManyColdReadsAgreeOnce(t *testing.T) {
	s := startSDK(t, &mcp.StreamableHTTPOptions{Stateless: true})
	c := connTo(t, s.url, "", provider.Settings{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := client.Read(t.Context(), c, provider.Call{Tool: "c"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := s.since()
	if count(got, "server/discover") != 1 || count(got, "tools/call") != 20 {
		t.Errorf("requests %v", got)
	}
}

func TestHeadersThatADefinitionAsksForAreLearned(t *testing.T) {
	s := startSDK(t, &mcp.StreamableHTTPOptions{Stateless: true})
	c := connTo(t, s.url, "", provider.Settings{})
	if _, err := client.Read(t.Context(), c, echo); err != nil {
		t.Fatal(err)
	}
	got := s.since()
	if got[1] != "tools/call" || got[2] != "tools/list" || got[len(got)-1] != "tools/call" || count(got, "tools/call") != 2 {
		t.Errorf("requests %v", got)
	}

	c = connTo(t, s.url, "", provider.Settings{})
	if o := client.Execute(t.Context(), c, echo); o.Kind() != action.OutcomeSucceeded || count(s.since(), "tools/call") != 1 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}

	c = connTo(t, s.url, "", provider.Settings{})
	call := echo
	call.Definition = json.RawMessage(`{"name":"echo","inputSchema":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}}`)
	if o := client.Execute(t.Context(), c, call); o.Kind() != action.OutcomeSucceeded {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
	same(t, s.since(), []string{"server/discover", "tools/call"})
}

func TestConcurrentReadsGetTheirOwnAnswers(t *testing.T) {
	s := startSDK(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	conns := []*provider.Conn{connTo(t, s.url, "", provider.Settings{}), connTo(t, s.url, "", provider.Settings{})}
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			var kept []provider.Result
			var want []string
			for n := range 20 {
				text := strings.Repeat(string(rune('a'+worker)), 10+n*200)
				r, err := client.Read(t.Context(), conns[worker%2], provider.Call{Tool: "echo", Arguments: json.RawMessage(`{"own":"` + text + `"}`)})
				if err != nil {
					t.Error(err)
					return
				}
				kept, want = append(kept, r), append(want, `{\"own\":\"`+text+`\"}`)
			}
			for i, r := range kept { // only now: an answer must not change when its memory is used again
				if !strings.Contains(string(r.Raw), want[i]) {
					t.Errorf("worker %d got %.80s", worker, r.Raw)
				}
			}
		})
	}
	wg.Wait()
}
