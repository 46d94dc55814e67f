package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
)

// Consents keeps what people allowed connections at authorization servers. The tokens are sealed credentials: it cannot open one.
type Consents struct{ *DB }

var (
	_ consent.Store     = Consents{}
	_ consent.Directory = Consents{}
)

// Held implements consent.Store.
func (s Consents) Held(ctx context.Context, p credential.Place) (c consent.Consent, sealed []credential.Record, err error) {
	err = s.snapshotOrg(ctx, p.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		row, err := q.ConsentByKey(ctx, string(p.Org), string(p.Connection))
		if err != nil {
			return orAbsent(err, "consent")
		}
		c = consentOf(p.Connection, row)
		found, err := q.CredentialCurrent(ctx, string(p.Org), string(p.Connection))
		for _, r := range found {
			sealed = append(sealed, recordOf(p.Connection, r))
		}
		return err
	})
	return c, sealed, err
}

// Give implements consent.Store.
func (s Consents) Give(ctx context.Context, c consent.Consent, sealed []credential.Record, e audit.Entry) error {
	return s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		row, err := q.ConnectionLock(ctx, string(c.Org), string(c.Connection))
		if err != nil {
			return orAbsent(err, "connection")
		}
		if row.State == string(installation.Retired) {
			return fault.New(fault.Conflict, fault.CodeConflict, "This connection was retired meanwhile and never changes again.", "Install a new one. Nothing was stored.")
		}
		newest, err := q.CredentialNewest(ctx, row.ID)
		if err != nil {
			return err
		}
		if newest != c.Version-1 {
			return fault.Stale("The consent was renewed in the meantime. Nothing was stored.")
		}
		if row, err = q.ConnectionSetState(ctx, string(installation.Active), row.ID, row.Version); err != nil {
			return err
		}
		if err := putCredential(ctx, q, row, sealed); err != nil {
			return err
		}
		if err := q.ConsentGive(ctx, giveParams(row.ID, c)); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// Claim implements consent.Store.
func (s Consents) Claim(ctx context.Context, c consent.Consent, by string, lease time.Duration) (claimed, over bool, err error) {
	err = s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.ConsentClaim(ctx, rows.ConsentClaimParams{
			RenewingBy: by, Lease: lease, OrgID: string(c.Org), Key: string(c.Connection), ID: c.ID, Version: c.Version,
		})
		if claimed = n == 1; claimed || err != nil {
			return err
		}
		newest, err := q.ConsentIsNewest(ctx, rows.ConsentIsNewestParams{OrgID: string(c.Org), Key: string(c.Connection), ID: c.ID, Version: c.Version})
		over = !newest
		return err
	})
	return claimed, over, err
}

// Renew implements consent.Store. A COMMIT whose answer was lost is found here the second time: the version is there, with these tokens.
func (s Consents) Renew(ctx context.Context, c consent.Consent, by string, next consent.Consent, sealed []credential.Record) error {
	return s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		row, err := q.ConnectionLock(ctx, string(c.Org), string(c.Connection))
		if err != nil {
			return orAbsent(err, "connection")
		}
		if stored, err := isStored(ctx, q, row, sealed); stored || err != nil {
			return err
		}
		n, err := q.ConsentRenew(ctx, rows.ConsentRenewParams{
			IssuedAt: next.Issued, ExpiresAt: next.Expires, Renews: next.Renews, Granted: storableList(next.Granted), ConnectionID: row.ID, ID: c.ID, Version: c.Version, RenewingBy: by,
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Stale("The consent was given anew, or ended, in the meantime. Nothing was stored.")
		}
		return putCredential(ctx, q, row, sealed)
	})
}

// isStored reports whether these very records are the newest.
func isStored(ctx context.Context, q *rows.Queries, c rows.Connection, sealed []credential.Record) (bool, error) {
	now, err := q.CredentialCurrent(ctx, c.OrgID, c.Key)
	if err != nil || len(now) != len(sealed) {
		return false, err
	}
	for _, r := range now {
		if !containsSealed(sealed, r) {
			return false, nil
		}
	}
	return true, nil
}

func containsSealed(records []credential.Record, row rows.Credential) bool {
	for _, r := range records {
		if r.Field == row.Field && r.Version == row.Version && string(r.Sealed) == string(row.Sealed) {
			return true
		}
	}
	return false
}

// Release implements consent.Store.
func (s Consents) Release(ctx context.Context, c consent.Consent, by string) error {
	return s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		return rows.New(tx).ConsentRelease(ctx, rows.ConsentReleaseParams{OrgID: string(c.Org), Key: string(c.Connection), ID: c.ID, RenewingBy: by})
	})
}

// Lose implements consent.Store. The connection says why from now on; what waits for it waits.
func (s Consents) Lose(ctx context.Context, c consent.Consent, t consent.Trouble, e audit.Entry) error {
	return s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		row, err := q.ConnectionLock(ctx, string(c.Org), string(c.Connection))
		if err != nil {
			return orAbsent(err, "connection")
		}
		n, err := q.ConsentLose(ctx, rows.ConsentLoseParams{Lost: t.Word, ConnectionID: row.ID, ID: c.ID, Version: c.Version})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Stale("The consent was renewed in the meantime.")
		}
		if _, err := q.ConnectionLoseConsent(ctx, t.What, t.Next, row.ID); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// Refuse implements consent.Directory.
func (s Consents) Refuse(ctx context.Context, c consent.Consent, scopes []string, e audit.Entry) (news bool, err error) {
	if len(scopes) == 0 {
		scopes = []string{""}
	}
	err = s.inOrg(ctx, c.Org, func(tx pgx.Tx) error {
		n, err := rows.New(tx).ConsentRefuse(ctx, rows.ConsentRefuseParams{Refused: storableList(scopes), OrgID: string(c.Org), Key: string(c.Connection), ID: c.ID})
		if news = n == 1; !news || err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
	return news, err
}

// OfPerson implements consent.Directory.
func (s Consents) OfPerson(ctx context.Context, org identity.OrgID, person identity.PersonID) (out []consent.Consent, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ConsentOfPerson(ctx, string(org), string(person))
		for _, r := range found {
			out = append(out, consentOf(connector.Key(r.Key), r.Consent))
		}
		return err
	})
	return out, err
}

// Sharing implements consent.Directory.
func (s Consents) Sharing(ctx context.Context, c consent.Consent) (n int, err error) {
	err = s.readOrg(ctx, c.Org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ConsentSharing(ctx, rows.ConsentSharingParams{OrgID: string(c.Org), Key: string(c.Connection), ClientID: c.Client.ID, TokenUrl: c.Server.Token})
		n = int(found)
		return err
	})
	return n, err
}

func giveParams(connection string, c consent.Consent) rows.ConsentGiveParams {
	return rows.ConsentGiveParams{
		ConnectionID: connection, OrgID: string(c.Org), ID: c.ID, Issuer: c.Server.Issuer, AuthorizeUrl: c.Server.Authorize, TokenUrl: c.Server.Token,
		RevokeUrl: c.Server.Revoke, Resource: c.Server.Resource, ClientIdentity: string(c.Client.Identity), ClientID: c.Client.ID, ClientAuth: string(c.Client.Auth),
		Asked: listOf(c.Asked), Granted: storableList(c.Granted), PersonID: string(c.By), PersonName: storable(c.ByName), CredentialVersion: c.Version,
		IssuedAt: c.Issued, ExpiresAt: c.Expires, Renews: c.Renews,
	}
}

func consentOf(key connector.Key, r rows.Consent) consent.Consent {
	return consent.Consent{
		Place: credential.Place{Org: identity.OrgID(r.OrgID), Connection: key}, ID: r.ID,
		Server: consent.Server{Issuer: r.Issuer, Authorize: r.AuthorizeUrl, Token: r.TokenUrl, Revoke: r.RevokeUrl, Resource: r.Resource},
		Client: consent.Client{Identity: consent.Identity(r.ClientIdentity), ID: r.ClientID, Auth: manifest.TokenAuth(r.ClientAuth)},
		Asked:  r.Asked, Granted: r.Granted, By: identity.PersonID(r.PersonID), ByName: r.PersonName, At: r.GivenAt, Lost: r.Lost,
		Version: r.CredentialVersion, Issued: r.IssuedAt, Expires: r.ExpiresAt, Renews: r.Renews, Refused: r.Refused,
	}
}

// listOf is a list as PostgreSQL wants it: never NULL.
func listOf(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func storableList(s []string) []string {
	out := make([]string, len(s))
	for i := range s {
		out[i] = storable(s[i])
	}
	return out
}
