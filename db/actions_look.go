package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

var (
	_ action.Investigator = Actions{}
	_ action.Probes       = Actions{}
)

// KeepLookUp implements action.Investigator. The action is locked, so that none is kept after it was settled.
func (s Actions) KeepLookUp(ctx context.Context, org identity.OrgID, by identity.Person, l action.LookUp) (out action.LookUp, err error) {
	seen := storable(l.Seen)
	kept := clipped(seen, action.MaxSeen)
	err = s.inOrg(ctx, org, func(tx pgx.Tx) error {
		t := begun(tx, org)
		a, err := t.lock(ctx, l.Action)
		if err != nil {
			return err
		}
		if refused := action.MayDecide(by, actionOf(a)); refused != nil {
			return refused
		}
		if a.State != string(action.StateUncertain) {
			return passedBy(a)
		}
		if n, err := t.q.LookUpCount(ctx, t.org, a.ID); err != nil {
			return err
		} else if n >= action.MaxLookUps {
			return fault.New(fault.Limited, fault.CodeLimited, "This action was looked up "+strconv.Itoa(action.MaxLookUps)+" times already.", "Decide on what was seen.")
		}
		row, err := t.q.LookUpInsert(ctx, rows.LookUpInsertParams{
			ID: identity.NewID("lku_"), OrgID: t.org, ActionID: a.ID, ByID: string(by.ID), ByName: storable(by.Display()), Tool: storable(l.Tool),
			Arguments: l.Arguments, Seen: kept, NotKept: int32(len(seen) - len(kept)), IsError: l.IsError,
		})
		if err != nil {
			return err
		}
		out = lookUpOf(row)
		sum := sha256.Sum256([]byte(kept))
		return insertAudit(ctx, tx, audit.Entry{
			Org: org, Actor: audit.Person(by), Event: audit.LookedUp, Object: audit.Object{Kind: "action", ID: a.ID}, Digest: a.ArgsDigest,
			Facts: []audit.Fact{{Name: "tool", Value: a.ConnectionKey + "/" + l.Tool}, {Name: "seen_bytes", Value: strconv.Itoa(len(seen))}, {Name: "seen_sha256", Value: hex.EncodeToString(sum[:])}},
		})
	})
	return out, err
}

// clipped is the beginning of a text, cut between two characters.
func clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most]
}

// LookUps implements action.Investigator.
func (s Actions) LookUps(ctx context.Context, org identity.OrgID, id action.ID) (out []action.LookUp, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).LookUpList(ctx, string(org), string(id))
		for _, l := range found {
			out = append(out, lookUpOf(l))
		}
		return err
	})
	return out, err
}

func lookUpOf(r rows.LookUp) action.LookUp {
	return action.LookUp{
		ID: r.ID, Action: action.ID(r.ActionID), At: r.At, By: r.ByName, Tool: r.Tool, Arguments: r.Arguments, Seen: r.Seen, Left: int(r.NotKept), IsError: r.IsError,
	}
}

// Probed implements action.Investigator.
func (s Actions) Probed(ctx context.Context, org identity.OrgID, id action.ID) (p action.Probe, there bool, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		row, err := rows.New(tx).ProbeByAction(ctx, string(org), string(id))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		p, there = action.Probe{Attempts: int(row.Attempts), LastAt: row.LastAt, NextAt: row.NextAt, Sentence: row.Sentence}, err == nil
		return err
	})
	return p, there, err
}

// ProbesDue implements action.Probes.
func (s Actions) ProbesDue(ctx context.Context, limit int) ([]action.Waiting, error) {
	return s.waiting(ctx, "SELECT org, action FROM each_action_to_probe($1)", limit)
}

// TakeProbe implements action.Probes.
func (s Actions) TakeProbe(ctx context.Context, org identity.OrgID, id action.ID) (taken bool, err error) {
	err = s.inOrg(ctx, org, func(tx pgx.Tx) error {
		n, err := rows.New(tx).ProbeTake(ctx, string(org), string(id))
		taken = n == 1
		return err
	})
	return taken, err
}

// KeepSighting implements action.Probes.
func (s Actions) KeepSighting(ctx context.Context, org identity.OrgID, id action.ID, sentence string, next action.NextProbe) error {
	return s.inOrg(ctx, org, func(tx pgx.Tx) error {
		return rows.New(tx).ProbeNote(ctx, rows.ProbeNoteParams{Sentence: short(sentence), Next: string(next), OrgID: string(org), ActionID: string(id)})
	})
}
