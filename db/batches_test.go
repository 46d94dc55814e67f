package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// batchOf are so many staged actions as one page shows them.
func (s *scene) batchOf(by identity.Person, list ...action.Action) action.Batch {
	b := action.Batch{Org: by.Org, By: by, Reason: "all of them"}
	for _, a := range list {
		b.Members = append(b.Members, action.Seen{Action: a.ID, ArgsDigest: a.ArgsDigest, Version: a.Version})
	}
	return b
}

func (s *scene) stageMany(n int) (out []action.Action) {
	s.sql(`UPDATE runs SET budget = 1000`)
	for range n {
		out = append(out, s.stage(s.proposal()))
	}
	return out
}

func TestABatchIsDecidedWhole(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	list := s.stageMany(5)
	got, err := s.actions.ApproveAll(t.Context(), s.batchOf(s.approver, list[:3]...))
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for _, a := range list[:3] {
		s.isIn(a.ID, action.StateApproved)
	}
	_, err = s.actions.DenyAll(t.Context(), action.Batch{Org: s.org, By: s.approver, Members: s.batchOf(s.approver, list[3:]...).Members})
	refused(t, err, fault.CodeInvalid) // a denial says why
	if got, err = s.actions.DenyAll(t.Context(), s.batchOf(s.approver, list[3:]...)); err != nil || len(got) != 2 || got[0].Reason != "all of them" {
		t.Fatal(got, err)
	}
	if s.used() != 3 {
		t.Errorf("%d places are taken", s.used())
	}
}

func TestOneMemberThatDoesNotPassStopsTheBatch(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *scene, b *action.Batch, last action.Action){
		"decided meanwhile": func(s *scene, _ *action.Batch, a action.Action) {
			s.must(s.actions.Deny(context.Background(), s.decision(a, s.approver2)))
		},
		"expired":                 func(s *scene, _ *action.Batch, a action.Action) { s.later(a.ID, action.Life) },
		"of another version":      func(_ *scene, b *action.Batch, _ action.Action) { b.Members[2].Version++ },
		"of other bytes":          func(_ *scene, b *action.Batch, _ action.Action) { b.Members[2].ArgsDigest = "other" },
		"of another organization": func(_ *scene, b *action.Batch, _ action.Action) { b.Members[2].Action = "act_theirs" },
		"of another tool": func(s *scene, b *action.Batch, _ action.Action) {
			a := s.stage(s.call(s.run, "contacts_delete", `{"contact_id":"c"}`))
			b.Members[2] = action.Seen{Action: a.ID, ArgsDigest: a.ArgsDigest, Version: a.Version}
		},
		"twice": func(_ *scene, b *action.Batch, _ action.Action) { b.Members[2] = b.Members[0] },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			list := s.stageMany(3)
			b := s.batchOf(s.approver, list...)
			spoil(s, &b, list[2])
			for verb, decide := range map[string]func(context.Context, action.Batch) ([]action.Action, error){"approve": s.actions.ApproveAll, "deny": s.actions.DenyAll} {
				if got, err := decide(t.Context(), b); err == nil || got != nil {
					t.Errorf("%s: %v %v", verb, got, err)
				} else if _, ok := fault.As(err); !ok {
					t.Errorf("%s: no words for a person: %v", verb, err)
				}
			}
			s.isIn(list[0].ID, action.StateStaged)
			s.isIn(list[1].ID, action.StateStaged)
			if n := value[int](s, `SELECT count(*) FROM action_approvals`); n != 0 {
				t.Errorf("%d signatures are left of it", n)
			}
		})
	}
}

func TestABatchSaysWhichMemberStoppedIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	list := s.stageMany(3)
	s.later(list[1].ID, action.Life)
	_, err := s.actions.ApproveAll(t.Context(), s.batchOf(s.approver, list...))
	var at *action.Stopped
	if !errors.As(err, &at) || at.Action != list[1].ID {
		t.Errorf("%v", err)
	}
	says(t, err, "Nothing was decided, because of "+string(list[1].ID), "expired")
	refused(t, second(s.actions.ApproveAll(t.Context(), s.batchOf(s.stranger, list...))), fault.CodeNotFound)
	refused(t, second(s.actions.ApproveAll(t.Context(), s.batchOf(s.asker, list...))), fault.CodeForbidden)
	refused(t, second(s.actions.ApproveAll(t.Context(), s.batchOf(s.approver))), fault.CodeInvalid)
	many := s.batchOf(s.approver, list...)
	for i := range action.MostTogether {
		many.Members = append(many.Members, action.Seen{Action: action.ID(fmt.Sprint("act_", i))})
	}
	refused(t, second(s.actions.ApproveAll(t.Context(), many)), fault.CodeInvalid)
}

func TestOfManyBatchesAtOnceEachActionIsDecidedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.mint(run.Order{})
	list := s.stageMany(12)
	errs := make([]error, 8)
	parallel(len(errs), func(i int) {
		b := s.batchOf([]identity.Person{s.approver, s.approver2}[i%2], list[i:i+5]...)
		if i%3 == 0 {
			_, errs[i] = s.actions.DenyAll(context.Background(), b)
		} else {
			_, errs[i] = s.actions.ApproveAll(context.Background(), b)
		}
	})
	decided := 0
	for _, err := range errs {
		if err == nil {
			decided += 5
		} else {
			refused(t, err, fault.CodeStale)
		}
	}
	if n := value[int](s, `SELECT count(*) FROM actions WHERE state <> 'staged'`); n != decided || decided == 0 {
		t.Errorf("%d are decided, batches of %d succeeded", n, decided)
	}
}

func TestWhatNobodyDecidedOnIsCountedApartFromWhatWasDenied(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 100`)
	since := time.Now().Add(-36 * time.Hour)
	for _, to := range []action.State{action.StateDenied, action.StateCancelled, action.StateSucceeded} {
		s.reach(to)
	}
	s.later(s.stage(s.proposal()).ID, action.Life) // past its expiry, and the sweeper has not been by
	s.later(s.approved().ID, action.Life)
	got, err := s.actions.Ended(t.Context(), s.org, since)
	if want := (action.Ended{Succeeded: 1, Denied: 1, Cancelled: 1, ExpiredUndecided: 1, ExpiredApproved: 1}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if theirs, err := s.actions.Ended(t.Context(), s.other, since); err != nil || theirs != (action.Ended{}) {
		t.Errorf("%+v, %v", theirs, err)
	}
	last, err := s.actions.LastEnded(t.Context(), s.org, since, 2)
	if err != nil || len(last) != 2 || last[0].State != action.StateSucceeded || last[1].State != action.StateCancelled {
		t.Errorf("the last two to end: %v, %v", last, err)
	}
	if theirs, err := s.actions.LastEnded(t.Context(), s.other, since, 2); err != nil || len(theirs) != 0 {
		t.Errorf("%v, %v", theirs, err)
	}
	list, err := s.actions.Actions(t.Context(), s.org, action.Filter{States: []action.State{action.StateExpired}, Undecided: true})
	if err != nil || len(list) != 1 || list[0].DecidedAt != nil {
		t.Errorf("%v, %v", list, err)
	}
}
