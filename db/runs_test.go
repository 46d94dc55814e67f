package db_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
)

func TestMintingCopiesWhatTheProfileLeavesOfTheSnapshot(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	if tools := minted(s.run); tools != "contacts_create contacts_delete contacts_search" {
		t.Errorf("everything: %s", tools)
	}
	r := s.run.Run
	if r.Surface != policy.Task || r.Task != "ENG-12" || r.Profile != "engineering" || r.OnBehalfOf != s.asker.ID || r.OnBehalfEmail != s.asker.Email || r.TokenID != s.token.ID ||
		r.TokenOwner != s.tokenOwner.ID || r.Budget != 10 || r.Used != 0 || r.ExpiresAt.Sub(r.StartedAt).Round(time.Second) != time.Hour || s.run.Org.Slug != "home" {
		t.Errorf("%+v %+v", r, s.run.Org)
	}
	s.sql(`UPDATE profile_uses SET tools = '{contacts_delete,contacts_search,contacts_unknown}'`)
	if tools := minted(s.mint(run.Order{})); tools != "contacts_delete contacts_search" {
		t.Errorf("narrower tools: %s", tools)
	}
	s.sql(`UPDATE profile_uses SET tools = '{}'`)
	if tools := minted(s.mint(run.Order{})); tools != "" {
		t.Errorf("no tools: %s", tools)
	}
	s.sql(`UPDATE profile_uses SET tools = NULL, mode = 'read_only'`)
	narrow := s.mint(run.Order{})
	if tools := minted(narrow); tools != "contacts_search" {
		t.Errorf("a reading profile: %s", tools)
	}
	s.sql(`UPDATE profile_uses SET mode = NULL`)
	if l, err := s.runs.Run(t.Context(), s.org, narrow.Run.ID); err != nil || minted(l) != "contacts_search" {
		t.Errorf("a capability grew: %s %v", minted(l), err)
	}
}

func minted(l capability.Live) string {
	if len(l.Grants) != 1 {
		return "?"
	}
	return strings.Join(l.Grants[0].Minted.Tools(), " ")
}

func TestALiveRunShowsWhatWasMintedAndWhatIsLeftOfItNow(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	s.save(s.connection, policy.AskUserOnWrite, everyTool[0])
	s.sql(`UPDATE profile_uses SET mode = 'read_only', tools = '{contacts_create}'`)
	l, err := s.runs.Run(t.Context(), s.org, s.run.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	g, ok := l.Find(s.connection.Key)
	if !ok || g.Minted.Len() != 3 || g.Now.Mode != policy.ReadOnly || g.Now.Snapshot.Len() != 1 || !g.InProfile || g.Connection.Standing.Mode != policy.AskUserOnWrite ||
		g.Connection.Settings["region"] != "eu" || g.Connection.Destination != address {
		t.Errorf("%+v", g)
	}
	s.sql(`DELETE FROM profile_uses`)
	l, err = s.runs.Run(t.Context(), s.org, s.run.Run.ID)
	if g := l.Grants[0]; err != nil || g.InProfile || g.Now.Mode != "" || g.Now.Snapshot.Len() != 0 || g.Minted.Len() != 3 {
		t.Errorf("%+v %v", g, err)
	}
}

func TestARunTokenFindsALiveRunOnlyAndEverythingElseLooksTheSame(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	_, hash := run.NewToken()
	s.sql(`UPDATE runs SET token_hash = $1`, hash)
	l, err := s.runs.ByToken(t.Context(), hash)
	if err != nil || l.Run.ID != s.run.Run.ID || l.Org.ID != s.org || l.Org.Name != "Home" || minted(l) == "?" || l.Now.IsZero() || !l.Run.Live(l.Now) {
		t.Fatalf("%+v %v", l, err)
	}
	answers := map[string]bool{}
	look := func() {
		t.Helper()
		_, err := s.runs.ByToken(t.Context(), hash)
		refused(t, err, fault.CodeUnauthenticated)
		answers[err.Error()] = true
	}
	s.sql(`UPDATE runs SET expires_at = now() - interval '1 second'`)
	look()
	s.sql(`UPDATE runs SET expires_at = now() + interval '1 hour', ended_at = now()`)
	look()
	_, hash = run.NewToken()
	look()
	hash = nil
	look()
	if len(answers) != 1 {
		t.Errorf("%v", answers)
	}
	// The organization of one look-up is gone when the connection is used again.
	err = s.db.Pool().QueryRow(t.Context(), `SELECT count(*) FROM runs`).Scan(new(int))
	if n := s.visible(); n != 0 || err != nil {
		t.Errorf("%d runs are visible outside an organization, %v", n, err)
	}
}

func (s *scene) visible() (n int) {
	s.t.Helper()
	if err := s.db.Pool().QueryRow(context.Background(), `SELECT count(*) FROM runs`).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestAnOrderThatDoesNotFitTheOrganizationIsRefusedByField(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	unused := s.install(s.org, "mail-bbbbbb")
	foreign := s.install(s.other, "mail-cccccc")
	inactive := s.person(s.org, "gone", "member")
	s.sql(`UPDATE people SET active = false WHERE id = $1`, inactive.ID)
	order := func(edit func(o *run.Order)) run.Order {
		o := run.Order{Surface: policy.Task, Task: "ENG-1", OnBehalfOf: s.asker.Email}
		edit(&o)
		return o
	}
	for name, o := range map[string]run.Order{
		"profile":                    order(func(o *run.Order) { o.Profile = "sales" }),
		"on_behalf_of of nobody":     order(func(o *run.Order) { o.OnBehalfOf = "nobody@example.com" }),
		"on_behalf_of of a stranger": order(func(o *run.Order) { o.OnBehalfOf = s.stranger.Email }),
		"on_behalf_of of one gone":   order(func(o *run.Order) { o.OnBehalfOf = inactive.Email }),
		"connections not used":       order(func(o *run.Order) { o.Connections = []connector.Key{unused.Key} }),
		"connections of others":      order(func(o *run.Order) { o.Connections = []connector.Key{s.connection.Key, foreign.Key} }),
	} {
		_, err := s.tryMint(o, "", "")
		f, ok := fault.As(err)
		if !ok || f.Kind != fault.Invalid || !strings.HasPrefix(name, f.Field) || f.Field == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.end(installation.Disconnected)
	_, err := s.tryMint(order(func(o *run.Order) { o.Connections = []connector.Key{s.connection.Key} }), "", "")
	says(t, err, "disconnected")
	if l := s.mint(run.Order{}); len(l.Grants) != 0 {
		t.Errorf("an inactive connection was minted: %+v", l.Grants)
	}
}

func TestARunNarrowsTheBudgetOfItsProfileAndNeverWidensIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	if r := s.mint(run.Order{Budget: 3}).Run; r.Budget != 3 {
		t.Errorf("%d", r.Budget)
	}
	if r := s.mint(run.Order{Budget: 3000}).Run; r.Budget != 10 {
		t.Errorf("%d", r.Budget)
	}
}

func TestAChatRunNeedsNobodyBehindIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	l := s.mint(run.Order{Surface: policy.Chat})
	if l.Run.OnBehalfOf != "" || l.Run.Task != "" || l.Run.Surface != policy.Chat {
		t.Errorf("%+v", l.Run)
	}
}

func TestTheSameRequestStartsOneRun(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	before := value[int](s, `SELECT count(*) FROM runs`)
	ids := make([]run.ID, 20)
	parallel(len(ids), func(i int) {
		l, err := s.tryMint(run.Order{}, "key-1", "digest-1")
		if err != nil {
			t.Error(err)
		}
		ids[i] = l.Run.ID
	})
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("runs %s and %s", id, ids[0])
		}
	}
	if n := value[int](s, `SELECT count(*) FROM runs`) - before; n != 1 {
		t.Errorf("%d runs", n)
	}
	if n := value[int](s, `SELECT count(*) FROM audit_entries WHERE event = 'run.started' AND object_id = $1`, ids[0]); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	_, err := s.tryMint(run.Order{}, "key-1", "digest-2")
	refused(t, err, fault.IdempotencyConflict)
	s.token = s.newToken(s.tokenOwner) // a key belongs to its token
	if l, err := s.tryMint(run.Order{}, "key-1", "digest-2"); err != nil || l.Run.ID == ids[0] {
		t.Errorf("%v %v", l.Run.ID, err)
	}
}

func TestEndingARunCancelsWhatIsStagedAndLetsWhatIsApprovedProceed(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved, late := s.reach(action.StateStaged), s.approved(), s.reach(action.StateStaged)
	s.later(late.ID, action.Life)
	e := s.entry(s.org, audit.RunEnded, string(s.run.Run.ID))
	r, err := s.runs.End(t.Context(), s.org, s.run.Run.ID, e)
	if err != nil || r.EndedAt == nil {
		t.Fatalf("%+v %v", r, err)
	}
	s.isIn(staged.ID, action.StateCancelled)
	s.isIn(late.ID, action.StateExpired)
	if got := s.read(staged.ID); got.ErrorCode != string(fault.RunEnded) {
		t.Errorf("%+v", got)
	}
	if _, err := s.claim(approved); err != nil {
		t.Error(err)
	}
	again, err := s.runs.End(t.Context(), s.org, s.run.Run.ID, e)
	if err != nil || !again.EndedAt.Equal(*r.EndedAt) {
		t.Errorf("%+v %v", again, err)
	}
	if n := value[int](s, `SELECT count(*) FROM audit_entries WHERE event = 'run.ended'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	_, _, err = s.actions.Stage(t.Context(), s.proposal())
	refused(t, err, fault.TaskEnded)
}

func TestEndingRacesWithApprovingAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	actions := make([]action.Action, 9)
	for i := range actions {
		actions[i] = s.stage(s.proposal())
	}
	var mu sync.Mutex
	won := 0
	parallel(len(actions)+1, func(i int) {
		if i == len(actions) {
			if _, err := s.runs.End(context.Background(), s.org, s.run.Run.ID, s.entry(s.org, audit.RunEnded, "x")); err != nil {
				t.Error(err)
			}
			return
		}
		if _, err := s.actions.Approve(context.Background(), s.decision(actions[i], s.approver)); err == nil {
			mu.Lock()
			won++
			mu.Unlock()
		} else if !fault.Is(err, fault.CodeStale) {
			t.Error(err)
		}
	})
	if n := value[int](s, `SELECT count(*) FROM actions WHERE state = 'approved'`); n != won || s.used() != won {
		t.Errorf("%d approvals, %d approved, %d used", won, n, s.used())
	}
}

func TestRunsAreListedNewestFirstByPage(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	second, third := s.mint(run.Order{}), s.mint(run.Order{})
	if _, err := s.runs.End(t.Context(), s.org, second.Run.ID, s.entry(s.org, audit.RunEnded, "x")); err != nil {
		t.Fatal(err)
	}
	list := func(live bool, before run.ID, limit int) string {
		t.Helper()
		runs, err := s.runs.Runs(t.Context(), s.org, live, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		names := map[run.ID]string{s.run.Run.ID: "1", second.Run.ID: "2", third.Run.ID: "3"}
		out := ""
		for _, r := range runs {
			out += names[r.ID]
		}
		return out
	}
	if all, live, page, rest := list(false, "", 0), list(true, "", 0), list(false, "", 2), list(false, second.Run.ID, 2); all != "321" || live != "31" || page != "32" || rest != "1" {
		t.Errorf("%s %s %s %s", all, live, page, rest)
	}
}

func TestNothingOfAnotherOrganizationExistsForRuns(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	_, err := s.runs.Run(t.Context(), s.other, s.run.Run.ID)
	refused(t, err, fault.CodeNotFound)
	_, err = s.runs.End(t.Context(), s.other, s.run.Run.ID, s.entry(s.other, audit.RunEnded, "x"))
	refused(t, err, fault.CodeNotFound)
	if list, err := s.runs.Runs(t.Context(), s.other, false, "", 0); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
}

// A run's connections are read by a statement of their own, for speed; a column that it forgets would be lost to every call.
func TestARunSeesItsConnectionsWhole(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`ALTER TABLE connections DISABLE TRIGGER USER`)
	s.sql(`UPDATE connections SET kind = 'remote', header = 'X-Key', durable_reads = true, found = 'found', trouble = 'trouble', remedy = 'remedy', healthy = true,
		tested_at = clock_timestamp(), health_since = clock_timestamp() WHERE key = '` + string(s.connection.Key) + `'`)
	l, err := s.runs.Run(t.Context(), s.org, s.run.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.fresh(s.connection), l.Grants[0].Connection, cmp.AllowUnexported(policy.Snapshot{})); diff != "" {
		t.Errorf("the connection and what a run sees of it: %s", diff)
	}
}
