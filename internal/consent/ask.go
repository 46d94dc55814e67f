package consent

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// Desk is where consents are asked for, received and given back.
type Desk struct {
	Ours        Ours
	Requests    Requests
	Store       Store
	Directory   Directory
	Connections Connections
	Manifests   Manifests
	Registry    registry.Table
	Keys        *secret.Keyset
	Log         *slog.Logger
}

// Wanted is one grant on the consent page.
type Wanted struct {
	manifest.Grant
	Given  bool // granted already, as far as scopes tell
	Chosen bool // asked for when the page is sent as it stands
}

// Ask is what our own consent page says before anything is asked.
type Ask struct {
	Connection installation.Connection
	Manifest   manifest.Manifest
	Auth       manifest.Auth
	Grants     []Wanted
	Before     *Consent // what there is now; nil: nothing
	Callback   string   // for a client that an admin makes
}

// Adds lists the scopes that sending the page would ask for beyond what there is.
func (a Ask) Adds() []string {
	var have []string
	if a.Before != nil {
		have = a.Before.Granted
	}
	return missing(scopesOf(a.Manifest, a.chosen()), have)
}

func (a Ask) chosen() (ids []string) {
	for _, w := range a.Grants {
		if w.Chosen {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// Prepare reads what a consent page shows. Besides what is always asked for, the grants given before and those of extra stand chosen.
// It asks nobody.
func (d *Desk) Prepare(ctx context.Context, org identity.OrgID, key connector.Key, extra []string) (Ask, error) {
	a, _, err := d.prepare(ctx, org, key)
	if err != nil {
		return Ask{}, err
	}
	for _, g := range a.Manifest.Grants {
		given := a.Before != nil && len(g.Scopes) > 0 && a.Before.Holds(g.Scopes)
		a.Grants = append(a.Grants, Wanted{Grant: g, Given: given && a.Before.Lost == "", Chosen: !g.Optional || given || slices.Contains(extra, g.ID)})
	}
	return a, nil
}

func (d *Desk) prepare(ctx context.Context, org identity.OrgID, key connector.Key) (Ask, []credential.Record, error) {
	c, err := d.Connections.Connection(ctx, org, key)
	if err != nil {
		return Ask{}, nil, err
	}
	if c.State == installation.Retired {
		return Ask{}, nil, fault.New(fault.Conflict, fault.CodeConflict, "This connection was retired and never changes again.", "Install a new one.")
	}
	m, err := d.Manifests.Manifest(ctx, c)
	if err != nil {
		return Ask{}, nil, err
	}
	auth, ok := m.Contract(manifest.OAuth2)
	if !ok || c.Contract != string(manifest.OAuth2) {
		return Ask{}, nil, fault.New(fault.Conflict, fault.CodeConflict, "This connection has no consent: it proves itself in another way.", "Renew its credential on its page.")
	}
	a := Ask{Connection: c, Manifest: m, Auth: auth, Callback: d.Ours.Callback()}
	held, records, err := d.Store.Held(ctx, placeOf(c))
	switch {
	case err == nil:
		a.Before = &held
	case !fault.Is(err, fault.CodeNotFound):
		return Ask{}, nil, err
	}
	return a, records, nil
}

func placeOf(c installation.Connection) credential.Place {
	return credential.Place{Org: c.Org, Connection: c.Key}
}

// Leave is what a person does on the consent page.
type Leave struct {
	Key     connector.Key
	Session []byte   // of the person's browser
	Chosen  []string // optional grants
	Entered Entered  // a client made at the vendor, where one was asked for
}

// Departure is where the person goes next.
type Departure struct {
	URL    string
	Origin string // where they will sign in
	Was    string // where they signed in last time, if that was elsewhere
	Asked  []string
}

// Start finds the authorization server, pins it, and answers where to send the person. Nothing of the present consent changes.
func (d *Desk) Start(ctx context.Context, by identity.Person, l Leave) (Departure, error) {
	a, records, err := d.prepare(ctx, by.Org, l.Key)
	if err != nil {
		return Departure{}, err
	}
	site, err := SiteOf(d.Registry, a.Connection)
	if err != nil {
		return Departure{}, err
	}
	if l.Entered.ID != "" && !plain(l.Entered.ID) || !l.Entered.Secret.IsZero() && !plain(l.Entered.Secret.Reveal()) {
		return Departure{}, fault.Field("client_id", "Client id and secret are single lines without spaces around them; copy each alone.")
	}
	found, err := site.Discover(ctx, a.Auth.OAuth)
	if err != nil {
		return Departure{}, err
	}
	client, key, err := d.Ours.client(ctx, site, found, a.Auth.OAuth, l.Entered, d.known(site, a.Before, records))
	if err != nil {
		return Departure{}, err
	}
	q := Request{
		Place: placeOf(a.Connection), By: by.ID, Session: l.Session, Server: found.Server, NamesIssue: found.NamesIssue, Client: client,
		Asked: asking(a, found, l.Chosen), Expires: time.Now().Add(Patience),
	}
	state, verifier := drawn(), secret.New(drawn())
	q.State = digestOf(state)
	if err := d.seal(&q, key, verifier); err != nil {
		return Departure{}, err
	}
	to, err := authorization(q, a.Auth.OAuth, state, verifier, d.Ours.Callback())
	if err != nil {
		return Departure{}, err
	}
	if err := d.Requests.Begin(ctx, q); err != nil {
		return Departure{}, err
	}
	out := Departure{URL: to, Origin: found.Origin(), Asked: q.Asked}
	if a.Before != nil && a.Before.Server.Origin() != out.Origin {
		out.Was = a.Before.Server.Origin()
	}
	return out, nil
}

// asking are the scopes of one request. What the vendor keeps from earlier consents is not asked for again; elsewhere a new consent
// replaces the old one, so all is. Where no grant names a scope, the service's own minimum is asked for.
func asking(a Ask, f Found, chosen []string) []string {
	scopes := scopesOf(a.Manifest, chosen)
	if len(scopes) == 0 {
		scopes = slices.Clone(f.Scopes)
	}
	if a.Before != nil && a.Auth.AddsScopes && a.Connection.State == installation.Active {
		if addition := missing(scopes, a.Before.Granted); len(addition) > 0 {
			scopes = addition
		}
	}
	scopes = append(scopes, missing(a.Auth.AlwaysScopes, scopes)...)
	if f.Offline {
		scopes = append(scopes, missing([]string{"offline_access"}, scopes)...)
	}
	return scopes
}

// known is the client of the present consent. One whose secret does not open, or that the server refused, is as good as none.
func (d *Desk) known(s Site, before *Consent, records []credential.Record) *knownClient {
	if before == nil || before.Lost == Unknown.Word && before.Client.Identity != Document {
		return nil // what the server no longer knows, it will not know when a person gets there either
	}
	k := &knownClient{Client: before.Client, server: before.Server}
	if before.Client.Auth == manifest.NoAuth {
		return k
	}
	at, err := s.tokenPlace(before.Server)
	if err != nil {
		return nil
	}
	values, err := credential.Open(d.Keys, before.Place, only(records, secretField), at)
	if err != nil {
		return nil
	}
	k.secret = values[secretField]
	return k
}

func only(records []credential.Record, fields ...string) (out []credential.Record) {
	for _, r := range records {
		if slices.Contains(fields, r.Field) {
			out = append(out, r)
		}
	}
	return out
}

// What is sealed in a request is bound to the state it belongs to.
func (q Request) binding(field string) secret.Binding {
	return secret.Binding{Org: string(q.Org), Connection: string(q.Connection), Field: field + " of " + hexOf(q.State), Origin: originOf(q.Server.Token), Version: 1}
}

func (d *Desk) seal(q *Request, key, verifier secret.Value) error {
	sealed, err := d.Keys.Seal(verifier, q.binding("verifier"))
	if err != nil {
		return err
	}
	q.Verifier = sealed
	if key.IsZero() {
		return nil
	}
	if sealed, err = d.Keys.Seal(key, q.binding(secretField)); err == nil {
		q.Secret = sealed
	}
	return err
}

func (d *Desk) open(q Request) (key, verifier secret.Value, err error) {
	if verifier, err = d.Keys.Open(q.Verifier, q.binding("verifier")); err != nil {
		return key, verifier, err
	}
	if len(q.Secret) > 0 {
		key, err = d.Keys.Open(q.Secret, q.binding(secretField))
	}
	return key, verifier, err
}

// sealTokens makes the records of one version: each secret for the one origin it may be sent to.
func sealTokens(keys *secret.Keyset, p credential.Place, version int64, t tokens, key secret.Value, mcp, token egress.Destination) ([]credential.Record, error) {
	records, err := credential.Seal(keys, p, version, map[string]secret.Value{accessField: t.access}, mcp)
	if err != nil {
		return nil, err
	}
	rest := map[string]secret.Value{}
	if !t.refresh.IsZero() {
		rest[refreshField] = t.refresh
	}
	if !key.IsZero() {
		rest[secretField] = key
	}
	more, err := credential.Seal(keys, p, version, rest, token)
	return append(records, more...), err
}
