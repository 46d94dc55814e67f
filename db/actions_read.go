package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/identity"
)

// Action implements action.Reader.
func (s Actions) Action(ctx context.Context, org identity.OrgID, id action.ID) (a action.Action, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		a, err = actionByID(ctx, rows.New(tx), org, id)
		return err
	})
	return a, err
}

func actionByID(ctx context.Context, q *rows.Queries, org identity.OrgID, id action.ID) (action.Action, error) {
	row, err := q.ActionByID(ctx, string(org), string(id))
	if err != nil {
		return action.Action{}, orAbsent(err, "action")
	}
	a := shown(actionOf(row.Action), row.Now)
	err = signers(ctx, q, org, &a)
	return a, err
}

// Actions implements action.Reader.
func (s Actions) Actions(ctx context.Context, org identity.OrgID, f action.Filter) (out []action.Action, err error) {
	p := rows.ActionListNewestParams{
		OrgID: string(org), States: []string{}, RunID: string(f.Run), Connection: string(f.Connection), Digest: f.Digest, Before: string(f.Before), Tool: f.Tool, Undecided: f.Undecided, Most: limitOf(f.Limit, 50, 200),
	}
	for _, s := range f.States {
		p.States = append(p.States, string(s))
	}
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if f.OldestDue {
			found, err := q.ActionListDue(ctx, rows.ActionListDueParams(p))
			for _, r := range found {
				out = append(out, shown(actionOf(r.Action), r.Now))
			}
			if err != nil {
				return err
			}
			return signersOfAll(ctx, q, org, out)
		}
		found, err := q.ActionListNewest(ctx, p)
		for _, r := range found {
			out = append(out, shown(actionOf(r.Action), r.Now))
		}
		if err != nil {
			return err
		}
		return signersOfAll(ctx, q, org, out)
	})
	return out, err
}

// limitOf bounds a page: nothing asked means the usual size.
func limitOf(asked, usual, most int) int32 {
	if asked <= 0 {
		return int32(usual)
	}
	return int32(min(asked, most))
}

// Story implements action.Reader.
func (s Actions) Story(ctx context.Context, org identity.OrgID, id action.ID) (a action.Action, out []action.Event, err error) {
	err = s.snapshotOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if a, err = actionByID(ctx, q, org, id); err != nil {
			return err
		}
		found, err := q.ActionTimeline(ctx, string(org), string(id))
		for _, e := range found {
			out = append(out, eventOf(e))
		}
		return err
	})
	return a, out, err
}

func eventOf(e rows.ActionTimelineRow) action.Event {
	out := action.Event{At: e.At, Event: e.Event, By: e.ActorName}
	for i, name := range e.FactNames {
		switch value := e.FactValues[i]; name {
		case "to":
			out.To = action.State(value)
		case "why":
			out.Why = value
		case "reason":
			out.Reason = value
		case "tool":
			out.Tool = value
		}
	}
	return out
}

// Counts implements action.Reader.
func (s Actions) Counts(ctx context.Context, org identity.OrgID) (c action.Counts, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		n, err := rows.New(tx).ActionCount(ctx, string(org))
		c = action.Counts{Waiting: int(n.Waiting), Uncertain: int(n.Uncertain), Executing: int(n.Executing)}
		return err
	})
	return c, err
}
