package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/crm"
	"countersign/internal/dispatch"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/reach/reachtest"
)

func TestAnApprovedActionIsSentOnceAfterItsClaim(t *testing.T) {
	w := newDelete(t)
	w.ledger.claiming = func() error {
		if n := w.Upstream.Asked("tools/call"); n != 0 {
			t.Errorf("%d calls were sent before the claim", n)
		}
		if w.Upstream.Asked("tools/list") != 1 {
			t.Error("the definition was not looked at for the claim")
		}
		return nil
	}
	a, err := w.dispatch()
	if err != nil || a.State != action.StateSucceeded {
		t.Fatal(a.State, err)
	}
	w.wants(1, 1)
	w.reported(1, action.OutcomeSucceeded)
	pinned, _ := w.Installed.Standing.Snapshot.Find("contacts_delete")
	if got := w.ledger.claims[0]; got != (action.Ready{Definition: pinned.Digest, Destination: w.Installed.Destination}) {
		t.Errorf("the claim was asked with %+v", got)
	}
	if w.ledger.holder != 42 || string(w.Journal()[0].Arguments) != deleteContact {
		t.Errorf("reported by %d, sent %s", w.ledger.holder, w.Journal()[0].Arguments)
	}
}

func TestNothingIsSentWhenTheClaimRefuses(t *testing.T) {
	w := newDelete(t)
	refusal := fault.New(fault.Forbidden, fault.ProfileForbids, "The profile does not allow this.", "")
	w.ledger.claiming = func() error { return refusal }
	if a, err := w.dispatch(); !errors.Is(err, refusal) || a.State != action.StateApproved {
		t.Errorf("%s, %v", a.State, err)
	}
	w.wants(0, 0)
	w.reported(0, "")
}

// A claim whose COMMIT was not answered may be there or not: it is no right to send.
func TestNothingIsSentWhenTheClaimIsNotAnswered(t *testing.T) {
	w := newDelete(t)
	w.ledger.claiming = func() error { return context.DeadlineExceeded }
	if _, err := w.dispatch(); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	w.wants(0, 0)
	w.reported(0, "")
}

func TestOnlyAnApprovedActionIsSent(t *testing.T) {
	w := newDelete(t)
	for _, state := range action.States {
		if state == action.StateApproved {
			continue
		}
		w.ledger.action.State = state
		if a, err := w.dispatch(); !errors.Is(err, action.NotClaimable) || a.State != state {
			t.Errorf("%s: %s, %v", state, a.State, err)
		}
	}
	if n := w.Upstream.Asked(""); n != 0 || len(w.ledger.claims) != 0 {
		t.Errorf("%d requests and %d claims for what is not approved", n, len(w.ledger.claims))
	}
}

func TestOfManyDispatchersOneSends(t *testing.T) {
	w := newDelete(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if a, err := w.dispatch(); err != nil && !errors.Is(err, action.NotClaimable) {
				t.Error(a.State, err)
			}
		})
	}
	all.Wait()
	if _, err := w.dispatch(); !errors.Is(err, action.NotClaimable) {
		t.Errorf("after its end: %v", err)
	}
	w.wants(1, 1)
	w.reported(1, action.OutcomeSucceeded)
}

// What was approved is what the claim read, should the row that was read before it differ.
func TestTheBytesOfTheClaimAreSent(t *testing.T) {
	w := newDelete(t)
	w.ledger.claiming = func() error {
		w.ledger.action.Arguments = []byte(`{"contact_id":"c_1002"}`)
		return nil
	}
	if _, err := w.dispatch(); err != nil {
		t.Fatal(err)
	}
	if got := w.Journal(); len(got) != 1 || string(got[0].Arguments) != `{"contact_id":"c_1002"}` {
		t.Errorf("sent %s", got)
	}
}

func TestTheClaimIsAskedAboutTheDefinitionOfThisMoment(t *testing.T) {
	for name, patch := range map[string]string{"changed": `{"description":"Deletes everything."}`, "unusable": `{"inputSchema":null}`, "gone": `null`} {
		t.Run(name, func(t *testing.T) {
			w := newDelete(t)
			if _, err := w.Lines.Open(t.Context(), w.Installed); err != nil { // with a list that is young enough for any call
				t.Fatal(err)
			}
			w.Patch("contacts_delete", patch)
			changed := fault.New(fault.Forbidden, fault.DefinitionChanged, "It changed.", "")
			w.ledger.claiming = func() error { return changed }
			if _, err := w.dispatch(); !errors.Is(err, changed) {
				t.Error(err)
			}
			pinned, _ := w.Installed.Standing.Snapshot.Find("contacts_delete")
			if got := w.ledger.claims[0].Definition; got == pinned.Digest || (got == "") != (name != "changed") {
				t.Errorf("the claim was asked about %q", got)
			}
			w.wants(0, 0)
		})
	}
}

const bound = `[[resources]]
name = "contact"
label = "Contact"
hint = "The one contact agents may delete."
required = false

[tools.contacts_search]`

func TestTheClaimIsToldWhatLeavesTheResource(t *testing.T) {
	files := reachtest.Edited(t, catalog.Files(), "[tools.contacts_search]", bound)
	files = reachtest.Edited(t, files, "stakes = \"The contact and its notes are gone for good.\"\nresource = { argument = \"contact_id\" }",
		"stakes = \"The contact and its notes are gone for good.\"\nsettle_seconds = 90\nresource = { argument = \"contact_id\", setting = \"contact\" }")
	r := reachtest.New(t, crm.New(crm.Config{BearerToken: reachtest.Credential, ControlToken: reachtest.Control}).Handler(), files)
	for contact, outside := range map[string]bool{"c_1001": false, "c_1002": true} {
		r.Installed.Settings = map[string]string{"contact": contact}
		l := &ledger{action: r.Call(action.StateApproved, "contacts_delete", deleteContact), claiming: func() error { return action.NotClaimable }}
		if !outside {
			l.claiming = nil
		}
		d := &dispatch.Dispatcher{Actions: l, Connections: r, Lines: r.Lines, Log: slog.New(slog.DiscardHandler)}
		if _, err := d.Dispatch(t.Context(), l.action.Org, l.action.ID); (err != nil) != outside {
			t.Error(err)
		}
		if got := l.claims[0].OutsideResource; (got != "") != outside || outside && !strings.Contains(got, "limited to one contact") {
			t.Errorf("with the connection bound to %s the claim is told %q", contact, got)
		}
		if got := l.claims[0].Settle; got != 90*time.Second {
			t.Errorf("the reviewed settle window is told as %s", got)
		}
	}
	if n := len(r.Journal()); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// An ended connection is the claim's to refuse: it says so on the action. One that cannot be reached leaves the action approved.
func TestWhatFailsBeforeTheClaimSendsNothing(t *testing.T) {
	w := newDelete(t)
	active := w.Installed
	w.Installed.State = installation.Retired
	w.ledger.claiming = func() error { return action.NotClaimable }
	if _, err := w.dispatch(); !errors.Is(err, action.NotClaimable) || len(w.ledger.claims) != 1 || w.ledger.claims[0].Definition != "" {
		t.Errorf("%v, claims %+v", err, w.ledger.claims)
	}
	w.ledger.claiming, w.ledger.claims = nil, nil
	w.Installed = active
	w.wants(0, 0)
	w.Server.Close()
	if a, err := w.dispatch(); err == nil || a.State != action.StateApproved || len(w.ledger.claims) != 0 {
		t.Errorf("with nobody there: %s, %v, %d claims", a.State, err, len(w.ledger.claims))
	}
}
