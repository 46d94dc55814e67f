package db_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/policy"
)

func TestTwoPeopleAtOneSwitchMakeOneFreezeAndOneLift(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	var made, lifted atomic.Int32
	var id atomic.Value
	parallel(12, func(i int) {
		f, err := s.actions.Freeze(context.Background(), action.Press{Org: s.org, By: s.admin, Switch: wholeOrg, Reason: fmt.Sprint("press ", i)})
		if err != nil || f.ID == "" || f.Reason == "" {
			t.Errorf("%+v, %v", f, err)
		}
		if f.New {
			made.Add(1)
		}
		id.Store(f.ID)
	})
	s.hoursPass(1, a.ID)
	before := s.read(a.ID).ExpiresAt
	parallel(12, func(int) {
		l, err := s.actions.Lift(context.Background(), action.Press{Org: s.org, By: s.tokenOwner, Freeze: id.Load().(action.FreezeID)})
		if err != nil || l.LiftedAt == nil || l.LiftedBy != s.tokenOwner.Display() {
			t.Errorf("%+v, %v", l, err)
		}
		if l.New {
			lifted.Add(1)
		}
	})
	if made.Load() != 1 || lifted.Load() != 1 {
		t.Errorf("%d freezes, %d lifts", made.Load(), lifted.Load())
	}
	if n := value[int](s, `SELECT count(*) FROM audit_entries WHERE event IN ($1, $2)`, audit.FreezeOn, audit.FreezeOff); n != 2 {
		t.Errorf("%d audit rows", n)
	}
	if got := s.read(a.ID).ExpiresAt.Sub(before); got < time.Hour || got > time.Hour+time.Minute {
		t.Errorf("got back %s", got)
	}
	// A page that showed the first freeze does not lift the next one.
	next := s.freeze(wholeOrg)
	if l, err := s.actions.Lift(t.Context(), action.Press{Org: s.org, By: s.admin, Freeze: id.Load().(action.FreezeID)}); err != nil || l.New {
		t.Errorf("%+v, %v", l, err)
	}
	if standing, err := s.actions.Freezes(t.Context(), s.org); err != nil || len(standing) != 1 || standing[0].ID != next.ID {
		t.Errorf("%+v, %v", standing, err)
	}
}

// The race the switch is for: workers claim as fast as they can while somebody presses it, over and over. No dispatch may be dated after
// a freeze and before its end, and none may be there that was not when Freeze returned.
func TestNoClaimCommitsAfterAFreezeHas(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 1000`)
	for round := range 12 {
		var approved []action.Action
		for range 8 {
			approved = append(approved, s.approved())
		}
		on := []action.Switch{wholeOrg, engineering, s.switchOf()}[round%3]
		start := make(chan struct{})
		var sent atomic.Int32
		var workers sync.WaitGroup
		for _, a := range approved {
			workers.Go(func() {
				<-start
				if _, err := s.claim(a); err == nil {
					sent.Add(1)
				} else if !fault.Is(err, fault.Frozen) {
					t.Errorf("claim: %v", err)
				}
			})
		}
		for range 3 { // and agents stage meanwhile
			p := s.proposal()
			workers.Go(func() {
				<-start
				if _, _, err := s.actions.Stage(context.Background(), p); err != nil && !fault.Is(err, fault.Frozen) {
					t.Errorf("stage: %v", err)
				}
			})
		}
		close(start)
		f := s.freeze(on)
		atFreeze := value[int](s, `SELECT count(*) FROM dispatches`)
		workers.Wait()
		if n := value[int](s, `SELECT count(*) FROM dispatches`); n != atFreeze {
			t.Fatalf("round %d: %d dispatches when the freeze had committed, %d later", round, atFreeze, n)
		}
		if n := value[int](s, `SELECT count(*) FROM dispatches d JOIN freezes f ON f.id = $1 WHERE d.claimed_at >= f.since`, f.ID); n != 0 {
			t.Fatalf("round %d: %d claims during the freeze", round, n)
		}
		if n := value[int](s, `SELECT count(*) FROM actions a JOIN freezes f ON f.id = $1 WHERE a.requested_at >= f.since`, f.ID); n != 0 {
			t.Fatalf("round %d: %d staged during the freeze", round, n)
		}
		s.lift(f)
		for _, a := range approved {
			_, err := s.claim(a)
			if err != nil && !fault.Is(err, fault.CodeConflict) {
				t.Fatal(err)
			}
		}
	}
}

// The same with everybody else who takes locks: people decide, runs end, the connection is tested and retired, the sweeper sweeps, and
// the switch goes on and off. Nothing waits for ever, and the invariants hold afterwards.
func TestTheSwitchDeadlocksWithNobody(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 1000`)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	var staged []action.Action
	for range 24 {
		staged = append(staged, s.stage(s.proposal()))
	}
	approvedOnes := make([]action.Action, 6)
	for i := range approvedOnes {
		approvedOnes[i] = s.approved()
	}
	allowed := func(what string, err error) {
		if _, ok := fault.As(err); err != nil && !ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	var all sync.WaitGroup
	for i, a := range staged {
		all.Go(func() {
			var err error
			switch i % 3 {
			case 0:
				_, err = s.actions.Approve(ctx, s.decision(a, s.approver))
			case 1:
				_, err = s.actions.Deny(ctx, s.decision(a, s.approver2))
			default:
				_, err = s.actions.CancelByRun(ctx, s.org, s.run.Run.ID, a.ID)
			}
			allowed("decide", err)
		})
	}
	for _, a := range approvedOnes {
		all.Go(func() {
			_, err := s.claim(a)
			allowed("claim", err)
		})
	}
	for _, on := range []action.Switch{wholeOrg, engineering, s.switchOf()} {
		all.Go(func() {
			for range 4 {
				f, err := s.actions.Freeze(ctx, action.Press{Org: s.org, By: s.admin, Switch: on, Reason: "again"})
				allowed("freeze", err)
				if err == nil {
					_, err = s.actions.Lift(ctx, action.Press{Org: s.org, By: s.admin, Freeze: f.ID})
					allowed("lift", err)
				}
			}
		})
	}
	all.Go(func() { _, err := s.actions.ExpireDue(ctx); allowed("sweep", err) })
	all.Go(func() {
		_, err := s.connections.End(ctx, s.fresh(s.connection), "retired", s.entry(s.org, audit.ConnectionRetired, s.connection.Key.String()))
		allowed("retire", err)
	})
	all.Wait()
	if ctx.Err() != nil {
		t.Fatal("somebody waited too long")
	}
}
