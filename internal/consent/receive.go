package consent

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/secret"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// Received is what came of a consent.
type Received struct {
	Key       connector.Key
	Withheld  []string         // scopes that were asked for and not granted
	Without   []manifest.Grant // grants that were asked for and are not whole
	Unrenewed bool             // the service gave nothing to renew the access with, and says when it ends
}

// Receive takes an answer at the callback. The answer is worth nothing to anybody else, in any other browser, later, or twice. With an
// error, Key is set where the answer belonged to a consent at all.
func (d *Desk) Receive(ctx context.Context, by identity.Person, session []byte, a Answer) (Received, error) {
	if a.State == "" || len(a.State) > 200 {
		return Received{}, ErrNotStarted
	}
	q, err := d.Requests.Take(ctx, by.Org, digestOf(a.State))
	if err != nil {
		return Received{}, err
	}
	if q.By != by.ID || !bytes.Equal(q.Session, session) {
		return Received{}, ErrOtherPerson
	}
	out := Received{Key: q.Connection}
	if err := q.judge(a); err != nil {
		return out, err
	}
	ask, records, err := d.prepare(ctx, by.Org, q.Connection)
	if err != nil {
		return out, err
	}
	given, err := d.give(ctx, by, ask, records, q, a.Code)
	if err != nil {
		return out, err
	}
	wanted := append(append([]string{}, q.Asked...), grantedBefore(ask)...)
	out.Withheld = missing(q.Asked, given.Granted)
	for _, g := range ask.Manifest.Grants {
		if len(g.Scopes) > 0 && len(missing(g.Scopes, wanted)) == 0 && !given.Holds(g.Scopes) {
			out.Without = append(out.Without, g)
		}
	}
	out.Unrenewed = !given.Renews && given.Expires != nil
	return out, nil
}

func grantedBefore(a Ask) []string {
	if a.Before == nil || !a.Auth.AddsScopes {
		return nil
	}
	return a.Before.Granted
}

// give trades the code and stores what it brought.
func (d *Desk) give(ctx context.Context, by identity.Person, ask Ask, records []credential.Record, q Request, code string) (Consent, error) {
	site, err := SiteOf(d.Registry, ask.Connection)
	if err != nil {
		return Consent{}, err
	}
	at, err := site.tokenPlace(q.Server)
	if err != nil {
		return Consent{}, undiscovered("The authorization server is at an address that is no longer allowed.", err)
	}
	key, verifier, err := d.open(q)
	if err != nil {
		return Consent{}, ErrNotStarted.Wrap(err)
	}
	t, err := site.exchangeCode(ctx, q, ask.Auth.OAuth, key, verifier, code, d.Ours.Callback())
	if err != nil {
		return Consent{}, exchangeFault(err)
	}
	c := Consent{
		Place: q.Place, ID: identity.NewID("cns_"), Server: q.Server, Client: q.Client, Asked: q.Asked, Granted: t.scopes, By: by.ID, ByName: by.Display(),
		Version: newest(records) + 1, Issued: time.Now(), Expires: t.expires, Renews: !t.refresh.IsZero(),
	}
	if !t.named { // RFC 6749: not named means as asked for
		c.Granted = append(missing(grantedBefore(ask), q.Asked), q.Asked...)
	}
	e := audit.Entry{
		Org: by.Org, Actor: audit.Person(by), Event: audit.ConsentGiven, Object: audit.Object{Kind: "connection", ID: c.Connection.String()},
		Facts: []audit.Fact{{Name: "server", Value: c.Server.Origin()}, {Name: "client", Value: string(c.Client.Identity)}, {Name: "scopes", Value: strings.Join(c.Granted, " ")}},
	}
	for range 3 { // the code is spent, so a renewal that came in between must not cost the consent
		sealed, err := sealTokens(d.Keys, c.Place, c.Version, t, key, site.MCP, at)
		if err != nil {
			return Consent{}, err
		}
		err = d.Store.Give(ctx, c, sealed, e)
		if fault.Is(err, fault.CodeConflict) { // it was retired while the service was asked: nobody will ever use what the service just gave
			return c, d.handBack(ctx, goodbye{
				consent: &c, manage: ask.Auth.Manage, site: site, oauth: ask.Auth.OAuth, key: key,
				tokens: map[string]secret.Value{refreshField: t.refresh, accessField: t.access},
			}, err)
		}
		if !fault.Is(err, fault.CodeStale) {
			return c, err
		}
		if _, records, err = d.Store.Held(ctx, c.Place); err != nil && !fault.Is(err, fault.CodeNotFound) { // none: the next turn says why
			return Consent{}, err
		}
		c.Version = newest(records) + 1
	}
	return Consent{}, fault.Stale("The consent of this connection is being renewed again and again. Nothing was stored.")
}

func newest(records []credential.Record) int64 {
	if len(records) == 0 {
		return 0
	}
	return records[0].Version
}

// exchangeFault says why a code brought no tokens.
func exchangeFault(err error) error {
	var r *refusal
	switch {
	case errors.As(err, &r) && r.client():
		return fault.New(fault.Invalid, fault.CodeInvalid, "The service does not accept this client or its secret.",
			"Nothing was stored. Check id and secret of the client at the vendor, then start again.").Wrap(err)
	case errors.As(err, &r) && r.ended():
		return fault.New(fault.Invalid, fault.CodeInvalid, "The service no longer accepts the code that it gave.", "Nothing was stored. Start again.").Wrap(err)
	case errors.As(err, &r):
		return declined(r.code)
	}
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The service gave a code, but no usable tokens for it.", "Nothing was stored. Start again; if it stays, tell the vendor.").Wrap(err)
}
