package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/policy"
)

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
