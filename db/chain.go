package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// sealBatch is how many entries one transaction seals; verifyBatch how many links are in memory at once.
const (
	sealBatch   = 1000
	verifyBatch = 2000
)

// Seal chains every entry that waits, in all organizations, and returns how many that were. Several servers may call it at the same
// time: an organization that another one is sealing is left to it. One organization's failure does not keep the others waiting.
func (a Audit) Seal(ctx context.Context, signer audit.Signer) (int, error) {
	orgs, err := a.eachOrg(ctx, "SELECT org FROM each_org_with_pending()")
	if err != nil {
		return 0, err
	}
	total := 0
	var failures []error
	for _, org := range orgs {
		n, err := a.sealOrg(ctx, org, signer)
		total += n
		if err != nil {
			failures = append(failures, fmt.Errorf("seal the trail of %s: %w", org, err))
		}
	}
	return total, errors.Join(failures...)
}

func (a Audit) sealOrg(ctx context.Context, org identity.OrgID, signer audit.Signer) (int, error) {
	total := 0
	for {
		var n int
		err := a.inOrg(ctx, org, func(tx pgx.Tx) (err error) {
			n, err = sealSome(ctx, rows.New(tx), org, signer)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < sealBatch {
			return total, nil
		}
	}
}

// sealSome continues the chain by one batch. The lock makes it the only one that does; the primary key on (org, seq) would refuse a
// fork in any case.
func sealSome(ctx context.Context, q *rows.Queries, org identity.OrgID, signer audit.Signer) (int, error) {
	mine, err := q.AuditChainLock(ctx, lockChain, string(org))
	if err != nil || !mine {
		return 0, err
	}
	waiting, err := q.AuditPendingList(ctx, string(org), sealBatch)
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	last, err := q.AuditSealLast(ctx, string(org))
	if err := orNone(err); err != nil {
		return 0, err
	}
	seals := rows.AuditSealInsertParams{OrgID: string(org)}
	for _, r := range waiting {
		e := recorded(r.ID, r.OrgID, r.At, r.ActorKind, r.ActorID, r.ActorName, r.Event, r.ObjectKind, r.ObjectID, r.Digest, r.FactNames, r.FactValues)
		last.Seq++
		e.Seq = last.Seq
		if last.Mac, err = audit.Seal(signer, last.Mac, e); err != nil {
			return 0, err
		}
		seals.Seqs, seals.EntryIds, seals.Macs = append(seals.Seqs, e.Seq), append(seals.EntryIds, e.ID), append(seals.Macs, last.Mac)
	}
	if err := q.AuditSealInsert(ctx, seals); err != nil {
		return 0, err
	}
	if _, err := q.AuditPendingDrop(ctx, string(org), seals.EntryIds); err != nil {
		return 0, err
	}
	return len(waiting), q.AuditCheckpointInsert(ctx, string(org), last.Seq, last.Mac)
}

// Checkpoint is the newest statement about an organization's chain: what an operator keeps elsewhere, since a copy in this database
// goes with the entries it would speak for.
func (a Audit) Checkpoint(ctx context.Context, org identity.OrgID) (c audit.Checkpoint, err error) {
	err = a.readOrg(ctx, org, func(tx pgx.Tx) error {
		c, err = lastCheckpoint(ctx, rows.New(tx), org)
		return orAbsent(err, "checkpoint")
	})
	return c, err
}

func lastCheckpoint(ctx context.Context, q *rows.Queries, org identity.OrgID) (audit.Checkpoint, error) {
	r, err := q.AuditCheckpointLast(ctx, string(org))
	return audit.Checkpoint{Org: r.OrgID, Seq: r.Seq, MAC: r.Mac, At: r.At}, err
}

// Verified is what is known of a chain without a break.
type Verified struct {
	Sealed  int64 // entries in the chain
	Pending int64 // entries that wait for their seal: those of the last second, unless nobody seals
}

// Verify walks an organization's chain from its first entry, in one snapshot. The first thing that is wrong is an *audit.Break:
// an entry edited or deleted, a gap, an entry nobody sealed, or an end before what a checkpoint has seen. kept are checkpoints from
// elsewhere; the database's own newest one is always asked.
func (a Audit) Verify(ctx context.Context, org identity.OrgID, signer audit.Signer, kept ...audit.Checkpoint) (out Verified, err error) {
	for _, c := range kept {
		if c.Org != string(org) {
			return Verified{}, fault.Field("checkpoint", "This checkpoint is of another organization.")
		}
	}
	err = a.snapshotOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		own, err := lastCheckpoint(ctx, q, org)
		if err == nil {
			kept = append(slices.Clone(kept), own)
		} else if err := orNone(err); err != nil {
			return err
		}
		if out.Sealed, err = walk(ctx, q, org, audit.NewVerifier(signer), kept); err != nil {
			return err
		}
		if err := around(ctx, q, org); err != nil {
			return err
		}
		out.Pending, err = q.AuditPendingCount(ctx, string(org))
		return err
	})
	if err != nil {
		return Verified{}, err
	}
	return out, nil
}

// walk checks every link, and each checkpoint where the chain reaches it; those it never reaches are asked at the end.
func walk(ctx context.Context, q *rows.Queries, org identity.OrgID, v *audit.Verifier, kept []audit.Checkpoint) (int64, error) {
	kept = slices.SortedFunc(slices.Values(kept), func(a, b audit.Checkpoint) int { return cmp.Compare(a.Seq, b.Seq) })
	for {
		links, err := q.AuditLinkList(ctx, string(org), v.Length(), verifyBatch)
		if err != nil {
			return 0, err
		}
		for _, r := range links {
			if err := v.Next(link(r)); err != nil {
				return 0, err
			}
			for len(kept) > 0 && kept[0].Seq <= v.Length() {
				if err := v.End(kept[0]); err != nil {
					return 0, err
				}
				kept = kept[1:]
			}
		}
		if len(links) < verifyBatch {
			break
		}
	}
	for _, c := range kept {
		if err := v.End(c); err != nil {
			return 0, err
		}
	}
	return v.Length(), nil
}

func link(r rows.AuditLinkListRow) audit.Link {
	l := audit.Link{Seq: r.Seq, EntryID: r.EntryID, MAC: r.Mac}
	if r.Found != nil { // then no column of the entry is null
		e := recorded(*r.Found, *r.OrgID, *r.At, *r.ActorKind, *r.ActorID, *r.ActorName, *r.Event, *r.ObjectKind, *r.ObjectID, *r.Digest, r.FactNames, r.FactValues)
		l.Entry = &e
	}
	return l
}

// around looks for what no link leads to: an entry slipped in beside the chain, and one that was taken away before it was sealed.
func around(ctx context.Context, q *rows.Queries, org identity.OrgID) error {
	id, err := q.AuditStray(ctx, string(org))
	if err == nil {
		return &audit.Break{EntryID: id, What: "the entry is neither sealed nor waiting for its seal: it was put there around the product."}
	}
	if err := orNone(err); err != nil {
		return err
	}
	id, err = q.AuditLost(ctx, string(org))
	if err == nil {
		return &audit.Break{EntryID: id, What: "the entry was deleted before it was sealed."}
	}
	return orNone(err)
}
