// Package sentrytest owns a Sentry for tests: a real server with the published shapes of what sentry-cli asks, and a journal. It knows no
// provider, and no product code imports it.
package sentrytest

import (
	"net/http"
	"strings"
	"testing"

	"countersign/internal/provider/direct/directtest"
)

// Token is the one that it takes.
const Token = "sntryu_0123456789abcdef0123456789abcdef"

// Sentry is one with the published shapes of a few of its answers.
type Sentry struct{ directtest.Server }

// New starts one.
func New(t testing.TB) *Sentry {
	s := &Sentry{}
	s.Name = func(r *http.Request) string {
		switch {
		case r.Method == http.MethodPost:
			return "releases_new"
		case r.Method == http.MethodDelete:
			return "releases_delete"
		case strings.HasSuffix(r.URL.Path, "/organizations/"):
			return "organizations_list"
		}
		return r.Method + " " + r.URL.Path
	}
	s.Refuse = func(w http.ResponseWriter, status int) {
		directtest.JSON(w, "application/json", status, map[string]string{"detail": "This is refused."})
	}
	s.Next = http.HandlerFunc(s.serve)
	s.Start(t)
	return s
}

func (s *Sentry) serve(w http.ResponseWriter, r *http.Request) {
	const media = "application/json"
	release := map[string]any{"version": "v1", "dateCreated": "2026-11-30T00:00:00Z", "newGroups": 0, "projects": []any{}}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		directtest.JSON(w, media, http.StatusUnauthorized, map[string]string{"detail": "Invalid Token"})
	case r.Method == http.MethodPost:
		s.Note("releases_new", r.URL.Path)
		directtest.JSON(w, media, http.StatusCreated, release)
	case r.Method == http.MethodDelete:
		s.Note("releases_delete", r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(r.URL.Path, "/organizations/"):
		directtest.JSON(w, media, http.StatusOK, []any{map[string]any{
			"id": "1", "slug": "acme", "name": "Acme of " + r.Header.Get("Authorization"), "dateCreated": "2026-11-30T00:00:00Z", "isEarlyAdopter": false, "require2FA": false,
			"status": map[string]string{"id": "active", "name": "active"}, "features": []string{},
		}})
	case strings.HasSuffix(r.URL.Path, "/issues/"):
		var all []any
		for range 100 {
			all = append(all, map[string]any{"id": "1", "shortId": "WEB-1", "title": strings.Repeat("It broke. ", 20), "lastSeen": "2026-11-30T00:00:00Z", "status": "unresolved", "level": "error"})
		}
		directtest.JSON(w, media, http.StatusOK, all)
	default:
		directtest.JSON(w, media, http.StatusNotFound, map[string]string{"detail": "The requested resource does not exist"})
	}
}
