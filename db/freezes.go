package db

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

var _ action.Freezer = Actions{}

// Freeze implements action.Freezer.
func (s Actions) Freeze(ctx context.Context, p action.Press) (out action.Frozen, err error) {
	if refused := action.MayFreeze(p.By, p.Org); refused != nil {
		return out, refused
	}
	reason, err := freezeReason(p.Reason)
	if err != nil {
		return out, err
	}
	err = s.inOrg(ctx, p.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := q.SwitchPress(ctx, string(p.Org)); err != nil {
			return err
		}
		if err := switchThere(ctx, q, p.Org, p.Switch); err != nil {
			return err
		}
		row, err := q.FreezeInsert(ctx, rows.FreezeInsertParams{
			ID: identity.NewID("frz_"), OrgID: string(p.Org), Scope: string(p.Switch.Scope), Key: p.Switch.Key,
			ByID: string(p.By.ID), ByName: storable(p.By.Display()), Reason: storable(reason),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			row, err = q.FreezeStanding(ctx, string(p.Org), string(p.Switch.Scope), p.Switch.Key)
			out.Freeze = freezeOf(row)
			return err
		}
		if err != nil {
			return err
		}
		found, err := q.FreezeCovered(ctx, row.OrgID, row.ID)
		if err != nil {
			return err
		}
		out = action.Frozen{Freeze: freezeOf(row), New: true, Open: int(found.Open), Sending: int(found.Sending)}
		return insertAudit(ctx, tx, freezeEntry(audit.FreezeOn, out.Freeze, p.By,
			audit.Fact{Name: "reason", Value: reason}, audit.Fact{Name: "waiting", Value: strconv.Itoa(out.Open)}, audit.Fact{Name: "being_sent", Value: strconv.Itoa(out.Sending)}))
	})
	return out, err
}

// freezeReason asks for a reason in words that fit: it is colleagues who read it, not the agent.
func freezeReason(reason string) (string, error) {
	if reason, err := action.CheckReason(reason, false); err != nil || reason != "" {
		return reason, err
	}
	return "", fault.Field("reason", "Say why: everybody who is stopped by it reads this, and it is kept in the audit trail.")
}

// switchThere refuses a switch of what the organization does not have.
func switchThere(ctx context.Context, q *rows.Queries, org identity.OrgID, s action.Switch) error {
	switch s.Scope {
	case action.ScopeOrganization:
		if s.Key == "" {
			return nil
		}
	case action.ScopeProfile:
		if there, err := q.FreezeProfileThere(ctx, string(org), s.Key); err != nil || there {
			return err
		}
		return fault.Absent("profile")
	case action.ScopeConnection:
		if there, err := q.FreezeConnectionThere(ctx, string(org), s.Key); err != nil || there {
			return err
		}
		return fault.Absent("connection")
	}
	return fault.Field("scope", "Freeze the organization, a profile or a connection.")
}

// Lift implements action.Freezer.
func (s Actions) Lift(ctx context.Context, p action.Press) (out action.Lifted, err error) {
	if refused := action.MayFreeze(p.By, p.Org); refused != nil {
		return out, refused
	}
	err = s.inOrg(ctx, p.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := q.SwitchPress(ctx, string(p.Org)); err != nil {
			return err
		}
		by := storable(p.By.Display())
		row, err := q.FreezeLift(ctx, rows.FreezeLiftParams{OrgID: string(p.Org), ID: string(p.Freeze), LiftedByID: optional(p.By.ID), LiftedByName: &by})
		if errors.Is(err, pgx.ErrNoRows) {
			row, err = q.FreezeByID(ctx, string(p.Org), string(p.Freeze))
			out.Freeze = freezeOf(row)
			return orAbsent(err, "freeze")
		}
		if err != nil {
			return err
		}
		given, err := q.FrozenTimeGive(ctx, row.OrgID, row.ID)
		if err != nil {
			return err
		}
		out = action.Lifted{Freeze: freezeOf(row), New: true, Extended: int(given)}
		return insertAudit(ctx, tx, freezeEntry(audit.FreezeOff, out.Freeze, p.By,
			audit.Fact{Name: "since", Value: row.Since.UTC().Format(time.RFC3339)}, audit.Fact{Name: "deadlines_moved", Value: strconv.Itoa(out.Extended)}))
	})
	return out, err
}

// Freezes implements action.Freezer.
func (s Actions) Freezes(ctx context.Context, org identity.OrgID) (out []action.Freeze, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).FreezeList(ctx, string(org))
		for _, f := range found {
			out = append(out, freezeOf(f))
		}
		return err
	})
	return out, err
}

// frozen are the standing freezes of an organization.
type frozen []action.Freeze

// standing takes the switch as it is until the transaction ends, so that a freeze that commits later begins later. It comes before every
// other lock: were it taken with a row in hand, a press of the switch could stand between two who wait for each other.
func (t step) standing(ctx context.Context) (out frozen, err error) {
	found, err := t.tx.Query(ctx, "SELECT id, org_id, scope, key, since, by_name, reason FROM standing_freezes($1)", t.org)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (f action.Freeze, err error) {
		return f, row.Scan(&f.ID, &f.Org, &f.Scope, &f.Key, &f.Since, &f.By, &f.Reason)
	})
}

func (f frozen) refuse(profile, connection string) *fault.Error {
	if over, ok := action.Covering(f, profile, connector.Key(connection)); ok {
		return over.Refusal()
	}
	return nil
}

func freezeOf(r rows.Freeze) action.Freeze {
	return action.Freeze{
		Switch: action.Switch{Scope: action.Scope(r.Scope), Key: r.Key}, ID: action.FreezeID(r.ID), Org: identity.OrgID(r.OrgID), Since: r.Since, By: r.ByName,
		Reason: r.Reason, LiftedAt: r.LiftedAt, LiftedBy: text(r.LiftedByName),
	}
}

func freezeEntry(event audit.Event, f action.Freeze, by identity.Person, facts ...audit.Fact) audit.Entry {
	object := audit.Object{Kind: string(f.Scope), ID: f.Key}
	if f.Scope == action.ScopeOrganization {
		object.ID = string(f.Org)
	}
	return audit.Entry{Org: f.Org, Actor: audit.Person(by), Event: event, Object: object, Facts: append([]audit.Fact{{Name: "freeze", Value: string(f.ID)}}, facts...)}
}
