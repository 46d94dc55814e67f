package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/secret"
)

// Credentials keeps sealed fields. It sees ciphertext only and cannot open any of it.
type Credentials struct{ *DB }

var _ credential.Store = Credentials{}

// Current implements credential.Store.
func (s Credentials) Current(ctx context.Context, p credential.Place) (out []credential.Record, err error) {
	err = s.readOrg(ctx, p.Org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).CredentialCurrent(ctx, string(p.Org), string(p.Connection))
		for _, r := range found {
			out = append(out, recordOf(p.Connection, r))
		}
		return err
	})
	return out, err
}

// Put implements credential.Store. The connection must be alive: a refresh that was under way when somebody ended it brings nothing back.
func (s Credentials) Put(ctx context.Context, p credential.Place, expected int64, records []credential.Record) error {
	return s.inOrg(ctx, p.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		c, err := q.ConnectionLock(ctx, string(p.Org), string(p.Connection))
		if err != nil {
			return orAbsent(err, "connection")
		}
		if c.State != "active" && c.State != "needs_consent" {
			return fault.New(fault.Conflict, fault.ConnectionUnavailable, "The connection is "+c.State+" and takes no credential.", "Connect it again first.")
		}
		newest, err := q.CredentialNewest(ctx, c.ID)
		if err != nil {
			return err
		}
		if newest != expected {
			return fault.Stale("The credential was replaced in the meantime. Nothing was stored.")
		}
		return putCredential(ctx, q, c, records)
	})
}

// Reseal implements credential.Store.
func (s Credentials) Reseal(ctx context.Context, r credential.Record, old secret.Sealed) error {
	return s.inOrg(ctx, r.Org, func(tx pgx.Tx) error {
		n, err := rows.New(tx).CredentialReseal(ctx, rows.CredentialResealParams{OrgID: string(r.Org), Sealed: r.Sealed, Key: string(r.Connection), Field: r.Field, Version: r.Version, Old: old})
		if err == nil && n == 0 {
			return fault.Stale("The credential was replaced in the meantime. Nothing was stored.")
		}
		return err
	})
}

// Shred implements credential.Store.
func (s Credentials) Shred(ctx context.Context, p credential.Place) error {
	return s.inOrg(ctx, p.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		c, err := q.ConnectionLock(ctx, string(p.Org), string(p.Connection))
		if err != nil {
			return orAbsent(err, "connection")
		}
		_, err = q.CredentialShred(ctx, c.ID)
		return err
	})
}

// putCredential stores one version whole and forgets the older ones: what is not needed is not kept. The records name their place
// themselves since their seal is bound to it; a record of another place is refused.
func putCredential(ctx context.Context, q *rows.Queries, c rows.Connection, records []credential.Record) error {
	if len(records) == 0 {
		return nil
	}
	for _, r := range records {
		if string(r.Org) != c.OrgID || string(r.Connection) != c.Key || r.Version != records[0].Version {
			return fault.New(fault.Internal, fault.CodeInternal, "A sealed credential was meant for another connection; nothing was stored.", "")
		}
		err := q.CredentialInsert(ctx, rows.CredentialInsertParams{
			OrgID: c.OrgID, ConnectionID: c.ID, Field: r.Field, Version: r.Version, Sealed: r.Sealed, Origin: r.Origin, Fingerprint: r.Fingerprint, Last4: storable(r.Last4),
		})
		if violates(err, "credentials_pkey") {
			return fault.Stale("The credential was replaced in the meantime. Nothing was stored.")
		}
		if err != nil {
			return err
		}
	}
	newest, err := q.CredentialNewest(ctx, c.ID)
	if err != nil {
		return err
	}
	if newest != records[0].Version {
		return fault.Stale("The credential was replaced in the meantime. Nothing was stored.")
	}
	return q.CredentialDropOlder(ctx, c.ID, newest)
}

func recordOf(key connector.Key, r rows.Credential) credential.Record {
	return credential.Record{
		Place: credential.Place{Org: identity.OrgID(r.OrgID), Connection: key}, Field: r.Field, Version: r.Version, Sealed: r.Sealed,
		Origin: r.Origin, Fingerprint: r.Fingerprint, Last4: r.Last4, CreatedAt: r.CreatedAt,
	}
}
