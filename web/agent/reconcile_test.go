package agent_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"countersign/db"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/reconcile"
)

// losing is a run whose next call of a tool ends as the CRM's fault says, approved and sent.
func (w *world) losing(tool, mode, arguments string) action.Action {
	w.t.Helper()
	c := w.install("sandbox-crm", "CRM "+tool, policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	w.control("POST", "/faults", `{"tool":"`+tool+`","mode":"`+mode+`","times":1}`)
	staged := call(w.t.(*testing.T), s, tool, arguments)
	w.approve(action.ID(staged.id()))
	w.dispatch(action.ID(staged.id()))
	a, err := w.actions.Action(w.t.Context(), w.org.ID, action.ID(staged.id()))
	check(w.t, err)
	if a.State != action.StateUncertain {
		w.t.Fatalf("%s after %s is %s", tool, mode, a.State)
	}
	return a
}

func (w *world) reconciler() *reconcile.Reconciler {
	return &reconcile.Reconciler{Actions: w.actions, Connections: db.Connections{DB: w.db}, Lines: w.gateway.Lines, Log: slog.New(slog.DiscardHandler)}
}

func TestAProbeFindsWhatWasApplied(t *testing.T) {
	w := newWorld(t)
	a := w.losing("contacts_delete", "apply_then_reset", `{"contact_id":"c_1001"}`)
	r := w.reconciler()
	var all sync.WaitGroup
	for range 8 { // two replicas and a job that runs twice
		all.Go(func() {
			if err := r.Probe(t.Context(), w.org.ID, a.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := w.actions.Action(t.Context(), w.org.ID, a.ID)
	check(t, err)
	if got.State != action.StateSucceeded || got.Resolution != action.Reconciler || len(w.journal()) != 1 {
		t.Errorf("%s by %s, journal %v", got.State, got.Resolution, w.journal())
	}
	if p, there, err := w.actions.Probed(t.Context(), w.org.ID, a.ID); err != nil || !there || p.Attempts != 1 {
		t.Errorf("%+v, %t, %v", p, there, err)
	}
}

func TestAnAbsenceWaitsForTheSettleWindow(t *testing.T) {
	w := newWorld(t)
	a := w.losing("contacts_delete", "reset", `{"contact_id":"c_1001"}`)
	r := w.reconciler()
	due, err := r.Due(t.Context(), 10)
	check(t, err)
	if len(due) != 1 || due[0].ID != a.ID {
		t.Errorf("due: %v", due)
	}
	check(t, r.Probe(t.Context(), w.org.ID, a.ID))
	got, err := w.actions.Action(t.Context(), w.org.ID, a.ID)
	check(t, err)
	p, there, err := w.actions.Probed(t.Context(), w.org.ID, a.ID)
	check(t, err)
	if got.State != action.StateUncertain || !there || !strings.Contains(p.Sentence, "as it was before") || !p.NextAt.Before(got.SettlesAt.Add(1)) {
		t.Errorf("%s, %+v", got.State, p)
	}
	if due, err := r.Due(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("due again at once: %v, %v", due, err)
	}
}

// An equal earlier refund would look the same, so nothing but a person settles one.
func TestWhatNoReadCanTellIsLeftToAPerson(t *testing.T) {
	w := newWorld(t)
	a := w.losing("refund_issue", "apply_then_reset", `{"contact_id":"c_1001","amount_cents":500}`)
	r := w.reconciler()
	check(t, r.Probe(t.Context(), w.org.ID, a.ID))
	got, err := w.actions.Action(t.Context(), w.org.ID, a.ID)
	check(t, err)
	if got.State != action.StateUncertain {
		t.Fatalf("settled as %s", got.State)
	}
	for _, who := range []string{"asker", "admin"} { // behind the run; owner of its token
		by := w.asker
		if who == "admin" {
			by = w.admin
		}
		if _, err := r.LookUp(t.Context(), w.org.ID, a.ID, 0, by); !fault.Is(err, fault.CodeForbidden) {
			t.Errorf("%s looked it up: %v", who, err)
		}
	}
	if _, err := r.LookUp(t.Context(), w.org.ID, a.ID, 7, w.approver); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("a look-up nobody reviewed: %v", err)
	}
	l, err := r.LookUp(t.Context(), w.org.ID, a.ID, 0, w.approver)
	check(t, err)
	if l.Tool != "contacts_get" || string(l.Arguments) != `{"contact_id":"c_1001"}` || !strings.Contains(l.Seen, "500") || l.At.IsZero() {
		t.Errorf("%+v", l)
	}
	kept, err := w.actions.LookUps(t.Context(), w.org.ID, a.ID)
	check(t, err)
	if len(kept) != 1 || kept[0].Seen != l.Seen || len(w.journal()) != 1 {
		t.Errorf("%d kept, journal %v", len(kept), w.journal())
	}
	if other, err := w.actions.LookUps(t.Context(), "org_other", a.ID); err != nil || len(other) != 0 {
		t.Errorf("another organization sees %v, %v", other, err)
	}
	_, err = w.actions.Settle(t.Context(), action.Settlement{Decision: action.Decision{Org: w.org.ID, Action: a.ID, By: w.approver, ArgsDigest: got.ArgsDigest, Version: got.Version, Reason: "seen"}, Answer: action.Applied})
	check(t, err)
	if _, err := r.LookUp(t.Context(), w.org.ID, a.ID, 0, w.approver); !fault.Is(err, fault.CodeStale) {
		t.Errorf("looked up after the end: %v", err)
	}
	_, story, err := w.actions.Story(t.Context(), w.org.ID, a.ID)
	check(t, err)
	last := story[len(story)-1]
	if last.To != action.StateSucceeded || last.Reason != "seen" || last.By != w.approver.Display() {
		t.Errorf("%+v", last)
	}
}

// A read that became something else since it was accepted is not called to find out about an effect.
func TestAChangedReadIsNotCalled(t *testing.T) {
	w := newWorld(t)
	a := w.losing("contacts_delete", "apply_then_reset", `{"contact_id":"c_1001"}`)
	w.control("POST", "/tools", `{"name":"contacts_get","patch":{"description":"Gets a contact, and tells everybody."}}`)
	r := w.reconciler()
	r.Lines.Close()
	if _, err := r.LookUp(t.Context(), w.org.ID, a.ID, 0, w.approver); !fault.Is(err, fault.DefinitionChanged) {
		t.Errorf("%v", err)
	}
	check(t, r.Probe(t.Context(), w.org.ID, a.ID))
	if got, err := w.actions.Action(t.Context(), w.org.ID, a.ID); err != nil || got.State != action.StateUncertain {
		t.Errorf("%s, %v", got.State, err)
	}
}
