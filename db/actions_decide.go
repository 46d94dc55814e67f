package db

import (
	"context"
	"time"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Approve implements action.Decider.
func (s Actions) Approve(ctx context.Context, d action.Decision) (action.Action, error) {
	reason, err := action.CheckReason(d.Reason, false)
	if err != nil {
		return action.Action{}, err
	}
	var signed []action.Signature
	a, err := s.transition(ctx, d.Org, func(t step) (after rows.Action, refused *fault.Error, err error) {
		h, err := t.hold(ctx, d.Action)
		if err != nil {
			return h.action, nil, err
		}
		after, signed, refused, err = t.approve(ctx, h, d, reason)
		return after, refused, err
	})
	a.Signatures = signed
	return a, err
}

// Deny implements action.Decider.
func (s Actions) Deny(ctx context.Context, d action.Decision) (action.Action, error) {
	reason, err := action.CheckReason(d.Reason, true)
	if err != nil {
		return action.Action{}, err
	}
	return s.transition(ctx, d.Org, func(t step) (rows.Action, *fault.Error, error) {
		a, err := t.lockOpen(ctx, d.Action)
		if err != nil {
			return a, nil, err
		}
		return t.deny(ctx, a, d, reason)
	})
}

// decidable asks whether this person may decide on this action at all, whether somebody was quicker, whether its time has passed, and
// whether the person saw what is there. The order matters: who may not decide learns nothing more.
func (t step) decidable(ctx context.Context, d action.Decision, row rows.Action) (action.Action, *fault.Error, error) {
	a, refused, err := t.mayDecide(ctx, d.By, row)
	if refused != nil || err != nil {
		return a, refused, err
	}
	if row.State != string(action.StateStaged) {
		return a, passedBy(row), nil
	}
	after, expired, err := t.expireIfDue(ctx, row)
	if err != nil {
		return a, nil, err
	}
	if expired {
		return a, passedBy(after), nil
	}
	return a, d.SawThis(a), nil
}

// Cancel implements action.Decider.
func (s Actions) Cancel(ctx context.Context, d action.Decision) (action.Action, error) {
	reason, err := action.CheckReason(d.Reason, false)
	if err != nil {
		return action.Action{}, err
	}
	return s.transition(ctx, d.Org, func(t step) (rows.Action, *fault.Error, error) {
		a, err := t.lockOpen(ctx, d.Action)
		if err != nil {
			return a, nil, err
		}
		switch refused := d.SawThis(actionOf(a)); {
		case d.By.Org != identity.OrgID(a.OrgID):
			return a, fault.Absent("action"), nil
		case !d.By.May(identity.Manage):
			return a, fault.New(fault.Forbidden, fault.CodeForbidden, "Your roles do not let you cancel actions.", "An owner or admin can."), nil
		case !waits(a):
			return a, passedBy(a), nil
		case refused != nil:
			return a, refused, nil
		}
		after, err := t.cancel(ctx, a, cancellation{by: audit.Person(d.By), reason: storable(reason), sentence: "An admin cancelled it; nothing was sent."})
		if err == nil && after.State == string(action.StateExpired) {
			return after, passedBy(after), nil
		}
		return after, nil, err
	})
}

// Settle implements action.Decider.
func (s Actions) Settle(ctx context.Context, d action.Settlement) (action.Action, error) {
	reason, err := action.CheckReason(d.Reason, true)
	if err != nil {
		return action.Action{}, err
	}
	to, ok := map[action.Answer]action.State{action.Applied: action.StateSucceeded, action.NotApplied: action.StateFailed, action.Unknown: action.StateClosedUnknown}[d.Answer]
	if !ok {
		return action.Action{}, fault.Field("answer", "Say applied, not_applied or unknown.")
	}
	return s.transition(ctx, d.Org, func(t step) (rows.Action, *fault.Error, error) {
		a, err := t.lock(ctx, d.Action)
		if err != nil {
			return a, nil, err
		}
		if _, refused, err := t.mayDecide(ctx, d.By, a); refused != nil || err != nil {
			return a, refused, err
		}
		if a.State != string(action.StateUncertain) {
			return a, passedBy(a), nil
		}
		if refused := d.SawThis(actionOf(a)); refused != nil {
			return a, refused, nil
		}
		if to == action.StateFailed {
			if refused, err := t.tooEarly(ctx, a); refused != nil || err != nil {
				return a, refused, err
			}
		}
		c := conclusion{to: to, resolution: action.ByPerson, code: fault.Code(a.ErrorCode), sentence: a.ErrorSentence}
		if to == action.StateSucceeded {
			c.code, c.sentence = "", ""
		}
		return t.conclude(ctx, a, c, audit.Person(d.By), "", reason)
	})
}

// tooEarly refuses "it did not happen" while the lost call may still be applied.
func (t step) tooEarly(ctx context.Context, a rows.Action) (*fault.Error, error) {
	now, err := t.q.Clock(ctx)
	if err != nil || a.SettlesAt == nil || !now.Before(*a.SettlesAt) {
		return nil, err
	}
	return fault.New(fault.Conflict, fault.CodeConflict, "The lost call may still be applied until "+moment(*a.SettlesAt)+", so nobody can say yet that it did not happen.",
		"Look again after that time; “it was applied” can be answered now."), nil
}

// conclusion is how an executing or uncertain action goes on.
type conclusion struct {
	to         action.State
	resolution action.Resolution // empty for uncertain
	settle     time.Duration     // for uncertain
	result     []byte
	code       fault.Code
	sentence   string
	evidence   *string
	unsent     bool
}

func (t step) conclude(ctx context.Context, a rows.Action, c conclusion, by audit.Actor, why, reason string) (rows.Action, *fault.Error, error) {
	after, err := t.q.ActionConclude(ctx, rows.ActionConcludeParams{
		ID: a.ID, FromState: a.State, Version: a.Version, State: string(c.to), Resolution: optional(c.resolution), Settle: c.settle,
		Result: c.result, ErrorCode: string(c.code), ErrorSentence: storable(c.sentence), Evidence: c.evidence, Unsent: c.unsent,
	})
	if err != nil {
		return a, nil, orStale(err)
	}
	return after, nil, t.record(ctx, action.State(a.State), after, by, why, reason)
}

// passedBy says who was quicker, and when.
func passedBy(a rows.Action) *fault.Error {
	return fault.Stale(standing(a))
}

func standing(a rows.Action) string {
	who := text(a.DecidedByName)
	if a.ApprovedByPolicy {
		who = "The connection's mode"
	}
	switch action.State(a.State) {
	case action.StateStaged:
		return "This waits for a decision; nothing was sent."
	case action.StateApproved:
		return who + " approved this at " + moment(*a.DecidedAt) + "."
	case action.StateDenied:
		return who + " denied this at " + moment(*a.DecidedAt) + "."
	case action.StateExpired:
		return "This expired at " + moment(a.ExpiresAt) + ". Nothing was sent."
	case action.StateCancelled:
		return "This was cancelled at " + moment(*a.FinishedAt) + ". Nothing was sent."
	case action.StateExecuting:
		return who + " approved this at " + moment(*a.DecidedAt) + ", and it is being sent."
	case action.StateUncertain:
		return who + " approved this at " + moment(*a.DecidedAt) + "; it was sent and nobody knows yet what became of it."
	}
	return who + " approved this at " + moment(*a.DecidedAt) + "; it ended as " + a.State + " at " + moment(*a.FinishedAt) + "."
}

// moment is a time in a sentence.
func moment(t time.Time) string { return t.UTC().Format("15:04:05 UTC on 2 January 2006") }
