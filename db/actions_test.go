package db_test

import (
	"context"
	"testing"

	"countersign/internal/action"
	"countersign/internal/policy"
)

// reach brings a new action to a state, by the ways there are.
func (s *scene) reach(to action.State) action.Action {
	s.t.Helper()
	ctx := context.Background()
	switch to {
	case action.StateStaged:
		return s.stage(s.proposal())
	case action.StateApproved:
		return s.approved()
	case action.StateExecuting:
		return s.claimed().Action
	case action.StateSucceeded:
		a, err := s.actions.Complete(ctx, s.claimed(), action.Succeeded([]byte(`{"content":[]}`), action.Evidence{Status: 200}))
		return s.must(a, err)
	case action.StateFailed:
		a, err := s.actions.Complete(ctx, s.claimed(), action.Failed("upstream_error", "Refused.", action.Evidence{Status: 400, BytesWritten: 5}))
		return s.must(a, err)
	case action.StateUncertain:
		return s.uncertain()
	case action.StateDenied:
		a, err := s.actions.Deny(ctx, s.decision(s.stage(s.proposal()), s.approver))
		return s.must(a, err)
	case action.StateExpired:
		a := s.stage(s.proposal())
		s.later(a.ID, 2*action.Life)
		if n, err := s.actions.ExpireDue(ctx); n != 1 || err != nil {
			s.t.Fatal(n, err)
		}
		return s.read(a.ID)
	case action.StateCancelled:
		a, err := s.actions.CancelByRun(ctx, s.org, s.run.Run.ID, s.stage(s.proposal()).ID)
		return s.must(a, err)
	case action.StateClosedUnknown:
		u := s.uncertain()
		a, err := s.actions.Settle(ctx, action.Settlement{Decision: s.decision(u, s.approver), Answer: action.Unknown})
		return s.must(a, err)
	}
	s.t.Fatalf("no way to %s", to)
	return action.Action{}
}

func TestTheTriggerHoldsTheSameTransitionTableAsTheDomain(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for _, from := range append([]action.State{""}, action.States...) {
		for _, to := range append([]action.State{""}, action.States...) {
			if got := value[bool](s, `SELECT action_edge($1, $2)`, string(from), string(to)); got != from.May(to) {
				t.Errorf("%q → %q: the database says %t, the domain %t", from, to, got, from.May(to))
			}
		}
	}
}

func TestNoStateCanBeJumpedToOutsideTheTable(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE runs SET budget = 100`)
	for _, from := range action.States {
		a := s.reach(from)
		s.isIn(a.ID, from)
		for _, to := range action.States {
			if from.May(to) {
				continue
			}
			err := s.try(`UPDATE actions SET state = $2, version = version + 1 WHERE id = $1`, a.ID, string(to))
			says(t, err, "does not go from "+string(from)+" to "+string(to))
		}
		s.isIn(a.ID, from)
	}
}

func TestTheOwnerOfTheTablesCannotBreakAPromiseBySQL(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved, executing, uncertain := s.reach(action.StateStaged), s.reach(action.StateApproved), s.reach(action.StateExecuting), s.reach(action.StateUncertain)
	for name, c := range map[string]struct {
		says, sql string
		id        action.ID
	}{
		"the arguments do not change":             {"what was asked for", `UPDATE actions SET state = 'denied', version = version + 1, arguments = '{}' WHERE id = $1`, staged.ID},
		"the digest does not change":              {"what was asked for", `UPDATE actions SET state = 'denied', version = version + 1, args_digest = 'x' WHERE id = $1`, staged.ID},
		"the tool does not change":                {"what was asked for", `UPDATE actions SET state = 'executing', version = version + 1, tool = 'x' WHERE id = $1`, approved.ID},
		"the destination does not change":         {"what was asked for", `UPDATE actions SET state = 'executing', version = version + 1, destination = 'x' WHERE id = $1`, approved.ID},
		"the expiry is not moved":                 {"what was asked for", `UPDATE actions SET state = 'cancelled', version = version + 1, expires_at = now() + interval '9 days' WHERE id = $1`, staged.ID},
		"nothing changes without a transition":    {"does not go from", `UPDATE actions SET reason = 'x' WHERE id = $1`, staged.ID},
		"a transition is one version":             {"one version", `UPDATE actions SET state = 'cancelled', version = version + 2 WHERE id = $1`, staged.ID},
		"policy does not approve what was staged": {"only a person", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, approved_by_policy = true, decided_at = clock_timestamp() WHERE id = $1`, staged.ID},
		"nobody approves for themselves":          {"countersigns_their_own", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_by = on_behalf_of, decided_at = clock_timestamp() WHERE id = $1`, staged.ID},
		"the token's owner does not approve":      {"countersigns_their_own", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_by = token_owner, decided_at = clock_timestamp() WHERE id = $1`, staged.ID},
		"another digest is not approved":          {"approved_as_shown", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = 'x', decided_by = 'per_robin', decided_at = clock_timestamp() WHERE id = $1`, staged.ID},
		"an approval is not rewritten":            {"a decision never changes", `UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false, decided_by = 'per_kim' WHERE id = $1`, approved.ID},
		"executing needs a dispatch":              {"without a dispatch", `WITH a AS (UPDATE actions SET state = 'executing', version = version + 1, claimed_at = clock_timestamp(), lease_until = clock_timestamp() + interval '1 minute' WHERE id = $1 RETURNING *) INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id) SELECT org_id, 'system', 'x', 'x', 'action.executing', 'action', id FROM a`, approved.ID},
		"a transition needs its audit row":        {"audit rows", `UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false WHERE id = $1`, staged.ID},
		"a lease is not renewed":                  {"never renewed", `UPDATE actions SET state = 'uncertain', version = version + 1, settles_at = now(), lease_until = now() + interval '1 hour' WHERE id = $1`, executing.ID},
		"what was sent keeps its place":           {"given back once", `UPDATE actions SET state = 'succeeded', version = version + 1, resolution = 'person', finished_at = clock_timestamp(), budget_held = false WHERE id = $1`, uncertain.ID},
		"a cancelled one gives its place back":    {"unsent_costs_nothing", `UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp() WHERE id = $1`, staged.ID},
		"a second dispatch":                       {"dispatches_", `INSERT INTO dispatches (action_id, org_id, args_digest, provider_key, claimed_at, send_deadline) SELECT id, org_id, approved_digest, 'other', claimed_at, claimed_at + interval '1 second' FROM actions WHERE id = $1`, executing.ID},
		"a dispatch of what was not approved":     {"a dispatch belongs to", `INSERT INTO dispatches (action_id, org_id, args_digest, provider_key, claimed_at, send_deadline) SELECT id, org_id, args_digest, 'other', now(), now() + interval '1 second' FROM actions WHERE id = $1`, staged.ID},
		"a dispatch does not change":              {"never changes", `UPDATE dispatches SET fence = 1000 WHERE action_id = $1`, executing.ID},
		"an action is not deleted":                {"never deleted", `DELETE FROM actions WHERE id = $1`, staged.ID},
		"an audit row too many":                   {"audit rows", `WITH e AS (INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id) SELECT org_id, 'system', 'x', 'x', 'action.cancelled', 'action', id FROM actions, generate_series(1, 2) WHERE id = $1 RETURNING object_id) UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false WHERE id = (SELECT object_id FROM e LIMIT 1)`, staged.ID},
		"a chat run asks for no effect":           {"only a task run", `INSERT INTO actions SELECT (jsonb_populate_record(a, '{"id": "act_x", "task": "OTHER-1", "idempotency_key": "x"}')).* FROM actions a WHERE id = $1`, staged.ID},
		"somebody approves":                       {"approver_known", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_at = clock_timestamp() WHERE id = $1`, staged.ID},
		"nothing begins approved as nothing":      {"approved_before_sending", `INSERT INTO actions SELECT (jsonb_populate_record(a, '{"id": "act_x", "version": 1, "idempotency_key": "x", "approved_by_policy": true, "approved_digest": null, "decided_by": null}')).* FROM actions a WHERE id = $1`, approved.ID},
		"a denial has its reason":                 {"denied_by_somebody", `UPDATE actions SET state = 'denied', version = version + 1, decided_by = 'per_robin', decided_at = clock_timestamp(), finished_at = clock_timestamp(), budget_held = false WHERE id = $1`, staged.ID},
		"nobody decides before it was asked for":  {"time_order", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_by = 'per_robin', decided_at = requested_at - interval '1 second' WHERE id = $1`, staged.ID},
		"executing is claimed":                    {"actions_claimed", `UPDATE actions SET state = 'executing', version = version + 1 WHERE id = $1`, approved.ID},
		"an end has its time":                     {"actions_finished", `UPDATE actions SET state = 'cancelled', version = version + 1, budget_held = false WHERE id = $1`, staged.ID},
		"an outcome says how it is known":         {"actions_resolved", `UPDATE actions SET state = 'succeeded', version = version + 1, finished_at = clock_timestamp() WHERE id = $1`, executing.ID},
		"uncertain settles at some time":          {"uncertain_settles", `UPDATE actions SET state = 'uncertain', version = version + 1 WHERE id = $1`, executing.ID},
		"an approved beginning is the policy's":   {"begins staged", `INSERT INTO actions SELECT (jsonb_populate_record(a, '{"id": "act_x", "version": 1, "idempotency_key": "x"}')).* FROM actions a WHERE id = $1`, approved.ID},
		"a second action of a key":                {"actions_one_per_key", `INSERT INTO actions SELECT (jsonb_populate_record(a, '{"id": "act_x"}')).* FROM actions a WHERE id = $1`, staged.ID},
	} {
		t.Run(name, func(t *testing.T) { says(t, s.try(c.sql, c.id), c.says) })
	}
}

func TestWhatHasExpiredIsNotApprovedBySQL(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.reach(action.StateStaged)
	s.later(a.ID, 2*action.Life)
	says(t, s.try(`UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_by = 'per_robin', decided_at = clock_timestamp() WHERE id = $1`, a.ID), "has expired")
}

// What the provider is told to know a call by belongs to one call, the number that a report is accepted by to one claim, and what is sent is
// what was approved.
func TestADispatchIsOfItsOwnCallAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.reach(action.StateExecuting)
	approved := s.reach(action.StateApproved)
	for constraint, wrong := range map[string]string{
		"dispatches_provider_key_key":           "provider_key, 0, a.approved_digest",
		"dispatches_fence_key":                  "'other', fence, a.approved_digest",
		"dispatches_action_id_args_digest_fkey": "'other', 0, 'another'",
	} {
		says(t, s.try(`DO $$ DECLARE a actions%ROWTYPE; BEGIN
			UPDATE actions SET state = 'executing', version = version + 1, claimed_at = clock_timestamp(), lease_until = clock_timestamp() + interval '1 minute'
			 WHERE id = '`+string(approved.ID)+`' RETURNING * INTO a;
			INSERT INTO dispatches (provider_key, fence, args_digest, action_id, org_id, claimed_at, send_deadline)
			SELECT `+wrong+`, a.id, a.org_id, a.claimed_at, a.claimed_at + interval '1 second' FROM dispatches;
			END $$`), constraint)
	}
}

func TestTheApplicationRoleCannotTouchWhatWasMintedOrSent(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.claimed()
	for _, sql := range []string{
		`UPDATE run_grants SET digest = 'x'`, `DELETE FROM run_grants`, `UPDATE runs SET budget = 1000`, `UPDATE runs SET token_hash = 'x'`, `DELETE FROM runs`,
		`UPDATE dispatches SET fence = 1`, `DELETE FROM dispatches`, `DELETE FROM actions`, `DELETE FROM connections`, `UPDATE pinned_tools SET digest = 'x'`,
		`UPDATE connection_settings SET value = 'x'`, `DELETE FROM audit_entries`, `ALTER TABLE actions DISABLE TRIGGER ALL`,
	} {
		_, err := s.db.Pool().Exec(context.Background(), sql)
		if err == nil {
			t.Errorf("%s: allowed", sql)
		}
	}
}
