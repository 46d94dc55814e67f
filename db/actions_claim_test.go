package db_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
)

type connectorKey = connector.Key

func TestAClaimCommitsTheOneIntentToSend(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	before := time.Now()
	d := s.claimed()
	a := d.Action
	if a.State != action.StateExecuting || a.Version != 3 || a.ClaimedAt == nil || a.LeaseUntil.Sub(*a.ClaimedAt) < action.Lease || d.ProviderKey == "" {
		t.Errorf("%+v", d)
	}
	if d.SendBefore.Before(before.Add(action.SendWindow)) || d.SendBefore.After(time.Now().Add(action.SendWindow)) || !d.SendBefore.Before(time.Now().Add(action.Lease)) {
		t.Errorf("send before %s", d.SendBefore)
	}
	if got := value[string](s, `SELECT args_digest || provider_key FROM dispatches WHERE fence = $1 AND action_id = $2`, d.Fence, a.ID); got != a.ArgsDigest+d.ProviderKey {
		t.Errorf("dispatch row: %s", got)
	}
	second := s.claimed()
	if second.Fence <= d.Fence || second.ProviderKey == d.ProviderKey {
		t.Errorf("fences %d, %d", d.Fence, second.Fence)
	}
}

func TestOnlyAnApprovedActionCanBeClaimed(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 100`)
	for _, from := range action.States {
		if from == action.StateApproved {
			continue
		}
		a := s.reach(from)
		_, err := s.claim(a)
		refused(t, err, fault.CodeConflict)
		s.isIn(a.ID, from)
	}
	_, err := s.actions.Claim(t.Context(), s.org, "act_none", action.Ready{Definition: "x", Destination: address})
	refused(t, err, fault.CodeNotFound)
}

func TestParallelClaimsMakeOneDispatch(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.approved()
	var won atomic.Int32
	parallel(30, func(int) {
		if _, err := s.claim(a); err == nil {
			won.Add(1)
		} else if !fault.Is(err, fault.CodeConflict) {
			t.Error(err)
		}
	})
	if n := value[int](s, `SELECT count(*) FROM dispatches`); won.Load() != 1 || n != 1 {
		t.Errorf("%d claims, %d dispatches", won.Load(), n)
	}
}

func TestAClaimAsksTheFencesAgainAndCancelsWhatTheyRefuseForGood(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code              fault.Code
		then              action.State
		arrange           func(s *scene)
		live, destination string
		outside           string
	}{
		"a live definition that changed":   {fault.DefinitionChanged, action.StateCancelled, nil, "def-other", address, ""},
		"a destination that moved":         {fault.DefinitionChanged, action.StateCancelled, nil, "def-create", "https://evil.example.com", ""},
		"a resource that was narrowed":     {fault.OutsideResource, action.StateCancelled, nil, "def-create", address, "It is another account now."},
		"a profile that forbids it":        {fault.ProfileForbids, action.StateCancelled, func(s *scene) { s.sql(`DELETE FROM profile_uses`) }, "def-create", address, ""},
		"a mode that only reads":           {fault.ReadOnlyConnection, action.StateCancelled, func(s *scene) { s.sql(`UPDATE connections SET mode = 'read_only', version = version + 1`) }, "def-create", address, ""},
		"a tool that is not pinned":        {fault.ToolNotGranted, action.StateCancelled, func(s *scene) { s.sql(`DELETE FROM pinned_tools`) }, "def-create", address, ""},
		"a connection that needs consent":  {fault.NeedsConsent, action.StateApproved, func(s *scene) { s.sql(`UPDATE connections SET state = 'needs_consent', version = version + 1`) }, "def-create", address, ""},
		"a connection that is down":        {fault.ConnectionUnavailable, action.StateApproved, func(s *scene) { s.sql(`UPDATE connections SET state = 'disconnected', version = version + 1`) }, "def-create", address, ""},
		"a definition that nobody fetched": {fault.ConnectionUnavailable, action.StateApproved, nil, "", address, ""},
		"a destination that is not known":  {fault.ConnectionUnavailable, action.StateApproved, nil, "def-create", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			a := s.approved()
			if c.arrange != nil {
				c.arrange(s)
			}
			_, err := s.actions.Claim(t.Context(), s.org, a.ID, action.Ready{Definition: c.live, Destination: c.destination, OutsideResource: c.outside})
			refused(t, err, c.code)
			s.isIn(a.ID, c.then)
			if got := s.read(a.ID); c.then == action.StateCancelled && (got.ErrorCode != string(c.code) || got.ErrorSentence == "" || s.used() != 0) {
				t.Errorf("the agent reads %q %q; used %d", got.ErrorCode, got.ErrorSentence, s.used())
			}
			s.sql(`UPDATE connections SET state = 'active', version = version + 1`)
			if _, err := s.claim(a); (err == nil) != (c.then == action.StateApproved) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestAClaimThatComesTooLateExpiresTheAction(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.approved()
	s.later(a.ID, action.Life)
	if list, err := s.actions.Approved(t.Context(), 10); len(list) != 0 || err != nil {
		t.Errorf("an expired action waits for a claim: %v %v", list, err)
	}
	_, err := s.claim(a)
	refused(t, err, fault.CodeConflict)
	s.isIn(a.ID, action.StateExpired)
}

func TestApprovedActionsOfEveryOrganizationWaitForAClaimOldestFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	first, second := s.approved(), s.approved()
	s.stage(s.proposal())
	list, err := s.actions.Approved(t.Context(), 10)
	if err != nil || len(list) != 2 || list[0] != (action.Waiting{Org: s.org, ID: first.ID}) || list[1].ID != second.ID {
		t.Errorf("%v %v", list, err)
	}
	if list, _ = s.actions.Approved(t.Context(), 1); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

func TestAnOutcomeEndsAnExecutingAction(t *testing.T) {
	t.Parallel()
	result := []byte(`{"content":[{"type":"text","text":"ok"}]}`)
	for name, c := range map[string]struct {
		outcome    action.Outcome
		state      action.State
		resolution action.Resolution
		used       int
	}{
		"succeeded":               {action.Succeeded(result, action.Evidence{Status: 200, BytesWritten: 9, Complete: true}), action.StateSucceeded, action.Direct, 1},
		"refused by the provider": {action.Failed(fault.UpstreamError, "Refused.", action.Evidence{Status: 400, BytesWritten: 9}), action.StateFailed, action.Direct, 1},
		"not sent at all":         {action.Failed(fault.ConnectionUnavailable, "Not reached.", action.Evidence{Transport: "dial"}), action.StateFailed, action.Direct, 0},
		"no answer":               {action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{BytesWritten: 9}), action.StateUncertain, "", 1},
		"nobody decided":          {action.Outcome{}, action.StateUncertain, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, policy.AskUserOnWrite)
			a := s.must(s.actions.Complete(t.Context(), s.claimed(), c.outcome))
			if a.State != c.state || a.Resolution != c.resolution || string(a.Result) != string(c.outcome.Result()) || a.ErrorCode != string(c.outcome.Code()) || a.ErrorSentence != c.outcome.Sentence() {
				t.Errorf("%+v", a)
			}
			if a.Evidence == nil || *a.Evidence != c.outcome.Evidence() || (a.FinishedAt == nil) != (c.state == action.StateUncertain) || (a.SettlesAt == nil) == (c.state == action.StateUncertain) {
				t.Errorf("%+v", a)
			}
			if s.used() != c.used {
				t.Errorf("used %d, want %d", s.used(), c.used)
			}
		})
	}
}

func TestOnlyTheHolderOfTheFenceReports(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	d := s.claimed()
	forged := d
	forged.Fence++
	_, err := s.actions.Complete(t.Context(), forged, action.Succeeded(nil, action.Evidence{}))
	refused(t, err, fault.CodeConflict)
	unclaimed := action.Dispatch{Action: s.approved(), Fence: d.Fence}
	_, err = s.actions.Complete(t.Context(), unclaimed, action.Succeeded(nil, action.Evidence{}))
	refused(t, err, fault.CodeConflict)
	s.isIn(d.Action.ID, action.StateExecuting)
}

func TestAReportThatIsRepeatedChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	d := s.claimed()
	first := s.must(s.actions.Complete(t.Context(), d, action.Succeeded([]byte(`{"n":1}`), action.Evidence{})))
	again := s.must(s.actions.Complete(t.Context(), d, action.Failed(fault.UpstreamError, "No.", action.Evidence{})))
	if again.Version != first.Version || again.State != action.StateSucceeded || string(again.Result) != `{"n":1}` {
		t.Errorf("%+v", again)
	}
}

func TestALeaseThatEndedLeavesAnUncertainActionAndNoSecondDispatch(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	d, other := s.claimed(), s.claimed()
	if n, err := s.actions.LeasesEnded(t.Context()); n != 0 || err != nil {
		t.Errorf("live leases were ended: %d %v", n, err)
	}
	s.later(d.Action.ID, action.Lease+time.Second)
	if n, err := s.actions.LeasesEnded(t.Context()); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if n, err := s.actions.LeasesEnded(t.Context()); n != 0 || err != nil {
		t.Errorf("twice: %d %v", n, err)
	}
	a := s.read(d.Action.ID)
	if a.State != action.StateUncertain || a.SettlesAt == nil || a.ErrorSentence == "" {
		t.Errorf("%+v", a)
	}
	s.isIn(other.Action.ID, action.StateExecuting)
	_, err := s.claim(a)
	refused(t, err, fault.CodeConflict)
}

func TestALeaseThatEndsSettlesInTheTimeOfItsTool(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.approved()
	if _, err := s.actions.Claim(t.Context(), s.org, a.ID, action.Ready{Definition: a.Definition, Destination: address, Settle: 20 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	s.later(a.ID, action.Lease+time.Second)
	if n, err := s.actions.LeasesEnded(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if wait := time.Until(*s.read(a.ID).SettlesAt); wait < 19*time.Minute || wait > 21*time.Minute {
		t.Errorf("settles in %s", wait)
	}
}

func TestAnAnswerAfterTheLeaseIsLateEvidenceForAnUncertainActionOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	ok := action.Succeeded([]byte(`{"n":1}`), action.Evidence{Status: 200, BytesWritten: 3})
	swept, unswept, vague, settled, unsent := s.claimed(), s.claimed(), s.claimed(), s.claimed(), s.claimed()
	for _, d := range []action.Dispatch{swept, settled} {
		s.later(d.Action.ID, action.Lease+time.Second)
	}
	if n, err := s.actions.LeasesEnded(t.Context()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	for _, d := range []action.Dispatch{unswept, vague, unsent} {
		s.later(d.Action.ID, action.Lease+time.Second)
	}
	u := s.read(settled.Action.ID)
	s.must(s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(u, s.approver), Answer: action.Unknown}))

	for name, d := range map[string]action.Dispatch{"after the sweeper": swept, "before the sweeper": unswept} {
		a := s.must(s.actions.Complete(t.Context(), d, ok))
		if a.State != action.StateSucceeded || a.Resolution != action.LateEvidence || a.Version != 5 || string(a.Result) != `{"n":1}` {
			t.Errorf("%s: %+v", name, a)
		}
	}
	a := s.must(s.actions.Complete(t.Context(), vague, action.Uncertain(fault.UpstreamError, "Reset.", action.Evidence{BytesWritten: 4})))
	if a.State != action.StateUncertain || a.Version != 4 || a.Evidence == nil || a.Evidence.BytesWritten != 4 {
		t.Errorf("%+v", a)
	}
	a = s.must(s.actions.Complete(t.Context(), settled, ok))
	if a.State != action.StateClosedUnknown || a.Result != nil {
		t.Errorf("a settled action changed: %+v", a)
	}
	a = s.must(s.actions.Complete(t.Context(), unsent, action.Failed(fault.UpstreamTimeout, "It was too late to send.", action.Evidence{})))
	if a.State != action.StateFailed || a.Resolution != action.LateEvidence || s.used() != 4 {
		t.Errorf("used %d, %+v", s.used(), a)
	}
}

func TestTheSweeperExpiresOnceAndTogetherWithOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved, fresh := s.stage(s.proposal()), s.approved(), s.stage(s.proposal())
	s.later(staged.ID, action.Life)
	s.later(approved.ID, action.Life)
	var moved atomic.Int32
	parallel(4, func(int) {
		n, err := s.actions.ExpireDue(context.Background())
		if err != nil {
			t.Error(err)
		}
		moved.Add(int32(n))
	})
	s.isIn(staged.ID, action.StateExpired)
	s.isIn(approved.ID, action.StateExpired)
	s.isIn(fresh.ID, action.StateStaged)
	if moved.Load() != 2 || s.used() != 1 {
		t.Errorf("%d expired, %d used", moved.Load(), s.used())
	}
}

func TestALostRaceWithTheSweeperLosesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	d := s.claimed()
	s.later(d.Action.ID, action.Lease+time.Second)
	parallel(6, func(i int) {
		if i%2 == 0 {
			if _, err := s.actions.LeasesEnded(context.Background()); err != nil {
				t.Error(err)
			}
			return
		}
		if _, err := s.actions.Complete(context.Background(), d, action.Succeeded([]byte(`{}`), action.Evidence{BytesWritten: 1})); err != nil {
			t.Error(err)
		}
	})
	if a := s.read(d.Action.ID); a.State != action.StateSucceeded || a.Version != 5 {
		t.Errorf("%s, version %d", a.State, a.Version)
	}
}

func TestEverythingAtOnceEndsInOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 1000`)
	second := s.mint(run.Order{})
	s.sql(`UPDATE runs SET budget = 1000`)
	proposals := make([]action.Proposal, 24)
	for i := range proposals {
		if proposals[i] = s.proposal(); i%2 == 0 {
			proposals[i] = s.call(second, "contacts_delete", string(proposals[i].Arguments))
		}
	}
	ctx := context.Background()
	parallel(len(proposals)+3, func(i int) {
		switch i - len(proposals) {
		case 0:
			s.save(s.connection, policy.Autonomous, everyTool...)
			return
		case 1:
			_, _ = s.runs.End(ctx, s.org, second.Run.ID, s.entry(s.org, "run.ended", string(second.Run.ID)))
			return
		case 2:
			_, _ = s.actions.ExpireDue(ctx)
			return
		}
		a, _, err := s.actions.Stage(ctx, proposals[i])
		if err != nil {
			if !fault.Is(err, fault.TaskEnded) {
				t.Error(err)
			}
			return
		}
		if i%3 == 0 {
			_, _ = s.actions.CancelByRun(ctx, s.org, a.Run, a.ID)
		}
		if b, err := s.actions.Approve(ctx, s.decision(a, s.approver)); err == nil {
			a = b
		} else if !fault.Is(err, fault.CodeStale) {
			t.Error(err)
		}
		if d, err := s.claim(a); err == nil {
			if _, err := s.actions.Complete(ctx, d, action.Succeeded([]byte(`{}`), action.Evidence{BytesWritten: 1})); err != nil {
				t.Error(err)
			}
		} else if !fault.Is(err, fault.CodeConflict) {
			t.Error(err)
		}
	})
	if s.end(installation.Retired).State != installation.Retired {
		t.Error("not retired")
	}
}
