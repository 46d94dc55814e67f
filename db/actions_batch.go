package db

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/fault"
)

var _ action.Together = Actions{}

// ApproveAll implements action.Together.
func (s Actions) ApproveAll(ctx context.Context, b action.Batch) ([]action.Action, error) {
	return s.together(ctx, b, false, func(t step, h held, d action.Decision, reason string) (action.Action, *fault.Error, error) {
		after, signed, refused, err := t.approve(ctx, h, d, reason)
		a := actionOf(after)
		a.Signatures = signed
		return a, refused, err
	})
}

// DenyAll implements action.Together.
func (s Actions) DenyAll(ctx context.Context, b action.Batch) ([]action.Action, error) {
	return s.together(ctx, b, true, func(t step, h held, d action.Decision, reason string) (action.Action, *fault.Error, error) {
		after, refused, err := t.deny(ctx, h.action, d, reason)
		return actionOf(after), refused, err
	})
}

// together makes one decision about every member. A refusal ends the transaction, so that nothing is left half decided; even a member
// that has expired meanwhile stays for the sweeper.
func (s Actions) together(ctx context.Context, b action.Batch, mustSay bool, decide func(step, held, action.Decision, string) (action.Action, *fault.Error, error)) (out []action.Action, err error) {
	if err := action.CheckBatch(b); err != nil {
		return nil, err
	}
	reason, err := action.CheckReason(b.Reason, mustSay)
	if err != nil {
		return nil, err
	}
	err = s.inOrg(ctx, b.Org, func(tx pgx.Tx) error {
		t := begun(tx, b.Org)
		all, err := t.holdAll(ctx, b)
		if err != nil {
			return err
		}
		for _, h := range all {
			seen := b.Members[slices.IndexFunc(b.Members, func(m action.Seen) bool { return string(m.Action) == h.action.ID })]
			a, refused, err := decide(t, h, action.Decision{Org: b.Org, Action: seen.Action, By: b.By, ArgsDigest: seen.ArgsDigest, Version: seen.Version, Reason: reason}, reason)
			if err != nil {
				return err
			}
			if refused != nil {
				return stopped(seen.Action, refused)
			}
			out = append(out, a)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func stopped(id action.ID, f *fault.Error) error {
	return &action.Stopped{Action: id, Why: fault.New(f.Kind, f.Code, "Nothing was decided, because of "+string(id)+": "+f.What, f.Next)}
}

// holdAll is hold for a batch: the connection, then the runs, then the actions, each kind in the order of its ids. The members come back
// in the order of the ledger's rows, which a denial gives back to.
func (t step) holdAll(ctx context.Context, b action.Batch) ([]held, error) {
	standing, err := t.standing(ctx)
	if err != nil {
		return nil, err
	}
	members := slices.SortedFunc(slices.Values(b.Members), func(x, y action.Seen) int { return cmp.Compare(x.Action, y.Action) })
	all, places, runs := make([]held, len(members)), make([]rows.ActionPlaceRow, len(members)), map[string]rows.Run{}
	for i, m := range members {
		if places[i], err = t.q.ActionPlace(ctx, t.org, string(m.Action)); err != nil {
			return nil, orAbsent(err, "action")
		}
		if places[i].ConnectionKey != places[0].ConnectionKey {
			return nil, oneToolOnly
		}
		runs[places[i].RunID] = rows.Run{}
	}
	connection, err := t.q.ConnectionHold(ctx, t.org, places[0].ConnectionKey)
	if err != nil {
		return nil, err
	}
	if err := t.lockRuns(ctx, runs); err != nil {
		return nil, err
	}
	for i, m := range members {
		all[i] = held{standing: standing, connection: connection, run: runs[places[i].RunID]}
		if all[i].action, err = t.q.ActionLock(ctx, t.org, string(m.Action)); err != nil {
			return nil, err
		}
		if all[i].action.Tool != all[0].action.Tool {
			return nil, oneToolOnly
		}
	}
	slices.SortStableFunc(all, func(x, y held) int {
		return cmp.Or(cmp.Compare(x.action.Profile, y.action.Profile), x.action.RequestedAt.Compare(y.action.RequestedAt))
	})
	return all, nil
}

func (t step) lockRuns(ctx context.Context, runs map[string]rows.Run) error {
	ids := make([]string, 0, len(runs))
	for id := range runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r, err := t.q.RunLock(ctx, t.org, id)
		if err != nil {
			return err
		}
		runs[id] = r
	}
	return nil
}

var oneToolOnly = fault.New(fault.Invalid, fault.CodeInvalid, "Only actions of one tool on one connection are decided on together; nothing was decided.", "Open them one by one.")
