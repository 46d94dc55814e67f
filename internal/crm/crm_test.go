package crm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	bearer  = "mcp-credential-for-tests"
	ctlCred = "control-credential-for-tests"
)

// patience is how long a test waits for something that should happen at once.
const patience = 10 * time.Second

// eras are the protocol versions every client-facing test runs with.
var eras = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// running is a CRM that serves on a real socket.
type running struct {
	t    *testing.T
	url  string
	log  *lockedBuffer
	stop func() error // ends Run and returns what it returned
}

func start(t *testing.T) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	s := New(Config{BearerToken: bearer, ControlToken: ctlCred, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, ln) }()
	c := &running{t: t, url: "http://" + ln.Addr().String(), log: log}
	c.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return fmt.Errorf("Run did not end")
		}
	})
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return c
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type withBearer struct {
	http.RoundTripper
	token string
}

func (w withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.RoundTripper.RoundTrip(r)
}

// client connects a real MCP client of an era, one TCP connection per request.
func (c *running) client(era string) *mcp.ClientSession {
	c.t.Helper()
	transport := &mcp.StreamableClientTransport{
		Endpoint: c.url + "/mcp", MaxRetries: -1, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: withBearer{&http.Transport{DisableKeepAlives: true}, bearer}},
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(c.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		c.t.Fatalf("connect as %s: %v", era, err)
	}
	c.t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != era {
		c.t.Fatalf("negotiated %s, wanted %s", got, era)
	}
	return cs
}

// request builds a JSON-RPC request of an era by hand, for tests that look at the wire.
func (c *running) request(ctx context.Context, era, method, params string) *http.Request {
	c.t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		c.t.Fatal(err)
	}
	name, _ := p["name"].(string)
	if era >= firstStateless {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + era + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		if params == "{}" {
			params = "{" + meta + "}"
		} else {
			params = strings.TrimSuffix(params, "}") + "," + meta + "}"
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":`+params+`}`))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", era)
	r.Header.Set("Mcp-Method", method)
	if name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	return r
}

// fresh never reuses a connection: a fault must be seen by the call it was meant for.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// send answers status and body; err is the connection's error, whether before or within the body.
func send(r *http.Request) (status int, body string, err error) {
	resp, err := fresh.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// rawTools answers the tool objects of tools/list as they are on the wire, by listed name.
func (c *running) rawTools(era string) (byName map[string]json.RawMessage, order []string) {
	c.t.Helper()
	status, body, err := send(c.request(c.t.Context(), era, "tools/list", "{}"))
	if err != nil || status != http.StatusOK {
		c.t.Fatalf("tools/list as %s: %d %s %v", era, status, body, err)
	}
	var r struct {
		Result struct {
			ResultType string            `json:"resultType"`
			CacheScope string            `json:"cacheScope"`
			Tools      []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		c.t.Fatal(err)
	}
	if wantType := map[bool]string{true: "complete"}[era >= firstStateless]; r.Result.ResultType != wantType || r.Result.CacheScope != "private" {
		c.t.Errorf("as %s: resultType %q, cacheScope %q", era, r.Result.ResultType, r.Result.CacheScope)
	}
	byName = map[string]json.RawMessage{}
	for _, raw := range r.Result.Tools {
		var n struct{ Name string }
		if err := json.Unmarshal(raw, &n); err != nil {
			c.t.Fatal(err)
		}
		byName[n.Name] = raw
		order = append(order, n.Name)
	}
	return byName, order
}

// control sends a control request and answers status and body.
func (c *running) control(method, path, body string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ctlCred)
	status, answer, err := send(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, answer
}

// order sends a control request that must be accepted.
func (c *running) order(path, body string) {
	c.t.Helper()
	if status, answer := c.control(http.MethodPost, path, body); status != http.StatusOK {
		c.t.Fatalf("POST %s %s: %d %s", path, body, status, answer)
	}
}

func (c *running) journal() []entry {
	c.t.Helper()
	status, body := c.control(http.MethodGet, "/journal", "")
	if status != http.StatusOK {
		c.t.Fatalf("GET /journal: %d %s", status, body)
	}
	var j []entry
	if err := json.Unmarshal([]byte(body), &j); err != nil || j == nil {
		c.t.Fatalf("journal %s: %v", body, err)
	}
	return j
}

// applied fails unless the journal holds exactly these tools, in order.
func (c *running) applied(tools ...string) {
	c.t.Helper()
	j := c.journal()
	got := make([]string, len(j))
	for i, e := range j {
		got[i] = e.Tool
	}
	if strings.Join(got, " ") != strings.Join(tools, " ") {
		c.t.Errorf("journal holds %v, wanted %v", got, tools)
	}
}

// eventually polls until cond holds.
func (c *running) eventually(what string, cond func() bool) {
	c.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			c.t.Fatalf("never happened: %s", what)
		}
	}
}

// ask calls a tool that must answer.
func ask(t *testing.T, cs *mcp.ClientSession, tool, args string) (text string, structured map[string]any, isError bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s: %d pieces of content", tool, len(res.Content))
	}
	structured, _ = res.StructuredContent.(map[string]any)
	return res.Content[0].(*mcp.TextContent).Text, structured, res.IsError
}
