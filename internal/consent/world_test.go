package consent_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/audit"
	"countersign/internal/consent"
	"countersign/internal/consent/consenttest"
	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/egress"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/reach"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
)

// desk is a manifest of the Sandbox CRM behind consent; %s stands for more fields of the contract.
const desk = `key = "desk"
name = "Practice desk"
category = "customers"
summary = "Contacts of a desk that exists for tests."
description = "A desk with contacts behind an authorization server, described at some length."
mark = "P"
kind = "hosted"
runtime = "sandbox_crm.v1"
why_this_kind = "The service is a hosted MCP server with annotated tools."

[[auth]]
contract = "oauth2"
%s

[[grants]]
id = "read"
title = "Read contacts"
why = "Agents look contacts up before they answer."
scopes = ["contacts:read"]

[[grants]]
id = "write"
title = "Change contacts"
why = "Agents correct what customers tell them."
scopes = ["contacts:write"]
optional = true

[tools.contacts_list]
effect = "read"
reviewed = "2026-11-30"
why = "Lists contacts and changes nothing."

[tools.contacts_create]
effect = "consequential"
reviewed = "2026-11-30"
why = "Makes a contact."
arguments = ["name"]
sentence = "Create the contact {name}"
needs = ["write"]

[probe]
tool = "contacts_list"
`

// world is an authorization server with the CRM behind it, a database, and one connection that nobody has consented to yet.
type world struct {
	*testing.T
	server  *consenttest.Server
	dsn     string
	keys    *secret.Keyset
	table   registry.Table
	owner   identity.Person
	session []byte
	first   *replica
	key     string
	super   *pgxpool.Pool
	others  int // rows that belong to other connections
}

// replica is one server process: a pool, a desk, and the lines it reaches services by.
type replica struct {
	db          *db.DB
	desk        *consent.Desk
	lines       *reach.Lines
	connections *installation.Connections
}

func newWorld(t *testing.T, fields string) *world {
	t.Helper()
	return newWorldOf(t, "sandbox_crm.v1", fields)
}

// newWorldOf is a world over another runtime, with every address of it at the server.
func newWorldOf(t *testing.T, runtime registry.Key, fields string) *world {
	t.Helper()
	w := &world{T: t, dsn: dbtest.New(t, db.Migrate), session: []byte("browser-session-of-the-owner")}
	w.server = consenttest.New(t, crm.New(crm.Config{BearerToken: "crm-own-credential", ControlToken: "crm-own-control"}).Handler(), "crm-own-credential")
	w.table = w.moved(runtime, map[registry.Role]string{
		registry.MCP: w.server.MCP(), registry.Authorize: w.server.URL + "/authorize", registry.Token: w.server.URL + "/token", registry.Revoke: w.server.URL + "/revoke",
	})
	var err error
	w.keys, err = secret.Generate()
	w.must(err)
	w.super, err = pgxpool.New(t.Context(), dbtest.Superuser(t, w.dsn))
	w.must(err)
	t.Cleanup(w.super.Close)
	w.first = w.replica()
	org := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: "home", Name: "Home"}
	w.owner = identity.Person{ID: identity.PersonID(identity.NewID("usr_")), Org: org.ID, Email: "owner@home.test", Name: "Owner", Active: true, Roles: []identity.Role{identity.Owner}}
	people := db.People{DB: w.first.db}
	w.must(people.CreateOrganization(t.Context(), org, w.owner, "hash", audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.OrgCreated, Object: audit.Object{Kind: "organization", ID: string(org.ID)}}))
	files := fstest.MapFS{"desk.toml": {Data: []byte(strings.NewReplacer("%s", fields, "sandbox_crm.v1", string(runtime)).Replace(desk))}}
	_, err = release.Publish(t.Context(), db.NewReleases(w.first.db, w.table), files, w.table)
	w.must(err)
	w.key = w.install("Desk")
	return w
}

// moved is the registry with those addresses of a runtime that it has, as an operator's file would have them.
func (w *world) moved(runtime registry.Key, addresses map[registry.Role]string) registry.Table {
	w.Helper()
	entry, _ := registry.Trusted().Lookup(runtime)
	var overrides []registry.Override
	for role, address := range addresses {
		if _, ok := entry.Endpoints[role]; !ok {
			continue
		}
		target := string(runtime) + "/" + string(role)
		if role == registry.MCP {
			target = string(runtime)
		}
		o, err := registry.Trusted().NewOverride(target, address)
		w.must(err)
		overrides = append(overrides, o)
	}
	return registry.Trusted().With(overrides...)
}

// replica starts another server process on the same database and keys.
func (w *world) replica() *replica {
	w.Helper()
	d, err := db.Open(w.Context(), w.dsn)
	w.must(err)
	w.Cleanup(d.Close)
	return w.over(d, w.table, "http://127.0.0.1:8080")
}

// over is a server with that registry and that public address.
func (w *world) over(d *db.DB, table registry.Table, public string) *replica {
	releases, store, credentials := db.NewReleases(d, table), db.Connections{DB: d}, db.Credentials{DB: d}
	consents := db.Consents{DB: d}
	log := slog.New(slog.DiscardHandler)
	lines := reach.New(releases, table, credential.NewVault(w.keys, credentials), map[registry.Kind]provider.Provider{hosted.Kind: hosted.New("test")}).
		Keeping(&consent.Keeper{Store: consents, Directory: consents, Registry: table, Keys: w.keys, Log: log})
	w.Cleanup(lines.Close)
	connections := &installation.Connections{Read: store, Write: store, Prober: lines, Releases: releases, Credentials: credentials, Registry: table, Keys: w.keys}
	return &replica{db: d, lines: lines, connections: connections, desk: &consent.Desk{
		Ours: consent.Ours{PublicURL: public}, Requests: consents, Store: consents, Directory: consents, Connections: store, Manifests: connections,
		Registry: table, Keys: w.keys, Log: log,
	}}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) install(name string) string {
	w.Helper()
	c, err := w.first.connections.Install(w.Context(), w.owner, installation.Setup{Integration: "desk", Name: name, Contract: manifest.OAuth2})
	w.must(err)
	if c.State != installation.NeedsConsent {
		w.Fatalf("a connection nobody consented to is %s", c.State)
	}
	return c.Key.String()
}

func (w *world) connection() installation.Connection {
	w.Helper()
	c, err := w.first.connections.Read.Connection(w.Context(), w.owner.Org, keyOf(w.key))
	w.must(err)
	return c
}

func (w *world) held() consent.Consent {
	w.Helper()
	c, _, err := db.Consents{DB: w.first.db}.Held(w.Context(), credential.Place{Org: w.owner.Org, Connection: keyOf(w.key)})
	w.must(err)
	return c
}

// leave starts a consent and answers where the person is sent.
func (w *world) leave(l consent.Leave) consent.Departure {
	w.Helper()
	if l.Key == "" {
		l.Key = keyOf(w.key)
	}
	l.Session = w.session
	d, err := w.first.desk.Start(w.Context(), w.owner, l)
	w.must(err)
	return d
}

// visit is the browser at the authorization server: it answers what comes back to the callback.
func (w *world) visit(to string) consent.Answer {
	w.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, to, nil)
	w.must(err)
	res, err := client.Do(r)
	w.must(err)
	w.must(res.Body.Close())
	back, err := res.Location()
	if err != nil {
		w.Fatalf("the authorization server answers %s and sends nobody back", res.Status)
	}
	q := back.Query()
	_, named := q["iss"]
	return consent.Answer{State: q.Get("state"), Code: q.Get("code"), Error: q.Get("error"), Issue: q.Get("iss"), Named: named}
}

func (w *world) receive(a consent.Answer) (consent.Received, error) {
	return w.first.desk.Receive(w.Context(), w.owner, w.session, a)
}

// consents goes all the way.
func (w *world) consents(chosen ...string) consent.Received {
	w.Helper()
	r, err := w.receive(w.visit(w.leave(consent.Leave{Chosen: chosen}).URL))
	w.must(err)
	return r
}

// read calls a read through a replica, as an agent's call would.
func (w *world) read(r *replica) error {
	line, err := r.lines.Open(w.Context(), w.connection())
	if err != nil {
		return err
	}
	_, err = line.Read(w.Context(), provider.Call{Tool: "contacts_list", Arguments: []byte(`{"limit":1}`)})
	return err
}

var manifestOAuth manifest.OAuth

func (w *world) keeper() *consent.Keeper {
	return &consent.Keeper{Store: w.first.desk.Store, Directory: w.first.desk.Directory, Registry: w.table, Keys: w.keys, Log: w.first.desk.Log}
}

func entryOf(c consent.Consent) audit.Entry {
	return audit.Entry{Org: c.Org, Actor: audit.System("consent"), Event: audit.ConsentLost, Object: audit.Object{Kind: "connection", ID: c.Connection.String()}}
}

func bodyOf(t *testing.T, e egress.Editor, text string) string {
	t.Helper()
	b, err := io.ReadAll(e.Body(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// colleague is another owner.
func (w *world) colleague() identity.Person {
	w.Helper()
	p := w.owner
	p.ID, p.Email, p.Name = identity.PersonID(identity.NewID("usr_")), "colleague@home.test", "Colleague"
	w.must(db.People{DB: w.first.db}.AddPerson(w.Context(), p, "hash", audit.Entry{Org: p.Org, Actor: audit.Operator, Event: audit.PersonAdded, Object: audit.Object{Kind: "person", ID: string(p.ID)}}))
	return p
}

// count is one number past every rule.
func (w *world) count(statement string) (n int) {
	w.Helper()
	w.must(w.super.QueryRow(w.Context(), statement).Scan(&n))
	return n
}

// sql does what time, a vendor or an operator would, past every rule.
func (w *world) sql(statement string, args ...any) {
	w.Helper()
	_, err := w.super.Exec(w.Context(), statement, args...)
	w.must(err)
}

func query(raw string) url.Values {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u.Query()
}
