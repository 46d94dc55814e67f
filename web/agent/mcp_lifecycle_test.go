package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
)

func TestAutonomousRunsAtOnceAndOnce(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.Autonomous)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	for range 3 {
		r := call(t, s, "notes_add", `{"contact_id":"c_1001","text":"hello"}`)
		if r.IsError || strings.Contains(r.text, "NOT ") {
			t.Fatalf("notes_add: %s", r.text)
		}
	}
	if got := w.CRM.Did(); len(got) != 1 {
		t.Errorf("the same call three times is one effect, the CRM did %v", got)
	}
	if r := call(t, s, "notes_add", `{"contact_id":"c_1001","text":"hello"}`, "countersign.dev/idempotency-key", "second"); r.IsError {
		t.Errorf("another key: %s", r.text)
	}
	if r := call(t, s, "notes_add", `{"contact_id":"c_1001","text":"other"}`, "countersign.dev/idempotency-key", "second"); r.code() != "idempotency_conflict" {
		t.Errorf("the key of another call: %s", r.text)
	}
	if got := w.CRM.Did(); len(got) != 2 {
		t.Errorf("the CRM did %v", got)
	}
	w.CRM.Breaks("deals_move", "reject")
	failed := call(t, s, "deals_move", `{"deal_id":"d_2001","stage":"won"}`)
	if !failed.IsError || failed.data["status"] != "failed" || failed.code() == "" {
		t.Errorf("a definite refusal of the CRM: %s %v", failed.text, failed.data)
	}
	w.CRM.Breaks("deals_move", "apply_then_reset")
	lost := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(failed.id())+`","justification":"again"}`)
	if !lost.IsError || lost.code() != "uncertain_pending" || lost.data["status"] != "uncertain" {
		t.Errorf("a lost answer: %s %v", lost.text, lost.data)
	}
	if r := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(lost.id())+`","justification":"again"}`); r.code() != "uncertain_pending" {
		t.Errorf("an uncertain one cannot be tried again: %s", r.text)
	}
	if r := call(t, s, "deals_move", `{"deal_id":"d_2001","stage":"won"}`, "countersign.dev/idempotency-key", "third"); r.code() != "uncertain_pending" {
		t.Errorf("nor by another key: %s", r.text)
	}
	if got := w.CRM.Did(); len(got) != 3 {
		t.Errorf("the CRM did %v", got)
	}
}

func TestCompanionsFollowAnAction(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	r := w.start(policy.Task, "engineering")
	s, stranger := w.client(r, eras[0], c.Key), w.client(w.start(policy.Task, "engineering"), eras[1], c.Key)
	staged := call(t, s, "contacts_create", `{"name":"Ada","email":"ada@a.test"}`)
	of := func(id action.ID) string { return `{"action_id":"` + string(id) + `"}` }

	for _, tool := range []string{"get", "wait", "cancel"} {
		if got := call(t, stranger, "countersign__actions_"+tool, of(staged.id())); got.code() != "not_found" {
			t.Errorf("another run's %s: %s", tool, got.text)
		}
	}
	if got := call(t, stranger, "countersign__actions_list", `{}`); len(got.data["actions"].([]any)) != 0 {
		t.Errorf("another run lists %v", got.data)
	}
	if got := call(t, s, "countersign__actions_wait", `{"action_id":"`+string(staged.id())+`","timeout_seconds":0}`); got.data["state"] != "staged" || !strings.HasPrefix(got.text, "NOT EXECUTED.") {
		t.Errorf("no patience: %s", got.text)
	}
	for _, wrong := range []string{`{}`, `{"action_id":"` + string(staged.id()) + `","timeout_seconds":26}`, `{"action_id":7}`, `{"action_id":"a","x":1}`} {
		if got := call(t, s, "countersign__actions_wait", wrong); got.code() != "invalid_arguments" {
			t.Errorf("%s: %s", wrong, got.text)
		}
	}

	waited := make(chan called)
	go func() { waited <- call(t, s, "countersign__actions_wait", of(staged.id())) }()
	w.Approve(staged.id())
	w.dispatch(staged.id())
	if got := <-waited; got.data["state"] != "succeeded" || got.data["decided_by"] == "" {
		t.Errorf("waited for %v", got.data)
	}
	again := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(staged.id())+`","justification":"a second one on purpose"}`)
	twice := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(staged.id())+`","justification":"asked again"}`)
	if again.data["status"] != "awaiting_approval" || again.id() == staged.id() || twice.id() != again.id() {
		t.Fatalf("retry: %s, %s", again.text, twice.text)
	}
	if got := call(t, s, "countersign__actions_retry", `{"action_id":"`+string(again.id())+`","justification":"too early"}`); got.code() != "conflict" {
		t.Errorf("retry of a staged one: %s", got.text)
	}
	for range 2 {
		if got := call(t, s, "countersign__actions_cancel", of(again.id())); got.data["state"] != "cancelled" {
			t.Errorf("cancel: %s", got.text)
		}
	}
	list := call(t, s, "countersign__actions_list", `{}`).data["actions"].([]any)
	if len(list) != 2 || list[0].(map[string]any)["retry_of"] != string(staged.id()) {
		t.Errorf("the run's actions: %v", list)
	}
	if got := call(t, s, "countersign__report_block", `{"reason":"I cannot\n read   this"}`); got.IsError {
		t.Errorf("report: %s", got.text)
	}
	if reports := w.trail(audit.BlockReported); len(reports) != 1 || fact(reports[0], "reason") != "I cannot read this" || reports[0].Actor.ID != string(r.Run.ID) {
		t.Errorf("reported: %+v", reports)
	}
	if got := call(t, s, "countersign__actions_approve", of(staged.id())); got.code() != "tool_not_granted" {
		t.Errorf("a companion that is none: %s", got.text)
	}
}

func TestNarrowingActsOnTheNextCall(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[1], c.Key)
	late := func(want, tool, arguments string) {
		t.Helper()
		if got := call(t, s, tool, arguments); got.code() != want {
			t.Errorf("%s: %q %s, want %s", tool, got.code(), got.text, want)
		}
	}
	const create, find = `{"name":"Ada","email":"ada@a.test"}`, `{"query":"a"}`
	c = w.access(c, policy.ReadOnly)
	late("read_only_connection", "contacts_create", create)
	late("", "contacts_search", find)
	mustLack(t, names(t, s), "contacts_create")
	c = w.access(c, policy.ReadOnly, "contacts_get")
	late("tool_not_granted", "contacts_search", find)
	late("tool_not_granted", "contacts_of_nobody", find)
	c = w.access(c, policy.AskUserOnWrite)
	late("", "contacts_search", find)

	w.Profile("engineering", 500, profile.Use{Connection: c.Key, Tools: []string{"contacts_get", "contacts_create"}, Mode: policy.ReadOnly})
	late("profile_forbids", "contacts_search", find)
	late("profile_forbids", "contacts_create", create)
	mustLack(t, names(t, s), "contacts_search", "contacts_create")
	w.Profile("engineering", 500)
	late("profile_forbids", "contacts_get", `{"contact_id":"c_1001"}`)
	w.profile("engineering", c)
	late("", "contacts_search", find)

	// Widening never reaches a run that has begun.
	fresh := w.install("sandbox-crm", "Second", policy.ReadOnly, "contacts_get")
	w.profile("engineering", c, fresh)
	old := w.client(w.start(policy.Task, "engineering"), eras[1], fresh.Key)
	w.access(fresh, policy.AskUserOnWrite)
	if got := call(t, old, "contacts_create", create); got.code() != "tool_not_granted" {
		t.Errorf("a tool granted after the run began: %s", got.text)
	}
	mustLack(t, names(t, old), "contacts_create", "contacts_search")

	// Nor does a freer mode: what this run asks for still waits for a person.
	w.access(c, policy.Autonomous)
	if got := call(t, s, "contacts_create", create); got.code() != "" || !strings.HasPrefix(got.text, "NOT EXECUTED.") {
		t.Errorf("a run that began under “ask before writing” acted by itself: %s", got.text)
	}

	_, err := w.Service.Retire(t.Context(), w.People[identity.Owner], installation.Access{Key: c.Key})
	check(t, err)
	late("connection_unavailable", "contacts_search", find)
	if got := w.CRM.Did(); len(got) != 0 {
		t.Errorf("the CRM did %v", got)
	}
}

func TestAChangedDefinitionIsHeldBackAndSeen(t *testing.T) {
	w := newWorld(t)
	swap(w.odd.tools, []string{reading("ask_it", `{"type":"object"}`), reading("read_all", `{"type":"object"}`), reading("read_part", `{"type":"object"}`)})
	c := w.install("deepwiki", "Wiki", policy.ReadOnly)
	w.profile("engineering", c)
	run := w.start(policy.Task, "engineering")
	swap(w.odd.tools, []string{reading("ask_it", `{"type":"object","properties":{"bcc":{"type":"string"}}}`), reading("read_all", `{"type":"object"}`), reading("ask_later", `{"type":"object"}`)})
	c, err := w.Service.Rename(t.Context(), w.People[identity.Owner], installation.Access{Key: c.Key}, "Wiki again") // a new version opens a new line, whose list is fresh
	check(t, err)
	s := w.client(run, eras[1], c.Key)
	list := names(t, s)
	mustHave(t, list, "read_all")
	mustLack(t, list, "ask_it", "read_part", "ask_later")
	for _, tool := range []string{"ask_it", "read_part"} {
		if got := call(t, s, tool, `{}`); got.code() != "definition_changed" {
			t.Errorf("%s: %s", tool, got.text)
		}
	}
	if got := call(t, s, "ask_later", `{}`); got.code() != "tool_not_granted" {
		t.Errorf("a tool nobody granted: %s", got.text)
	}
	if calls := peek(w.odd.calls); slices.Contains(calls, "ask_later") {
		t.Errorf("the upstream was asked %v", calls)
	}
	if held := w.trail(audit.DefinitionHeld); len(held) == 0 || fact(held[0], "tool") != "ask_it" {
		t.Errorf("held back in the trail: %+v", held)
	}
}

func TestTwoConnectionsTwentyRunsTwoHundredCalls(t *testing.T) {
	w := newWorld(t)
	first, second := w.install("sandbox-crm", "First", policy.AskUserOnWrite), w.install("sandbox-crm", "Second", policy.AskUserOnWrite)
	w.profile("engineering", first, second)
	var all sync.WaitGroup
	for i := range 20 {
		s := w.client(w.start(policy.Task, "engineering"), eras[i%len(eras)], "")
		for j := range 10 {
			all.Go(func() {
				key := first.Key
				if j%2 == 1 {
					key = second.Key
				}
				if j < 8 {
					want := fmt.Sprintf("c_10%02d", 1+(i+j)%4)
					r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: key.String() + "__contacts_get", Arguments: map[string]any{"contact_id": want}})
					if err != nil || r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, want) {
						t.Errorf("run %d call %d: %v %v", i, j, r, err)
					}
					return
				}
				email := fmt.Sprintf("n%d-%d@a.test", i, j)
				r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: key.String() + "__contacts_create", Arguments: map[string]any{"name": "N", "email": email}})
				if err != nil || r.IsError {
					t.Errorf("run %d call %d: %v %v", i, j, r, err)
					return
				}
				id, _ := r.StructuredContent.(map[string]any)["action_id"].(string)
				a, err := w.Actions.Action(context.Background(), w.Org.ID, action.ID(id))
				if err != nil || a.Connection != key || !strings.Contains(string(a.Arguments), email) {
					t.Errorf("run %d call %d staged %+v: %v", i, j, a, err)
				}
			})
		}
	}
	all.Wait()
	staged, err := w.Actions.Actions(t.Context(), w.Org.ID, action.Filter{States: []action.State{action.StateStaged}, Limit: 200})
	check(t, err)
	if len(staged) != 40 {
		t.Errorf("%d actions are staged", len(staged))
	}
}
