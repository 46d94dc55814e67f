package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// TestConformanceOfTasks runs the suite's scenarios of the tasks extension. Every call waits for a person, who decides at once on all but
// those that a scenario wants to find unfinished. The scenarios that ask the client something through a task do not apply, because an
// upstream may not question the agent's client; nor does the one that wants a refusal without the extension, because every call can be
// answered without it; the one of status notifications checks nothing yet.
func TestConformanceOfTasks(t *testing.T) {
	s := needSuite(t)
	w := newWorld(t)
	swap(w.odd.next, startJobs(t))
	c := w.install("deepwiki", "Jobs", policy.AskUserOnWrite)
	w.profile("engineering", c)
	for _, scenario := range []string{
		"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-request-headers", "tasks-dispatch-and-envelope",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			r := w.start(policy.Task, "engineering")
			d := &desk{t: t, w: w, run: r.Run.ID}
			t.Cleanup(d.busy.Wait)
			s.run(t, "--url", w.front(t, r, c.Key.String(), d.look), "--scenario", scenario, "--spec-version", "2026-07-28", "--force")
		})
	}
}

// desk is the person who decides, and the worker who sends.
type desk struct {
	t    *testing.T
	w    *world
	run  run.ID
	seen sync.Map // action id → nothing
	busy sync.WaitGroup
}

// look decides on what came in since the last time.
func (d *desk) look() {
	list, err := d.w.Actions.Actions(context.Background(), d.w.Org.ID, action.Filter{Run: d.run, States: []action.State{action.StateStaged}})
	if err != nil {
		d.t.Errorf("the inbox: %v", err)
	}
	for _, a := range list {
		var arguments struct{ Seconds int }
		_ = json.Unmarshal(a.Arguments, &arguments) // the upstream's schema admitted them
		if _, again := d.seen.LoadOrStore(a.ID, nil); !again && arguments.Seconds < 60 {
			d.busy.Go(func() { d.decide(a) })
		}
	}
}

// decide approves, sends, and settles what nobody knows: the job of these scenarios that reports an error has run. A scenario may take an
// action back in the meantime.
func (d *desk) decide(a action.Action) {
	ctx := context.Background()
	yes := scene.Decision(d.w.People[identity.Approver], a, "")
	after, err := d.w.Actions.Approve(ctx, yes)
	if err == nil {
		after, err = d.w.gateway.Dispatch.Dispatch(ctx, a.Org, a.ID)
	}
	if err == nil && after.State == action.StateUncertain {
		yes.Version, yes.Reason = after.Version, "its log says that it ran"
		_, err = d.w.Actions.Settle(ctx, action.Settlement{Decision: yes, Answer: action.Applied})
	}
	if err != nil && fault.Of(err).Kind != fault.Conflict {
		d.t.Errorf("%s: %v", a.ID, err)
	}
}

// startJobs serves the tools that the scenarios call.
func startJobs(t *testing.T) *url.URL {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "jobs", Version: "1"}, nil)
	job := func(name string, annotations *mcp.ToolAnnotations, answer func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error)) {
		tool := &mcp.Tool{Name: name, Description: "A job.", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: annotations}
		s.AddTool(tool, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer(ctx, q.Params.Arguments)
		})
	}
	says := func(words string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
	}
	done := func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return says("done"), nil }
	job("greet", &mcp.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		var who struct{ Name string }
		err := json.Unmarshal(arguments, &who)
		return says("Hello, " + who.Name + "!"), err
	})
	job("slow_compute", nil, func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		var work struct{ Seconds int }
		if err := json.Unmarshal(arguments, &work); err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(work.Seconds) * time.Second): // the work itself
			return says(fmt.Sprintf("computed for %d s", work.Seconds)), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	job("failing_job", nil, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		r := says("the job failed")
		r.IsError = true
		return r, nil
	})
	job("protocol_error_job", nil, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such job"}
	})
	job("confirm_delete", nil, done)
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(h.Close)
	to, err := url.Parse(h.URL)
	check(t, err)
	return to
}
