package db

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
)

// Install implements installation.Writer.
func (s Connections) Install(ctx context.Context, c installation.Connection, sealed []credential.Record, e audit.Entry) (out installation.Connection, err error) {
	err = s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		row, err := q.ConnectionInsert(ctx, rows.ConnectionInsertParams{
			ID: c.ID, OrgID: string(c.Org), Key: string(c.Key), Integration: c.Integration, Kind: string(c.Kind), Runtime: string(c.Runtime), ReleaseDigest: c.Release,
			Name: storable(c.Name), State: string(c.State), Mode: "", Destination: c.Destination, Contract: c.Contract, Header: c.Header, CreatedBy: storable(c.CreatedBy),
		})
		if violates(err, "connections_key_unique") {
			return fault.New(fault.Conflict, fault.CodeConflict, "The key “"+c.Key.String()+"” was used before; a key is never used again.", "Install it again: the next key will be another.")
		}
		if violates(err, "connections_pkey") { // the same form, of whichever organization: its first press is found by whoever may see it
			return fault.New(fault.Conflict, fault.CodeConflict, "This form has made a connection already.", "Open the integration's page and start again.")
		}
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
			err := q.ConnectionSettingInsert(ctx, rows.ConnectionSettingInsertParams{OrgID: row.OrgID, ConnectionID: row.ID, Name: storable(name), Value: storable(c.Settings[name])})
			if err != nil {
				return err
			}
		}
		if err := putCredential(ctx, q, row, sealed); err != nil {
			return err
		}
		if out, err = complete(ctx, q, row); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return out, err
}

// change runs f on a locked connection, if it still has the version the caller saw, and writes the audit row.
func (s Connections) change(ctx context.Context, c installation.Connection, e audit.Entry, f func(t step, row rows.Connection) (rows.Connection, error)) (out installation.Connection, err error) {
	err = s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		t := begun(tx, c.Org)
		row, err := t.q.ConnectionLock(ctx, t.org, string(c.Key))
		if err != nil {
			return orAbsent(err, "connection")
		}
		if row.State == string(installation.Retired) {
			return fault.New(fault.Conflict, fault.CodeConflict, "This connection was retired at "+moment(*row.RetiredAt)+" and never changes again.", "Install a new one.")
		}
		if int(row.Version) != c.Version {
			return fault.Stale("The connection changed while you read. Nothing was saved.")
		}
		after, err := f(t, row)
		if err != nil {
			return err
		}
		if out, err = complete(ctx, t.q, after); err != nil || e.Event == "" {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return out, err
}

// RecordFinding implements installation.Writer.
func (s Connections) RecordFinding(ctx context.Context, c installation.Connection, f installation.Finding, tested *audit.Entry, held []audit.Entry) (installation.Connection, error) {
	var e audit.Entry
	if tested != nil {
		e = *tested
	}
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		news := row.TestedAt == nil || row.Healthy != f.OK || row.Trouble != storable(f.What)
		if f.Tools != nil {
			changed, err := t.replaceList(ctx, row, f.Tools)
			if err != nil {
				return row, err
			}
			news = news || changed
		}
		for _, h := range held {
			if err := insertAudit(ctx, t.tx, h); err != nil {
				return row, err
			}
		}
		p := rows.ConnectionSetFindingParams{
			ID: row.ID, Version: row.Version, Healthy: f.OK, Found: storable(f.Found), Trouble: storable(f.What), Remedy: storable(f.Next),
		}
		if news {
			p.News = 1
		}
		return t.q.ConnectionSetFinding(ctx, p)
	})
}

// replaceList stores what is listed now and reports whether that is other than before. What stays listed keeps its first-seen time.
func (t step) replaceList(ctx context.Context, c rows.Connection, tools []installation.Observed) (changed bool, err error) {
	before, err := t.q.ObservedToolList(ctx, t.org, c.Key)
	if err != nil {
		return false, err
	}
	old := make([]installation.Observed, len(before))
	for i, o := range before {
		old[i] = observedOf(o)
	}
	now, names := make([]installation.Observed, 0, len(tools)), make([]string, 0, len(tools))
	for _, o := range tools {
		p := storedObserved(c, o)
		if slices.Contains(names, p.Tool) { // two names that cannot be told apart once stored: the first stands
			continue
		}
		if err := t.q.ObservedToolSave(ctx, p); err != nil {
			return false, err
		}
		names = append(names, p.Tool)
		now = append(now, installation.Observed{Tool: p.Tool, Digest: p.Digest, Problem: p.Problem})
	}
	slices.SortFunc(now, func(a, b installation.Observed) int { return strings.Compare(a.Tool, b.Tool) })
	return listDigest(old) != listDigest(now), t.q.ObservedToolDropOthers(ctx, c.ID, names)
}

// SaveStanding implements installation.Writer.
func (s Connections) SaveStanding(ctx context.Context, c installation.Connection, next policy.Standing, raws map[string][]byte, e audit.Entry) (installation.Connection, error) {
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		return t.stand(ctx, row, next, raws, e.Actor)
	})
}

// ConfirmReads implements installation.Writer. A snapshot may hold only reads that are confirmed, so what is withdrawn leaves it first and
// what is new is confirmed before it comes in.
func (s Connections) ConfirmReads(ctx context.Context, c installation.Connection, now []installation.Confirmation, next policy.Standing, raws map[string][]byte, e audit.Entry) (installation.Connection, error) {
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		for _, r := range c.Confirmed {
			if slices.Contains(now, r) {
				continue
			}
			if err := t.q.ConfirmedReadDrop(ctx, row.ID, r.Tool, r.Digest); err != nil {
				return row, err
			}
		}
		for _, r := range now {
			if slices.Contains(c.Confirmed, r) {
				continue
			}
			p := rows.ConfirmedReadInsertParams{OrgID: row.OrgID, ConnectionID: row.ID, Tool: r.Tool, Digest: r.Digest, ConfirmedBy: storable(e.Actor.Name)}
			if err := t.q.ConfirmedReadInsert(ctx, p); err != nil {
				return row, err
			}
		}
		return t.stand(ctx, row, next, raws, e.Actor)
	})
}

// stand replaces mode and snapshot, and cancels what waits for a tool that is no longer granted.
func (t step) stand(ctx context.Context, row rows.Connection, next policy.Standing, raws map[string][]byte, by audit.Actor) (rows.Connection, error) {
	if err := t.q.PinnedToolDropAll(ctx, row.ID); err != nil {
		return row, err
	}
	for p := range next.Snapshot.All() {
		raw, ok := raws[p.Tool]
		if !ok {
			return row, fault.New(fault.Internal, fault.CodeInternal, "The definition of “"+p.Tool+"” that was accepted is missing; nothing was saved.", "")
		}
		err := t.q.PinnedToolInsert(ctx, rows.PinnedToolInsertParams{
			OrgID: row.OrgID, ConnectionID: row.ID, Tool: p.Tool, Digest: p.Digest, Recipe: int32(p.Recipe), Effect: string(p.Effect), Destructive: p.Destructive, Raw: raw,
		})
		if err != nil {
			return row, err
		}
	}
	after, err := t.q.ConnectionSetStanding(ctx, string(next.Mode), row.ID, row.Version)
	if err != nil {
		return row, err
	}
	granted := func(a rows.Action) bool {
		p, ok := next.Snapshot.Find(a.Tool)
		return ok && p.Digest == a.Definition && next.Mode.Access().Allows(policy.Consequential)
	}
	return after, t.cancelOfConnection(ctx, row.ID, granted, cancellation{
		by: by, code: fault.ToolNotGranted, sentence: "The tool, as it was asked for, is no longer granted; nothing was sent.",
	})
}

// ReplaceCredential implements installation.Writer.
func (s Connections) ReplaceCredential(ctx context.Context, c installation.Connection, sealed []credential.Record, e audit.Entry) (installation.Connection, error) {
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		after, err := t.q.ConnectionSetState(ctx, string(installation.Active), row.ID, row.Version)
		if err != nil {
			return row, err
		}
		return after, putCredential(ctx, t.q, after, sealed)
	})
}

// End implements installation.Writer.
func (s Connections) End(ctx context.Context, c installation.Connection, state installation.State, e audit.Entry) (installation.Connection, error) {
	if state != installation.Disconnected && state != installation.Retired {
		return installation.Connection{}, fault.Field("state", "A connection ends as disconnected or retired.")
	}
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		if _, err := t.q.CredentialShred(ctx, row.ID); err != nil {
			return row, err
		}
		if err := t.q.ConsentForget(ctx, row.ID); err != nil {
			return row, err
		}
		after, err := t.q.ConnectionSetState(ctx, string(state), row.ID, row.Version)
		if err != nil {
			return row, err
		}
		none := func(rows.Action) bool { return false }
		return after, t.cancelOfConnection(ctx, row.ID, none, cancellation{
			by: e.Actor, code: fault.ConnectionUnavailable, sentence: "The connection was " + string(state) + "; nothing was sent.",
		})
	})
}

// Rename implements installation.Writer.
func (s Connections) Rename(ctx context.Context, c installation.Connection, name string, e audit.Entry) (installation.Connection, error) {
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		return t.q.ConnectionSetName(ctx, storable(name), row.ID, row.Version)
	})
}

// RecordReads implements installation.Writer.
func (s Connections) RecordReads(ctx context.Context, c installation.Connection, durably bool, e audit.Entry) (installation.Connection, error) {
	return s.change(ctx, c, e, func(t step, row rows.Connection) (rows.Connection, error) {
		return t.q.ConnectionSetDurableReads(ctx, durably, row.ID, row.Version)
	})
}
