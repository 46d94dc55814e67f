package db

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// Runs keeps runs and what was minted into them.
type Runs struct{ *DB }

var _ capability.Store = Runs{}

// Mint implements capability.Store.
func (s Runs) Mint(ctx context.Context, o capability.Order, e audit.Entry) (capability.Live, bool, error) {
	org := o.Token.Org
	var id run.ID
	created := false
	err := s.inOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		known, err := repeated(ctx, q, o)
		if known != "" || err != nil {
			id = known
			return err
		}
		p, offers, err := ordered(ctx, q, o)
		if err != nil {
			return err
		}
		newID, err := q.RunInsert(ctx, p)
		if errors.Is(err, pgx.ErrNoRows) { // the same key, a moment earlier: it has committed by now
			id, err = repeated(ctx, q, o)
			return err
		}
		if err != nil {
			return err
		}
		id, created = run.ID(newID), true
		if err := mint(ctx, q, p, offers); err != nil {
			return err
		}
		e.Org, e.Object = org, audit.Object{Kind: "run", ID: newID}
		return insertAudit(ctx, tx, e)
	})
	if err != nil {
		return capability.Live{}, false, err
	}
	l, err := s.Run(ctx, org, id)
	return l, created && err == nil, err
}

// repeated finds the run that an earlier request with this key started.
func repeated(ctx context.Context, q *rows.Queries, o capability.Order) (run.ID, error) {
	if o.IdempotencyKey == "" {
		return "", nil
	}
	known, err := q.RunByKey(ctx, o.Token.ID, &o.IdempotencyKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if text(known.RequestDigest) != o.RequestDigest {
		return "", fault.New(fault.Conflict, fault.IdempotencyConflict, "This idempotency key was used for another request.", "Use a new key for a new run, or repeat the first request exactly.")
	}
	return run.ID(known.ID), nil
}

// ordered checks an order against what the organization has now.
func ordered(ctx context.Context, q *rows.Queries, o capability.Order) (p rows.RunInsertParams, offers []rows.RunOfferRow, err error) {
	prof, err := q.ProfileByName(ctx, string(o.Token.Org), o.Profile)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil, fault.Field("profile", "There is no profile “"+o.Profile+"”.")
	}
	if err != nil {
		return p, nil, err
	}
	p = rows.RunInsertParams{
		ID: identity.NewID("run_"), OrgID: string(o.Token.Org), Surface: string(o.Surface), Profile: o.Profile, Task: storable(o.Task), OnBehalfEmail: o.OnBehalfOf,
		TokenID: o.Token.ID, TokenOwner: string(o.Token.Owner), TokenHash: o.TokenHash, Budget: prof.Budget, Ttl: o.TTL,
		IdempotencyKey: optional(o.IdempotencyKey), RequestDigest: optional(o.RequestDigest),
	}
	if o.Budget > 0 && o.Budget < int(prof.Budget) {
		p.Budget = int32(o.Budget) // a run narrows its profile's budget, never widens it
	}
	if o.OnBehalfOf != "" {
		person, err := q.RunPersonByEmail(ctx, p.OrgID, o.OnBehalfOf)
		if errors.Is(err, pgx.ErrNoRows) {
			return p, nil, fault.Field("on_behalf_of", "“on_behalf_of” is the email address of an active person of this organization.")
		}
		if err != nil {
			return p, nil, err
		}
		p.OnBehalfOf = &person
	}
	offers, err = q.RunOffer(ctx, p.OrgID, o.Profile)
	if err != nil {
		return p, nil, err
	}
	offers, err = chosen(offers, o.Connections)
	return p, offers, err
}

// chosen narrows what the profile offers to the connections named; nil names all that are active.
func chosen(offers []rows.RunOfferRow, named []connector.Key) ([]rows.RunOfferRow, error) {
	active := func(o rows.RunOfferRow) bool { return o.State == string(installation.Active) }
	if named == nil {
		return slices.DeleteFunc(offers, func(o rows.RunOfferRow) bool { return !active(o) }), nil
	}
	var faults fault.List
	var out []rows.RunOfferRow
	for _, key := range slices.Compact(slices.Sorted(slices.Values(named))) {
		i := slices.IndexFunc(offers, func(o rows.RunOfferRow) bool { return o.Key == string(key) })
		switch {
		case i < 0:
			faults = append(faults, fault.Field("connections", "The profile has no connection “"+key.String()+"”."))
		case !active(offers[i]):
			faults = append(faults, fault.Field("connections", "The connection “"+key.String()+"” is "+offers[i].State+"."))
		default:
			out = append(out, offers[i])
		}
	}
	return out, faults.Err()
}

// mint copies the snapshots, cut by the profile. Where the profile's mode only reads, no write is minted: were it minted, a profile that
// is widened later would widen a run that has begun.
func mint(ctx context.Context, q *rows.Queries, p rows.RunInsertParams, offers []rows.RunOfferRow) error {
	ids := make([]string, len(offers))
	for i, o := range offers {
		ids[i] = o.ID
	}
	pins, err := q.PinnedToolList(ctx, ids)
	if err != nil {
		return err
	}
	for _, o := range offers {
		use := useOf(o.ProfileMode, o.ProfileTools)
		mode := use.Narrow(policy.Standing{Mode: policy.Mode(o.Mode)}).Mode
		access := mode.Access()
		tools := []string{}
		for _, pin := range pins {
			if pin.ConnectionID == o.ID && access.Allows(policy.Effect(pin.Effect)) && (use.Tools == nil || slices.Contains(use.Tools, pin.Tool)) {
				tools = append(tools, pin.Tool)
			}
		}
		if err := q.RunConnectionInsert(ctx, rows.RunConnectionInsertParams{OrgID: p.OrgID, RunID: p.ID, ConnectionID: o.ID, Mode: string(mode)}); err != nil {
			return err
		}
		if err := q.RunGrantCopy(ctx, p.ID, o.ID, tools); err != nil {
			return err
		}
	}
	return nil
}

// Runs implements capability.Store.
func (s Runs) Runs(ctx context.Context, org identity.OrgID, liveOnly bool, before run.ID, limit int) (out []run.Run, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).RunList(ctx, rows.RunListParams{OrgID: string(org), LiveOnly: liveOnly, Before: string(before), Most: limitOf(limit, 50, 200)})
		for _, r := range found {
			out = append(out, runOf(r))
		}
		return err
	})
	return out, err
}

// End implements capability.Store.
func (s Runs) End(ctx context.Context, org identity.OrgID, id run.ID, e audit.Entry) (out run.Run, err error) {
	err = s.inOrg(ctx, org, func(tx pgx.Tx) error {
		t := begun(tx, org)
		r, err := t.q.RunLock(ctx, t.org, string(id))
		if err != nil {
			return orAbsent(err, "run")
		}
		if r.EndedAt != nil {
			out = runOf(r)
			return nil
		}
		if r, err = t.q.RunEnd(ctx, r.ID); err != nil {
			return err
		}
		staged, err := t.q.ActionStagedOfRun(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, each := range staged {
			a, err := t.q.ActionLock(ctx, t.org, each)
			if err != nil {
				return err
			}
			if a.State != string(action.StateStaged) {
				continue
			}
			if _, err := t.cancel(ctx, a, cancellation{by: e.Actor, code: fault.RunEnded, sentence: "The run ended before anybody decided; nothing was sent."}); err != nil {
				return err
			}
		}
		out = runOf(r)
		return insertAudit(ctx, tx, e)
	})
	return out, err
}

func runOf(r rows.Run) run.Run {
	return run.Run{
		ID: run.ID(r.ID), Org: identity.OrgID(r.OrgID), Surface: policy.Surface(r.Surface), Profile: r.Profile, Task: r.Task,
		OnBehalfOf: identity.PersonID(text(r.OnBehalfOf)), OnBehalfEmail: r.OnBehalfEmail, TokenID: r.TokenID, TokenOwner: identity.PersonID(r.TokenOwner),
		Budget: int(r.Budget), Used: int(r.ConsequentialUsed), StartedAt: r.StartedAt, ExpiresAt: r.ExpiresAt, EndedAt: r.EndedAt,
	}
}
