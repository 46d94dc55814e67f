package web_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/catalog"
	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
	"countersign/web"
	"countersign/web/admin"
	"countersign/web/agent"
	"countersign/web/session"
)

// password is everybody's in these tests; its hash is made once, since making one is slow on purpose.
const password = "a long enough sentence"

var passwordHash = sync.OnceValue(func() string {
	h, err := people.HashPassword(secret.New(password))
	if err != nil {
		panic(err)
	}
	return h
})

// site is the whole server over a real database, with one organization of one person a role, and a second organization.
type site struct {
	t      *testing.T
	db     *db.DB
	dsn    string
	server *httptest.Server
	org    identity.Org
	other  identity.Org
	people map[identity.Role]identity.Person // of org
	alien  identity.Person                   // owner of the other organization
	signer signer
	ready  func(context.Context) error
}

// signer is a keyed MAC with a key of its own.
type signer string

func (k signer) MAC(data []byte) ([]byte, error) {
	h := hmac.New(sha256.New, []byte(k))
	h.Write(data)
	return h.Sum(nil), nil
}

func (k signer) Verify(mac, data []byte) bool {
	want, _ := k.MAC(data)
	return hmac.Equal(mac, want)
}

// chain lends the verifier its key, as the wiring does.
type chain struct {
	trail db.Audit
	key   audit.Signer
}

func (c chain) Verify(ctx context.Context, org identity.OrgID) (sealed, pending int64, err error) {
	v, err := c.trail.Verify(ctx, org, c.key)
	return v.Sealed, v.Pending, err
}

func newEmptySite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dsn: dbtest.New(t, db.Migrate), signer: "test", people: map[identity.Role]identity.Person{}}
	var err error
	if s.db, err = db.Open(t.Context(), s.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.db.Close)
	s.server = httptest.NewUnstartedServer(nil)
	origin := "http://" + s.server.Listener.Addr().String()
	handler, err := web.New(s.config(origin), s.handlers(origin))
	if err != nil {
		t.Fatal(err)
	}
	s.server.Config.Handler = handler
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

func (s *site) config(origin string) web.Config {
	return web.Config{
		PublicURL: origin, Listen: strings.TrimPrefix(origin, "http://"), Sessions: session.NewKeeper(db.Sessions{DB: s.db}, false), Chrome: s.navigation(),
		Ready: func(ctx context.Context) error {
			if s.ready != nil {
				return s.ready(ctx)
			}
			return s.db.Ping(ctx)
		},
	}
}

func (s *site) navigation() *admin.Navigation {
	return &admin.Navigation{Actions: db.Actions{DB: s.db}, Runs: db.Runs{DB: s.db}, Connections: db.Connections{DB: s.db}, Listings: db.Connections{DB: s.db}, Freezer: db.Actions{DB: s.db}}
}

func (s *site) installations() *installation.Connections {
	return &installation.Connections{Read: db.Connections{DB: s.db}, Write: db.Connections{DB: s.db}, Releases: db.NewReleases(s.db, registry.Trusted())}
}

func (s *site) handlers(origin string) web.Handlers {
	keeper := session.NewKeeper(db.Sessions{DB: s.db}, false)
	releases := db.NewReleases(s.db, registry.Trusted())
	who, attempts, connections := db.People{DB: s.db}, db.Sessions{DB: s.db}, db.Connections{DB: s.db}
	trail := db.Audit{DB: s.db}
	keys, err := secret.Generate()
	s.must(err)
	inbox := &admin.Actions{Reader: db.Actions{DB: s.db}, Decider: db.Actions{DB: s.db}, Runs: db.Runs{DB: s.db}, Connections: connections, Releases: releases, Directory: who, Trail: trail, Freezer: db.Actions{DB: s.db}, Investigator: db.Actions{DB: s.db}}
	return web.Handlers{
		Freezes:  &admin.Freezes{Freezer: db.Actions{DB: s.db}},
		Doors:    &admin.Doors{Directory: who, Invitations: who, Attempts: attempts, Trail: trail, Sessions: keeper},
		Overview: &admin.Overview{Actions: db.Actions{DB: s.db}, Runs: db.Runs{DB: s.db}, Connections: connections, Listings: connections},
		People:   &admin.People{Directory: who, Roster: who, Invitations: who, PublicURL: origin},
		Tokens:   &admin.Tokens{Store: db.ServiceTokens{DB: s.db}},
		Settings: &admin.Settings{Directory: who, Roster: who, Attempts: attempts, Sessions: keeper, Releases: releases, PublicURL: origin},
		Audit:    &admin.Audit{Trail: trail, Verifier: chain{trail, s.signer}},
		Releases: &admin.Releases{Store: releases},
		Profiles: &admin.Profiles{Store: db.Profiles{DB: s.db}, Connections: connections, Groups: db.Groups{DB: s.db}, Releases: releases},
		Groups:   &admin.Groups{Store: db.Groups{DB: s.db}, Directory: who, Profiles: db.Profiles{DB: s.db}},
		Catalog:  &admin.Catalog{Releases: releases, Read: connections, Registry: registry.Trusted()},
		Connections: &admin.Connections{
			Service: s.installations(), Vault: credential.NewVault(keys, db.Credentials{DB: s.db}), Trail: trail,
			Profiles: db.Profiles{DB: s.db}, Actions: db.Actions{DB: s.db},
		},
		Actions: inbox,
		Runs:    &admin.Runs{Store: db.Runs{DB: s.db}, Actions: inbox, Observed: connections},
		API: &agent.API{
			Tokens: db.ServiceTokens{DB: s.db}, Runs: db.Runs{DB: s.db}, Actions: db.Actions{DB: s.db}, Connections: connections,
			Trail: trail, PublicURL: origin,
		},
	}
}

// newSite is a site with people in it.
func newSite(t *testing.T) *site {
	t.Helper()
	s := newEmptySite(t)
	s.org, s.people[identity.Owner] = s.organization("harbor", "Harbor & Pine")
	s.other, s.alien = s.organization("elsewhere", "Elsewhere")
	for _, role := range identity.AllRoles[1:] {
		s.people[role] = s.person(s.org, string(role)+"@harbor.test", role)
	}
	return s
}

func (s *site) organization(slug, name string) (identity.Org, identity.Person) {
	s.t.Helper()
	org := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: slug, Name: name}
	owner := s.newPerson(org, "owner@"+slug+".test", identity.Owner)
	e := audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.OrgCreated, Object: audit.Object{Kind: "organization", ID: string(org.ID)}}
	s.must(db.People{DB: s.db}.CreateOrganization(s.t.Context(), org, owner, passwordHash(), e))
	return org, owner
}

func (s *site) newPerson(org identity.Org, email string, roles ...identity.Role) identity.Person {
	return identity.Person{ID: identity.PersonID(identity.NewID("per_")), Org: org.ID, Email: email, Roles: roles, Active: true}
}

func (s *site) person(org identity.Org, email string, roles ...identity.Role) identity.Person {
	s.t.Helper()
	p := s.newPerson(org, email, roles...)
	e := audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.PersonAdded, Object: audit.Object{Kind: "person", ID: string(p.ID)}}
	s.must(db.People{DB: s.db}.AddPerson(s.t.Context(), p, passwordHash(), e))
	return p
}

// publish makes the binary's own catalog the current release.
func (s *site) publish() release.Digest {
	s.t.Helper()
	p, err := release.Publish(s.t.Context(), db.NewReleases(s.db, registry.Trusted()), catalog.Files(), registry.Trusted())
	s.must(err)
	return p.Digest
}

// connection is an active connection of the sandbox CRM with three tools granted.
func (s *site) connection(org identity.Org, digest release.Digest) installation.Connection {
	s.t.Helper()
	store := db.Connections{DB: s.db}
	key := connector.NewKey("sandbox-crm")
	e := audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.ConnectionInstalled, Object: audit.Object{Kind: "connection", ID: key.String()}}
	c, err := store.Install(s.t.Context(), installation.Connection{
		ID: identity.NewID("con_"), Org: org.ID, Key: key, Integration: "sandbox-crm", Kind: "hosted",
		Runtime: "sandbox_crm.v1", Release: string(digest), Name: "Sandbox CRM", State: installation.Active, Destination: "https://crm.example.com/mcp", Contract: "token", CreatedBy: "operator",
	}, nil, e)
	s.must(err)
	snapshot, err := policy.NewSnapshot([]policy.Pinned{
		{Tool: "contacts_search", Digest: "d1", Recipe: 1, Effect: policy.Read},
		{Tool: "contacts_create", Digest: "d2", Recipe: 1, Effect: policy.Consequential},
		{Tool: "contacts_delete", Digest: "d3", Recipe: 1, Effect: policy.Consequential, Destructive: true},
	})
	s.must(err)
	raws := map[string][]byte{"contacts_search": []byte(`{}`), "contacts_create": []byte(`{}`), "contacts_delete": []byte(`{}`)}
	e.Event = audit.AccessSaved
	c, err = store.SaveStanding(s.t.Context(), c, policy.Standing{Mode: policy.AskUserOnWrite, Snapshot: snapshot}, raws, e)
	s.must(err)
	return c
}

// events are the events of an organization's trail, newest first.
func (s *site) events(org identity.OrgID) []audit.Event {
	s.t.Helper()
	found, err := db.Audit{DB: s.db}.Entries(s.t.Context(), org, audit.Filter{Limit: 200})
	s.must(err)
	out := make([]audit.Event, len(found))
	for i, e := range found {
		out[i] = e.Event
	}
	return out
}

// sql runs a statement as the owner of the tables.
func (s *site) sql(statement string, args ...any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.dsn)
	s.must(err)
	defer conn.Close(s.t.Context())
	_, err = conn.Exec(s.t.Context(), statement, args...)
	s.must(err)
}

// sqlAsSuper runs a statement that no trigger and no policy stops: what only a tamperer could do.
func (s *site) sqlAsSuper(statement string, args ...any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), dbtest.Superuser(s.t, s.dsn))
	s.must(err)
	defer conn.Close(s.t.Context())
	_, err = conn.Exec(s.t.Context(), "SET session_replication_role = replica")
	s.must(err)
	_, err = conn.Exec(s.t.Context(), statement, args...)
	s.must(err)
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// browser is a client with cookies that shows redirects instead of following them.
type browser struct {
	*site
	http   *http.Client
	header http.Header // sent with every request
}

// page is an answer.
type page struct {
	*http.Response
	body string
}

func (s *site) browser() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, http.Header{}}
}

// as is a browser in which the person is signed in.
func (s *site) as(email string) *browser {
	s.t.Helper()
	b := s.browser()
	if p := b.post("/sign-in", "email", email, "password", password); p.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("%s cannot sign in: %d", email, p.StatusCode)
	}
	return b
}

func (b *browser) do(r *http.Request) page {
	b.t.Helper()
	for name, values := range b.header {
		r.Header[name] = values
	}
	res, err := b.http.Do(r)
	b.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	b.must(err)
	return page{res, string(body)}
}

func (b *browser) get(path string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.server.URL+path, nil)
	b.must(err)
	return b.do(r)
}

// post sends a form of name, value, name, value, …
func (b *browser) post(path string, pairs ...string) page {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.send(path, "application/x-www-form-urlencoded", form.Encode())
}

func (b *browser) send(path, kind, body string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(body))
	b.must(err)
	r.Header.Set("Content-Type", kind)
	return b.do(r)
}

// is fails unless the page has the status and holds every text.
func (p page) is(t *testing.T, status int, texts ...string) page {
	t.Helper()
	if p.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", p.Request.Method, p.Request.URL.Path, p.StatusCode, status, excerpt(p.body))
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Fatalf("%s %s: no %q in\n%s", p.Request.Method, p.Request.URL.Path, text, excerpt(p.body))
		}
	}
	return p
}

// lacks fails when the page holds one of the texts.
func (p page) lacks(t *testing.T, texts ...string) page {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			t.Fatalf("%s %s: holds %q", p.Request.Method, p.Request.URL.Path, text)
		}
	}
	return p
}

// goes fails unless the page is a redirect to the path.
func (p page) goes(t *testing.T, path string) page {
	t.Helper()
	p.is(t, http.StatusSeeOther)
	if got := p.Header.Get("Location"); got != path {
		t.Fatalf("%s %s: goes to %q, want %q", p.Request.Method, p.Request.URL.Path, got, path)
	}
	return p
}

func excerpt(body string) string {
	if i := strings.Index(body, "<main"); i >= 0 {
		body = body[i:]
	}
	return body[:min(len(body), 3000)]
}

// between is the text after from and before to, which the page must hold.
func (p page) between(t *testing.T, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(p.body, from)
	if !ok {
		t.Fatalf("no %q in\n%s", from, excerpt(p.body))
	}
	found, _, ok := strings.Cut(rest, to)
	if !ok {
		t.Fatalf("no %q after %q", to, from)
	}
	return found
}
