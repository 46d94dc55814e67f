package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/servicetoken"
)

// ServiceTokens keeps the tokens of an organization's own programs.
type ServiceTokens struct{ *DB }

var _ servicetoken.Store = ServiceTokens{}

// SaveToken stores a new token of an active person; its times are the database's.
func (s ServiceTokens) SaveToken(ctx context.Context, t servicetoken.Token, hash []byte, life time.Duration, e audit.Entry) (servicetoken.Token, error) {
	if life <= 0 || life > servicetoken.MaxLife {
		return servicetoken.Token{}, fault.Field("life", "A token lives up to 366 days.")
	}
	err := s.change(ctx, t.Org, e, func(tx pgx.Tx) error {
		r, err := rows.New(tx).ServiceTokenInsert(ctx, rows.ServiceTokenInsertParams{
			ID: t.ID, Name: t.Name, Scopes: texts[string](t.Scopes), Hash: hash, LastFour: t.LastFour, Life: life, OrgID: string(t.Org), OwnerID: string(t.Owner),
		})
		if violates(err, "service_tokens_pkey") {
			return fault.New(fault.Conflict, fault.CodeConflict, "This token was made already; its value was shown then.", "Revoke it if the value is lost, and make another.")
		}
		t.CreatedAt, t.ExpiresAt = r.CreatedAt, r.ExpiresAt
		return orAbsent(err, "person")
	})
	if err != nil {
		return servicetoken.Token{}, err
	}
	return t, nil
}

// TokenByHash finds the live token a program presented, and notes its use to the minute.
func (s ServiceTokens) TokenByHash(ctx context.Context, hash []byte) (servicetoken.Token, error) {
	var t servicetoken.Token
	err := s.pool.QueryRow(ctx, "SELECT id, org, name, scopes, owner, owner_name, created, expires, used, last_four FROM find_service_token($1)", hash).
		Scan(&t.ID, &t.Org, &t.Name, &t.Scopes, &t.Owner, &t.OwnerName, &t.CreatedAt, &t.ExpiresAt, &t.LastUsedAt, &t.LastFour)
	if errors.Is(err, pgx.ErrNoRows) {
		return servicetoken.Token{}, fault.Absent("token")
	}
	return t, translated(err)
}

// Tokens lists an organization's tokens, newest first, also those that are over.
func (s ServiceTokens) Tokens(ctx context.Context, org identity.OrgID) (out []servicetoken.Token, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ServiceTokenList(ctx, string(org))
		for _, r := range found {
			out = append(out, servicetoken.Token{
				ID: r.ID, Org: org, Name: r.Name, Scopes: texts[servicetoken.Scope](r.Scopes), Owner: identity.PersonID(r.OwnerID), OwnerName: r.OwnerName,
				CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, LastUsedAt: r.LastUsedAt, RevokedAt: r.RevokedAt, LastFour: r.LastFour,
			})
		}
		return err
	})
	return out, err
}

// RevokeToken ends a token for good. One that was revoked before stays so, and its time is the first one.
func (s ServiceTokens) RevokeToken(ctx context.Context, org identity.OrgID, id string, e audit.Entry) error {
	e.Org = org
	return s.inOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.ServiceTokenRevoke(ctx, string(org), storable(id))
		if err != nil {
			return err
		}
		if n == 1 {
			return insertAudit(ctx, tx, e)
		}
		exists, err := q.ServiceTokenExists(ctx, string(org), storable(id))
		if err == nil && !exists {
			return fault.Absent("token")
		}
		return err
	})
}
