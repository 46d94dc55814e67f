package db_test

import (
	"context"
	"sync/atomic"
	"testing"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// taken is what the ledger holds today of a measure.
func (s *scene) taken(measure string) int64 {
	s.t.Helper()
	return value[int64](s, `SELECT coalesce(sum(used), 0)::bigint FROM budget_days WHERE measure = $1`, measure)
}

// accounted compares the ledger with the actions it counts.
func (s *scene) accounted() {
	s.t.Helper()
	if n := value[int](s, `SELECT count(*) FROM budget_days b WHERE b.used <> (SELECT coalesce(sum(CASE WHEN b.measure = 'actions' THEN 1 ELSE a.amount END), 0) FROM actions a
		WHERE a.org_id = b.org_id AND a.profile = b.profile AND a.connection_id = b.connection_id AND a.budget_held
			AND (a.requested_at AT TIME ZONE 'UTC')::date = b.day AND b.measure IN ('actions', a.currency))`); n != 0 {
		s.t.Errorf("%d rows of the ledger count wrong", n)
	}
}

func (s *scene) paying(units int64, currency string) action.Proposal {
	p := s.proposal()
	p.Spends = manifest.Amount{Currency: currency, Units: units}
	return p
}

func (s *scene) tryStage(p action.Proposal) error {
	_, _, err := s.actions.Stage(context.Background(), p)
	return err
}

func TestADayHoldsSoManyActions(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE profile_uses SET daily_actions = 2`)
	first, _ := s.stage(s.proposal()), s.stage(s.proposal())
	err := s.tryStage(s.proposal())
	refused(t, err, fault.BudgetExceeded)
	says(t, err, "2 consequential actions of the day", "resets at 00:00 UTC")
	if _, created, err := s.actions.Stage(t.Context(), s.call(s.run, "contacts_create", string(first.Arguments))); err != nil || created {
		t.Errorf("a re-issued call is refused for the day's limit: %t, %v", created, err)
	}
	s.must(s.actions.Deny(t.Context(), s.decision(first, s.approver)))
	s.stage(s.proposal()) // what was not sent gave its place back, once
	refused(t, s.tryStage(s.proposal()), fault.BudgetExceeded)
	s.accounted()
	s.sql(`UPDATE profile_uses SET daily_actions = 1`) // lowered below what is taken: nothing more, and nothing breaks
	refused(t, s.tryStage(s.proposal()), fault.BudgetExceeded)
	s.sql(`UPDATE profile_uses SET daily_actions = 0`)
	s.stage(s.proposal())
	s.accounted()
	d, err := s.actions.Day(t.Context(), s.org, first.ID)
	if err != nil || d.Actions != 0 || d.Most != 0 || d.Date.Hour() != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := s.actions.Day(t.Context(), s.other, first.ID); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("another organization reads it: %v", err)
	}
}

func TestALoweredLimitTakesNothingBackThatWasStaged(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.paying(100, "EUR"))
	s.sql(`UPDATE profile_uses SET daily_actions = 1, daily_amount = 1, daily_currency = 'EUR'`)
	if _, err := s.claim(s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver)))); err != nil {
		t.Error(err)
	}
}

func TestADayHoldsSoMuchMoney(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE profile_uses SET daily_amount = 5000000, daily_currency = 'EUR'`) // 500 euros
	a := s.stage(s.paying(3_000_000, "EUR"))
	err := s.tryStage(s.paying(2_000_001, "EUR"))
	refused(t, err, fault.BudgetExceeded)
	says(t, err, "EUR 500", "resets at 00:00 UTC")
	s.stage(s.paying(2_000_000, "EUR")) // to the last cent
	s.stage(s.paying(0, "EUR"))
	s.stage(s.proposal()) // spends nothing
	err = s.tryStage(s.paying(1, "USD"))
	refused(t, err, fault.BudgetExceeded)
	says(t, err, "is in EUR, and this call spends USD")
	refused(t, s.tryStage(s.paying(-1, "EUR")), fault.InvalidArguments)
	refused(t, s.tryStage(s.paying(manifest.MostUnits+1, "EUR")), fault.InvalidArguments)
	s.must(s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, a.ID))
	s.must(s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, a.ID))
	if got := s.taken("EUR"); got != 2_000_000 {
		t.Errorf("%d are taken", got)
	}
	s.accounted()
	if got := s.read(a.ID); got.Spends != (manifest.Amount{Currency: "EUR", Units: 3_000_000}) {
		t.Errorf("%+v", got.Spends)
	}
}

func TestOnlyWhatWasNotSentGivesItsPlaceInTheDayBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE profile_uses SET daily_actions = 100, daily_amount = 1000, daily_currency = 'EUR'`)
	ctx := t.Context()
	sent := func(o action.Outcome) {
		a := s.stage(s.paying(10, "EUR"))
		d, err := s.claim(s.must(s.actions.Approve(ctx, s.decision(a, s.approver))))
		if err != nil {
			t.Fatal(err)
		}
		s.must(s.actions.Complete(ctx, d, o))
	}
	for i, c := range []struct {
		outcome action.Outcome
		kept    bool
	}{
		{action.Succeeded([]byte(`{}`), action.Evidence{Status: 200}), true},
		{action.Failed("upstream_error", "Refused.", action.Evidence{Status: 400, BytesWritten: 5}), true},
		{action.Failed("connection_unavailable", "Unreachable.", action.Evidence{}), false},
		{action.Uncertain("upstream_timeout", "Lost.", action.Evidence{BytesWritten: 5}), true},
	} {
		before := s.taken("EUR")
		sent(c.outcome)
		if got := s.taken("EUR") - before; (got == 10) != c.kept {
			t.Errorf("outcome %d changed the day by %d", i, got)
		}
	}
	s.accounted()
}

// TestFiftyWhoStageAtOnceNeverOverdrawTheDay lets different runs, which share no lock but the ledger's, race for the last places.
func TestFiftyWhoStageAtOnceNeverOverdrawTheDay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit string
		holds int32 // a day
	}{
		"actions": {`UPDATE profile_uses SET daily_actions = 7`, 7},
		"money":   {`UPDATE profile_uses SET daily_amount = 95, daily_currency = 'EUR'`, 9},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			s.sql(c.limit)
			lives := make([]capability.Live, 10)
			for i := range lives {
				lives[i] = s.mint(run.Order{})
			}
			proposals := make([]action.Proposal, 50)
			for i := range proposals {
				s.run = lives[i%len(lives)]
				proposals[i] = s.paying(10, "EUR")
			}
			var staged, denied atomic.Int32
			parallel(len(proposals), func(i int) {
				switch err := s.tryStage(proposals[i]); {
				case err == nil:
					staged.Add(1)
				case fault.Is(err, fault.BudgetExceeded):
					denied.Add(1)
				default:
					t.Errorf("neither staged nor refused in words: %v", err)
				}
			})
			// They may race over midnight, and into a fresh day: none holds more than its limit, and nobody is refused while none is full.
			fullest := value[int32](s, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM actions GROUP BY (requested_at AT TIME ZONE 'UTC')::date) days`)
			if stored := value[int32](s, `SELECT count(*) FROM actions`); fullest != c.holds || staged.Load() != stored || staged.Load()+denied.Load() != 50 {
				t.Errorf("%d are staged, %d stored, %d refused; a day took %d and holds %d", staged.Load(), stored, denied.Load(), fullest, c.holds)
			}
			s.accounted()
		})
	}
}

func TestTheLedgerItselfCannotBeOverdrawn(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE profile_uses SET daily_actions = 2, daily_amount = 100, daily_currency = 'EUR'`)
	a := s.stage(s.paying(60, "EUR"))
	again := `INSERT INTO actions SELECT (jsonb_populate_record(a, jsonb_build_object('id', 'act_x', 'idempotency_key', 'x', 'requested_at', clock_timestamp()) || $2::jsonb)).* FROM actions a WHERE id = $1`
	says(t, s.try(again, a.ID, `{"amount": 41}`), "budget_days_hold")
	says(t, s.try(again, a.ID, `{"currency": "USD"}`), "another currency")
	says(t, s.try(`UPDATE budget_days SET used = -1`), "budget_days_hold")
	says(t, s.try(`UPDATE budget_days SET used = 3 WHERE measure = 'actions'`), "budget_days_hold")
	says(t, s.try(`UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false, amount = 1 WHERE id = $1`, a.ID), "what was asked for")
}

func TestACallStaysWithinTheResourceAtEveryPoint(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite) // the connection's setting region is eu
	named := func(value string, ok bool) action.Proposal {
		p := s.proposal()
		p.Touched = manifest.Touched{Setting: "region", Value: value, Named: ok}
		return p
	}
	for _, p := range []action.Proposal{named("us", true), named("", false), named("EU", true)} {
		refused(t, s.tryStage(p), fault.OutsideResource)
	}
	narrow := func(allowed ...string) {
		s.sql(`DELETE FROM profile_resources`)
		s.sql(`INSERT INTO profile_resources (org_id, profile, connection_key, setting, allowed) VALUES ($1, 'engineering', $2, 'region', $3)`, s.org, s.connection.Key, allowed)
	}
	staged, approved := s.stage(named("eu", true)), s.stage(named("eu", true))
	approved = s.must(s.actions.Approve(t.Context(), s.decision(approved, s.approver)))
	narrow("de", "fr")
	refused(t, s.tryStage(named("eu", true)), fault.OutsideResource)
	err := s.tryApprove(staged, s.approver)
	refused(t, err, fault.OutsideResource)
	says(t, err, "profile does not allow this region")
	_, err = s.claim(approved)
	refused(t, err, fault.OutsideResource)
	s.isIn(staged.ID, action.StateStaged)
	s.isIn(approved.ID, action.StateCancelled)
	narrow([]string{}...)
	refused(t, s.tryStage(named("eu", true)), fault.OutsideResource) // an empty list allows nothing
	narrow("eu", "de")
	s.must(s.actions.Approve(t.Context(), s.decision(staged, s.approver)))

	free := s.proposal()
	free.Touched = manifest.Touched{Setting: "mailbox"} // the connection was made without this setting
	s.stage(free)
	if l, err := s.runs.Run(t.Context(), s.org, s.run.Run.ID); err != nil || len(l.Grants) != 1 || len(l.Grants[0].Resources["region"]) != 2 {
		t.Errorf("the run's grants do not know what the profile allows: %+v, %v", l.Grants, err)
	}
}

// TestALimitCountsWhatTheDayHasTakenBeforeIt sets limits in the middle of a day: what is taken counts, what was given back does not, and
// a limit that is lifted leaves nothing behind.
func TestALimitCountsWhatTheDayHasTakenBeforeIt(t *testing.T) {
	s := newScene(t, policy.AskUserOnWrite)
	first := s.stage(s.paying(30, "EUR"))
	s.stage(s.paying(20, "EUR"))
	s.stage(s.paying(5, "USD"))
	if got := s.taken("actions") + s.taken("EUR"); got != 0 {
		t.Errorf("%d are counted where nothing is limited", got)
	}
	s.must(s.actions.Deny(t.Context(), s.decision(first, s.approver)))
	s.sql(`UPDATE profile_uses SET daily_actions = 3, daily_amount = 60, daily_currency = 'EUR'`)
	if actions, eur := s.taken("actions"), s.taken("EUR"); actions != 2 || eur != 20 {
		t.Errorf("%d actions and EUR %d are taken", actions, eur)
	}
	refused(t, s.tryStage(s.paying(41, "EUR")), fault.BudgetExceeded)
	s.stage(s.paying(40, "EUR"))
	refused(t, s.tryStage(s.proposal()), fault.BudgetExceeded)
	s.accounted()
	s.sql(`UPDATE profile_uses SET daily_actions = 0, daily_amount = 0, daily_currency = ''`)
	if n := value[int](s, `SELECT count(*) FROM budget_days`); n != 0 {
		t.Errorf("%d rows nobody keeps", n)
	}
	s.stage(s.proposal())
	s.sql(`UPDATE profile_uses SET daily_actions = 5`)
	s.stage(s.proposal())
	refused(t, s.tryStage(s.proposal()), fault.BudgetExceeded)
	s.accounted()
}
