package db

import (
	"slices"
	"testing"
	"time"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/servicetoken"
)

func (w world) newToken(t *testing.T, owner identity.Person, name string) (servicetoken.Token, []byte) {
	t.Helper()
	token, _, hash, err := servicetoken.New(owner, name, []string{"runs:write", "actions:read"})
	must(t, err)
	saved, err := ServiceTokens{w.DB}.SaveToken(t.Context(), token, hash, servicetoken.DefaultLife, note(audit.TokenCreated, "token", token.ID))
	must(t, err)
	return saved, hash
}

func TestATokenNamesItsOrganizationAndOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := ServiceTokens{w.DB}, t.Context()
	_, owner := w.newOrg(t, "acme")
	w.newOrg(t, "other")
	saved, hash := w.newToken(t, owner, "runtime")
	if life := saved.ExpiresAt.Sub(saved.CreatedAt); life < servicetoken.DefaultLife-time.Second || life > servicetoken.DefaultLife+time.Second {
		t.Fatalf("it lives %s", life)
	}
	got, err := s.TokenByHash(ctx, hash)
	must(t, err)
	if got.ID != saved.ID || got.Org != owner.Org || got.Owner != owner.ID || got.OwnerName != owner.Email || got.Name != "runtime" ||
		!slices.Equal(got.Scopes, saved.Scopes) || !got.ExpiresAt.Equal(saved.ExpiresAt) || got.LastFour != saved.LastFour || got.RevokedAt != nil {
		t.Fatalf("got %+v, want %+v", got, saved)
	}
	got, err = s.TokenByHash(ctx, hash)
	must(t, err)
	if got.LastUsedAt == nil {
		t.Fatal("the first use was not noted")
	}
	_, err = s.TokenByHash(ctx, servicetoken.Hash("cst_unknown"))
	isFault(t, err, fault.CodeNotFound)
}

func TestATokenThatIsOverFindsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := ServiceTokens{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	revoked, revokedHash := w.newToken(t, owner, "revoked")
	e := note(audit.TokenRevoked, "token", revoked.ID)
	must(t, s.RevokeToken(ctx, org.ID, revoked.ID, e))
	must(t, s.RevokeToken(ctx, org.ID, revoked.ID, e))
	if n := w.count(t, "SELECT count(*) FROM audit_entries WHERE event = $1", audit.TokenRevoked); n != 1 {
		t.Fatalf("revoked %d times", n)
	}
	expired, expiredHash := w.newToken(t, owner, "expired")
	w.asSuper(t, "UPDATE service_tokens SET expires_at = clock_timestamp() WHERE id = $1", expired.ID)
	guest := w.addPerson(t, org, "guest@acme.test", identity.Admin)
	_, guestHash := w.newToken(t, guest, "of somebody who left")
	must(t, People{w.DB}.SetActive(ctx, org.ID, guest.ID, false, note(audit.PersonDeactivated, "person", "")))
	for _, hash := range [][]byte{revokedHash, expiredHash, guestHash} {
		_, err := s.TokenByHash(ctx, hash)
		isFault(t, err, fault.CodeNotFound)
	}
	all, err := s.Tokens(ctx, org.ID)
	must(t, err)
	if len(all) != 3 || all[0].Name != "of somebody who left" || all[2].RevokedAt == nil {
		t.Fatalf("got %+v", all)
	}
	if _, err := s.SaveToken(ctx, servicetoken.Token{ID: "tok_x", Org: org.ID, Name: "x", Owner: guest.ID, Scopes: servicetoken.Scopes}, []byte("x"), time.Hour, e); !fault.Is(err, fault.CodeNotFound) {
		t.Fatalf("a token of somebody inactive: %v", err)
	}
	for _, life := range []time.Duration{0, -time.Hour, servicetoken.MaxLife + time.Second} {
		_, err := s.SaveToken(ctx, servicetoken.Token{ID: "tok_y", Org: org.ID, Name: "y", Owner: owner.ID, Scopes: servicetoken.Scopes}, []byte("y"), life, e)
		isField(t, err, "life")
	}
}

func TestTokensOfAnotherOrganizationDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := ServiceTokens{w.DB}, t.Context()
	mine, me := w.newOrg(t, "acme")
	_, stranger := w.newOrg(t, "other")
	theirs, hash := w.newToken(t, stranger, "theirs")
	isFault(t, s.RevokeToken(ctx, mine.ID, theirs.ID, note(audit.TokenRevoked, "token", theirs.ID)), fault.CodeNotFound)
	if _, err := s.TokenByHash(ctx, hash); err != nil {
		t.Fatalf("it was revoked: %v", err)
	}
	if all, err := s.Tokens(ctx, mine.ID); err != nil || len(all) != 0 {
		t.Fatalf("got %+v, %v", all, err)
	}
	planted := servicetoken.Token{ID: "tok_planted", Org: mine.ID, Name: "planted", Owner: stranger.ID, Scopes: servicetoken.Scopes}
	_, err := s.SaveToken(ctx, planted, []byte("planted"), time.Hour, note(audit.TokenCreated, "token", ""))
	isFault(t, err, fault.CodeNotFound)
	planted.Owner = me.ID
	if _, err := s.SaveToken(ctx, planted, hash, time.Hour, note(audit.TokenCreated, "token", "")); err == nil {
		t.Fatal("two tokens share a hash")
	}
}
