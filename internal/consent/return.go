package consent

import (
	"context"
	"errors"

	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// Return says how giving a consent back ended.
type Return string

// The ends. Each but the first leaves something for a person to do at the vendor.
const (
	Nothing    Return = ""             // there was no consent
	Given      Return = "given back"   // the service confirmed
	Shared     Return = "shared"       // revoking would end other connections with it, so it was not done
	Impossible Return = "impossible"   // the service offers no revocation
	Unclear    Return = "not answered" // it was asked and did not confirm
)

// Goodbye is a consent that is about to be forgotten here, with what giving it back needs.
type Goodbye struct {
	Consent *Consent // nil: there was none
	Manage  string   // the vendor's page where a person ends it

	site   Site
	oauth  manifest.OAuth
	key    secret.Value
	tokens map[string]secret.Value
}

// Farewell opens what Return will need, before the connection forgets it. It changes nothing, and a consent that does not open is no
// reason to keep a connection.
func (d *Desk) Farewell(ctx context.Context, org identity.OrgID, key connector.Key) (Goodbye, error) {
	a, records, err := d.prepare(ctx, org, key)
	switch {
	case fault.Is(err, fault.CodeConflict):
		return Goodbye{}, nil
	case err != nil:
		return Goodbye{}, err
	case a.Before == nil:
		return Goodbye{Manage: a.Auth.Manage}, nil
	}
	g := Goodbye{Consent: a.Before, Manage: a.Auth.Manage, oauth: a.Auth.OAuth, tokens: map[string]secret.Value{}}
	if g.site, err = SiteOf(d.Registry, registry.Key(a.Connection.Runtime)); err != nil {
		return g, nil
	}
	at, err := g.site.tokenPlace(a.Before.Server)
	if err != nil {
		return g, nil
	}
	if held, err := credential.Open(d.Keys, a.Before.Place, only(records, refreshField, secretField), at); err == nil {
		g.key = held[secretField]
		g.tokens[refreshField] = held[refreshField]
	}
	if held, err := credential.Open(d.Keys, a.Before.Place, only(records, accessField), g.site.MCP); err == nil {
		g.tokens[accessField] = held[accessField]
	}
	return g, nil
}

// Return gives a consent back to the service. The connection has forgotten it already: what goes wrong here is for a person to end at
// the vendor, and never a reason to have kept it.
func (d *Desk) Return(ctx context.Context, g Goodbye) (Return, error) {
	switch {
	case g.Consent == nil:
		return Nothing, nil
	case g.Consent.Server.Revoke == "" || g.oauth.Revocation == manifest.NoRevocation:
		return Impossible, nil
	}
	if g.oauth.Revocation == manifest.RevokesGrant && g.Consent.Client.Identity != Dynamic {
		switch n, err := d.Directory.Sharing(ctx, *g.Consent); {
		case err != nil:
			return Unclear, err
		case n > 0:
			return Shared, nil
		}
	}
	var failed error
	asked := false
	for _, field := range []string{refreshField, accessField} { // the refresh token first: most servers end the access token with it
		if token := g.tokens[field]; !token.IsZero() {
			asked = true
			failed = errors.Join(failed, g.site.revoke(ctx, g.Consent.Server, g.Consent.Client, g.key, token, field))
		}
	}
	if !asked || failed != nil {
		d.Log.WarnContext(ctx, "a consent was not confirmed as given back", "connection", g.Consent.Connection, "error", failed)
		return Unclear, nil
	}
	return Given, nil
}
