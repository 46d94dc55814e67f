package consent

import (
	"context"
	"errors"
	"time"

	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
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

// goodbye is a consent that is about to be forgotten here, with what giving it back needs.
type goodbye struct {
	consent *Consent // nil: there was none
	manage  string

	site   Site
	oauth  manifest.OAuth
	key    secret.Value
	tokens map[string]secret.Value
}

// Ended is what became of the consent of a connection that was ended.
type Ended struct {
	Return Return
	Manage string // the vendor's page where a person can end it
}

// Sentence says it, with a space before; empty where there was no consent.
func (e Ended) Sentence() string {
	where := ""
	if e.Manage != "" {
		where = " A person can end it at " + e.Manage + "."
	}
	switch e.Return {
	case Given:
		return " The service confirmed that the consent is given back."
	case Shared:
		return " The consent was not given back at the service, because other connections of the same client would end with it." + where
	case Impossible:
		return " The service offers no way to give the consent back." + where
	case Unclear:
		return " The service did not confirm that the consent is given back." + where
	}
	return ""
}

// returnPatience is how long a person waits for a service to take its consent back.
const returnPatience = 15 * time.Second

// End ends a connection by end and then gives its consent back. What can no longer be opened afterwards is opened before, and what the
// service says changes nothing of the end.
func (d *Desk) End(ctx context.Context, org identity.OrgID, key connector.Key, end func() error) (Ended, error) {
	g, err := d.farewell(ctx, org, key)
	if err != nil {
		return Ended{}, err
	}
	if err := end(); err != nil {
		return Ended{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnPatience)
	defer cancel()
	return Ended{Return: d.giveBack(ctx, g), Manage: g.manage}, nil
}

// farewell opens what giving back will need, before the connection forgets it. It changes nothing, and a consent that does not open is no
// reason to keep a connection.
func (d *Desk) farewell(ctx context.Context, org identity.OrgID, key connector.Key) (goodbye, error) {
	a, records, err := d.prepare(ctx, org, key)
	switch {
	case fault.Is(err, fault.CodeConflict):
		return goodbye{}, nil
	case err != nil:
		return goodbye{}, err
	case a.Before == nil:
		return goodbye{manage: a.Auth.Manage}, nil
	}
	g := goodbye{consent: a.Before, manage: a.Auth.Manage, oauth: a.Auth.OAuth, tokens: map[string]secret.Value{}}
	if g.site, err = siteNow(d.Registry, a.Connection); err != nil {
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

// handBack gives back what could not be kept, and has the refusal say what became of it.
func (d *Desk) handBack(ctx context.Context, g goodbye, refused error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnPatience)
	defer cancel()
	f, ok := fault.As(refused)
	if !ok {
		return refused
	}
	became := Ended{Return: d.giveBack(ctx, g), Manage: g.manage}
	return fault.New(f.Kind, f.Code, f.What, f.Next+became.Sentence()).Wrap(refused)
}

// giveBack returns a consent to the service. The connection has forgotten it already: what goes wrong here is for a person to end at the
// vendor, and never a reason to have kept it.
func (d *Desk) giveBack(ctx context.Context, g goodbye) Return {
	switch {
	case g.consent == nil:
		return Nothing
	case g.consent.Server.Revoke == "" || g.oauth.Revocation == manifest.NoRevocation:
		return Impossible
	}
	if g.oauth.Revocation == manifest.RevokesGrant && g.consent.Client.Identity != Dynamic {
		switch n, err := d.Directory.Sharing(ctx, *g.consent); {
		case err != nil:
			return Unclear
		case n > 0:
			return Shared
		}
	}
	var failed error
	asked := false
	for _, field := range []string{refreshField, accessField} { // the refresh token first: most servers end the access token with it
		if token := g.tokens[field]; !token.IsZero() {
			asked = true
			failed = errors.Join(failed, g.site.revoke(ctx, g.consent.Server, g.consent.Client, g.key, token, field))
		}
	}
	if !asked || failed != nil {
		d.Log.WarnContext(ctx, "a consent was not confirmed as given back", "connection", g.consent.Connection, "error", failed)
		return Unclear
	}
	return Given
}
