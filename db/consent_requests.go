package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/connector"
	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/manifest"
)

var _ consent.Requests = Consents{}

// Begin implements consent.Requests.
func (s Consents) Begin(ctx context.Context, q consent.Request) error {
	return s.inOrg(ctx, q.Org, func(tx pgx.Tx) error {
		r := rows.New(tx)
		c, err := r.ConnectionByKey(ctx, string(q.Org), string(q.Connection))
		if err != nil {
			return orAbsent(err, "connection")
		}
		if err := r.ConsentRequestForgetOver(ctx, string(q.Org)); err != nil {
			return err
		}
		secret := q.Secret
		if secret == nil {
			secret = []byte{}
		}
		return r.ConsentRequestInsert(ctx, rows.ConsentRequestInsertParams{
			State: q.State, OrgID: string(q.Org), ConnectionID: c.ID, ConnectionKey: c.Key, PersonID: string(q.By), Session: q.Session, Issuer: q.Server.Issuer,
			AuthorizeUrl: q.Server.Authorize, TokenUrl: q.Server.Token, RevokeUrl: q.Server.Revoke, Resource: q.Server.Resource, NamesIssue: q.NamesIssue,
			ClientIdentity: string(q.Client.Identity), ClientID: q.Client.ID, ClientAuth: string(q.Client.Auth), ClientSecret: secret, Verifier: q.Verifier,
			Asked: listOf(q.Asked), ExpiresAt: q.Expires,
		})
	})
}

// Take implements consent.Requests. What is taken stays taken, even where its time is over.
func (s Consents) Take(ctx context.Context, org identity.OrgID, state []byte) (out consent.Request, err error) {
	alive := false
	err = s.inOrg(ctx, org, func(tx pgx.Tx) error {
		r, err := rows.New(tx).ConsentRequestTake(ctx, string(org), state)
		if err != nil {
			return orNone(err)
		}
		alive = r.Alive
		out = consent.Request{
			Place: credential.Place{Org: org, Connection: connector.Key(r.ConnectionKey)}, State: r.State, By: identity.PersonID(r.PersonID), Session: r.Session,
			Server:     consent.Server{Issuer: r.Issuer, Authorize: r.AuthorizeUrl, Token: r.TokenUrl, Revoke: r.RevokeUrl, Resource: r.Resource},
			NamesIssue: r.NamesIssue, Client: consent.Client{Identity: consent.Identity(r.ClientIdentity), ID: r.ClientID, Auth: manifest.TokenAuth(r.ClientAuth)},
			Secret: r.ClientSecret, Verifier: r.Verifier, Asked: r.Asked, Expires: r.ExpiresAt,
		}
		return nil
	})
	if err == nil && !alive {
		err = consent.ErrNotStarted
	}
	return out, err
}
