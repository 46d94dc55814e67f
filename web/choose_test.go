package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"countersign/db"
	"countersign/db/dbtest/reached"
	"countersign/db/dbtest/scene"
	"countersign/internal/provider/github/githubtest"
	"countersign/internal/registry"
	"countersign/web"
)

// newGitShop is a site whose catalog leads to a GitHub.
func newGitShop(t *testing.T) (*shop, *githubtest.Server) {
	hub := githubtest.New(t)
	sc := scene.New(t)
	s := &shop{site: &site{Scene: sc, signer: "test"}, Reached: reached.New(sc, map[registry.Key]string{"github.v1/git": hub.URL, "github.v1/api": hub.URL})}
	s.serve(func(h *web.Handlers) {
		h.Catalog.Releases, h.Catalog.Registry = s.Releases, s.Table
		h.Connections.Service, h.Connections.Vault = s.Service, s.Vault
		h.Connections.Repositories, h.Connections.Pins = s.Lines, db.Git{DB: s.DB}
	})
	return s, hub
}

const choosing = "/connections/new/github/repositories"

// TestRepositoriesAreChosenFromWhatTheTokenSees pages through more repositories than one page lists, ticks on both pages, types one more, and
// installs with the token that was entered once. No page shows it.
func TestRepositoriesAreChosenFromWhatTheTokenSees(t *testing.T) {
	t.Parallel()
	s, hub := newGitShop(t)
	for n := range 60 {
		hub.Listed(fmt.Sprintf("acme/r%02d", n), int64(1000+n))
	}
	hub.Repository("acme/site", 42)
	hub.Listed("acme/attic-old", 7)
	b := s.as("admin@harbor.test")
	form := b.get("/connections/new/github").is(t, http.StatusOK, "Look up what this token sees").between(t, `name="form" value="`, `"`)
	base := []string{"form", form, "contract", "pat", "name", "GitHub"}
	post := func(path string, pairs ...string) page {
		got := b.post(path, append(base[:len(base):len(base)], pairs...)...)
		got.lacks(t, githubtest.Token)
		return got
	}
	first := post(choosing, "access_token", githubtest.Token, "repositories", "acme/typed").is(t, http.StatusOK,
		"acme/r00", "acme/r48", "archived: can be fetched, takes no push", "private", "public", "Page 1; there are more", `value="acme/typed"`, "kept by this form, sealed")
	first.lacks(t, "acme/r55", "acme/site")
	carried := first.between(t, `name="carried" value="`, `"`)
	second := post(choosing, "carried", carried, "repositories", "acme/typed", "repository", "acme/r01", "page", "2").is(t, http.StatusOK, "acme/r55", "acme/site", "Page 2, the last", `value="acme/typed acme/r01"`)
	back := post(choosing, "carried", second.between(t, `name="carried" value="`, `"`), "repositories", "acme/r01", "repository", "acme/site").is(t, http.StatusOK, `value="acme/site"`)
	if ticked := back.between(t, `id="repository-acme/r01"`, ">"); !strings.Contains(ticked, "checked") {
		t.Errorf("what was ticked is not any more: %s", ticked)
	}
	post("/connections/new/github", "carried", carried, "repositories", "acme/site").is(t, http.StatusSeeOther)
	connections, err := s.Connections.Connections(t.Context(), s.Org.ID)
	s.Must(err)
	c := connections[0]
	if len(connections) != 1 || c.Settings["repositories"] != "acme/site" || !c.Health.OK {
		t.Fatalf("%d connections, for %q: %s", len(connections), c.Settings["repositories"], c.Health.What)
	}
	at := "/connections/" + c.Key.String()
	b.get(at).is(t, http.StatusOK, "<code>acme/site</code>", "number 42").lacks(t, "renamed on GitHub")
	hub.Rename("acme/site", "acme/harbor")
	b.post(at+"/test").is(t, http.StatusSeeOther)
	b.get(at).is(t, http.StatusOK, "acme/harbor", "connected as <code>acme/site</code>: renamed on GitHub since", "number 42", "Repository renamed on GitHub")
}

// TestWhatAFormCarriesIsOneFormsAndOnePersons tries what was sealed for one form elsewhere, and lists with what is no token.
func TestWhatAFormCarriesIsOneFormsAndOnePersons(t *testing.T) {
	t.Parallel()
	s, hub := newGitShop(t)
	hub.Repository("acme/site", 42)
	admin, owner := s.as("admin@harbor.test"), s.as("owner@harbor.test")
	draw := func(b *browser) string {
		return b.get("/connections/new/github").between(t, `name="form" value="`, `"`)
	}
	form := draw(admin)
	carried := admin.post(choosing, "form", form, "contract", "pat", "access_token", githubtest.Token).is(t, http.StatusOK, "acme/site", "This is all of them").between(t, `name="carried" value="`, `"`)
	deadline, sealed, _ := strings.Cut(carried, ".")
	for name, c := range map[string]struct {
		who           *browser
		form, carried string
	}{
		"another form": {admin, draw(admin), carried}, "another person": {owner, form, carried}, "a later deadline": {admin, form, deadline + "9." + sealed},
		"a deadline that has passed": {admin, form, "1." + sealed}, "half of it": {admin, form, carried[:len(carried)/2]}, "words": {admin, form, "x"},
	} {
		for _, path := range []string{choosing, "/connections/new/github"} {
			if got := c.who.post(path, "form", c.form, "contract", "pat", "carried", c.carried, "repositories", "acme/site"); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Enter it again.") {
				t.Errorf("%s at %s: %d", name, path, got.StatusCode)
			}
		}
	}
	hub.Withhold()
	admin.post(choosing, "form", form, "contract", "pat", "carried", carried).is(t, http.StatusOK, "organizations with single sign-on for which this token is not authorized")
	asked := len(hub.Journal())
	for token, words := range map[string]string{"": "is empty", "hunter2": "Personal access token", "github_pat_nobody": "GitHub does not accept this token"} {
		admin.post(choosing, "form", form, "contract", "pat", "access_token", token).is(t, http.StatusUnprocessableEntity, words)
	}
	for _, page := range []string{"0", "-1", "x", "101"} {
		admin.post(choosing, "form", form, "contract", "pat", "carried", carried, "page", page).is(t, http.StatusUnprocessableEntity, "no such page")
	}
	if n := len(hub.Journal()) - asked; n != 1 {
		t.Errorf("GitHub was asked %d times", n)
	}
	admin.post("/connections/new/sandbox-crm/repositories", "form", form, "contract", "token", "api_key", "k").is(t, http.StatusNotFound)
}
