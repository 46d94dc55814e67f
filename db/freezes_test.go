package db_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/dbtest"
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

// past runs a statement that only passing time could do: as superuser, triggers off.
func (s *scene) past(statement string, args ...any) {
	s.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dbtest.Superuser(s.t, s.dsn))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET session_replication_role = replica"); err != nil {
		s.t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// hoursPass moves an action and every freeze into the past, as if that much time had gone by.
func (s *scene) hoursPass(n int, ids ...action.ID) {
	s.t.Helper()
	by := time.Duration(n) * time.Hour
	for _, id := range ids {
		s.later(id, by)
	}
	s.past(`UPDATE freezes SET since = since - $1::interval, lifted_at = lifted_at - $1::interval`, by)
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
	if a, err := s.actions.Complete(t.Context(), d, action.Succeeded([]byte(`{"content":[]}`), action.Evidence{}), action.SettleRule{}); err != nil || a.State != action.StateSucceeded {
		t.Errorf("%s, %v", a.State, err)
	}
}

func TestDeadlinesStandStillByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved := s.stage(s.proposal()), s.approved()
	f := s.freeze(s.switchOf())
	s.hoursPass(30, staged.ID, approved.ID) // 24 hours would have been the end
	if a := s.read(staged.ID); a.State != action.StateStaged {
		t.Errorf("a reader sees %s", a.State)
	}
	if list, err := s.actions.Actions(t.Context(), s.org, action.Filter{States: []action.State{action.StateStaged}}); err != nil || len(list) != 1 {
		t.Errorf("a list shows %d, %v", len(list), err)
	}
	if list, err := s.actions.Actions(t.Context(), s.org, action.Filter{States: []action.State{action.StateExpired}, OldestDue: true}); err != nil || len(list) != 0 {
		t.Errorf("%d are listed as expired, %v", len(list), err)
	}
	if c, err := s.actions.Counts(t.Context(), s.org); err != nil || c.Waiting != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if n, err := s.actions.ExpireDue(t.Context()); err != nil || n != 0 {
		t.Errorf("the sweeper expired %d, %v", n, err)
	}
	_, err := s.actions.Approve(t.Context(), s.decision(staged, s.approver))
	refused(t, err, fault.Frozen)
	s.isIn(staged.ID, action.StateStaged)
	before := s.read(staged.ID)
	l := s.lift(f)
	if l.Extended != 2 {
		t.Errorf("%d got their time back", l.Extended)
	}
	after := s.read(staged.ID)
	if got, want := after.ExpiresAt.Sub(before.ExpiresAt), l.LiftedAt.Sub(value[time.Time](s, `SELECT since FROM freezes`)); got != want {
		t.Errorf("got back %s, stood still for %s", got, want)
	}
	if after.Version != staged.Version || after.State != action.StateStaged {
		t.Errorf("%s at version %d", after.State, after.Version)
	}
	if _, err := s.actions.Approve(t.Context(), s.decision(staged, s.approver)); err != nil {
		t.Error(err)
	}
	if _, err := s.claim(approved); err != nil {
		t.Error(err)
	}
}

func TestDenyingMeetsNoExpiryWhileTheClockStandsStill(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	s.freeze(engineering)
	s.hoursPass(100, a.ID)
	if got, err := s.actions.Deny(t.Context(), s.decision(a, s.approver)); err != nil || got.State != action.StateDenied {
		t.Errorf("%s, %v", got.State, err)
	}
}

// One whose time had passed before the freeze has expired, and no freeze brings it back.
func TestAFreezeDoesNotReviveWhatHadExpired(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	s.later(a.ID, action.Life+time.Second)
	f := s.freeze(wholeOrg)
	if got := s.read(a.ID); got.State != action.StateExpired {
		t.Errorf("a reader sees %s", got.State)
	}
	if l := s.lift(f); l.Extended != 0 {
		t.Error("it got time back")
	}
	if n, err := s.actions.ExpireDue(t.Context()); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	s.isIn(a.ID, action.StateExpired)
}

// Whatever the order in which overlapping freezes begin and end, an action gets back the time in which at least one of them stood.
func TestOverlappingFreezesGiveTimeBackOnce(t *testing.T) {
	t.Parallel()
	type span struct{ from, until int } // hours
	for name, c := range map[string]struct {
		spans [3]span // organization, profile, connection
		union int
	}{
		"one after the other":        {[3]span{{0, 2}, {3, 5}, {6, 7}}, 5},
		"nested":                     {[3]span{{0, 9}, {2, 4}, {3, 8}}, 9},
		"the first ends first":       {[3]span{{0, 3}, {2, 6}, {5, 9}}, 9},
		"the last ends first":        {[3]span{{4, 5}, {2, 7}, {0, 9}}, 9},
		"begin together":             {[3]span{{1, 2}, {1, 5}, {1, 4}}, 4},
		"end together":               {[3]span{{1, 8}, {3, 8}, {5, 8}}, 7},
		"a gap, then two overlapped": {[3]span{{0, 1}, {4, 7}, {5, 9}}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			a := s.stage(s.proposal())
			switches := [3]action.Switch{wholeOrg, engineering, s.switchOf()}
			standing := map[int]action.Freeze{}
			for hour := 0; hour <= 9; hour++ {
				for i, sp := range c.spans {
					if sp.from == hour {
						standing[i] = s.freeze(switches[i])
					}
					if sp.until == hour {
						s.lift(standing[i])
					}
				}
				s.hoursPass(1, a.ID)
			}
			left := s.read(a.ID).ExpiresAt.Sub(value[time.Time](s, `SELECT clock_timestamp()`))
			want := action.Life - 10*time.Hour + time.Duration(c.union)*time.Hour
			if off := (left - want).Abs(); off > 30*time.Second {
				t.Errorf("%s are left, want %s", left, want)
			}
		})
	}
}

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

func TestTimeIsGivenBackByNobodyElseAndOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	f := s.freeze(wholeOrg)
	s.hoursPass(2, a.ID)
	for name, statement := range map[string]string{
		"a longer deadline":             `UPDATE actions SET expires_at = expires_at + interval '1 hour'`,
		"a shorter deadline":            `UPDATE actions SET expires_at = expires_at - interval '1 hour'`,
		"other arguments":               `UPDATE actions SET arguments = '{}'`,
		"nothing at all":                `UPDATE actions SET version = version`,
		"time before the lift":          `INSERT INTO frozen_time (freeze_id, action_id, org_id, added) SELECT f.id, a.id, a.org_id, '1 hour' FROM freezes f, actions a`,
		"an approval while frozen":      `UPDATE actions SET state = 'approved', version = 2, approved_digest = args_digest, decided_by = 'per_robin', decided_by_name = 'Robin', decided_at = clock_timestamp()`,
		"a freeze that is gone":         `DELETE FROM freezes`,
		"a freeze with another reason":  `UPDATE freezes SET reason = 'because'`,
		"a freeze that began elsewhere": `UPDATE freezes SET since = since + interval '1 hour'`,
	} {
		if err := s.try(statement); err == nil {
			t.Errorf("%s: done by a statement", name)
		}
	}
	s.lift(f)
	for name, statement := range map[string]string{
		"time after the lift":    `DELETE FROM frozen_time`,
		"more time":              `UPDATE frozen_time SET added = added + interval '1 hour'`,
		"the same time again":    `INSERT INTO frozen_time (freeze_id, action_id, org_id, added) SELECT f.id, a.id, a.org_id, '1 hour' FROM freezes f, actions a`,
		"a freeze put on again":  `UPDATE freezes SET lifted_at = NULL, lifted_by_id = NULL, lifted_by_name = NULL, lifted_in = NULL`,
		"a lift of another time": `UPDATE freezes SET lifted_at = lifted_at + interval '1 hour'`,
	} {
		if err := s.try(statement); err == nil {
			t.Errorf("%s: done by a statement", name)
		}
	}
	ctx := t.Context()
	tx, err := s.owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	g := s.freeze(wholeOrg)
	s.hoursPass(1, a.ID)
	if _, err := tx.Exec(ctx, `UPDATE freezes SET lifted_at = now(), lifted_by_id = 'per_admin', lifted_by_name = 'Admin' WHERE id = $1`, g.ID); err != nil {
		t.Fatal(err)
	}
	give := `INSERT INTO frozen_time (freeze_id, action_id, org_id, added) VALUES ($1, $2, $3, '1000 hours')`
	if _, err := tx.Exec(ctx, give, g.ID, a.ID, s.org); err != nil {
		t.Fatal(err)
	}
	var added time.Duration
	if err := tx.QueryRow(ctx, `SELECT added FROM frozen_time WHERE freeze_id = $1`, g.ID).Scan(&added); err != nil || added > 2*time.Hour {
		t.Errorf("%s were added, %v", added, err)
	}
	if _, err := tx.Exec(ctx, give, g.ID, a.ID, s.org); err == nil {
		t.Error("the same time was given back twice")
	}
}
