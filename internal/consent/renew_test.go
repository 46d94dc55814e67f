package consent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/audit"
	"countersign/internal/consent"
	"countersign/internal/consent/consenttest"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/provider"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// expired ends the access token, here and there, as an hour would.
func (w *world) expired() {
	w.Helper()
	w.server.Expire()
	w.sql("UPDATE consents SET expires_at = clock_timestamp() - interval '1 second', issued_at = clock_timestamp() - interval '1 hour'")
}

// Every replica finds the token expired at once, with many calls each. The server would end the whole consent at the second use of
// one refresh token.
func TestReplicasRenewOnce(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	replicas := []*replica{w.first, w.replica(), w.replica()}
	for round := range 3 {
		for _, r := range replicas {
			w.must(w.read(r)) // each holds the present token
		}
		w.expired()
		for _, r := range replicas[1:] {
			r.lines.Close() // some learn of the end from the database, and the first from the refusal of the service
		}
		var all sync.WaitGroup
		for _, r := range replicas {
			for range 15 {
				all.Go(func() {
					if err := w.read(r); err != nil {
						t.Errorf("a call fails while others renew: %v", err)
					}
				})
			}
		}
		all.Wait()
		if n := len(w.server.Journal("refresh")); n != round+1 {
			t.Fatalf("after %d ends the consent was renewed %d times", round+1, n)
		}
	}
	if n := len(w.server.Journal("reuse")); n != 0 {
		t.Errorf("a consumed refresh token was sent %d times", n)
	}
	if held := w.held(); held.Version != 4 || held.Lost != "" {
		t.Errorf("%+v", held)
	}
}

// What the server answered may be the only copy of the new token: it is stored however often that takes, and never asked for again.
func TestARenewalIsStoredAlthoughTheDatabaseWasAway(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	store := &faltering{Store: w.first.desk.Store, times: 3}
	k := &consent.Keeper{Store: store, Directory: w.first.desk.Directory, Registry: w.table, Keys: w.keys, Log: w.first.desk.Log}
	w.first.lines.Keeping(k)
	w.expired()
	w.must(w.read(w.first))
	if store.tried != 4 || len(w.server.Journal("refresh")) != 1 {
		t.Errorf("stored at try %d after %d renewals", store.tried, len(w.server.Journal("refresh")))
	}
	// And one whose COMMIT went through although its answer was lost is found to be there.
	store.times, store.tried, store.after = 1, 0, true
	w.expired()
	w.first.lines.Close()
	w.must(w.read(w.first))
	if store.tried != 2 || len(w.server.Journal("refresh")) != 2 || len(w.server.Journal("reuse")) != 0 {
		t.Errorf("stored at try %d after %d renewals", store.tried, len(w.server.Journal("refresh")))
	}
	w.expired()
	w.must(w.read(w.replica())) // what was stored works
}

// faltering is a store whose answers to Renew are lost a few times, before or after it did its work.
type faltering struct {
	consent.Store
	times, tried int
	after        bool
}

func (s *faltering) Renew(ctx context.Context, c consent.Consent, by string, next consent.Consent, sealed []credential.Record) error {
	s.tried++
	away := fault.New(fault.Unavailable, fault.CodeUnavailable, "The database is away.", "")
	if s.tried > s.times {
		return s.Store.Renew(ctx, c, by, next, sealed)
	}
	if s.after {
		return errors.Join(away, s.Store.Renew(ctx, c, by, next, sealed))
	}
	return away
}

// A replica that died after it sent a refresh token leaves its lease. Until that ends nobody else sends the token.
func TestALeaseKeepsTheOthersWaiting(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	claimed, over, err := w.first.desk.Store.Claim(t.Context(), w.held(), "rnw_dead", time.Hour)
	if !claimed || over || err != nil {
		t.Fatalf("%t %t %v", claimed, over, err)
	}
	w.expired()
	done := make(chan error, 1)
	go func() { done <- w.read(w.first) }()
	second, over, err := w.first.desk.Store.Claim(t.Context(), w.held(), "rnw_other", time.Hour)
	if second || over || err != nil {
		t.Errorf("a lease is given twice: %t %t %v", second, over, err)
	}
	if n := len(w.server.Journal("refresh")); n != 0 {
		t.Errorf("the token was sent %d times during the lease", n)
	}
	w.sql("UPDATE consents SET renewing_until = clock_timestamp()")
	w.must(<-done)
	if n := len(w.server.Journal("refresh")); n != 1 {
		t.Errorf("after the lease it was sent %d times", n)
	}
}

func TestWhatEndsAConsentIsSaidOnce(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world)
		what string
	}{
		"revoked while the token lasts": {func(w *world) { w.server.RevokeAll() }, "no longer accepts the consent"},
		"revoked, and expired":          {func(w *world) { w.server.RevokeAll(); w.expired() }, "no longer accepts the consent"},
		"the client is gone":            {func(w *world) { w.server.Forget(w.held().Client.ID); w.expired() }, "no longer knows the client"},
		"the server has moved": {func(w *world) {
			w.expired()
			w.sql("UPDATE consents SET id = 'cns_moved', token_url = 'http://127.0.0.1:1/token'")
		}, "at another address"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.consents()
			w.must(w.read(w.first))
			c.end(w)
			w.first.lines.Close()
			if err := w.read(w.first); !fault.Is(err, fault.NeedsConsent) || !strings.Contains(err.Error(), c.what) {
				t.Errorf("the call is answered %v, want %q", err, c.what)
			}
			got := w.connection()
			if got.State != installation.NeedsConsent || got.Health.OK || !strings.Contains(got.Health.What, c.what) || !strings.Contains(got.Health.Next, "tools, mode and key stay") {
				t.Errorf("the page says %s: %s %s", got.State, got.Health.What, got.Health.Next)
			}
			asked := len(w.server.Journal(""))
			for range 3 {
				if err := w.read(w.first); !fault.Is(err, fault.NeedsConsent) {
					t.Errorf("a later call is answered %v", err)
				}
			}
			if n := len(w.server.Journal("")); n != asked {
				t.Error("a consent that is over is asked about again and again")
			}
			w.consents()
			w.must(w.read(w.first))
			if again := w.connection(); again.State != installation.Active || again.Key != got.Key {
				t.Errorf("after signing in again it is %s", again.State)
			}
		})
	}
}

// A client that an admin made, and that the vendor no longer knows, is asked for again: with the old one a person would end up at a page
// of the vendor's that says no.
func TestAClientThatIsGoneIsAskedForAgain(t *testing.T) {
	w := newWorld(t, "client = \"registered\"\nclient_steps = [\"Enter {redirect_uri} there.\"]")
	w.server.Rule(func(r *consenttest.Rules) { r.Known = map[string]string{"ours": "key", "next": "key"} })
	d := w.leave(consent.Leave{Entered: consent.Entered{ID: "ours", Secret: secret.New("key")}})
	_, err := w.receive(w.visit(d.URL))
	w.must(err)
	w.server.Forget("ours")
	w.expired()
	if err := w.read(w.first); !fault.Is(err, fault.NeedsConsent) {
		t.Errorf("the call is answered %v", err)
	}
	if _, err := w.first.desk.Start(t.Context(), w.owner, consent.Leave{Key: keyOf(w.key), Session: w.session}); !errors.Is(err, consent.ErrNoClient) {
		t.Errorf("starting again answers %v", err)
	}
	d = w.leave(consent.Leave{Entered: consent.Entered{ID: "next", Secret: secret.New("key")}})
	_, err = w.receive(w.visit(d.URL))
	w.must(err)
	w.must(w.read(w.first))
}

// An authorization server that the registry moved since is not asked with the old tokens: a person has to see it first.
func TestAServerThatTheRegistryMoved(t *testing.T) {
	w := newWorldOf(t, "asana.v1", "client = \"registered\"\nclient_steps = [\"Enter {redirect_uri} there.\"]")
	w.server.Rule(func(r *consenttest.Rules) { r.Known = map[string]string{"ours": "key"} })
	d := w.leave(consent.Leave{Entered: consent.Entered{ID: "ours", Secret: secret.New("key")}})
	_, err := w.receive(w.visit(d.URL))
	w.must(err)
	w.expired()
	w.must(w.read(w.first))
	w.expired()
	w.table = w.moved("asana.v1", map[registry.Role]string{
		registry.MCP: w.server.MCP(), registry.Authorize: w.server.URL + "/authorize", registry.Token: w.server.URL + "/elsewhere/token", registry.Revoke: w.server.URL + "/revoke",
	})
	if err := w.read(w.replica()); !fault.Is(err, fault.NeedsConsent) || !strings.Contains(err.Error(), "at another address") {
		t.Errorf("got %v", err)
	}
	if n := len(w.server.Journal("refresh")); n != 1 {
		t.Errorf("tokens were sent to the new address, or again: %d", n)
	}
}

// A service that refuses even what was just renewed ends the consent; it is not renewed again and again.
func TestAServiceThatRefusesEveryToken(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	w.must(w.read(w.first))
	w.server.Rule(func(r *consenttest.Rules) { r.Refuses = true })
	for range 3 {
		if err := w.read(w.first); !fault.Is(err, fault.NeedsConsent) {
			t.Errorf("got %v", err)
		}
	}
	if n := len(w.server.Journal("refresh")); n != 1 || w.connection().State != installation.NeedsConsent {
		t.Errorf("renewed %d times, and the connection is %s", n, w.connection().State)
	}
}

// Whoever has a line is about to send: the token is renewed when the line is opened, which for an action is before it is claimed.
func TestALineIsOpenedWithATokenThatLasts(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	w.sql("UPDATE consents SET expires_at = clock_timestamp() + interval '60 seconds', issued_at = clock_timestamp() - interval '1 hour'")
	_, err := w.first.lines.Open(t.Context(), w.connection())
	w.must(err)
	if n := len(w.server.Journal("refresh")); n != 1 || len(w.server.Journal("call")) != 0 {
		t.Errorf("renewed %d times before %d calls", n, len(w.server.Journal("call")))
	}
	if left := time.Until(*w.held().Expires); left < 30*time.Minute {
		t.Errorf("the token lasts %s", left)
	}
}

func TestATokenWithoutRenewalExpires(t *testing.T) {
	w := newWorld(t, "")
	w.server.Rule(func(r *consenttest.Rules) { r.NoRefresh = true })
	if r := w.consents(); !r.Unrenewed {
		t.Error("nobody is told that the access will end")
	}
	w.must(w.read(w.first))
	w.expired()
	w.first.lines.Close()
	if err := w.read(w.first); !fault.Is(err, fault.NeedsConsent) || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("got %v", err)
	}
}

// A loser whose refusal comes late says nothing about the consent that somebody gave meanwhile.
func TestAStaleLoserTakesNothing(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	old := w.held()
	w.consents()
	for name, c := range map[string]consent.Consent{"the consent before": old, "the version before": func() consent.Consent { n := w.held(); n.Version--; return n }()} {
		err := w.first.desk.Store.Lose(t.Context(), c, consent.Revoked, entryOf(c))
		if !fault.Is(err, fault.CodeStale) || w.connection().State != installation.Active {
			t.Errorf("%s: %v, %s", name, err, w.connection().State)
		}
	}
	if err := w.first.desk.Store.Renew(t.Context(), old, "rnw_late", old, nil); !fault.Is(err, fault.CodeStale) {
		t.Errorf("a renewal without the lease is stored: %v", err)
	}
	w.must(w.read(w.first))
}

// overtaken is a store before whose next Give or Renew something else happens.
type overtaken struct {
	consent.Store
	give, renew func()
}

func (s *overtaken) Give(ctx context.Context, c consent.Consent, sealed []credential.Record, e audit.Entry) error {
	if first := s.give; first != nil {
		s.give = nil
		first()
	}
	return s.Store.Give(ctx, c, sealed, e)
}

func (s *overtaken) Renew(ctx context.Context, c consent.Consent, by string, next consent.Consent, sealed []credential.Record) error {
	if first := s.renew; first != nil {
		s.renew = nil
		first()
	}
	return s.Store.Renew(ctx, c, by, next, sealed)
}

// A consent and a renewal that cross cost neither the person's code nor the call.
func TestAConsentAndARenewalCross(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	real := w.first.desk.Store
	w.first.desk.Store = &overtaken{Store: real, give: func() {
		w.expired()
		w.must(w.read(w.replica()))
	}}
	w.consents()
	if held := w.held(); held.Version != 3 {
		t.Errorf("the consent that crossed a renewal has version %d", held.Version)
	}
	w.must(w.read(w.first))

	w.first.desk.Store = real
	w.first.lines.Keeping(&consent.Keeper{
		Store: &overtaken{Store: real, renew: func() { w.consents() }}, Directory: w.first.desk.Directory, Registry: w.table, Keys: w.keys, Log: w.first.desk.Log,
	})
	w.first.lines.Close()
	w.expired()
	w.must(w.read(w.first))
	if n := len(w.server.Journal("reuse")); n != 0 || w.connection().State != installation.Active {
		t.Errorf("a consumed token was sent %d times, and the connection is %s", n, w.connection().State)
	}
}

// A server that is not well is no end: the present token is used as long as it lasts.
func TestAServerThatIsIllEndsNothing(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	w.sql("UPDATE consents SET expires_at = clock_timestamp() + interval '30 seconds', issued_at = clock_timestamp() - interval '1 hour'")
	w.server.Rule(func(r *consenttest.Rules) { r.TokenFault, r.TokenFaults = "500", 1000 })
	w.must(w.read(w.first))
	w.expired()
	w.first.lines.Close()
	if err := w.read(w.first); !fault.Is(err, fault.ConnectionUnavailable) || w.connection().State != installation.Active {
		t.Errorf("%v, %s", err, w.connection().State)
	}
	w.server.Rule(func(r *consenttest.Rules) { r.TokenFaults = 0 })
	w.must(w.read(w.first))
}

// A server that does not rotate gives no new refresh token: the one there is stays.
func TestAServerThatDoesNotRotate(t *testing.T) {
	w := newWorld(t, "")
	w.server.Rule(func(r *consenttest.Rules) { r.Keeps = true })
	w.consents()
	for range 3 {
		w.expired()
		w.first.lines.Close()
		w.must(w.read(w.first))
	}
	if n := len(w.server.Journal("refresh")); n != 3 {
		t.Errorf("renewed %d times", n)
	}
}

// The line, and with it any session with the service, survives a renewal.
func TestALineSurvivesARenewal(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	before, err := w.first.lines.Open(t.Context(), w.connection())
	w.must(err)
	w.server.Expire()
	_, err = before.Read(t.Context(), provider.Call{Tool: "contacts_list", Arguments: []byte(`{}`)})
	w.must(err)
	after, err := w.first.lines.Open(t.Context(), w.connection())
	w.must(err)
	if before != after || len(w.server.Journal("refresh")) != 1 {
		t.Errorf("same line: %t, renewed %d times", before == after, len(w.server.Journal("refresh")))
	}
}

// A service that reflects what it was sent gives away neither the token nor the one before it.
func TestNeitherTokenComesBack(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	entry := w.connection()
	h, err := w.keeper().Hold(t.Context(), entry, manifestOAuth)
	w.must(err)
	sent := func() string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.MCP(), nil)
		w.must(err)
		w.must(h.Edit(r))
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	first := sent()
	w.must(h.Again(t.Context(), h.Version()))
	second := sent()
	if first == second {
		t.Fatal("the token is the same after a renewal")
	}
	if got := bodyOf(t, h, "you sent "+first+" and "+second); strings.Contains(got, first) || strings.Contains(got, second) {
		t.Errorf("the answer holds a token: %s", got)
	}
	header := http.Header{"X-Echo": {first, second}}
	h.Header(header)
	if got := strings.Join(header["X-Echo"], " "); strings.Contains(got, first) || strings.Contains(got, second) {
		t.Errorf("a header holds a token: %s", got)
	}
}
