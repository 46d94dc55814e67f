package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/preferences"
)

// Contexts keeps what organizations write about their connections.
type Contexts struct{ *DB }

var _ preferences.Store = Contexts{}

// Context is the newest revision; number 0 where nothing is written yet.
func (c Contexts) Context(ctx context.Context, org identity.OrgID) (out preferences.Revision, err error) {
	err = c.readOrg(ctx, org, func(tx pgx.Tx) error {
		out, err = latestContext(ctx, rows.New(tx), org)
		return err
	})
	return out, err
}

func latestContext(ctx context.Context, q *rows.Queries, org identity.OrgID) (preferences.Revision, error) {
	r, err := q.ContextLatest(ctx, string(org))
	if errors.Is(err, pgx.ErrNoRows) {
		return preferences.Revision{Org: org}, nil
	}
	return revision(org, rows.ContextRevisionRow(r)), err
}

func revision(org identity.OrgID, r rows.ContextRevisionRow) preferences.Revision {
	return preferences.Revision{
		Org: org, Number: int(r.Revision), Text: r.Text, Bytes: len(r.Text), How: preferences.How(r.How),
		By: audit.Actor{Kind: audit.ActorKind(r.ActorKind), ID: r.ActorID, Name: r.ActorName}, SavedAt: r.SavedAt,
	}
}

// ContextRevision is one revision as it was saved.
func (c Contexts) ContextRevision(ctx context.Context, org identity.OrgID, number int) (out preferences.Revision, err error) {
	err = c.readOrg(ctx, org, func(tx pgx.Tx) error {
		r, err := rows.New(tx).ContextRevision(ctx, string(org), int64(number))
		out = revision(org, r)
		return orAbsent(err, "revision")
	})
	return out, err
}

// ContextRevisions lists revisions without their texts, newest first.
func (c Contexts) ContextRevisions(ctx context.Context, org identity.OrgID, before, limit int) (out []preferences.Revision, err error) {
	err = c.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ContextRevisionList(ctx, string(org), int64(before), int32(limit))
		for _, r := range found {
			one := revision(org, rows.ContextRevisionRow{Revision: r.Revision, How: r.How, ActorKind: r.ActorKind, ActorID: r.ActorID, ActorName: r.ActorName, SavedAt: r.SavedAt})
			one.Bytes = int(r.Bytes)
			out = append(out, one)
		}
		return err
	})
	return out, err
}

// SaveContext keeps a text as the next revision, with its audit row. Two who began from the same revision follow each other: the second
// one is told that its page is old.
func (c Contexts) SaveContext(ctx context.Context, e preferences.Edition) (out preferences.Revision, err error) {
	text := preferences.Normal(e.Text)
	if _, found := preferences.Parse(text); len(found) > 0 {
		return out, found.Err()
	}
	err = c.inOrg(ctx, e.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := q.ContextLock(ctx, lockContext, string(e.Org)); err != nil {
			return err
		}
		newest, err := latestContext(ctx, q, e.Org)
		if err != nil {
			return err
		}
		if out = newest; newest.Number == e.Base && newest.Text == text {
			return nil
		}
		next := preferences.Revision{Org: e.Org, Number: e.Base + 1, Text: text, Bytes: len(text), How: e.How, By: e.By}
		next.SavedAt, err = q.ContextInsert(ctx, rows.ContextInsertParams{
			OrgID: string(e.Org), Next: int64(next.Number), Text: text, How: string(e.How),
			ActorKind: string(e.By.Kind), ActorID: storable(e.By.ID), ActorName: storable(e.By.Name),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.Stale("Somebody else saved the context since you opened it. Nothing was saved.")
		}
		if err != nil {
			return err
		}
		out = next
		return insertAudit(ctx, tx, contextEntry(next, e.From))
	})
	return out, err
}

func contextEntry(r preferences.Revision, from int) audit.Entry {
	digest := sha256.Sum256([]byte(r.Text))
	e := audit.Entry{
		Org: r.Org, Actor: r.By, Event: audit.ContextSaved, Object: audit.Object{Kind: "context", ID: "preferences.toml"},
		Facts: []audit.Fact{
			{Name: "revision", Value: strconv.Itoa(r.Number)}, {Name: "how", Value: string(r.How)}, {Name: "bytes", Value: strconv.Itoa(r.Bytes)}, {Name: "digest", Value: hex.EncodeToString(digest[:])},
		},
	}
	if from > 0 {
		e.Facts = append(e.Facts, audit.Fact{Name: "from", Value: strconv.Itoa(from)})
	}
	return e
}
