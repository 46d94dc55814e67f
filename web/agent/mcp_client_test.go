package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/action"
	"countersign/internal/connector"
)

// eras are the revisions the official SDK's client is made to speak, unmodified.
var eras = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// client connects the official SDK's client, to all connections or, with a key, to one.
func (w *world) client(r started, era string, only connector.Key) *mcp.ClientSession {
	w.T.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(w.T.Context(), &mcp.StreamableClientTransport{Endpoint: w.url(only), HTTPClient: &http.Client{Transport: bearing{r.bearer}}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	check(w.T, err)
	w.T.Cleanup(func() { _ = s.Close() })
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
func names(t testing.TB, s *mcp.ClientSession) (out []string) {
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

func call(t testing.TB, s *mcp.ClientSession, tool, arguments string, meta ...string) called {
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
	w.T.Helper()
	return w.send(http.MethodPost, r.bearer, path, body, headers...)
}

func (w *world) send(method, bearer, path, body string, headers ...string) (int, http.Header, string) {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.T.Context(), method, w.server.URL+path, strings.NewReader(body))
	check(w.T, err)
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
	check(w.T, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	check(w.T, err)
	return res.StatusCode, res.Header, string(out)
}

func mustHave(t testing.TB, list []string, want ...string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(list, name) {
			t.Errorf("%s is missing from %v", name, list)
		}
	}
}

func mustLack(t testing.TB, list []string, unwanted ...string) {
	t.Helper()
	for _, name := range unwanted {
		if slices.Contains(list, name) {
			t.Errorf("%s is in %v", name, list)
		}
	}
}
