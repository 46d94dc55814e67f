package consent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"countersign/internal/audit"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// The renewal of one consent, over all replicas.
const (
	dueBefore   = 90 * time.Second // an access token is renewed this long before it ends: longer than a claimed action may take to be sent
	renewLease  = time.Minute      // how long one renewal may take, until what it was given is stored
	pollPause   = 100 * time.Millisecond
	recordPause = 50 * time.Millisecond
)

// Keeper keeps consents fresh.
type Keeper struct {
	Store     Store
	Directory Directory
	Registry  registry.Table
	Keys      *secret.Keyset
	Log       *slog.Logger
}

// Hold opens what authorises requests of a connection, as the newest consent has it.
func (k *Keeper) Hold(ctx context.Context, c installation.Connection, o manifest.OAuth) (*Held, error) {
	site, err := SiteOf(k.Registry, c)
	if err != nil {
		return nil, err
	}
	h := &Held{keeper: k, place: placeOf(c), site: site, oauth: o}
	return h, h.load(ctx)
}

// pinned reports whether the authorization server is still where it was when a person consented. A registry or an operator's file that
// names another since then is a change that a person has to see.
func (s Site) pinned(server Server) bool {
	for role, raw := range map[registry.Role]string{registry.Issuer: server.Issuer, registry.Authorize: server.Authorize, registry.Token: server.Token} {
		if now := s.fixed(role); now != "" && now != raw {
			return false
		}
	}
	_, err := s.tokenPlace(server)
	return err == nil
}

// renewed is one renewal that is under way in this process.
type renewed struct {
	done chan struct{}
	err  error
}

// renew makes sure that a newer version than that of c is there, or that c is lost. It answers nil then, whoever did it. Only one caller
// of this process is here at a time for one connection; the lease in the database is everybody's.
func (k *Keeper) renew(ctx context.Context, h *Held, c Consent) error {
	by := identity.NewID("rnw_")
	for {
		claimed, over, err := k.Store.Claim(ctx, c, by, renewLease)
		switch {
		case err != nil:
			return err
		case over:
			return nil
		case claimed:
			return k.exchange(context.WithoutCancel(ctx), h, c, by, time.Now().Add(renewLease))
		}
		select { // another replica is at it; what it was given will be there soon, or its lease ends
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPause):
		}
	}
}

// exchange sends the refresh token once. From then on nobody hanging up stops it: what is given must be stored.
func (k *Keeper) exchange(ctx context.Context, h *Held, c Consent, by string, until time.Time) error {
	if !h.site.pinned(c.Server) {
		return k.lose(ctx, c, Moved)
	}
	held, records, err := k.Store.Held(ctx, c.Place)
	if err != nil {
		return errors.Join(err, k.Store.Release(ctx, c, by))
	}
	if held.ID != c.ID || held.Version != c.Version {
		return nil // a person consented again since; their tokens are not ours to send
	}
	at, err := h.site.tokenPlace(c.Server)
	if err != nil {
		return k.lose(ctx, c, Moved)
	}
	values, err := credential.Open(k.Keys, c.Place, only(records, refreshField, secretField), at)
	if err != nil {
		return errors.Join(err, k.Store.Release(ctx, c, by))
	}
	t, err := h.site.exchangeRefresh(ctx, c, h.oauth, values[secretField], values[refreshField])
	if err != nil {
		return k.failed(ctx, c, by, err)
	}
	if t.refresh.IsZero() {
		t.refresh = values[refreshField] // the server does not rotate
	}
	return k.record(ctx, h, c, by, t, values[secretField], until)
}

// failed tells a consent that is over from a server that is not well. The lease is given back: asking again is the next call's.
func (k *Keeper) failed(ctx context.Context, c Consent, by string, err error) error {
	var r *refusal
	switch {
	case !errors.As(err, &r) || r.later():
		k.Log.WarnContext(ctx, "a consent is not renewed yet", "connection", c.Connection, "error", err)
		return errors.Join(unrenewed(err), k.Store.Release(ctx, c, by))
	case r.ended():
		return k.lose(ctx, c, Revoked)
	case r.client():
		return k.lose(ctx, c, Unknown)
	}
	k.Log.WarnContext(ctx, "a consent is refused renewal", "connection", c.Connection, "answer", r.code)
	return k.lose(ctx, c, Refused)
}

// record stores what was given. The old refresh token is consumed, so this is the only copy of the new one: it tries until the lease
// ends, and never asks the server again.
func (k *Keeper) record(ctx context.Context, h *Held, c Consent, by string, t tokens, key secret.Value, until time.Time) error {
	next := c
	next.Version, next.Issued, next.Expires, next.Renews = c.Version+1, time.Now(), t.expires, true
	if t.named {
		next.Granted = t.scopes
	}
	at, err := h.site.tokenPlace(c.Server)
	if err != nil {
		return err
	}
	sealed, err := sealTokens(k.Keys, c.Place, next.Version, t, key, h.site.MCP, at)
	if err != nil {
		return err
	}
	for wait := recordPause; ; wait = min(2*wait, time.Second) {
		err := k.Store.Renew(ctx, c, by, next, sealed)
		if fault.Is(err, fault.CodeStale) { // a person consented anew or ended it; what is there now is what counts
			return nil
		}
		if err == nil || !unavailable(err) || time.Now().Add(wait).After(until) {
			return err
		}
		k.Log.WarnContext(ctx, "a renewed consent is not stored yet", "connection", c.Connection, "error", err)
		time.Sleep(wait)
	}
}

func unavailable(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Kind == fault.Unavailable
}

// lose records that a consent is over and answers the fault that calls get from now on. Who comes second finds a newer version, and
// loses nothing.
func (k *Keeper) lose(ctx context.Context, c Consent, t Trouble) error {
	err := k.Store.Lose(ctx, c, t, t.entry(c))
	if fault.Is(err, fault.CodeStale) {
		return nil
	}
	return errors.Join(t.Fault(), err)
}

func unrenewed(cause error) *fault.Error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The consent of this connection could not be renewed just now.", "Try again in a moment.").Wrap(cause)
}

// refused notes that a service asks for more than was consented to. Nothing is asked again because of it: a person has to allow more.
func (k *Keeper) refused(ctx context.Context, c Consent, scopes []string) error {
	facts := []audit.Fact{}
	for _, s := range scopes {
		facts = append(facts, audit.Fact{Name: "scope", Value: s})
	}
	_, err := k.Directory.Refuse(ctx, c, scopes, audit.Entry{
		Org: c.Org, Actor: audit.System("consent"), Event: audit.ScopeRefused, Object: audit.Object{Kind: "connection", ID: c.Connection.String()}, Facts: facts,
	})
	return err
}
