package db

import (
	"context"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Uncertain implements action.Settler.
func (s Actions) Uncertain(ctx context.Context, limit int) ([]action.Waiting, error) {
	return s.waiting(ctx, "SELECT org, action FROM each_action_unsettled($1)", limit)
}

// Reconcile implements action.Settler.
func (s Actions) Reconcile(ctx context.Context, org identity.OrgID, id action.ID, version int, p action.Probed) (action.Action, error) {
	return s.transition(ctx, org, func(t step) (rows.Action, *fault.Error, error) {
		a, err := t.lock(ctx, id)
		if err != nil {
			return a, nil, err
		}
		if a.State != string(action.StateUncertain) || int(a.Version) != version {
			return a, passedBy(a), nil
		}
		c := conclusion{to: action.StateSucceeded, resolution: action.Reconciler}
		if !p.Found {
			if refused, err := t.tooEarly(ctx, a); !p.Conclusive && (refused != nil || err != nil) {
				return a, refused, err
			}
			c = conclusion{to: action.StateFailed, resolution: action.Reconciler, code: fault.UpstreamError, sentence: "It was not applied: " + p.Sentence}
		}
		return t.conclude(ctx, a, c, audit.System("reconciler"), p.Sentence, "")
	})
}
