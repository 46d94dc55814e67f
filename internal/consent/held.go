package consent

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/manifest"
)

// Held authorises requests of one connection with the newest access token there is. It implements egress.Editor; whoever keeps a
// session with the service over it keeps that session when the token changes.
type Held struct {
	keeper *Keeper
	place  credential.Place
	site   Site
	oauth  manifest.OAuth

	now    atomic.Pointer[issued]
	mu     sync.Mutex
	flight *renewed
}

// issued is one version of the access token. Answers to requests of the version before may still arrive, so both are kept out of them.
type issued struct {
	consent    Consent
	authorizer *credential.Authorizer
	before     *credential.Authorizer
}

var _ egress.Editor = (*Held)(nil)

// Edit implements egress.Editor.
func (h *Held) Edit(r *http.Request) error { return h.now.Load().authorizer.Edit(r) }

// Body implements egress.Editor.
func (h *Held) Body(body io.Reader) io.Reader {
	i := h.now.Load()
	if i.before != nil {
		body = i.before.Body(body)
	}
	return i.authorizer.Body(body)
}

// Header implements egress.Editor.
func (h *Held) Header(header http.Header) {
	i := h.now.Load()
	if i.before != nil {
		i.before.Header(header)
	}
	i.authorizer.Header(header)
}

// Version is that of the token the next request is sent with.
func (h *Held) Version() int64 { return h.now.Load().consent.Version }

// Granted are the scopes as granted.
func (h *Held) Granted() []string { return h.now.Load().consent.Granted }

// load reads the newest consent.
func (h *Held) load(ctx context.Context) error {
	c, records, err := h.keeper.Store.Held(ctx, h.place)
	switch {
	case fault.Is(err, fault.CodeNotFound):
		return errNone
	case err != nil:
		return err
	case c.Lost != "":
		return troubleOf(c.Lost).Fault()
	}
	was := h.now.Load()
	if was != nil && was.consent.ID == c.ID && was.consent.Version == c.Version {
		return nil
	}
	values, err := credential.Open(h.keeper.Keys, h.place, only(records, accessField), h.site.MCP)
	if err != nil {
		return err
	}
	a, err := credential.Bind(bearerContract, values, h.site.MCP, h.site.also...)
	if err != nil {
		return err
	}
	i := &issued{consent: c, authorizer: a}
	if was != nil {
		i.before = was.authorizer
	}
	h.now.Store(i)
	return nil
}

var errNone = fault.New(fault.Unavailable, fault.NeedsConsent, "Nobody has consented to this connection yet.", "An admin can sign in at the service from the connection's page.")

// bearerContract puts an access token where the standard has it.
var bearerContract = func() credential.Contract {
	c, err := credential.NewContract(credential.Header{Field: accessField, Name: "Authorization", Format: "Bearer {secret}"})
	if err != nil {
		panic(err)
	}
	return c
}()

// Ready makes sure that a request sent now is sent with a token that lasts. While the old one still does, a renewal that fails for now
// is no error.
func (h *Held) Ready(ctx context.Context) error {
	c := h.now.Load().consent
	left, known := c.left()
	switch {
	case !known || left > c.due():
		return nil
	case !c.Renews && left > 0:
		return nil
	case !c.Renews:
		return h.over(ctx, c, Expired)
	}
	err := h.newer(ctx, c)
	if err != nil && left > 0 && !fault.Is(err, fault.NeedsConsent) {
		return nil
	}
	return err
}

// Again is asked after the service refused the token of a version. It answers nil when there is another one to try, once; a token that
// was just renewed and is refused too means that the consent is over.
func (h *Held) Again(ctx context.Context, version int64) error {
	c := h.now.Load().consent
	if c.Version != version {
		return nil
	}
	if c.Renews {
		return h.newer(ctx, c)
	}
	if err := h.load(ctx); err != nil || h.Version() != version {
		return err
	}
	return h.over(ctx, c, Revoked)
}

// Over says that even the newest token is refused.
func (h *Held) Over(ctx context.Context, version int64) error {
	if c := h.now.Load().consent; c.Version == version {
		return h.over(ctx, c, Revoked)
	}
	return nil
}

func (h *Held) over(ctx context.Context, c Consent, t Trouble) error {
	if err := h.keeper.lose(context.WithoutCancel(ctx), c, t); err != nil {
		return err
	}
	return h.load(ctx) // somebody consented in the meantime
}

// Lacks notes that the service asks for more than was consented to.
func (h *Held) Lacks(ctx context.Context, scopes []string) error {
	return h.keeper.refused(ctx, h.now.Load().consent, scopes)
}

// newer waits until a newer version than that of c is held, renewing it where nobody does. Those who wait together share one renewal,
// and each may give up without ending it.
func (h *Held) newer(ctx context.Context, c Consent) error {
	h.mu.Lock()
	if h.Version() != c.Version {
		h.mu.Unlock()
		return nil
	}
	f := h.flight
	if f == nil {
		f = &renewed{done: make(chan struct{})}
		h.flight = f
		go h.fly(context.WithoutCancel(ctx), f, c)
	}
	h.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Held) fly(ctx context.Context, f *renewed, c Consent) {
	ctx, cancel := context.WithTimeout(ctx, 2*renewLease)
	defer cancel()
	f.err = h.keeper.renew(ctx, h, c)
	if f.err == nil {
		f.err = h.load(ctx)
	}
	h.mu.Lock()
	h.flight = nil
	h.mu.Unlock()
	close(f.done)
}

// left is how long the access token lasts, and whether anybody said so.
func (c Consent) left() (time.Duration, bool) {
	if c.Expires == nil {
		return 0, false
	}
	return time.Until(*c.Expires), true
}

// due is how long before its end a token is renewed: short-lived ones later, so that they are used at all.
func (c Consent) due() time.Duration {
	if lifetime := c.Expires.Sub(c.Issued); !c.Issued.IsZero() && lifetime > 0 && lifetime < 4*dueBefore {
		return lifetime / 4
	}
	return dueBefore
}
