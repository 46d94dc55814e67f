package agent_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/action"
	"countersign/internal/policy"
)

func TestALongEffectIsAnsweredWithItsAction(t *testing.T) {
	w := newWorld(t)
	w.gateway.Patience = 300 * time.Millisecond
	c := w.install("sandbox-crm", "CRM", policy.Autonomous)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	w.control("POST", "/faults", `{"tool":"notes_add","mode":"slow","times":1,"seconds":2}`)
	const arguments = `{"contact_id":"c_1001","text":"slowly"}`
	first := call(t, s, "notes_add", arguments)
	if first.IsError || first.data["status"] != "executing" || first.id() == "" {
		t.Fatalf("while it is sent: %s %v", first.text, first.data)
	}
	if again := call(t, s, "notes_add", arguments); again.id() != first.id() || again.data["status"] != "executing" {
		t.Errorf("again: %s", again.text)
	}
	w.gateway.Drain(t.Context())
	if done := call(t, s, "notes_add", arguments); done.IsError || done.data["status"] == "executing" {
		t.Errorf("afterwards: %s", done.text)
	}
	if got := w.journal(); len(got) != 1 {
		t.Errorf("the CRM did %v", got)
	}
}

func TestHangingUpStopsNoEffect(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.Autonomous)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	w.control("POST", "/faults", `{"tool":"notes_add","mode":"slow","times":1,"seconds":1}`)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	params := &mcp.CallToolParams{Name: "notes_add", Arguments: map[string]any{"contact_id": "c_1001", "text": "alone"}}
	go func() { _, err := s.CallTool(ctx, params); gone <- err }()
	deadline := time.Now().Add(10 * time.Second)
	for executing(w) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("nothing is executing")
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("the call came back")
	}
	w.gateway.Drain(t.Context())
	got, err := s.CallTool(t.Context(), params)
	check(t, err)
	if journal := w.journal(); got.IsError || len(journal) != 1 {
		t.Errorf("called again: %v, the CRM did %v", got.Content, journal)
	}
}

func executing(w *world) int {
	w.t.Helper()
	list, err := w.actions.Actions(w.t.Context(), w.org.ID, action.Filter{States: []action.State{action.StateExecuting}})
	check(w.t, err)
	return len(list)
}

func TestADecisionIsReadWithItsReason(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[1], c.Key)
	staged := call(t, s, "deals_move", `{"deal_id":"d_2001","stage":"won"}`)
	a, err := w.actions.Action(t.Context(), w.org.ID, staged.id())
	check(t, err)
	_, err = w.actions.Deny(t.Context(), action.Decision{Org: w.org.ID, Action: a.ID, By: w.approver, ArgsDigest: a.ArgsDigest, Version: a.Version, Reason: "Not before Friday."})
	check(t, err)
	denied := call(t, s, "deals_move", `{"deal_id":"d_2001","stage":"won"}`)
	if !denied.IsError || denied.code() != "denied" || !strings.Contains(denied.text, "Not before Friday.") {
		t.Errorf("denied: %s", denied.text)
	}

	again := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(a.ID)+`","justification":"It is Friday"}`)
	stored, err := w.actions.Action(t.Context(), w.org.ID, again.id())
	check(t, err)
	if stored.RetryOf != a.ID || stored.Justification != "It is Friday" || string(stored.Arguments) != string(a.Arguments) {
		t.Errorf("asked again: %+v", stored)
	}
	w.approve(again.id())
	w.control("POST", "/faults", `{"tool":"deals_move","mode":"apply_then_reset","times":1}`)
	w.dispatch(again.id())
	if lost := call(t, s, "countersign__actions_wait", `{"action_id":"`+string(again.id())+`"}`); lost.data["state"] != "uncertain" || !strings.HasPrefix(lost.text, "UNCERTAIN.") {
		t.Errorf("lost: %s", lost.text)
	}
	a, err = w.actions.Action(t.Context(), w.org.ID, again.id())
	check(t, err)
	_, err = w.actions.Settle(t.Context(), action.Settlement{Answer: action.Unknown, Decision: action.Decision{Org: w.org.ID, Action: a.ID, By: w.approver, ArgsDigest: a.ArgsDigest, Version: a.Version, Reason: "The log is gone."}})
	check(t, err)
	w.access(c, policy.Autonomous)
	third := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(a.ID)+`","justification":"once more"}`)
	if third.data["status"] != "awaiting_approval" {
		t.Errorf("after “may have happened” a person decides, also in mode autonomous: %s", third.text)
	}
	if got := w.journal(); len(got) != 1 {
		t.Errorf("the CRM did %v", got)
	}
}

func TestNothingIsReadThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t)
	swap(w.odd.tools, []string{reading("plain", `{"type":"object"}`)})
	c := w.install("deepwiki", "Odd", policy.ReadOnly)
	w.profile("engineering", c)
	r := w.start(policy.Task, "engineering")
	s := w.client(r, eras[1], c.Key)
	if got := call(t, s, "plain", `{}`); got.IsError {
		t.Fatal(got.text)
	}
	before := len(peek(w.odd.calls))
	check(t, w.recorder.Close(t.Context()))
	for _, tool := range []string{"plain", "no_such_tool"} { // neither an answer nor a refusal leaves unrecorded
		status, h, body := w.post(r, endpoint+"/"+c.Key.String(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`)
		if status != 503 || h.Get("Retry-After") == "" || strings.Contains(body, `"content"`) {
			t.Errorf("%s: %d %s", tool, status, body)
		}
	}
	if after := len(peek(w.odd.calls)); after != before {
		t.Errorf("the upstream was called %d times", after-before)
	}
}

func TestAHangingUpstreamHoldsNobodyLong(t *testing.T) {
	w := newWorld(t)
	swap(w.odd.tools, []string{reading("plain", `{"type":"object"}`)})
	odd, fine := w.install("deepwiki", "Odd", policy.ReadOnly), w.install("sandbox-crm", "CRM", policy.ReadOnly)
	w.profile("both", odd, fine)
	odd = w.access(odd, policy.AskUserOnWrite) // a new version, whose list must be fetched
	release := make(chan struct{})
	swap(w.odd.hold, release)
	defer close(release)
	began := time.Now()
	var all sync.WaitGroup
	for i := range 8 {
		s := w.client(w.start(policy.Task, "both"), eras[i%len(eras)], "")
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: odd.Key.String() + "__plain"}); err == nil {
				t.Errorf("a hanging upstream answered %v", r.Content)
			}
			list, err := s.ListTools(context.Background(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			var got []string
			for _, tool := range list.Tools {
				got = append(got, tool.Name)
			}
			mustHave(t, got, fine.Key.String()+"__contacts_get")
			mustLack(t, got, odd.Key.String()+"__plain")
		})
	}
	all.Wait()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("eight runs waited %v, one after the other", took)
	}
}
