package web_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"countersign/db"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/registry"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
	"countersign/web"
	"countersign/web/admin"
)

const crmAddress = "https://crm.example.com/mcp"

// desk is a site with one live run that can ask for things. The member is the person behind it; its token is the owner's.
type desk struct {
	*site
	actions    db.Actions
	runs       db.Runs
	connection installation.Connection
	run        capability.Live
	token      servicetoken.Token
	second     identity.Person // another approver
	bell       *bell
}

// bell remembers what was woken, and fails when it is told to.
type bell struct {
	mu     sync.Mutex
	woken  []action.ID
	broken bool
}

func (b *bell) Wake(_ context.Context, _ identity.OrgID, id action.ID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errors.New("the queue is away")
	}
	b.woken = append(b.woken, id)
	return nil
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := newSite(t)
	d := &desk{site: s, actions: db.Actions{DB: s.db}, runs: db.Runs{DB: s.db}, bell: &bell{}}
	d.second = s.person(s.org, "second@harbor.test", identity.Approver)
	d.grant(policy.AskUserOnWrite)
	e := audit.Entry{Org: s.org.ID, Actor: audit.Operator, Event: audit.ProfileSaved, Object: audit.Object{Kind: "profile", ID: "support"}}
	s.must(db.Profiles{DB: s.db}.SaveProfile(t.Context(), profile.Profile{Org: s.org.ID, Name: "support", Budget: 10, Uses: []profile.Use{{Connection: d.connection.Key}}}, e))
	token, _, hash, err := servicetoken.New(s.people[identity.Owner], "ci", []string{"runs:write"})
	s.must(err)
	e = audit.Entry{Org: s.org.ID, Actor: audit.Operator, Event: audit.TokenCreated, Object: audit.Object{Kind: "token", ID: token.ID}}
	d.token, err = db.ServiceTokens{DB: s.db}.SaveToken(t.Context(), token, hash, time.Hour, e)
	s.must(err)
	d.run = d.mint(run.Order{Surface: policy.Task, Task: "SUP-481", OnBehalfOf: "member@harbor.test"})
	d.serve()
	return d
}

func (d *desk) grant(mode policy.Mode) {
	d.t.Helper()
	d.connection = d.site.connection(d.org, d.publish())
	snapshot, err := policy.NewSnapshot([]policy.Pinned{
		{Tool: "contacts_search", Digest: "d1", Recipe: 1, Effect: policy.Read},
		{Tool: "contacts_create", Digest: "d2", Recipe: 1, Effect: policy.Consequential},
		{Tool: "refund_issue", Digest: "d4", Recipe: 1, Effect: policy.Consequential, Destructive: true},
	})
	d.must(err)
	raws := map[string][]byte{"contacts_search": []byte(`{}`), "contacts_create": []byte(`{}`), "refund_issue": []byte(`{"name":"refund_issue","description":"Pays <b>money</b> back."}`)}
	d.save(policy.Standing{Mode: mode, Snapshot: snapshot}, raws)
}

func (d *desk) save(next policy.Standing, raws map[string][]byte) {
	d.t.Helper()
	store := db.Connections{DB: d.db}
	c, err := store.Connection(d.t.Context(), d.org.ID, d.connection.Key)
	d.must(err)
	e := audit.Entry{Org: d.org.ID, Actor: audit.Operator, Event: audit.AccessSaved, Object: audit.Object{Kind: "connection", ID: d.connection.Key.String()}}
	d.connection, err = store.SaveStanding(d.t.Context(), c, next, raws, e)
	d.must(err)
}

func (d *desk) mint(o run.Order) capability.Live {
	d.t.Helper()
	o.Profile, o.TTL = "support", time.Hour
	_, hash := run.NewToken()
	e := audit.Entry{Org: d.org.ID, Actor: audit.Actor{Kind: audit.ByService, ID: d.token.ID, Name: "ci"}, Event: audit.RunStarted}
	l, _, err := d.runs.Mint(d.t.Context(), capability.Order{Order: o, Token: d.token, TokenHash: hash}, e)
	d.must(err)
	return l
}

func (d *desk) serve() {
	d.server = httptest.NewUnstartedServer(nil)
	origin := "http://" + d.server.Listener.Addr().String()
	h := d.handlers(origin)
	h.Actions = &admin.Actions{
		Reader: d.actions, Decider: d.actions, Runs: d.runs, Connections: db.Connections{DB: d.db}, Releases: db.NewReleases(d.db, registry.Trusted()),
		Directory: db.People{DB: d.db}, Trail: db.Audit{DB: d.db}, Waker: d.bell, Freezer: d.actions, Investigator: d.actions,
	}
	h.Runs = &admin.Runs{Store: d.runs, Actions: h.Actions, Observed: db.Connections{DB: d.db}}
	handler, err := web.New(d.config(origin), h)
	d.must(err)
	d.server.Config.Handler = handler
	d.server.Start()
	d.t.Cleanup(d.server.Close)
}

var definitions = map[string]string{"contacts_create": "d2", "refund_issue": "d4"}

// asks stages a call of the run.
func (d *desk) asks(tool, arguments, why string) action.Action {
	d.t.Helper()
	canonical, err := action.Arguments([]byte(arguments))
	d.must(err)
	p := action.Proposal{
		Org: d.org.ID, Run: d.run.Run.ID, Connection: d.connection.Key, Tool: tool, Definition: definitions[tool], Arguments: canonical, Destination: crmAddress, Justification: why,
		ArgsDigest: action.Digest(d.connection.Key, tool, definitions[tool], crmAddress, canonical), Key: action.DerivedKey(d.run.Run.ID, d.connection.Key, tool, canonical),
	}
	a, created, err := d.actions.Stage(d.t.Context(), p)
	if err != nil || !created {
		d.t.Fatalf("not staged: created %t, %v", created, err)
	}
	return a
}

func (d *desk) refund() action.Action {
	d.t.Helper()
	return d.asks("refund_issue", `{"contact_id":"c_1042","amount_cents":24000,"reason":"Parcel lost"}`, "The carrier confirmed it.")
}

func (d *desk) read(id action.ID) action.Action {
	d.t.Helper()
	a, err := d.actions.Action(d.t.Context(), d.org.ID, id)
	d.must(err)
	return a
}

func (d *desk) isIn(id action.ID, want action.State) {
	d.t.Helper()
	if got := d.read(id).State; got != want {
		d.t.Errorf("the action is %s, want %s", got, want)
	}
}

// lost is an action that was approved and sent, and whose answer never came.
func (d *desk) lost() action.Action {
	d.t.Helper()
	a := d.refund()
	a, err := d.actions.Approve(d.t.Context(), action.Decision{Org: d.org.ID, Action: a.ID, By: d.people[identity.Approver], ArgsDigest: a.ArgsDigest, Version: a.Version})
	d.must(err)
	claimed, err := d.actions.Claim(d.t.Context(), d.org.ID, a.ID, action.Ready{Definition: a.Definition, Destination: crmAddress})
	d.must(err)
	began := time.Date(2026, 11, 30, 14, 2, 11, 204_000_000, time.UTC)
	outcome := action.Uncertain("upstream_error", "The request was sent and the connection ended before an answer came.",
		action.Evidence{StartedAt: began, EndedAt: began.Add(30003 * time.Millisecond), BytesWritten: 412, Transport: "broken"})
	a, err = d.actions.Complete(d.t.Context(), claimed, outcome)
	d.must(err)
	return a
}

// later lets time pass for one action, past the triggers that hold its row still.
func (d *desk) later(id action.ID, by time.Duration) {
	d.t.Helper()
	d.sqlAsSuper(`UPDATE actions SET requested_at = requested_at - $2::interval, expires_at = expires_at - $2::interval, decided_at = decided_at - $2::interval,
		claimed_at = claimed_at - $2::interval, lease_until = lease_until - $2::interval, settles_at = settles_at - $2::interval WHERE id = $1`, id, by)
}

// presses posts the form of a card as it shows this action.
func (b *browser) presses(a action.Action, verb string, more ...string) page {
	b.t.Helper()
	return b.post("/actions/"+string(a.ID)+"/"+verb, append([]string{"args_digest", a.ArgsDigest, "version", strconv.Itoa(a.Version)}, more...)...)
}
