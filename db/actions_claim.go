package db

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

var worker = audit.System("worker")

// Claim implements action.Claimer. When the commit's result is unknown it answers an error, and so nothing is sent.
func (s Actions) Claim(ctx context.Context, org identity.OrgID, id action.ID, r action.Ready) (action.Dispatch, error) {
	// Taken before the database is asked: the window in which the first byte may leave then ends early rather than late.
	d := action.Dispatch{ProviderKey: identity.NewID("csk_"), SendBefore: time.Now().Add(action.SendWindow)}
	a, err := s.transition(ctx, org, func(t step) (rows.Action, *fault.Error, error) {
		h, err := t.hold(ctx, id)
		if err != nil {
			return h.action, nil, err
		}
		if refused, err := t.claimable(ctx, h, present{r.Definition, r.Destination, r.OutsideResource}); refused != nil || err != nil {
			return h.action, refused, err
		}
		after, err := t.q.ActionClaim(ctx, action.Lease, h.action.ID, h.action.Version)
		if err != nil {
			return after, nil, orStale(err)
		}
		if d.Fence, err = t.q.DispatchInsert(ctx, rows.DispatchInsertParams{
			ProviderKey: d.ProviderKey, SendWindow: action.SendWindow, Settle: cmp.Or(r.Settle, action.SettleWindow), ActionID: after.ID,
		}); err != nil {
			return after, nil, err
		}
		return after, nil, t.record(ctx, action.StateApproved, after, worker, "", "")
	})
	d.Action = a
	if err != nil {
		return action.Dispatch{}, err
	}
	return d, nil
}

// claimable asks the fences the third time. What they refuse for good is cancelled here, so that nobody keeps trying; what may be well
// again in a minute stays approved and costs no approval.
func (t step) claimable(ctx context.Context, h held, p present) (*fault.Error, error) {
	if h.action.State != string(action.StateApproved) {
		return action.NotClaimable, nil
	}
	if _, expired, err := t.expireIfDue(ctx, h.action); err != nil || expired {
		return action.NotClaimable, err
	}
	if refused := h.standing.refuse(h.action.Profile, h.action.ConnectionKey); refused != nil {
		return refused, nil
	}
	if p.definition == "" || p.destination == "" {
		return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "What the connection offers now is not known; nothing was sent.", ""), nil
	}
	j, err := t.facts(ctx, h.run, h.connection, subjectOf(h.action), p)
	if err != nil {
		return nil, err
	}
	refused := action.Judge(action.AtClaim, j.facts)
	if refused == nil || (h.connection.State != "retired" && (refused.Code == fault.ConnectionUnavailable || refused.Code == fault.NeedsConsent)) {
		return refused, nil
	}
	_, err = t.cancel(ctx, h.action, cancellation{by: worker, code: refused.Code, sentence: refused.What})
	return refused, err
}

// Complete implements action.Claimer.
func (s Actions) Complete(ctx context.Context, d action.Dispatch, o action.Outcome) (action.Action, error) {
	c, err := concluded(o)
	if err != nil {
		return action.Action{}, err
	}
	return s.transition(ctx, d.Action.Org, func(t step) (rows.Action, *fault.Error, error) {
		a, err := t.lock(ctx, d.Action.ID)
		if err != nil {
			return a, nil, err
		}
		intent, err := t.q.DispatchByAction(ctx, a.ID)
		if errors.Is(err, pgx.ErrNoRows) || (err == nil && intent.Fence != d.Fence) {
			return a, fault.New(fault.Conflict, fault.CodeConflict, "Only the worker that claimed this action can report on it.", ""), nil
		}
		if err != nil {
			return a, nil, err
		}
		c.settle = intent.Settle
		if a.State == string(action.StateExecuting) {
			now, err := t.q.Clock(ctx)
			if err != nil {
				return a, nil, err
			}
			if now.Before(*a.LeaseUntil) || c.to == action.StateUncertain {
				return t.conclude(ctx, a, c, worker, "", "")
			}
			if a, err = t.lose(ctx, a, c.settle); err != nil {
				return a, nil, err
			}
		}
		if a.State != string(action.StateUncertain) || c.to == action.StateUncertain {
			return a, nil, nil
		}
		c.resolution = action.LateEvidence
		return t.conclude(ctx, a, c, worker, "the answer came after the lease had ended", "")
	})
}

// concluded turns a provider's outcome into where the action goes.
func concluded(o action.Outcome) (conclusion, error) {
	evidence, err := json.Marshal(o.Evidence())
	if err != nil {
		return conclusion{}, err
	}
	text := string(evidence)
	c := conclusion{to: action.StateUncertain, result: o.Result(), code: o.Code(), sentence: o.Sentence(), evidence: &text}
	switch o.Kind() {
	case action.OutcomeSucceeded:
		c.to, c.resolution = action.StateSucceeded, action.Direct
	case action.OutcomeFailed:
		c.to, c.resolution = action.StateFailed, action.Direct
		c.unsent = o.Evidence().BytesWritten == 0 && o.Evidence().Status == 0
	}
	return c, nil
}

// lose makes an executing action whose lease has ended uncertain: whoever held it may have sent it.
func (t step) lose(ctx context.Context, a rows.Action, settle time.Duration) (rows.Action, error) {
	after, _, err := t.conclude(ctx, a, conclusion{
		to: action.StateUncertain, settle: settle, code: fault.UpstreamTimeout,
		sentence: "It was handed to the provider and no answer was recorded in time; it may have happened.",
	}, audit.System("sweeper"), "the worker's lease ended", "")
	return after, err
}

// LeasesEnded implements action.Claimer.
func (s Actions) LeasesEnded(ctx context.Context) (int, error) {
	return s.each(ctx, "SELECT org, action FROM each_action_past_lease($1)", func(t step, a rows.Action) (bool, error) {
		if a.State != string(action.StateExecuting) {
			return false, nil
		}
		now, err := t.q.Clock(ctx)
		if err != nil || now.Before(*a.LeaseUntil) {
			return false, err
		}
		intent, err := t.q.DispatchByAction(ctx, a.ID)
		if err != nil {
			return false, err
		}
		_, err = t.lose(ctx, a, intent.Settle)
		return err == nil, err
	})
}

// ExpireDue implements action.Claimer.
func (s Actions) ExpireDue(ctx context.Context) (int, error) {
	return s.each(ctx, "SELECT org, action FROM each_action_past_expiry($1)", func(t step, a rows.Action) (bool, error) {
		_, expired, err := t.expireIfDue(ctx, a)
		return expired, err
	})
}

// Approved implements action.Claimer.
func (s Actions) Approved(ctx context.Context, limit int) ([]action.Waiting, error) {
	return s.waiting(ctx, "SELECT org, action FROM each_action_to_claim($1)", limit)
}

// sweep is how many actions one pass takes on.
const sweep = 500

// each takes every action of a work list in a transaction of its own and counts what f moved. One that fails does not hold up the rest.
func (s Actions) each(ctx context.Context, door string, f func(t step, a rows.Action) (bool, error)) (int, error) {
	list, err := s.waiting(ctx, door, sweep)
	if err != nil {
		return 0, err
	}
	moved, failures := 0, []error(nil)
	for _, w := range list {
		done := false
		err := s.inOrg(ctx, w.Org, func(tx pgx.Tx) error {
			t := begun(tx, w.Org)
			a, err := t.lockOpen(ctx, w.ID)
			if err == nil {
				done, err = f(t, a)
			}
			return err
		})
		if err != nil {
			failures = append(failures, err)
		} else if done {
			moved++
		}
	}
	return moved, errors.Join(failures...)
}

// waiting reads one of the work lists that cross organizations.
func (s Actions) waiting(ctx context.Context, door string, limit int) (out []action.Waiting, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, door, limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (w action.Waiting, err error) {
			return w, row.Scan(&w.Org, &w.ID)
		})
		return err
	})
	return out, err
}
