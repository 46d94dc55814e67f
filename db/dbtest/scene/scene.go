// Package scene owns the organization that tests play in: a migrated database with people of every role, a stranger from another
// organization, and what it takes to have a connection, a profile, a run and an action there. Everything goes through the stores, as the
// product's own changes do, and so past every constraint and trigger. It reaches no upstream (package reached does), decides nothing,
// and no product code imports it.
package scene

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/catalog"
	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
)

// Password is everybody's; its hash is made once, since making one is slow on purpose.
const Password = "a long enough sentence"

var passwordHash = sync.OnceValues(func() (string, error) { return people.HashPassword(secret.New(Password)) })

// Scene is the database and who is in it.
type Scene struct {
	T        testing.TB
	DSN      string // of the owner of the tables
	DB       *db.DB
	Org      identity.Org
	People   map[identity.Role]identity.Person // of Org: one a role, "<role>@harbor.test"
	Other    identity.Org                      // whose owner is nobody in Org
	Stranger identity.Person                   // that owner

	Actions     db.Actions
	Connections db.Connections
	Credentials db.Credentials
	Directory   db.People
	Groups      db.Groups
	Profiles    db.Profiles
	Runs        db.Runs
	Sessions    db.Sessions
	Tokens      db.ServiceTokens
	Trail       db.Audit
}

// Empty is a migrated database before the first organization.
func Empty(t testing.TB) *Scene {
	t.Helper()
	s := &Scene{T: t, DSN: dbtest.New(t, db.Migrate), People: map[identity.Role]identity.Person{}}
	d, err := db.Open(t.Context(), s.DSN)
	s.Must(err)
	t.Cleanup(d.Close)
	s.DB, s.Actions, s.Connections, s.Credentials = d, db.Actions{DB: d}, db.Connections{DB: d}, db.Credentials{DB: d}
	s.Directory, s.Groups, s.Profiles, s.Runs = db.People{DB: d}, db.Groups{DB: d}, db.Profiles{DB: d}, db.Runs{DB: d}
	s.Sessions, s.Tokens, s.Trail = db.Sessions{DB: d}, db.ServiceTokens{DB: d}, db.Audit{DB: d}
	return s
}

// New is a database with two organizations and their people.
func New(t testing.TB) *Scene {
	t.Helper()
	s := Empty(t)
	s.Org, s.People[identity.Owner] = s.organization("harbor", "Harbor & Pine")
	s.Other, s.Stranger = s.organization("elsewhere", "Elsewhere")
	for _, role := range identity.AllRoles {
		if role != identity.Owner {
			s.People[role] = s.Person(string(role)+"@harbor.test", role)
		}
	}
	return s
}

func (s *Scene) organization(slug, name string) (identity.Org, identity.Person) {
	s.T.Helper()
	org := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: slug, Name: name}
	owner := person(org, "owner@"+slug+".test", identity.Owner)
	s.Must(s.Directory.CreateOrganization(s.T.Context(), org, owner, s.hash(), Note(org.ID, audit.OrgCreated, "organization", string(org.ID))))
	return org, owner
}

// Person adds somebody to Org.
func (s *Scene) Person(email string, roles ...identity.Role) identity.Person {
	s.T.Helper()
	p := person(s.Org, email, roles...)
	s.Must(s.Directory.AddPerson(s.T.Context(), p, s.hash(), Note(s.Org.ID, audit.PersonAdded, "person", string(p.ID))))
	return p
}

func person(org identity.Org, email string, roles ...identity.Role) identity.Person {
	return identity.Person{ID: identity.PersonID(identity.NewID("per_")), Org: org.ID, Email: email, Roles: roles, Active: true}
}

func (s *Scene) hash() string {
	s.T.Helper()
	h, err := passwordHash()
	s.Must(err)
	return h
}

// Note is the trail's entry for a change that the operator makes.
func Note(org identity.OrgID, event audit.Event, kind, id string) audit.Entry {
	return audit.Entry{Org: org, Actor: audit.Operator, Event: event, Object: audit.Object{Kind: kind, ID: id}}
}

// Events are the events of an organization's trail, newest first.
func (s *Scene) Events(org identity.OrgID) []audit.Event {
	s.T.Helper()
	found, err := s.Trail.Entries(s.T.Context(), org, audit.Filter{Limit: 200})
	s.Must(err)
	out := make([]audit.Event, len(found))
	for i, e := range found {
		out[i] = e.Event
	}
	return out
}

// Publish makes the binary's own catalog the current release.
func (s *Scene) Publish() release.Digest {
	s.T.Helper()
	p, err := release.Publish(s.T.Context(), s.ReleasesFor(registry.Trusted()), catalog.Files(), registry.Trusted())
	s.Must(err)
	return p.Digest
}

// ReleasesFor is the store of releases over a registry.
func (s *Scene) ReleasesFor(table registry.Table) db.Releases { return db.NewReleases(s.DB, table) }

// SQL runs a statement as the owner of the tables.
func (s *Scene) SQL(statement string, args ...any) {
	s.T.Helper()
	s.exec(s.DSN, statement, args...)
}

// SQLAsSuper runs a statement that no trigger and no policy stops: what only a tamperer could do.
func (s *Scene) SQLAsSuper(statement string, args ...any) {
	s.T.Helper()
	s.exec(dbtest.Superuser(s.T, s.DSN)+"&options=-c%20session_replication_role%3Dreplica", statement, args...)
}

func (s *Scene) exec(dsn, statement string, args ...any) {
	s.T.Helper()
	conn, err := pgx.Connect(s.T.Context(), dsn)
	s.Must(err)
	defer conn.Close(s.T.Context())
	_, err = conn.Exec(s.T.Context(), statement, args...)
	s.Must(err)
}

// Must ends the test where something fails that the test is not about.
func (s *Scene) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}
