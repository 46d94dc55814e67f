package agent_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
	"countersign/internal/reconcile"
)

// losing is a run whose next call of a tool ends as the CRM's fault says, approved and sent.
func (w *world) losing(tool, mode, arguments string) action.Action {
	w.T.Helper()
	c := w.install("sandbox-crm", "CRM "+tool, policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[0], c.Key)
	w.CRM.Breaks(tool, mode)
	staged := call(w.T, s, tool, arguments)
	w.Approve(action.ID(staged.id()))
	w.dispatch(action.ID(staged.id()))
	a := w.Action(action.ID(staged.id()))
	if a.State != action.StateUncertain {
		w.T.Fatalf("%s after %s is %s", tool, mode, a.State)
	}
	return a
}

func (w *world) reconciler() *reconcile.Reconciler {
	return &reconcile.Reconciler{Actions: w.Actions, Connections: w.Connections, Lines: w.gateway.Lines, Log: slog.New(slog.DiscardHandler)}
}

func TestAProbeFindsWhatWasApplied(t *testing.T) {
	w := newWorld(t)
	a := w.losing("contacts_delete", "apply_then_reset", `{"contact_id":"c_1001"}`)
	r := w.reconciler()
	var all sync.WaitGroup
	for range 8 { // two replicas and a job that runs twice
		all.Go(func() {
			if err := r.Probe(t.Context(), w.Org.ID, a.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got := w.Action(a.ID)
	if got.State != action.StateSucceeded || got.Resolution != action.Reconciler || len(w.CRM.Did()) != 1 {
		t.Errorf("%s by %s, journal %v", got.State, got.Resolution, w.CRM.Did())
	}
	if p, there, err := w.Actions.Probed(t.Context(), w.Org.ID, a.ID); err != nil || !there || p.Attempts != 1 {
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
	check(t, r.Probe(t.Context(), w.Org.ID, a.ID))
	got := w.Action(a.ID)
	p, there, err := w.Actions.Probed(t.Context(), w.Org.ID, a.ID)
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
	check(t, r.Probe(t.Context(), w.Org.ID, a.ID))
	got := w.Action(a.ID)
	if got.State != action.StateUncertain {
		t.Fatalf("settled as %s", got.State)
	}
	for _, who := range []string{"asker", "admin"} { // behind the run; owner of its token
		by := w.People[identity.Member]
		if who == "admin" {
			by = w.People[identity.Owner]
		}
		if _, err := r.LookUp(t.Context(), w.Org.ID, a.ID, 0, by); !fault.Is(err, fault.CodeForbidden) {
			t.Errorf("%s looked it up: %v", who, err)
		}
	}
	if _, err := r.LookUp(t.Context(), w.Org.ID, a.ID, 7, w.People[identity.Approver]); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("a look-up nobody reviewed: %v", err)
	}
	l, err := r.LookUp(t.Context(), w.Org.ID, a.ID, 0, w.People[identity.Approver])
	check(t, err)
	if l.Tool != "contacts_get" || string(l.Arguments) != `{"contact_id":"c_1001"}` || !strings.Contains(l.Seen, "500") || l.At.IsZero() {
		t.Errorf("%+v", l)
	}
	kept, err := w.Actions.LookUps(t.Context(), w.Org.ID, a.ID)
	check(t, err)
	if len(kept) != 1 || kept[0].Seen != l.Seen || len(w.CRM.Did()) != 1 {
		t.Errorf("%d kept, journal %v", len(kept), w.CRM.Did())
	}
	if other, err := w.Actions.LookUps(t.Context(), "org_other", a.ID); err != nil || len(other) != 0 {
		t.Errorf("another organization sees %v, %v", other, err)
	}
	_, err = w.Actions.Settle(t.Context(), action.Settlement{Decision: scene.Decision(w.People[identity.Approver], got, "seen"), Answer: action.Applied})
	check(t, err)
	if _, err := r.LookUp(t.Context(), w.Org.ID, a.ID, 0, w.People[identity.Approver]); !fault.Is(err, fault.CodeStale) {
		t.Errorf("looked up after the end: %v", err)
	}
	_, story, err := w.Actions.Story(t.Context(), w.Org.ID, a.ID)
	check(t, err)
	last := story[len(story)-1]
	if last.To != action.StateSucceeded || last.Reason != "seen" || last.By != w.People[identity.Approver].Display() {
		t.Errorf("%+v", last)
	}
}

// A read that became something else since it was accepted is not called to find out about an effect.
func TestAChangedReadIsNotCalled(t *testing.T) {
	w := newWorld(t)
	a := w.losing("contacts_delete", "apply_then_reset", `{"contact_id":"c_1001"}`)
	w.CRM.Patch("contacts_get", `{"description":"Gets a contact, and tells everybody."}`)
	r := w.reconciler()
	r.Lines.Close()
	if _, err := r.LookUp(t.Context(), w.Org.ID, a.ID, 0, w.People[identity.Approver]); !fault.Is(err, fault.DefinitionChanged) {
		t.Errorf("%v", err)
	}
	check(t, r.Probe(t.Context(), w.Org.ID, a.ID))
	if got, err := w.Actions.Action(t.Context(), w.Org.ID, a.ID); err != nil || got.State != action.StateUncertain {
		t.Errorf("%s, %v", got.State, err)
	}
}
