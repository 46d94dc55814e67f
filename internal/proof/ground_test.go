package proof

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/run"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
)

const (
	invariants = "../../db/testdata/invariants.sql"
	address    = "https://crm.example.com/mcp"
	release    = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	home       = identity.OrgID("org_home")
)

// person is one of those who try to decide.
type person int

const (
	approver person = iota
	approver2
	admin
	asker    // an approver, and whom the run is for
	owner    // an owner, and whose token started the run
	stranger // an owner of another organization
	people
)

var names = [people]string{"approver", "approver2", "admin", "asker", "owner", "stranger"}

// ground is a database with an organization in it, on which many sequences are played, each with a connection of its own.
type ground struct {
	db     *db.DB
	owner  *pgxpool.Pool // of the tables
	super  *pgxpool.Pool // for moving time, which needs the triggers off
	people [people]identity.Person
	token  servicetoken.Token
}

func newGround(t *testing.T) *ground {
	t.Helper()
	dsn := dbtest.New(t, db.Migrate)
	d, err := db.Open(t.Context(), dsn)
	must(t, err)
	t.Cleanup(d.Close)
	g := &ground{db: d, owner: pool(t, dsn), super: pool(t, dbtest.Superuser(t, dsn)+"&options=-c%20session_replication_role%3Dreplica")}
	g.sql(t, `INSERT INTO orgs (id, slug, name) VALUES ('org_home', 'home', 'Home'), ('org_other', 'other', 'Other')`)
	g.sql(t, `INSERT INTO releases (digest, file_count) VALUES ($1, 0)`, release)
	for p, roles := range [people][]identity.Role{{identity.Approver}, {identity.Approver}, {identity.Admin}, {identity.Member, identity.Approver}, {identity.Owner}, {identity.Owner}} {
		org := home
		if person(p) == stranger {
			org = "org_other"
		}
		g.people[p] = identity.Person{ID: identity.PersonID("per_" + names[p]), Org: org, Email: names[p] + "@example.com", Name: names[p], Roles: roles, Active: true}
		g.sql(t, `INSERT INTO people (id, org_id, email, name, roles) VALUES ($1, $2, $3, $4, $5)`, g.people[p].ID, org, g.people[p].Email, names[p], roles)
	}
	g.sql(t, `INSERT INTO approver_groups (org_id, name) VALUES ($1, 'second')`, home)
	g.sql(t, `INSERT INTO approver_group_members (org_id, group_name, person_id) VALUES ($1, 'second', $2)`, home, g.people[approver2].ID)
	g.token = servicetoken.Token{ID: "tok_1", Org: home, Name: "ci", Owner: g.people[owner].ID}
	g.sql(t, `INSERT INTO service_tokens (id, org_id, name, scopes, owner_id, hash, last_four, expires_at) VALUES ('tok_1', $1, 'ci', '{runs:write}', $2, '\x01', 'abcd', now() + interval '1 day')`,
		home, g.token.Owner)
	g.obstacle(t)
	return g
}

// obstacle is a full disk that can be switched on: no row of the trail can be written.
func (g *ground) obstacle(t *testing.T) {
	t.Helper()
	g.sql(t, `CREATE TABLE disk (is_full boolean NOT NULL)`)
	g.sql(t, `INSERT INTO disk VALUES (false)`)
	g.sql(t, `CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
		BEGIN IF (SELECT is_full FROM disk) THEN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$`)
	g.sql(t, `CREATE TRIGGER disk_full BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION disk_full()`)
}

func (g *ground) fill(t *testing.T, full bool) {
	t.Helper()
	g.sql(t, `UPDATE disk SET is_full = $1`, full)
}

func pool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), dsn)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (g *ground) sql(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := g.owner.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// stores are one sequence's view of the ground: a connection, a profile, runs and actions of its own.
type stores struct {
	*ground
	t           *testing.T
	actions     db.Actions
	connections db.Connections
	runs        db.Runs
	key         connector.Key
	profile     string
	live        []capability.Live
	ids         []action.ID

	mu     sync.Mutex // of what two who do the same at once note
	claims map[action.ID]action.Dispatch
}

func (g *ground) stores(t *testing.T) *stores {
	t.Helper()
	word := identity.NewID("")[:6]
	s := &stores{
		ground: g, t: t, actions: db.Actions{DB: g.db}, connections: db.Connections{DB: g.db}, runs: db.Runs{DB: g.db},
		key: connector.Key("crm-" + word), profile: "p" + word, claims: map[action.ID]action.Dispatch{},
	}
	_, err := s.connections.Install(context.Background(), installation.Connection{
		ID: identity.NewID("con_"), Org: home, Key: s.key, Integration: "sandbox-crm", Kind: registry.Hosted, Runtime: "sandbox-crm.v1", Release: release, Name: "CRM",
		State: installation.Active, Destination: address, Contract: "token", CreatedBy: "admin",
	}, s.sealed(1), s.entry(audit.ConnectionInstalled))
	must(t, err)
	g.sql(t, `INSERT INTO profiles (org_id, name, budget) VALUES ($1, $2, $3)`, home, s.profile, budget)
	return s
}

func (s *stores) sealed(version int64) []credential.Record {
	return []credential.Record{{
		Place: credential.Place{Org: home, Connection: s.key}, Field: "token", Version: version, Sealed: secret.Sealed("sealed"), Origin: "https://crm.example.com",
		Fingerprint: "0123456789ab", Last4: "wxyz",
	}}
}

func (s *stores) entry(event audit.Event) audit.Entry {
	return audit.Entry{Org: home, Actor: audit.Person(s.people[admin]), Event: event, Object: audit.Object{Kind: "connection", ID: s.key.String()}}
}

func (s *stores) connection() (installation.Connection, error) {
	return s.connections.Connection(context.Background(), home, s.key)
}

// allow sets what the profile leaves of the connection, how much of it in a day, and who is asked.
func (s *stores) allow(m *model) {
	s.t.Helper()
	s.sql(s.t, `DELETE FROM profile_uses WHERE org_id = $1 AND profile = $2`, home, s.profile)
	if m.profile == 2 {
		return
	}
	var mode, group any
	if m.profile == 1 {
		mode = string(policy.ReadOnly)
	}
	if m.asks.group {
		group = "second"
	}
	s.sql(s.t, `INSERT INTO profile_uses (org_id, profile, connection_key, position, mode, daily_actions, signatures, approvers) VALUES ($1, $2, $3, 1, $4, $5, $6, $7)`,
		home, s.profile, s.key, mode, m.daily, m.asks.signatures, group)
}

func (s *stores) mint() (capability.Live, error) {
	_, hash := run.NewToken()
	l, _, err := s.runs.Mint(context.Background(), capability.Order{
		Order: run.Order{Surface: policy.Task, Profile: s.profile, Task: "ENG-1", OnBehalfOf: s.people[asker].Email, TTL: time.Hour}, Token: s.token, TokenHash: hash,
	}, audit.Entry{Actor: audit.Actor{Kind: audit.ByService, ID: s.token.ID, Name: "ci"}, Event: audit.RunStarted})
	return l, err
}

func (s *stores) stand(mode policy.Mode, pinned [tools]int) error {
	c, err := s.connection()
	if err != nil {
		return err
	}
	var list []policy.Pinned
	raws := map[string][]byte{}
	for tool, definition := range pinned {
		if definition > 0 {
			list = append(list, policy.Pinned{Tool: toolName(tool), Digest: digestOf(definition), Recipe: 1, Effect: policy.Consequential})
			raws[toolName(tool)] = []byte(`{}`)
		}
	}
	snapshot, err := policy.NewSnapshot(list)
	if err != nil {
		return err
	}
	_, err = s.connections.SaveStanding(context.Background(), c, policy.Standing{Mode: mode, Snapshot: snapshot}, raws, s.entry(audit.AccessSaved))
	return err
}

func (s *stores) end(state installation.State) error {
	c, err := s.connection()
	if err != nil {
		return err
	}
	_, err = s.connections.End(context.Background(), c, state, s.entry(audit.ConnectionRetired))
	return err
}

func (s *stores) reconnect() error {
	c, err := s.connection()
	if err != nil {
		return err
	}
	_, err = s.connections.ReplaceCredential(context.Background(), c, s.sealed(int64(c.Version)+1), s.entry(audit.CredentialReplaced))
	return err
}

func toolName(tool int) string { return []string{"contacts_create", "contacts_delete"}[tool] }

func digestOf(definition int) string { return fmt.Sprintf("definition-%d", definition) }

// ages moves every time of actions, and of the freezes that stand over them, a day and an hour into the past. Only a superuser can, and
// only with the triggers off.
func (s *stores) ages(ids ...action.ID) {
	s.t.Helper()
	_, err := s.super.Exec(context.Background(), `UPDATE actions SET requested_at = requested_at - d, expires_at = expires_at - d, decided_at = decided_at - d,
		claimed_at = claimed_at - d, lease_until = lease_until - d, settles_at = settles_at - d, finished_at = finished_at - d
		FROM (SELECT interval '25 hours' AS d) x WHERE id = ANY ($1)`, ids)
	must(s.t, err)
	_, err = s.super.Exec(context.Background(), `UPDATE freezes SET since = since - interval '25 hours' WHERE lifted_at IS NULL AND key IN ($1, $2)`, s.key, s.profile)
	must(s.t, err)
}

// calm ends what earlier sequences left to the sweeps, which ask about no connection.
func (g *ground) calm(t *testing.T) {
	t.Helper()
	for _, sweep := range []func(context.Context) (int, error){db.Actions{DB: g.db}.ExpireDue, db.Actions{DB: g.db}.LeasesEnded} {
		_, err := sweep(t.Context())
		must(t, err)
	}
}
