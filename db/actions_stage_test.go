package db_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
)

func TestInAskModeACallIsStagedAndHoldsItsPlaceInTheBudget(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.call(s.run, "contacts_delete", `{"id":1}`)
	a := s.stage(p)
	if a.State != action.StateStaged || a.Version != 1 || a.ApprovedByPolicy || a.DecidedAt != nil || !a.Destructive || a.Effect != policy.Consequential {
		t.Errorf("staged: %+v", a)
	}
	if string(a.Arguments) != `{"id":1}` || a.ArgsDigest != p.ArgsDigest || a.Definition != "def-delete" || a.Destination != address || a.Justification != "because" {
		t.Errorf("not what was asked for: %+v", a)
	}
	if a.OnBehalfOf != s.asker.ID || a.OnBehalfEmail != s.asker.Email || a.TokenOwner != s.tokenOwner.ID || a.Task != "ENG-12" || a.Profile != "engineering" || a.SnapshotVersion != 1 || a.Release != rel {
		t.Errorf("not for whom it was asked: %+v", a)
	}
	if life := a.ExpiresAt.Sub(a.RequestedAt); life != action.Life {
		t.Errorf("lives for %s", life)
	}
	if s.used() != 1 {
		t.Errorf("used %d of the budget", s.used())
	}
}

func TestInAutonomousModeACallIsApprovedByPolicyAndItsSnapshotVersion(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	a := s.stage(s.proposal())
	if a.State != action.StateApproved || !a.ApprovedByPolicy || a.DecidedBy != "" || a.DecidedAt == nil || a.SnapshotVersion != 1 {
		t.Errorf("%+v", a)
	}
	if got := value[string](s, `SELECT actor_kind || ' ' || event FROM audit_entries WHERE object_id = $1`, a.ID); got != "policy action.approved" {
		t.Errorf("audit row: %s", got)
	}
	d, err := s.claim(a)
	if err != nil || d.Fence == 0 || d.ProviderKey == "" {
		t.Errorf("claim: %+v %v", d, err)
	}
}

func TestAlwaysAskStagesInAutonomousModeToo(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	p := s.proposal()
	p.AlwaysAsk = true
	if a := s.stage(p); a.State != action.StateStaged {
		t.Errorf("%s", a.State)
	}
}

func TestAProfileNarrowsAutonomousToAsking(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	s.sql(`UPDATE profile_uses SET mode = 'ask_user_on_write'`)
	if a := s.stage(s.proposal()); a.State != action.StateStaged {
		t.Errorf("%s", a.State)
	}
	s.sql(`UPDATE profile_uses SET mode = 'read_only'`)
	_, _, err := s.actions.Stage(t.Context(), s.proposal())
	refused(t, err, fault.ProfileForbids)
}

func TestTheSameCallAnswersTheSameActionInItsPresentState(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	a := s.stage(p)
	s.must(s.actions.Deny(t.Context(), s.decision(a, s.approver)))
	s.sql(`UPDATE runs SET budget = 1, consequential_used = 0`) // a re-call is never refused for money
	again, created, err := s.actions.Stage(t.Context(), p)
	if err != nil || created || again.ID != a.ID || again.State != action.StateDenied || again.Reason != "fine by me" {
		t.Errorf("created %t, %v, %+v", created, err, again)
	}
}

func TestAReissuedCallWhoseActionIsPastItsTimeIsShownAsExpired(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	a := s.stage(p)
	s.later(a.ID, action.Life)
	again, created, err := s.actions.Stage(t.Context(), p)
	if err != nil || created || again.ID != a.ID || again.State != action.StateExpired {
		t.Errorf("created %t, %v, %s", created, err, again.State)
	}
	s.isIn(a.ID, action.StateStaged)
}

func TestAReissuedCallIsTheSameActionAlsoAfterTheDefinitionChanged(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	a := s.stage(p)
	p.Definition = "def-other"
	again, created, err := s.actions.Stage(t.Context(), digested(p))
	if err != nil || created || again.ID != a.ID {
		t.Errorf("created %t, %v", created, err)
	}
}

func TestAnExplicitKeyWithOtherArgumentsIsAConflict(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	p.Key, p.ExplicitKey = "mine", true
	s.stage(p)
	other := s.proposal()
	other.Key, other.ExplicitKey = "mine", true
	_, _, err := s.actions.Stage(t.Context(), other)
	refused(t, err, fault.IdempotencyConflict)
	other = s.call(s.run, "contacts_delete", string(p.Arguments))
	other.Key = "mine"
	_, _, err = s.actions.Stage(t.Context(), other)
	refused(t, err, fault.IdempotencyConflict)
	if s.used() != 1 {
		t.Errorf("used %d", s.used())
	}
}

func TestAKeyOfAnotherRunIsAnotherKey(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	p.Key, p.ExplicitKey = "mine", true
	first := s.stage(p)
	q := s.call(s.mint(run.Order{}), "contacts_create", `{"x":1}`)
	q.Key, q.ExplicitKey = "mine", true
	if second := s.stage(q); second.ID == first.ID {
		t.Error("two runs share an action")
	}
}

// each refusal has one cause, everything else being in order.
func TestEachFenceRefusesToStageForItsOwnCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    fault.Code
		arrange func(s *scene)
		edit    func(p *action.Proposal)
	}{
		"a run that ended":                           {fault.TaskEnded, func(s *scene) { s.sql(`UPDATE runs SET ended_at = now()`) }, nil},
		"a run that expired":                         {fault.TaskEnded, func(s *scene) { s.sql(`UPDATE runs SET expires_at = now() - interval '1 second'`) }, nil},
		"a profile without the connection":           {fault.ProfileForbids, func(s *scene) { s.sql(`DELETE FROM profile_uses`) }, nil},
		"a profile that was removed":                 {fault.ProfileForbids, func(s *scene) { s.sql(`DELETE FROM profiles`) }, nil},
		"a profile without the tool":                 {fault.ProfileForbids, func(s *scene) { s.sql(`UPDATE profile_uses SET tools = '{contacts_search}'`) }, nil},
		"a profile without any tool":                 {fault.ProfileForbids, func(s *scene) { s.sql(`UPDATE profile_uses SET tools = '{}'`) }, nil},
		"a call outside the resource":                {fault.OutsideResource, nil, func(p *action.Proposal) { p.OutsideResource = "The account is another one." }},
		"a connection that needs consent":            {fault.NeedsConsent, func(s *scene) { s.sql(`UPDATE connections SET state = 'needs_consent', version = version + 1`) }, nil},
		"a disconnected connection":                  {fault.ConnectionUnavailable, func(s *scene) { s.end(installation.Disconnected) }, nil},
		"a retired connection":                       {fault.ConnectionUnavailable, func(s *scene) { s.end(installation.Retired) }, nil},
		"a connection lowered to read only":          {fault.ReadOnlyConnection, func(s *scene) { s.save(s.connection, policy.ReadOnly, everyTool[2]) }, nil},
		"a tool taken out of the snapshot":           {fault.ToolNotGranted, func(s *scene) { s.save(s.connection, policy.AskUserOnWrite, everyTool[1]) }, nil},
		"a tool granted after the run began":         {fault.ToolNotGranted, func(s *scene) { s.sql(`DELETE FROM run_grants WHERE tool = 'contacts_create'`) }, nil},
		"a tool nobody knows":                        {fault.ToolNotGranted, nil, func(p *action.Proposal) { p.Tool = "contacts_merge" }},
		"a tool with a zero byte":                    {fault.ToolNotGranted, nil, func(p *action.Proposal) { p.Tool = "contacts_create\x00" }},
		"a connection nobody knows":                  {fault.ToolNotGranted, nil, func(p *action.Proposal) { p.Connection = "crm-zzzzzz" }},
		"a live definition that is not pinned":       {fault.DefinitionChanged, nil, func(p *action.Proposal) { p.Definition = "def-other" }},
		"a definition accepted after the run began":  {fault.DefinitionChanged, func(s *scene) { s.accept("def-new") }, func(p *action.Proposal) { p.Definition = "def-new" }},
		"another destination":                        {fault.DefinitionChanged, nil, func(p *action.Proposal) { p.Destination = "https://evil.example.com/mcp" }},
		"a budget that is used up":                   {fault.BudgetExceeded, func(s *scene) { s.sql(`UPDATE runs SET budget = 0`) }, nil},
		"a chat run":                                 {fault.ConsequentialInChat, func(s *scene) { s.sql(`UPDATE runs SET surface = 'chat'`) }, nil},
		"a digest that is not that of the arguments": {fault.CodeInternal, nil, func(p *action.Proposal) { p.ArgsDigest = "x" }},
		"a key that is too long":                     {fault.InvalidArguments, nil, func(p *action.Proposal) { p.Key = fmt.Sprintf("%0256d", 1) }},
		"a run nobody knows":                         {fault.CodeNotFound, nil, func(p *action.Proposal) { p.Run = "run_nobody" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			if c.arrange != nil {
				c.arrange(s)
			}
			p := s.proposal()
			digest := p.ArgsDigest
			if c.edit != nil {
				c.edit(&p)
				if p.ArgsDigest == digest {
					p = digested(p)
				}
			}
			_, created, err := s.actions.Stage(t.Context(), p)
			refused(t, err, c.code)
			if n := value[int](s, `SELECT count(*) FROM actions`); created || n != 0 {
				t.Errorf("%d actions", n)
			}
		})
	}
}

func (s *scene) end(state installation.State) installation.Connection {
	s.t.Helper()
	c, err := s.connections.End(context.Background(), s.fresh(s.connection), state, s.entry(s.org, eventOf(state), string(s.connection.Key)))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// accept pins another definition of contacts_create, as a person who reviewed the difference does.
func (s *scene) accept(digest string) {
	s.t.Helper()
	tools := slices.Clone(everyTool)
	tools[0].Digest = digest
	s.save(s.connection, policy.AskUserOnWrite, tools...)
}

func TestAnEqualCallWaitsWhileAnUncertainOneMayHaveHappened(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	p.Key, p.ExplicitKey = "one", true
	a := s.must(s.actions.Approve(t.Context(), s.decision(s.stage(p), s.approver)))
	q := p
	q.Key = "two"
	b := s.stage(q)
	q.Key = "three"
	c := s.must(s.actions.Approve(t.Context(), s.decision(s.stage(q), s.approver)))
	d, err := s.claim(a)
	if err != nil {
		t.Fatal(err)
	}
	u := s.must(s.actions.Complete(t.Context(), d, action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{BytesWritten: 1})))
	q.Key = "four"
	_, _, err = s.actions.Stage(t.Context(), q)
	refused(t, err, fault.UncertainPending)
	says(t, err, string(a.ID))
	_, err = s.actions.Approve(t.Context(), s.decision(b, s.approver))
	refused(t, err, fault.UncertainPending)
	s.isIn(b.ID, action.StateStaged)
	_, err = s.claim(c)
	refused(t, err, fault.UncertainPending)
	s.isIn(c.ID, action.StateCancelled)
	s.must(s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(u, s.approver), Answer: action.Applied}))
	s.must(s.actions.Approve(t.Context(), s.decision(b, s.approver)))
}

func TestARetryNamesAnEndedActionOfItsOwnRun(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	closed := s.reachAutonomously(action.StateClosedUnknown)
	try := func(of action.ID, r run.ID) (action.Action, error) {
		p := s.proposal()
		p.RetryOf, p.Run = of, r
		a, _, err := s.actions.Stage(t.Context(), p)
		return a, err
	}
	if a := s.must(try(closed, s.run.Run.ID)); a.State != action.StateStaged || a.RetryOf != closed {
		t.Errorf("after closed_unknown a person decides: %s", a.State)
	}
	failed := s.reachAutonomously(action.StateFailed)
	if a := s.must(try(failed, s.run.Run.ID)); a.State != action.StateApproved {
		t.Errorf("after a failure policy may approve: %s", a.State)
	}
	_, err := try(s.stage(s.proposal()).ID, s.run.Run.ID)
	refused(t, err, fault.CodeConflict)
	_, err = try(failed, s.mint(run.Order{}).Run.ID)
	refused(t, err, fault.CodeNotFound)
}

// reachAutonomously is reach for a connection whose mode approves.
func (s *scene) reachAutonomously(to action.State) action.ID {
	s.t.Helper()
	d, err := s.claim(s.stage(s.proposal()))
	if err != nil {
		s.t.Fatal(err)
	}
	o := action.Failed(fault.UpstreamError, "Refused.", action.Evidence{BytesWritten: 1, Status: 400})
	if to != action.StateFailed {
		o = action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{BytesWritten: 1})
	}
	a := s.must(s.actions.Complete(context.Background(), d, o))
	if to == action.StateClosedUnknown {
		a = s.must(s.actions.Settle(context.Background(), action.Settlement{Decision: s.decision(a, s.approver), Answer: action.Unknown}))
	}
	return a.ID
}

func TestAnAgentTakesBackWhatWasNotClaimed(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for _, from := range []action.State{action.StateStaged, action.StateApproved} {
		a := s.reach(from)
		got := s.must(s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, a.ID))
		if got.State != action.StateCancelled {
			t.Errorf("%s → %s", from, got.State)
		}
		if again := s.must(s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, a.ID)); again.Version != got.Version {
			t.Error("cancelling twice is two transitions")
		}
	}
	if s.used() != 0 {
		t.Errorf("used %d", s.used())
	}
	for _, from := range []action.State{action.StateExecuting, action.StateUncertain, action.StateDenied, action.StateSucceeded} {
		_, err := s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, s.reach(from).ID)
		refused(t, err, fault.CodeStale)
	}
	a := s.reach(action.StateStaged)
	_, err := s.actions.CancelByRun(t.Context(), s.org, s.mint(run.Order{}).Run.ID, a.ID)
	refused(t, err, fault.CodeNotFound)
	s.later(a.ID, 2*action.Life)
	_, err = s.actions.CancelByRun(t.Context(), s.org, s.run.Run.ID, a.ID)
	refused(t, err, fault.CodeStale)
	s.isIn(a.ID, action.StateExpired)
}

func TestFiftyParallelStagesOfOneKeyMakeOneAction(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := s.proposal()
	ids, made := make([]action.ID, 50), 0
	var mu sync.Mutex
	parallel(50, func(i int) {
		a, created, err := s.actions.Stage(context.Background(), p)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if ids[i] = a.ID; created {
			made++
		}
	})
	if slices.Sort(ids); made != 1 || len(slices.Compact(ids)) != 1 || s.used() != 1 {
		t.Errorf("%d created, %d ids, %d used", made, len(slices.Compact(ids)), s.used())
	}
}

func TestParallelStagesNeverExceedTheBudget(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	proposals := make([]action.Proposal, 40)
	for i := range proposals {
		proposals[i] = s.proposal()
	}
	var mu sync.Mutex
	made := 0
	parallel(len(proposals), func(i int) {
		_, created, err := s.actions.Stage(context.Background(), proposals[i])
		mu.Lock()
		defer mu.Unlock()
		if created {
			made++
		} else if !fault.Is(err, fault.BudgetExceeded) {
			t.Error(err)
		}
	})
	if made != 10 || s.used() != 10 {
		t.Errorf("%d actions, %d used of 10", made, s.used())
	}
}

// parallel runs f n times at once and waits for all.
func parallel(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestNothingOfAnotherOrganizationExistsForActions(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a, ctx := s.reach(action.StateStaged), t.Context()
	p := s.proposal()
	p.Org = s.other
	_, _, err := s.actions.Stage(ctx, p)
	refused(t, err, fault.ToolNotGranted)
	foreign := s.decision(a, s.stranger)
	for name, f := range map[string]func() error{
		"approve": func() error { _, err := s.actions.Approve(ctx, foreign); return err },
		"deny":    func() error { _, err := s.actions.Deny(ctx, foreign); return err },
		"cancel":  func() error { _, err := s.actions.Cancel(ctx, foreign); return err },
		"settle": func() error {
			_, err := s.actions.Settle(ctx, action.Settlement{Decision: foreign, Answer: action.Applied})
			return err
		},
		"reconcile": func() error {
			_, err := s.actions.Reconcile(ctx, s.other, a.ID, 1, action.Probed{Found: true})
			return err
		},
		"claim": func() error {
			_, err := s.actions.Claim(ctx, s.other, a.ID, action.Ready{Definition: a.Definition, Destination: address})
			return err
		},
		"read":          func() error { _, err := s.actions.Action(ctx, s.other, a.ID); return err },
		"story":         func() error { _, _, err := s.actions.Story(ctx, s.other, a.ID); return err },
		"cancel by run": func() error { _, err := s.actions.CancelByRun(ctx, s.other, s.run.Run.ID, a.ID); return err },
		// A decision in the home organization by somebody of another one, as a forged form would make it.
		"approve from outside": func() error {
			d := s.decision(a, s.stranger)
			d.Org = s.org
			_, err := s.actions.Approve(ctx, d)
			return err
		},
	} {
		if err := f(); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := s.actions.Actions(ctx, s.other, action.Filter{})
	n, err2 := s.actions.Counts(ctx, s.other)
	if len(list) != 0 || n != (action.Counts{}) || err != nil || err2 != nil {
		t.Errorf("%d listed, %+v, %v %v", len(list), n, err, err2)
	}
	s.isIn(a.ID, action.StateStaged)
}

func eventOf(state installation.State) audit.Event {
	if state == installation.Retired {
		return audit.ConnectionRetired
	}
	return audit.ConnectionDisconnect
}
