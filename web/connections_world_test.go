package web_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/db/dbtest/reached"
	"countersign/internal/connector"
	"countersign/internal/crm/crmtest"
	"countersign/internal/policy"
	"countersign/web"
)

// shop is a site with the real Sandbox CRM behind its catalog, reached as in production.
type shop struct {
	*site
	*reached.Reached
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := newSite(t)
	r := reached.New(s.Scene, nil)
	s.serve(func(h *web.Handlers) {
		h.Catalog.Releases, h.Catalog.Registry = r.Releases, r.Table
		h.Connections.Service, h.Connections.Vault = r.Service, r.Vault
	})
	return &shop{s, r}
}

// patch changes a tool of the CRM, as a vendor does overnight.
func (s *shop) patch(name string, patch any) {
	s.T.Helper()
	raw, err := json.Marshal(patch)
	s.Must(err)
	s.CRM.Patch(name, string(raw))
}

// installed is a tested connection to the CRM, made through the form.
func (b *browser) installed() connector.Key {
	b.T.Helper()
	form := b.get("/connections/new/sandbox-crm").is(b.T, http.StatusOK).between(b.T, `name="form" value="`, `"`)
	p := b.post("/connections/new/sandbox-crm", "form", form, "contract", "token", "name", "Sandbox CRM", "api_key", crmtest.Bearer).is(b.T, http.StatusSeeOther)
	return keyOf(b.T, p)
}

func keyOf(t testing.TB, p page) connector.Key {
	t.Helper()
	key, err := connector.Parse(strings.TrimPrefix(p.Header.Get("Location"), "/connections/"))
	if err != nil {
		t.Fatalf("it goes to %q", p.Header.Get("Location"))
	}
	return key
}

// version is the version the page's forms carry.
func (b *browser) version(key connector.Key) string {
	b.T.Helper()
	return b.get("/connections/"+key.String()).is(b.T, http.StatusOK).between(b.T, `name="version" value="`, `"`)
}

// save posts the access form as a browser does: mode, the radio, and the ticks.
func (b *browser) save(key connector.Key, mode, supplied string, tools ...string) page {
	b.T.Helper()
	pairs := []string{"version", b.version(key), "mode", mode, "tools_supplied", supplied}
	for _, t := range tools {
		pairs = append(pairs, "tools", t)
	}
	return b.post("/connections/"+key.String()+"/access", pairs...)
}

// standing is what agents get, from the store.
func (s *site) standing(key connector.Key) policy.Standing {
	s.T.Helper()
	c, err := s.Connections.Connection(s.T.Context(), s.Org.ID, key)
	s.Must(err)
	return c.Standing
}

func (s *site) grants(key connector.Key, mode policy.Mode, tools ...string) {
	s.T.Helper()
	got := s.standing(key)
	slices.Sort(tools)
	if got.Mode != mode || !slices.Equal(got.Snapshot.Tools(), tools) {
		s.T.Fatalf("it grants %s %v, want %s %v", got.Mode, got.Snapshot.Tools(), mode, tools)
	}
}

var (
	crmReads = []string{"contacts_get", "contacts_list", "contacts_search", "report_export", "wait"}
	crmAll   = append([]string{"contacts_create", "contacts_delete", "contacts_update", "deals_move", "notes_add", "refund_issue"}, crmReads...)
)
