package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// eras are the protocol revisions the official SDK's client is made to speak, unmodified.
var eras = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

// agentRuntime is the program that starts runs: it holds a service token.
type agentRuntime struct{ url, token string }

func (s *server) runtime() agentRuntime { return agentRuntime{s.url, s.sandbox.Token} }

// asks sends one request of the service API and decodes its answer.
func (r agentRuntime) asks(t *testing.T, method, path string, body, into any, headers ...string) int {
	t.Helper()
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		must(t, err)
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, payload)
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	must(t, err)
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, raw)
		}
	}
	return res.StatusCode
}

// order is the body of POST /api/v1/runs.
type order map[string]any

// task is an order for a task run, on behalf of the sandbox's admin.
func task(profile, reference string) order {
	return order{"surface": "task", "profile": profile, "task": reference, "on_behalf_of": "admin@sandbox.test"}
}

func chat(profile string) order { return order{"surface": "chat", "profile": profile} }

// started is a run with its token.
type started struct {
	ID      string
	Token   string
	Surface string
	Gateway struct {
		MCP struct{ URL string }
	}
}

func (r agentRuntime) starts(t *testing.T, o order) started {
	t.Helper()
	var run started
	if status := r.asks(t, http.MethodPost, "/api/v1/runs", o, &run); status != http.StatusCreated || run.Token == "" {
		t.Fatalf("starting %v answers %d, %+v", o, status, run)
	}
	return run
}

// staged is an action as the service API shows it.
type staged struct {
	ID, Run, Task, Profile, Connection, Tool, Effect, State, Resolution, Reason string
	OnBehalfOf                                                                  string          `json:"on_behalf_of"`
	Arguments                                                                   json.RawMessage `json:"arguments"`
	ArgsDigest                                                                  string          `json:"args_digest"`
	ApprovalURL                                                                 string          `json:"approval_url"`
	DecidedBy                                                                   string          `json:"decided_by"`
	Result                                                                      json.RawMessage
	Timeline                                                                    []struct{ At, Event, By string }
}

func (r agentRuntime) action(t *testing.T, id string) staged {
	t.Helper()
	var a staged
	if status := r.asks(t, http.MethodGet, "/api/v1/actions/"+id, nil, &a); status != http.StatusOK {
		t.Fatalf("action %s answers %d", id, status)
	}
	return a
}

// endStates are those that nothing follows.
var endStates = []string{"succeeded", "failed", "denied", "expired", "cancelled", "closed_unknown"}

// settles waits until an action is in a state; one that has ended otherwise is not waited for.
func (r agentRuntime) settles(t *testing.T, id, state string) staged {
	t.Helper()
	var a staged
	eventually(t, id+" is "+state, func() bool {
		if a = r.action(t, id); a.State != state && slices.Contains(endStates, a.State) {
			t.Fatalf("%s ended as %s, not %s: %+v", id, a.State, state, a)
		}
		return a.State == state
	})
	return a
}

// agent is an unmodified MCP client that holds nothing but its run token.
type agent struct{ *mcp.ClientSession }

// connects makes an agent of an era out of a run's gateway configuration; path is appended for the endpoint of one connection. It is
// never closed: the gateway keeps nothing open for it.
func (r started) connects(t *testing.T, era string, path ...string) agent {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	endpoint := r.Gateway.MCP.URL + strings.Join(path, "")
	s, err := c.Connect(context.WithoutCancel(t.Context()), &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearing{r.Token}}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	must(t, err)
	return agent{s}
}

type bearing struct{ token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// tools lists the names the agent sees.
func (a agent) tools(t *testing.T) (names []string) {
	t.Helper()
	list, err := a.ListTools(t.Context(), nil)
	must(t, err)
	for _, tool := range list.Tools {
		if tool.OutputSchema != nil {
			t.Errorf("%s is listed with an output schema, which a staged answer would violate", tool.Name)
		}
		names = append(names, tool.Name)
	}
	return names
}

// told is the answer to one call.
type told struct {
	failed bool
	text   string
	data   map[string]any
}

func (a told) word(name string) string {
	s, _ := a.data[name].(string)
	return s
}

// code is the stable code of a refusal.
func (a told) code() string {
	e, _ := a.data["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

func (a agent) calls(t *testing.T, tool, arguments string) told {
	t.Helper()
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	out := told{failed: r.IsError}
	out.data, _ = r.StructuredContent.(map[string]any)
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			out.text += text.Text
		}
	}
	return out
}

// reads is a call that must be answered by the upstream.
func (a agent) reads(t *testing.T, tool, arguments string) string {
	t.Helper()
	answer := a.calls(t, tool, arguments)
	if answer.failed {
		t.Fatalf("%s is refused: %s", tool, answer.text)
	}
	return answer.text
}

// stages is a call that must be answered as waiting; it returns the action's id.
func (a agent) stages(t *testing.T, tool, arguments string) string {
	t.Helper()
	answer := a.calls(t, tool, arguments)
	if answer.failed || !strings.HasPrefix(answer.text, "NOT EXECUTED.") || answer.word("status") != "awaiting_approval" {
		t.Fatalf("%s is answered %v %s %v", tool, answer.failed, answer.text, answer.data)
	}
	for _, field := range []string{"action_id", "args_digest", "expires_at", "approval_url"} {
		if answer.word(field) == "" {
			t.Errorf("the staged answer lacks %s: %v", field, answer.data)
		}
	}
	return answer.word("action_id")
}

// refused is a call that must be refused with a code, a reason and a next step.
func (a agent) refused(t *testing.T, code, tool, arguments string) {
	t.Helper()
	answer := a.calls(t, tool, arguments)
	e, _ := answer.data["error"].(map[string]any)
	if !answer.failed || answer.code() != code {
		t.Fatalf("%s: want the refusal %s, got failed=%v %s %v", tool, code, answer.failed, answer.text, answer.data)
	}
	if e["message"] == "" || e["next"] == "" || e["next"] == nil {
		t.Errorf("the refusal %s says neither why nor what next: %v", code, e)
	}
}

// posts sends raw bytes to the gateway as a client of our own would.
func (r started) posts(t *testing.T, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.Gateway.MCP.URL, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+r.Token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(out)
}
