package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/identity"
	"countersign/internal/servicetoken"
	"countersign/web/session"
)

func sessionsOver(s *site, https bool) *session.Keeper {
	return session.NewKeeper(s.Sessions, https)
}

// others are all scopes that do not hold this one.
func others(scope servicetoken.Scope) []servicetoken.Scope {
	var out []servicetoken.Scope
	for _, s := range servicetoken.Scopes {
		if s != scope && (scope != servicetoken.RunsRead || s != servicetoken.RunsWrite) {
			out = append(out, s)
		}
	}
	return out
}

func formID(t *testing.T, p page) string { return p.between(t, `name="id" value="`, `"`) }

func TestTokenJourney(t *testing.T) {
	s := newSite(t)
	b := s.as("admin@harbor.test")
	id := formID(t, b.get("/tokens").is(t, http.StatusOK, "No service tokens yet"))
	b.post("/tokens", "id", id, "name", "", "days", "0").is(t, http.StatusUnprocessableEntity, "at most 80 characters", "1 to 366 days", "at least one scope")
	made := b.post("/tokens", "id", id, "name", "runtime <b>", "days", "30", "scopes", "runs:write", "scopes", "actions:read").is(t, http.StatusOK, "not shown again", "runtime &lt;b&gt;")
	value := made.between(t, `data-test="token-value">`, "<")
	if !regexp.MustCompile(`^cst_[A-Za-z0-9_-]{43}$`).MatchString(value) {
		t.Fatalf("value %q", value)
	}
	b.get("/tokens").is(t, http.StatusOK, "…"+value[len(value)-4:], "29 days</time>").lacks(t, value)
	b.post("/tokens", "id", id, "name", "again", "days", "30", "scopes", "runs:write").is(t, http.StatusConflict).lacks(t, `data-test="token-value"`)

	if _, err := s.Tokens.TokenByHash(t.Context(), servicetoken.Hash(value)); err != nil {
		t.Fatal(err)
	}
	s.as("owner@elsewhere.test").post("/tokens/"+id+"/revoke").is(t, http.StatusNotFound)
	b.post("/tokens/"+id+"/revoke").goes(t, "/tokens")
	b.post("/tokens/"+id+"/revoke").goes(t, "/tokens")
	b.get("/tokens").is(t, http.StatusOK, "Revoked", "0 service tokens work")
	if _, err := s.Tokens.TokenByHash(t.Context(), servicetoken.Hash(value)); err == nil {
		t.Fatal("a revoked token still works")
	}
	b.post("/tokens/nonsense/revoke").is(t, http.StatusNotFound)
	b.post("/tokens", "id", "tok_chosen", "name", "x", "days", "1", "scopes", "runs:write").is(t, http.StatusUnprocessableEntity)
	b.post("/tokens", "id", identity.NewID("tok_"), "name", "x", "days", "1e3", "scopes", "root").is(t, http.StatusUnprocessableEntity, "There is no scope")
	if n := strings.Count(b.get("/tokens").body, "cst_…"); n < 1 {
		t.Fatal("the list lost its token")
	}
}
