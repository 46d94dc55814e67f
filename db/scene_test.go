package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/run"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
)

const (
	address = "https://crm.example.com/mcp"
	rel     = "sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// scene is a database with two organizations, people of every kind, a profile, one connection in use and one live run.
type scene struct {
	t           *testing.T
	dsn         string
	db          *db.DB
	owner       *pgxpool.Pool // the owner of the tables
	actions     db.Actions
	connections db.Connections
	credentials db.Credentials
	runs        db.Runs
	org, other  identity.OrgID
	asker       identity.Person // the person behind the run
	approver    identity.Person
	approver2   identity.Person
	admin       identity.Person
	tokenOwner  identity.Person // an owner, and whose token starts runs
	stranger    identity.Person // approver of the other organization
	token       servicetoken.Token
	connection  installation.Connection
	run         capability.Live
	seq         int
}

func newScene(t *testing.T, mode policy.Mode) *scene {
	t.Helper()
	dsn := dbtest.New(t, db.Migrate)
	d, err := db.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{
		t: t, dsn: dsn, db: d, owner: owner, actions: db.Actions{DB: d}, connections: db.Connections{DB: d}, credentials: db.Credentials{DB: d}, runs: db.Runs{DB: d},
		org: "org_home", other: "org_other",
	}
	t.Cleanup(d.Close)
	t.Cleanup(owner.Close)
	t.Cleanup(s.checkInvariants)
	s.sql(`INSERT INTO orgs (id, slug, name) VALUES ('org_home', 'home', 'Home'), ('org_other', 'other', 'Other')`)
	s.sql(`INSERT INTO releases (digest, file_count) VALUES ($1, 0)`, rel)
	s.asker, s.approver = s.person(s.org, "asker", identity.Member, identity.Approver), s.person(s.org, "robin", identity.Approver)
	s.approver2, s.admin = s.person(s.org, "kim", identity.Approver), s.person(s.org, "admin", identity.Admin)
	s.tokenOwner, s.stranger = s.person(s.org, "owner", identity.Owner), s.person(s.other, "stranger", identity.Owner)
	s.token = s.newToken(s.tokenOwner)
	s.connection = s.install(s.org, "crm-aaaaaa")
	s.connection = s.save(s.connection, mode, everyTool...)
	s.sql(`INSERT INTO profiles (org_id, name, budget) VALUES ($1, 'engineering', 10)`, s.org)
	s.use("engineering", s.connection.Key, nil, nil)
	s.run = s.mint(run.Order{})
	return s
}

var everyTool = []policy.Pinned{
	{Tool: "contacts_create", Digest: "def-create", Recipe: 1, Effect: policy.Consequential},
	{Tool: "contacts_delete", Digest: "def-delete", Recipe: 1, Effect: policy.Consequential, Destructive: true},
	{Tool: "contacts_search", Digest: "def-search", Recipe: 1, Effect: policy.Read},
}

// sql runs a statement as the owner of the tables, past row-level security but not past constraints and triggers.
func (s *scene) sql(statement string, args ...any) {
	s.t.Helper()
	if err := s.try(statement, args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *scene) try(statement string, args ...any) error {
	_, err := s.owner.Exec(context.Background(), statement, args...)
	return err
}

// value reads one value as the owner.
func value[T any](s *scene, query string, args ...any) T {
	s.t.Helper()
	var v T
	if err := s.owner.QueryRow(context.Background(), query, args...).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return v
}

// later lets time pass for one action: every time of it moves into the past. Only a superuser can, and only with the triggers off.
func (s *scene) later(id action.ID, by time.Duration) {
	s.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dbtest.Superuser(s.t, s.dsn))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET session_replication_role = replica"); err != nil {
		s.t.Fatal(err)
	}
	tag, err := conn.Exec(ctx, `UPDATE actions SET requested_at = requested_at - $2::interval, expires_at = expires_at - $2::interval, decided_at = decided_at - $2::interval,
		claimed_at = claimed_at - $2::interval, lease_until = lease_until - $2::interval, settles_at = settles_at - $2::interval, finished_at = finished_at - $2::interval WHERE id = $1`, id, by)
	if err != nil || tag.RowsAffected() != 1 {
		s.t.Fatal(tag, err)
	}
}

func (s *scene) person(org identity.OrgID, name string, roles ...identity.Role) identity.Person {
	p := identity.Person{ID: identity.PersonID("per_" + name), Org: org, Email: name + "@example.com", Name: strings.ToUpper(name[:1]) + name[1:], Roles: roles, Active: true}
	s.sql(`INSERT INTO people (id, org_id, email, name, roles) VALUES ($1, $2, $3, $4, $5)`, p.ID, org, p.Email, p.Name, roles)
	return p
}

func (s *scene) newToken(owner identity.Person) servicetoken.Token {
	id := identity.NewID("tok_")
	s.sql(`INSERT INTO service_tokens (id, org_id, name, scopes, owner_id, hash, last_four, expires_at) VALUES ($1, $2, 'ci', '{runs:write}', $3, $4, 'abcd', now() + interval '1 day')`,
		id, owner.Org, owner.ID, []byte(id))
	return servicetoken.Token{ID: id, Org: owner.Org, Name: "ci", Owner: owner.ID}
}

func (s *scene) use(profile string, key connector.Key, mode *string, tools []string) {
	s.sql(`INSERT INTO profile_uses (org_id, profile, connection_key, position, mode, tools) VALUES ($1, $2, $3, 1, $4, $5)`, s.org, profile, key, mode, tools)
}

func (s *scene) install(org identity.OrgID, key connector.Key) installation.Connection {
	s.t.Helper()
	c, err := s.connections.Install(s.t.Context(), installation.Connection{
		ID: identity.NewID("con_"), Org: org, Key: key, Integration: "sandbox-crm", Kind: registry.Hosted, Runtime: "sandbox-crm.v1", Release: rel, Name: "Sandbox CRM",
		State: installation.Active, Destination: address, Contract: "token", Settings: map[string]string{"region": "eu", "account": "12"}, CreatedBy: "Admin",
	}, sealedFor(org, key, 1), s.entry(org, audit.ConnectionInstalled, string(key)))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func sealedFor(org identity.OrgID, key connector.Key, version int64) []credential.Record {
	return []credential.Record{{
		Place: credential.Place{Org: org, Connection: key}, Field: "token", Version: version, Sealed: secret.Sealed("sealed bytes"), Origin: "https://crm.example.com",
		Fingerprint: "0123456789ab", Last4: "wxyz",
	}}
}

func (s *scene) entry(org identity.OrgID, event audit.Event, object string) audit.Entry {
	return audit.Entry{Org: org, Actor: audit.Actor{Kind: audit.ByPerson, ID: "per_admin", Name: "Admin"}, Event: event, Object: audit.Object{Kind: "connection", ID: object}}
}

// save grants tools as an admin would.
func (s *scene) save(c installation.Connection, mode policy.Mode, tools ...policy.Pinned) installation.Connection {
	s.t.Helper()
	snapshot, err := policy.NewSnapshot(tools)
	if err != nil {
		s.t.Fatal(err)
	}
	raws := map[string][]byte{}
	for _, p := range tools {
		raws[p.Tool] = []byte(`{"name":"` + p.Tool + `"}`)
	}
	c, err = s.connections.SaveStanding(s.t.Context(), s.fresh(c), policy.Standing{Mode: mode, Snapshot: snapshot}, raws, s.entry(c.Org, audit.AccessSaved, string(c.Key)))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *scene) fresh(c installation.Connection) installation.Connection {
	s.t.Helper()
	now, err := s.connections.Connection(s.t.Context(), c.Org, c.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	return now
}

// mint starts a run; what the order leaves out is the ordinary task run.
func (s *scene) mint(o run.Order) capability.Live {
	s.t.Helper()
	l, err := s.tryMint(o, "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *scene) tryMint(o run.Order, key, digest string) (capability.Live, error) {
	if o.Surface == "" {
		o.Surface, o.Task, o.OnBehalfOf = policy.Task, "ENG-12", s.asker.Email
	}
	if o.Profile == "" {
		o.Profile = "engineering"
	}
	if o.TTL == 0 {
		o.TTL = time.Hour
	}
	_, hash := run.NewToken()
	l, _, err := s.runs.Mint(context.Background(), capability.Order{Order: o, Token: s.token, TokenHash: hash, IdempotencyKey: key, RequestDigest: digest},
		audit.Entry{Actor: audit.Actor{Kind: audit.ByService, ID: s.token.ID, Name: "ci"}, Event: audit.RunStarted})
	return l, err
}

// proposal is a call nobody made before.
func (s *scene) proposal() action.Proposal {
	s.seq++
	return s.call(s.run, "contacts_create", fmt.Sprintf(`{"name":"Nr %d"}`, s.seq))
}

func (s *scene) call(l capability.Live, tool, arguments string) action.Proposal {
	definition := "def-" + strings.TrimPrefix(tool, "contacts_")
	p := action.Proposal{
		Org: s.org, Run: l.Run.ID, Connection: s.connection.Key, Tool: tool, Definition: definition, Arguments: []byte(arguments), Destination: address,
		Justification: "because",
	}
	p.Key = action.DerivedKey(p.Run, p.Connection, p.Tool, p.Arguments)
	return digested(p)
}

// digested is a proposal whose digest fits again after an edit.
func digested(p action.Proposal) action.Proposal {
	p.ArgsDigest = action.Digest(p.Connection, p.Tool, p.Definition, p.Destination, p.Arguments)
	return p
}

func (s *scene) stage(p action.Proposal) action.Action {
	s.t.Helper()
	a, created, err := s.actions.Stage(context.Background(), p)
	if err != nil || !created {
		s.t.Fatalf("stage: created %t, %v", created, err)
	}
	return a
}

func (s *scene) decision(a action.Action, by identity.Person) action.Decision {
	return action.Decision{Org: by.Org, Action: a.ID, By: by, ArgsDigest: a.ArgsDigest, Version: a.Version, Reason: "fine by me"}
}

func (s *scene) approved() action.Action {
	s.t.Helper()
	a, err := s.actions.Approve(context.Background(), s.decision(s.stage(s.proposal()), s.approver))
	return s.must(a, err)
}

func (s *scene) claim(a action.Action) (action.Dispatch, error) {
	return s.actions.Claim(context.Background(), a.Org, a.ID, action.Ready{Definition: a.Definition, Destination: address})
}

func (s *scene) claimed() action.Dispatch {
	s.t.Helper()
	d, err := s.claim(s.approved())
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scene) uncertain() action.Action {
	s.t.Helper()
	a, err := s.actions.Complete(context.Background(), s.claimed(), action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{BytesWritten: 9}))
	return s.must(a, err)
}

func (s *scene) must(a action.Action, err error) action.Action {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *scene) read(id action.ID) action.Action {
	s.t.Helper()
	a, err := s.actions.Action(context.Background(), s.org, id)
	return s.must(a, err)
}

// isIn checks what the database itself holds, not what a reader shows.
func (s *scene) isIn(id action.ID, want action.State) {
	s.t.Helper()
	if got := value[string](s, `SELECT state FROM actions WHERE id = $1`, id); got != string(want) {
		s.t.Errorf("action is %s, want %s", got, want)
	}
}

func (s *scene) used() int {
	s.t.Helper()
	return value[int](s, `SELECT consequential_used FROM runs WHERE id = $1`, s.run.Run.ID)
}

// refused checks the code of a refusal.
func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("got %v, want a refusal with code %s", err, code)
	}
}

// says checks that a refusal tells a person something.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

// checkInvariants runs at the end of every test.
func (s *scene) checkInvariants() {
	dbtest.Holds(s.t, s.owner, "testdata/invariants.sql")
}
