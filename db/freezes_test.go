package db_test

import (
	"context"
	"testing"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
)

var (
	wholeOrg    = action.Switch{Scope: action.ScopeOrganization}
	engineering = action.Switch{Scope: action.ScopeProfile, Key: "engineering"}
)

func (s *scene) switchOf() action.Switch {
	return action.Switch{Scope: action.ScopeConnection, Key: s.connection.Key.String()}
}

func (s *scene) freeze(on action.Switch) action.Freeze {
	s.t.Helper()
	f, err := s.actions.Freeze(context.Background(), action.Press{Org: s.org, By: s.admin, Switch: on, Reason: "something is wrong"})
	if err != nil || !f.New {
		s.t.Fatalf("%+v, %v", f, err)
	}
	return f.Freeze
}

func (s *scene) lift(f action.Freeze) action.Lifted {
	s.t.Helper()
	l, err := s.actions.Lift(context.Background(), action.Press{Org: s.org, By: s.tokenOwner, Freeze: f.ID})
	if err != nil || !l.New {
		s.t.Fatalf("%+v, %v", l, err)
	}
	return l
}

func TestWhileSomethingIsFrozenNothingIsStagedApprovedOrClaimed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"organization", "profile", "connection"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			on := map[string]action.Switch{"organization": wholeOrg, "profile": engineering, "connection": s.switchOf()}[name]
			staged, approved, used := s.stage(s.proposal()), s.approved(), s.used()
			f := s.freeze(on)

			_, created, err := s.actions.Stage(t.Context(), s.proposal())
			refused(t, err, fault.Frozen)
			says(t, err, name, "since", "Reads go on")
			if created || s.used() != used {
				t.Error("something was staged or counted")
			}
			_, err = s.actions.Approve(t.Context(), s.decision(staged, s.approver))
			refused(t, err, fault.Frozen)
			s.isIn(staged.ID, action.StateStaged)
			_, err = s.claim(approved)
			refused(t, err, fault.Frozen)
			s.isIn(approved.ID, action.StateApproved)
			if waiting, err := s.actions.Approved(t.Context(), 10); err != nil || len(waiting) != 0 {
				t.Errorf("a worker is told of %v, %v", waiting, err)
			}
			if n := value[int](s, `SELECT count(*) FROM dispatches`); n != 0 {
				t.Errorf("%d dispatches", n)
			}

			s.lift(f)
			if waiting, err := s.actions.Approved(t.Context(), 10); err != nil || len(waiting) != 1 || waiting[0].ID != approved.ID {
				t.Errorf("after lifting: %v, %v", waiting, err)
			}
			if _, err := s.claim(approved); err != nil {
				t.Error(err)
			}
			// The form a person had open shows the same bytes and version: time given back is no transition.
			if _, err := s.actions.Approve(t.Context(), s.decision(staged, s.approver)); err != nil {
				t.Error(err)
			}
			s.stage(s.proposal())
		})
	}
}

func TestAFreezeStopsNothingItDoesNotCover(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	second := s.install(s.org, "crm-bbbbbb")
	s.sql(`INSERT INTO profiles (org_id, name, budget) VALUES ($1, 'support', 10)`, s.org)
	s.freeze(action.Switch{Scope: action.ScopeConnection, Key: second.Key.String()})
	s.freeze(action.Switch{Scope: action.ScopeProfile, Key: "support"})
	other := s.person(s.other, "boss", identity.Owner)
	if _, err := s.actions.Freeze(t.Context(), action.Press{Org: s.other, By: other, Switch: wholeOrg, Reason: "ours, not theirs"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.claim(s.approved()); err != nil {
		t.Error(err)
	}
}

func TestARepeatedCallIsAnsweredAlsoWhileFrozen(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	first := s.stage(p)
	s.freeze(wholeOrg)
	again, created, err := s.actions.Stage(t.Context(), p)
	if err != nil || created || again.ID != first.ID {
		t.Errorf("%v %t %v", again.ID, created, err)
	}
}

func TestAutonomousWorkStopsToo(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	s.freeze(engineering)
	_, _, err := s.actions.Stage(t.Context(), s.proposal())
	refused(t, err, fault.Frozen)
}

func TestDenyingCancellingAndSettlingGoOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	one, two, three, lost := s.stage(s.proposal()), s.stage(s.proposal()), s.approved(), s.uncertain()
	s.freeze(wholeOrg)
	if _, err := s.actions.Deny(t.Context(), s.decision(one, s.approver)); err != nil {
		t.Error(err)
	}
	if _, err := s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, two.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.actions.Cancel(t.Context(), s.decision(three, s.admin)); err != nil {
		t.Error(err)
	}
	if _, err := s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(lost, s.approver), Answer: action.Applied}); err != nil {
		t.Error(err)
	}
}

// What was claimed before is under way and cannot be called back; its answer still counts.
func TestWhatIsBeingSentIsCountedAndMayReport(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	d := s.claimed()
	s.stage(s.proposal())
	f, err := s.actions.Freeze(t.Context(), action.Press{Org: s.org, By: s.admin, Switch: wholeOrg, Reason: "stop"})
	if err != nil || f.Sending != 1 || f.Open != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	if a, err := s.actions.Complete(t.Context(), d, action.Succeeded([]byte(`{"content":[]}`), action.Evidence{})); err != nil || a.State != action.StateSucceeded {
		t.Errorf("%s, %v", a.State, err)
	}
}

func TestWhoMayPressTheSwitch(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	stranger := s.person(s.other, "foreign", identity.Admin)
	for name, by := range map[string]identity.Person{"an approver": s.approver, "a member": s.asker, "an admin of another organization": stranger} {
		_, err := s.actions.Freeze(t.Context(), action.Press{Org: s.org, By: by, Switch: wholeOrg, Reason: "let me"})
		refused(t, err, fault.CodeForbidden)
		if standing, err := s.actions.Freezes(t.Context(), s.org); err != nil || len(standing) != 0 {
			t.Errorf("%s froze: %v, %v", name, standing, err)
		}
	}
	f := s.freeze(wholeOrg)
	_, err := s.actions.Lift(t.Context(), action.Press{Org: s.org, By: s.approver, Freeze: f.ID})
	refused(t, err, fault.CodeForbidden)
	_, err = s.actions.Lift(t.Context(), action.Press{Org: s.other, By: stranger, Freeze: f.ID})
	refused(t, err, fault.CodeNotFound)
	if standing, err := s.actions.Freezes(t.Context(), s.other); err != nil || len(standing) != 0 {
		t.Errorf("another organization sees %v, %v", standing, err)
	}
}

func TestAFreezeNeedsAReasonAndSomethingToFreeze(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	foreign := s.install(s.other, "crm-cccccc")
	for name, p := range map[string]action.Press{
		"no reason":             {Switch: wholeOrg},
		"only blanks":           {Switch: wholeOrg, Reason: " \n"},
		"too long":              {Switch: wholeOrg, Reason: string(make([]byte, 3000))},
		"no such profile":       {Switch: action.Switch{Scope: action.ScopeProfile, Key: "none"}, Reason: "x"},
		"no such connection":    {Switch: action.Switch{Scope: action.ScopeConnection, Key: "none-aaaaaa"}, Reason: "x"},
		"another one's":         {Switch: action.Switch{Scope: action.ScopeConnection, Key: foreign.Key.String()}, Reason: "x"},
		"no such scope":         {Switch: action.Switch{Scope: "galaxy", Key: "x"}, Reason: "x"},
		"an organization's key": {Switch: action.Switch{Scope: action.ScopeOrganization, Key: "x"}, Reason: "x"},
	} {
		p.Org, p.By = s.org, s.admin
		if _, err := s.actions.Freeze(t.Context(), p); err == nil {
			t.Errorf("%s: frozen", name)
		} else if f, ok := fault.As(err); !ok || f.Kind == fault.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := value[int](s, `SELECT count(*) FROM audit_entries WHERE event = $1`, audit.FreezeOn); n != 0 {
		t.Errorf("%d audit rows of nothing", n)
	}
}
