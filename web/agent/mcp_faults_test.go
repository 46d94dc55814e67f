package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/identity"
	"countersign/internal/policy"
)

func TestALongEffectIsAnsweredWithItsAction(t *testing.T) {
	w := newWorld(t)
	w.gateway.Patience = 300 * time.Millisecond
	_, release := w.Upstream.Hold("tools/call notes_add")
	defer release()
	c := w.install("sandbox-crm", "CRM", policy.Autonomous)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	const arguments = `{"contact_id":"c_1001","text":"slowly"}`
	first := call(t, s, "notes_add", arguments)
	if first.IsError || first.data["status"] != "executing" || first.id() == "" {
		t.Fatalf("while it is sent: %s %v", first.text, first.data)
	}
	if again := call(t, s, "notes_add", arguments); again.id() != first.id() || again.data["status"] != "executing" {
		t.Errorf("again: %s", again.text)
	}
	release()
	w.gateway.Drain(t.Context())
	if done := call(t, s, "notes_add", arguments); done.IsError || done.data["status"] == "executing" {
		t.Errorf("afterwards: %s", done.text)
	}
	if got := w.CRM.Did(); len(got) != 1 {
		t.Errorf("the CRM did %v", got)
	}
}

func TestHangingUpStopsNoEffect(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.Autonomous)
	w.profile("engineering", c)
	noticed := w.noticesHangingUp()
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	arrived, release := w.Upstream.Hold("tools/call notes_add")
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	params := &mcp.CallToolParams{Name: "notes_add", Arguments: map[string]any{"contact_id": "c_1001", "text": "alone"}}
	go func() { _, err := s.CallTool(ctx, params); gone <- err }()
	<-arrived
	cancel()
	if err := <-gone; err == nil {
		t.Error("the call came back")
	}
	<-noticed
	release()
	w.gateway.Drain(t.Context())
	again := call(t, s, "notes_add", `{"contact_id":"c_1001","text":"alone"}`)
	if did := w.CRM.Did(); again.IsError || again.data["status"] == "executing" || len(did) != 1 {
		t.Errorf("called again: %s, the CRM did %v", again.text, did)
	}
}

// noticesHangingUp serves the world's endpoint anew and tells when it has let go of a request whose client had left.
func (w *world) noticesHangingUp() <-chan struct{} {
	noticed := make(chan struct{})
	once, inner := sync.OnceFunc(func() { close(noticed) }), w.server.Config.Handler
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(rw, r)
		if r.Context().Err() != nil {
			once()
		}
	}))
	w.T.Cleanup(w.server.Close)
	return noticed
}

func TestADecisionIsReadWithItsReason(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[1], c.Key)
	staged := call(t, s, "deals_move", `{"deal_id":"d_2001","stage":"won"}`)
	a := w.Action(staged.id())
	_, err := w.Actions.Deny(t.Context(), scene.Decision(w.People[identity.Approver], a, "Not before Friday."))
	check(t, err)
	denied := call(t, s, "deals_move", `{"deal_id":"d_2001","stage":"won"}`)
	if !denied.IsError || denied.code() != "denied" || !strings.Contains(denied.text, "Not before Friday.") {
		t.Errorf("denied: %s", denied.text)
	}

	again := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(a.ID)+`","justification":"It is Friday"}`)
	stored := w.Action(again.id())
	if stored.RetryOf != a.ID || stored.Justification != "It is Friday" || string(stored.Arguments) != string(a.Arguments) {
		t.Errorf("asked again: %+v", stored)
	}
	w.Approve(again.id())
	w.CRM.Breaks("deals_move", "apply_then_reset")
	w.dispatch(again.id())
	if lost := call(t, s, "countersign__actions_wait", `{"action_id":"`+string(again.id())+`"}`); lost.data["state"] != "uncertain" || !strings.HasPrefix(lost.text, "UNCERTAIN.") {
		t.Errorf("lost: %s", lost.text)
	}
	a = w.Action(again.id())
	_, err = w.Actions.Settle(t.Context(), action.Settlement{Answer: action.Unknown, Decision: scene.Decision(w.People[identity.Approver], a, "The log is gone.")})
	check(t, err)
	w.access(c, policy.Autonomous)
	third := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(a.ID)+`","justification":"once more"}`)
	if third.data["status"] != "awaiting_approval" {
		t.Errorf("after “may have happened” a person decides, also in mode autonomous: %s", third.text)
	}
	if got := w.CRM.Did(); len(got) != 1 {
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
	all.Wait() // the upstream holds what it was asked until the test is over
}
