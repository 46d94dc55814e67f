package db_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
)

func TestAnApprovalIsBoundToAPersonAndTheDigestThatWasSeen(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	got := s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver)))
	if got.State != action.StateApproved || got.Version != 2 || got.DecidedBy != s.approver.ID || got.DecidedByName != "Robin" || got.Reason != "fine by me" || got.ApprovedByPolicy {
		t.Errorf("%+v", got)
	}
	if value[string](s, `SELECT approved_digest FROM actions WHERE id = $1`, a.ID) != a.ArgsDigest {
		t.Error("another digest was approved")
	}
	if facts := value[string](s, `SELECT array_to_string(fact_names, ',') || ' ' || array_to_string(fact_values, ',') FROM audit_entries WHERE object_id = $1 AND event = 'action.approved'`, a.ID); facts != "from,to,tool,run,reason staged,approved,"+a.Connection.String()+"/contacts_create,"+string(a.Run)+",fine by me" {
		t.Errorf("audit row: %s", facts)
	}
}

func TestADecisionIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 1000`)
	inactive := s.approver
	inactive.Active = false
	for name, c := range map[string]struct {
		code fault.Code
		edit func(d *action.Decision)
	}{
		"to the person behind the run":       {fault.CodeForbidden, func(d *action.Decision) { d.By = s.asker }},
		"to the owner of the service token":  {fault.CodeForbidden, func(d *action.Decision) { d.By = s.tokenOwner }},
		"to an admin without the role":       {fault.CodeForbidden, func(d *action.Decision) { d.By = s.admin }},
		"to a person who was deactivated":    {fault.CodeForbidden, func(d *action.Decision) { d.By = inactive }},
		"about an action that was not shown": {fault.CodeStale, func(d *action.Decision) { d.ArgsDigest = "other" }},
		"about a version that passed by":     {fault.CodeStale, func(d *action.Decision) { d.Version++ }},
		"about nothing":                      {fault.CodeNotFound, func(d *action.Decision) { d.Action = "act_none" }},
		"with a reason that is too long":     {fault.CodeInvalid, func(d *action.Decision) { d.Reason = string(make([]byte, 2001)) }},
	} {
		for verb, decide := range map[string]func(context.Context, action.Decision) (action.Action, error){"approve": s.actions.Approve, "deny": s.actions.Deny} {
			t.Run(verb+" "+name, func(t *testing.T) {
				a := s.stage(s.proposal())
				d := s.decision(a, s.approver)
				c.edit(&d)
				_, err := decide(t.Context(), d)
				refused(t, err, c.code)
				s.isIn(a.ID, action.StateStaged)
			})
		}
	}
}

func TestADenialNeedsAReasonAndGivesThePlaceBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	d := s.decision(a, s.approver)
	d.Reason = "  "
	_, err := s.actions.Deny(t.Context(), d)
	refused(t, err, fault.CodeInvalid)
	d.Reason = "not this one"
	got := s.must(s.actions.Deny(t.Context(), d))
	if got.State != action.StateDenied || got.DecidedBy != s.approver.ID || got.Reason != "not this one" || got.FinishedAt == nil || s.used() != 0 {
		t.Errorf("%+v, used %d", got, s.used())
	}
	if d.Reason = "again"; s.used() == 0 {
		_, err = s.actions.Deny(t.Context(), d)
		refused(t, err, fault.CodeStale)
	}
}

func TestAnApprovalAsksTheFencesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    fault.Code
		arrange func(s *scene)
	}{
		"a profile without the tool":           {fault.ProfileForbids, func(s *scene) { s.sql(`UPDATE profile_uses SET tools = '{}'`) }},
		"a connection that needs consent":      {fault.NeedsConsent, func(s *scene) { s.sql(`UPDATE connections SET state = 'needs_consent', version = version + 1`) }},
		"a mode that only reads":               {fault.ReadOnlyConnection, func(s *scene) { s.sql(`UPDATE connections SET mode = 'read_only', version = version + 1`) }},
		"a definition that is held back now":   {fault.DefinitionChanged, func(s *scene) { s.observe("contacts_create", "def-other") }},
		"a tool that left the snapshot by SQL": {fault.ToolNotGranted, func(s *scene) { s.sql(`DELETE FROM pinned_tools WHERE tool = 'contacts_create'`) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			a := s.stage(s.proposal())
			c.arrange(s)
			_, err := s.actions.Approve(t.Context(), s.decision(a, s.approver))
			refused(t, err, c.code)
			s.isIn(a.ID, action.StateStaged)
		})
	}
}

// observe lets the upstream list one tool.
func (s *scene) observe(tool, digest string) installation.Connection {
	s.t.Helper()
	c, err := s.connections.RecordFinding(context.Background(), s.fresh(s.connection), installation.Finding{OK: true, Tools: []installation.Observed{{Tool: tool, Digest: digest, Recipe: 1}}}, nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func TestARunThatMerelyExpiredOrSpentItsBudgetTakesNothingBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	s.sql(`UPDATE runs SET expires_at = now() - interval '1 second', budget = 1`)
	a = s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver)))
	if _, err := s.claim(a); err != nil {
		t.Error(err)
	}
}

func TestADecisionThatComesTooLateExpiresTheActionByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for verb, decide := range map[string]func(context.Context, action.Decision) (action.Action, error){"approve": s.actions.Approve, "deny": s.actions.Deny, "cancel": s.actions.Cancel} {
		a := s.stage(s.proposal())
		s.later(a.ID, action.Life)
		by := s.approver
		if verb == "cancel" {
			by = s.admin
		}
		if shown := s.read(a.ID); shown.State != action.StateExpired || shown.Version != 1 {
			t.Errorf("a reader sees %s, version %d", shown.State, shown.Version)
		}
		s.isIn(a.ID, action.StateStaged) // looking changed nothing
		_, err := decide(t.Context(), s.decision(a, by))
		refused(t, err, fault.CodeStale)
		says(t, err, "expired")
		s.isIn(a.ID, action.StateExpired)
	}
	if s.used() != 0 {
		t.Errorf("used %d", s.used())
	}
}

func TestOfTwoApproversAtOnceOneWinsAndTheOtherReadsWhoAndWhen(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	people, errs := []identity.Person{s.approver, s.approver2}, make([]error, 2)
	parallel(2, func(i int) { _, errs[i] = s.actions.Approve(context.Background(), s.decision(a, people[i])) })
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("%v, %v", errs[0], errs[1])
	}
	loser, winner := errs[0], people[1]
	if loser == nil {
		loser, winner = errs[1], people[0]
	}
	got := s.read(a.ID)
	refused(t, loser, fault.CodeStale)
	says(t, loser, winner.Name, "approved", got.DecidedAt.UTC().Format("15:04:05 UTC"))
	if got.DecidedBy != winner.ID || got.Version != 2 {
		t.Errorf("%+v", got)
	}
}

func TestOfAnApprovalAndADenialAtOnceExactlyOneHolds(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.stage(s.proposal())
	errs := make([]error, 8)
	parallel(8, func(i int) {
		if i%2 == 0 {
			_, errs[i] = s.actions.Approve(context.Background(), s.decision(a, s.approver))
		} else {
			_, errs[i] = s.actions.Deny(context.Background(), s.decision(a, s.approver2))
		}
	})
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			refused(t, err, fault.CodeStale)
		}
	}
	if won != 1 || s.read(a.ID).Version != 2 {
		t.Errorf("%d decisions", won)
	}
}

func TestAnAdminCancelsWhatWasNotClaimedAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for _, from := range []action.State{action.StateStaged, action.StateApproved} {
		a := s.reach(from)
		got := s.must(s.actions.Cancel(t.Context(), s.decision(a, s.admin)))
		if got.State != action.StateCancelled || got.Reason != "fine by me" || got.FinishedAt == nil {
			t.Errorf("%+v", got)
		}
	}
	_, err := s.actions.Cancel(t.Context(), s.decision(s.reach(action.StateExecuting), s.admin))
	refused(t, err, fault.CodeStale)
	a := s.reach(action.StateStaged)
	_, err = s.actions.Cancel(t.Context(), s.decision(a, s.approver))
	refused(t, err, fault.CodeForbidden)
	d := s.decision(a, s.admin)
	d.Version++
	_, err = s.actions.Cancel(t.Context(), d)
	refused(t, err, fault.CodeStale)
	s.isIn(a.ID, action.StateStaged)
}

func TestAPersonSettlesAnUncertainAction(t *testing.T) {
	t.Parallel()
	for answer, want := range map[action.Answer]action.State{action.Applied: action.StateSucceeded, action.NotApplied: action.StateFailed, action.Unknown: action.StateClosedUnknown} {
		t.Run(string(answer), func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			u := s.uncertain()
			s.later(u.ID, action.SettleWindow)
			got := s.must(s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(s.read(u.ID), s.approver2), Answer: answer}))
			if got.State != want || got.Resolution != action.ByPerson || got.FinishedAt == nil || got.DecidedBy != s.approver.ID || got.Evidence == nil {
				t.Errorf("%+v", got)
			}
			if last := value[string](s, `SELECT event || ' ' || actor_name || ' ' || fact_values[cardinality(fact_values)] FROM audit_entries WHERE object_id = $1 ORDER BY id DESC LIMIT 1`, u.ID); last != "action.resolved Kim fine by me" {
				t.Errorf("audit row: %s", last)
			}
			_, err := s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(got, s.approver2), Answer: action.Unknown})
			refused(t, err, fault.CodeStale)
		})
	}
}

func TestThatItDidNotHappenIsNoAnswerBeforeTheSettleWindowHasPassed(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	lost := s.approved()
	d, err := s.actions.Claim(t.Context(), s.org, lost.ID, action.Ready{Definition: lost.Definition, Destination: address, Settle: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	a := s.must(s.actions.Complete(t.Context(), d, action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{BytesWritten: 1})))
	if wait := time.Until(*a.SettlesAt); wait < 590*time.Second || wait > 610*time.Second {
		t.Errorf("settles in %s", wait)
	}
	_, err = s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(a, s.approver), Answer: action.NotApplied})
	refused(t, err, fault.CodeConflict)
	says(t, err, a.SettlesAt.UTC().Format("15:04:05 UTC on 2 January 2006"))
	s.isIn(a.ID, action.StateUncertain)
	s.must(s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(a, s.approver), Answer: action.Applied}))
}

func TestASettlementIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	u := s.uncertain()
	for name, c := range map[string]struct {
		code fault.Code
		edit func(d *action.Settlement)
	}{
		"to the person behind the run":   {fault.CodeForbidden, func(d *action.Settlement) { d.By = s.asker }},
		"to an admin":                    {fault.CodeForbidden, func(d *action.Settlement) { d.By = s.admin }},
		"without a reason":               {fault.CodeInvalid, func(d *action.Settlement) { d.Reason = "" }},
		"without an answer":              {fault.CodeInvalid, func(d *action.Settlement) { d.Answer = "" }},
		"about a version that passed by": {fault.CodeStale, func(d *action.Settlement) { d.Version-- }},
		"about what is not uncertain":    {fault.CodeStale, func(d *action.Settlement) { d.Action = s.stage(s.proposal()).ID }},
	} {
		d := action.Settlement{Decision: s.decision(u, s.approver), Answer: action.Applied}
		c.edit(&d)
		if _, err := s.actions.Settle(t.Context(), d); !fault.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.isIn(u.ID, action.StateUncertain)
}

func TestAProbeSettlesAnUncertainAction(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	found, absent, keyed := s.uncertain(), s.uncertain(), s.uncertain()
	got := s.must(s.actions.Reconcile(t.Context(), s.org, found.ID, found.Version, action.Probed{Found: true, Sentence: "The contact is there."}))
	if got.State != action.StateSucceeded || got.Resolution != action.Reconciler {
		t.Errorf("%+v", got)
	}
	_, err := s.actions.Reconcile(t.Context(), s.org, found.ID, found.Version, action.Probed{Found: true})
	refused(t, err, fault.CodeStale)
	_, err = s.actions.Reconcile(t.Context(), s.org, absent.ID, absent.Version, action.Probed{Sentence: "No such contact."})
	refused(t, err, fault.CodeConflict)
	s.isIn(absent.ID, action.StateUncertain)
	s.later(absent.ID, action.SettleWindow)
	if got = s.must(s.actions.Reconcile(t.Context(), s.org, absent.ID, absent.Version, action.Probed{Sentence: "No such contact."})); got.State != action.StateFailed || got.Resolution != action.Reconciler {
		t.Errorf("%+v", got)
	}
	if got = s.must(s.actions.Reconcile(t.Context(), s.org, keyed.ID, keyed.Version, action.Probed{Conclusive: true, Sentence: "The ref is the old one."})); got.State != action.StateFailed {
		t.Errorf("%+v", got)
	}
	if list, err := s.actions.Uncertain(t.Context(), 10); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
	if s.used() != 3 {
		t.Errorf("what was sent is spent: used %d", s.used())
	}
}

func TestApprovingRacesWithRetiringAndNothingIsSentAfterwards(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := newScene(t, policy.AskUserOnWrite)
		s.sql(`UPDATE runs SET budget = 100`)
		actions := make([]action.Action, 8)
		for i := range actions {
			actions[i] = s.stage(s.proposal())
		}
		var mu sync.Mutex
		sent := 0
		parallel(len(actions)+1, func(i int) {
			if i == len(actions) {
				s.end(installation.Retired)
				return
			}
			a, err := s.actions.Approve(context.Background(), s.decision(actions[i], s.approver))
			if err != nil {
				return
			}
			if _, err := s.claim(a); err == nil {
				mu.Lock()
				sent++
				mu.Unlock()
			}
		})
		if n := value[int](s, `SELECT count(*) FROM actions WHERE state IN ('staged', 'approved')`); n != 0 {
			t.Errorf("%d wait on a retired connection", n)
		}
		if n := value[int](s, `SELECT count(*) FROM actions WHERE state = 'executing'`); n != sent {
			t.Errorf("%d executing, %d claimed", n, sent)
		}
		_, err := s.tryMint(run.Order{Connections: []connectorKey{s.connection.Key}}, "", "")
		refused(t, err, fault.CodeInvalid)
	}
}
