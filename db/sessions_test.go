package db

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/web/session"
)

func TestASessionNamesItsPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	w.newOrg(t, "other")
	w.signIn(t, owner, "cookie")
	got, err := s.SessionByHash(ctx, []byte("cookie"))
	must(t, err)
	if got.Org != org || got.Person.ID != owner.ID || got.Person.Org != org.ID || got.Person.Email != owner.Email || !got.Person.May(identity.Decide) {
		t.Fatalf("got %+v", got)
	}
	if got.CreatedAt.Location() != time.UTC || time.Since(got.CreatedAt) > time.Minute || len(got.Flash) != 0 {
		t.Fatalf("got %+v", got)
	}
	if w.count(t, "SELECT count(*) FROM people WHERE id = $1 AND last_signed_in_at IS NOT NULL", string(owner.ID)) != 1 {
		t.Fatal("the sign-in was not noted")
	}
	for _, wrong := range []string{"", "cooki", "cookie2"} {
		_, err := s.SessionByHash(ctx, []byte(wrong))
		isFault(t, err, fault.CodeNotFound)
	}
}

func TestAFlashIsKeptForItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	_, owner := w.newOrg(t, "acme")
	w.signIn(t, owner, "one")
	w.signIn(t, owner, "two")
	must(t, s.SaveFlash(ctx, []byte("one"), []byte(`{"say":"Saved."}`)))
	if got, err := s.SessionByHash(ctx, []byte("one")); err != nil || string(got.Flash) != `{"say":"Saved."}` {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got, err := s.SessionByHash(ctx, []byte("two")); err != nil || len(got.Flash) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	must(t, s.SaveFlash(ctx, []byte("one"), nil))
	if got, err := s.SessionByHash(ctx, []byte("one")); err != nil || len(got.Flash) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	isFault(t, s.SaveFlash(ctx, []byte("none"), []byte("x")), fault.CodeNotFound)
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	gone := func(hash string) {
		t.Helper()
		_, err := s.SessionByHash(ctx, []byte(hash))
		isFault(t, err, fault.CodeNotFound)
	}
	out := note(audit.SignedOut, "person", string(owner.ID))
	out.Org = org.ID
	w.signIn(t, owner, "signed out")
	must(t, s.EndSession(ctx, []byte("signed out"), &out))
	must(t, s.EndSession(ctx, []byte("signed out"), &out))
	gone("signed out")
	if got := w.events(t, org.ID); !slices.Equal(got, []audit.Event{audit.OrgCreated, audit.SignedIn, audit.SignedOut}) {
		t.Fatalf("the trail says %v", got)
	}
	w.signIn(t, owner, "rotated")
	must(t, s.EndSession(ctx, []byte("rotated"), nil))
	gone("rotated")
	w.signIn(t, owner, "over")
	w.asSuper(t, "UPDATE sessions SET expires_at = clock_timestamp() WHERE hash = 'over'")
	gone("over")
	w.signIn(t, owner, "idle")
	w.asSuper(t, "UPDATE sessions SET used_at = clock_timestamp() - $1::interval WHERE hash = 'idle'", session.Idle)
	gone("idle")
	w.signIn(t, owner, "fresh")
	must(t, s.Sweep(ctx))
	if n := w.count(t, "SELECT count(*) FROM sessions"); n != 1 {
		t.Fatalf("%d sessions are left", n)
	}
}

func TestUseKeepsASessionFromGoingIdleButNotFromEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	_, owner := w.newOrg(t, "acme")
	w.signIn(t, owner, "cookie")
	w.asSuper(t, "UPDATE sessions SET used_at = clock_timestamp() - $1::interval", session.Idle-time.Minute)
	_, err := s.SessionByHash(ctx, []byte("cookie"))
	must(t, err)
	if w.count(t, "SELECT count(*) FROM sessions WHERE used_at > clock_timestamp() - interval '1 minute'") != 1 {
		t.Fatal("the use was not noted")
	}
	if w.count(t, "SELECT count(*) FROM sessions WHERE expires_at BETWEEN created_at + $1::interval - interval '1 second' AND created_at + $1::interval + interval '1 second'", session.Life) != 1 {
		t.Fatal("the end is not its life after its start")
	}
}

func TestOnlyActivePeopleAreSignedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, p, ctx := Sessions{w.DB}, People{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	guest := w.addPerson(t, org, "guest@acme.test", identity.Member)
	w.signIn(t, guest, "cookie")
	e := note(audit.PersonDeactivated, "person", string(guest.ID))
	must(t, p.SetActive(ctx, org.ID, guest.ID, false, e))
	_, err := s.SessionByHash(ctx, []byte("cookie"))
	isFault(t, err, fault.CodeNotFound)
	isFault(t, s.StartSession(ctx, session.Session{Person: guest}, []byte("again"), note(audit.SignedIn, "person", "")), fault.CodeNotFound)
	must(t, p.SetActive(ctx, org.ID, guest.ID, true, e))
	_, err = s.SessionByHash(ctx, []byte("cookie"))
	isFault(t, err, fault.CodeNotFound) // what was ended stays ended
	w.signIn(t, guest, "new")
	w.asSuper(t, "UPDATE people SET active = false WHERE id = $1", string(guest.ID))
	_, err = s.SessionByHash(ctx, []byte("new"))
	isFault(t, err, fault.CodeNotFound) // also where nobody ended the session
}

func TestSignInAttemptsAreCountedForTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	tryFrom := func(account, address string) time.Duration {
		t.Helper()
		wait, err := s.SignInAttempt(ctx, account, address)
		must(t, err)
		return wait
	}
	for range accountFree {
		if wait := tryFrom("a@acme.test", "192.0.2.1"); wait != 0 {
			t.Fatalf("a free attempt waits %s", wait)
		}
	}
	wait := tryFrom("a@acme.test", "198.51.100.9")
	if wait <= 14*time.Minute || wait > attemptSpan {
		t.Fatalf("the sixth attempt waits %s", wait)
	}
	if other := tryFrom("b@acme.test", "198.51.100.9"); other != 0 {
		t.Fatalf("another account waits %s", other)
	}
	w.asSuper(t, "UPDATE sign_in_attempts SET at = at - interval '5 minutes'")
	if later := tryFrom("a@acme.test", "198.51.100.9"); later >= wait-4*time.Minute || later <= 0 {
		t.Fatalf("trying again pushed the end of the wait away: %s after %s", later, wait)
	}
	w.asSuper(t, "UPDATE sign_in_attempts SET at = at - interval '10 minutes'")
	if wait := tryFrom("a@acme.test", "198.51.100.9"); wait != 0 {
		t.Fatalf("after the span it waits %s", wait)
	}
	must(t, s.Sweep(ctx))
	if n := w.count(t, "SELECT count(*) FROM sign_in_attempts"); n != 2 {
		t.Fatalf("%d attempts are kept", n)
	}
	must(t, s.SignInSucceeded(ctx, "a@acme.test", "198.51.100.9"))
	if n := w.count(t, "SELECT count(*) FROM sign_in_attempts"); n != 0 {
		t.Fatalf("%d attempts are kept after the success", n)
	}
}

func TestSignInAttemptsAreCountedForTheAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	for i := range addressFree {
		wait, err := s.SignInAttempt(ctx, strings.Repeat("x", i+1)+"@acme.test", "2001:db8:1:2::"+string(rune('1'+i%9)))
		if err != nil || wait != 0 {
			t.Fatalf("attempt %d waits %s, %v", i, wait, err)
		}
	}
	for _, same := range []string{"2001:db8:1:2::77", "2001:db8:1:2:ffff::%eth0"} {
		if wait, err := s.SignInAttempt(ctx, "", same); err != nil || wait == 0 {
			t.Fatalf("%s is of the same network and waits %s, %v", same, wait, err)
		}
	}
	for _, other := range []string{"2001:db8:1:3::1", "192.0.2.1", "not an address"} {
		if wait, err := s.SignInAttempt(ctx, "", other); err != nil || wait != 0 {
			t.Fatalf("%s waits %s, %v", other, wait, err)
		}
	}
	if a, b := ofAddress("::ffff:192.0.2.1"), ofAddress("192.0.2.1"); !slices.Equal(a.hash, b.hash) {
		t.Fatal("one IPv4 address counts as two")
	}
	// A success takes away its own attempt and no more: who has an account cannot wash the address clean.
	must(t, s.SignInSucceeded(ctx, "x@acme.test", "2001:db8:1:2::1"))
	if wait, err := s.SignInAttempt(ctx, "fresh@acme.test", "2001:db8:1:2::1"); err != nil || wait != 0 {
		t.Fatalf("waits %s, %v", wait, err)
	}
	if wait, err := s.SignInAttempt(ctx, "fresh@acme.test", "2001:db8:1:2::1"); err != nil || wait == 0 {
		t.Fatalf("waits %s, %v", wait, err)
	}
}

func TestAHundredAttemptsAtOnceAreNotAllTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Sessions{w.DB}, t.Context()
	var wg sync.WaitGroup
	var mu sync.Mutex
	free := 0
	for range 60 {
		wg.Go(func() {
			wait, err := s.SignInAttempt(ctx, "a@acme.test", "192.0.2.1")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if wait == 0 {
				free++
			}
		})
	}
	wg.Wait()
	if free != accountFree {
		t.Fatalf("%d attempts were free", free)
	}
	if w.count(t, "SELECT count(*) FROM sign_in_attempts WHERE position('acme' IN encode(subject, 'escape')) > 0") != 0 {
		t.Fatal("an account's address is stored in clear")
	}
}
