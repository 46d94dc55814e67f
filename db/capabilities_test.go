package db_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/run"
)

// replica is another server on the same database, that remembers.
type replica struct {
	db     *db.DB
	memory *db.Capabilities
}

func (s *scene) replica() replica {
	s.t.Helper()
	d, err := db.Open(s.t.Context(), s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	r := replica{d, db.NewCapabilities(db.Runs{DB: d}, slog.New(slog.DiscardHandler))}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); r.memory.Listen(ctx) }()
	s.t.Cleanup(func() { stop(); <-over; d.Close() })
	return r
}

// remembers reports whether a call is answered without the database.
func (r replica) remembers(t *testing.T, hash []byte) bool {
	t.Helper()
	before := r.db.Pool().Stat().AcquireCount()
	if _, err := r.memory.ByToken(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	return r.db.Pool().Stat().AcquireCount() == before
}

func (r replica) warm(t *testing.T, hash []byte) {
	t.Helper()
	dbtest.Eventually(t, "the replica remembers", func() bool { return r.remembers(t, hash) })
}

// withToken is a run and the hash of its token.
func (s *scene) withToken(o run.Order) (capability.Live, []byte) {
	s.t.Helper()
	l := s.mint(o)
	return l, value[[]byte](s, `SELECT token_hash FROM runs WHERE id = $1`, l.Run.ID)
}

// What one server has answered, the next call at another one knows: at once, without any waiting in between, again and again.
func TestAChangeActsOnTheNextCallAtAnotherReplica(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	b := s.replica()
	_, hash := s.withToken(run.Order{})
	grant := func() capability.Grant {
		t.Helper()
		l, err := b.memory.ByToken(t.Context(), hash)
		if err != nil || len(l.Grants) != 1 {
			t.Fatal(l.Grants, err)
		}
		return l.Grants[0]
	}
	for range 30 {
		b.warm(t, hash)
		s.connection = s.save(s.connection, policy.ReadOnly, everyTool...)
		if got := grant().Now.Mode; got != policy.ReadOnly {
			t.Fatalf("after the mode was saved the other replica says %q", got)
		}
		b.warm(t, hash)
		s.connection = s.save(s.connection, policy.AskUserOnWrite, everyTool[:1]...)
		if got := grant().Now; got.Mode != policy.AskUserOnWrite || got.Snapshot.Len() != 1 {
			t.Fatalf("after the tools were saved the other replica says %v", got)
		}
		b.warm(t, hash)
		s.saveProfile()
		if grant().InProfile {
			t.Fatal("after the profile was saved the other replica still has the connection in it")
		}
		b.warm(t, hash)
		s.saveProfile(profile.Use{Connection: s.connection.Key})
		if !grant().InProfile {
			t.Fatal("the connection is not in the profile again")
		}
	}
	b.warm(t, hash)
	if _, err := s.connections.End(t.Context(), s.fresh(s.connection), installation.Retired, s.entry(s.org, audit.ConnectionRetired, string(s.connection.Key))); err != nil {
		t.Fatal(err)
	}
	if got := grant().Connection.State; got != installation.Retired {
		t.Fatalf("after the retirement the other replica says %q", got)
	}
}

// What a run was told is forgotten with what it may do, also when only the words have changed.
func TestNewWordsAreToldOnTheNextCallAtAnotherReplica(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	b := s.replica()
	_, hash := s.withToken(run.Order{})
	told := func(now string) string {
		t.Helper()
		l, err := b.memory.ByToken(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		text, err := l.Told.Once("", func() ([]byte, error) { return []byte(now), nil })
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for revision := range 20 {
		b.warm(t, hash)
		if first := told("words"); told("never asked for") != first {
			t.Fatalf("%q is not remembered", first)
		}
		s.written(revision, about(fmt.Sprint("purpose ", revision)))
		if now := fmt.Sprint("words after revision ", revision); told(now) != now {
			t.Fatal("after new words were saved the other replica tells the old ones")
		}
	}
}

func TestAnEndedRunIsUnknownOnTheNextCallAtAnotherReplica(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	b := s.replica()
	for range 30 {
		l, hash := s.withToken(run.Order{})
		b.warm(t, hash)
		if _, err := s.runs.End(t.Context(), s.org, l.Run.ID, s.entry(s.org, audit.RunEnded, string(l.Run.ID))); err != nil {
			t.Fatal(err)
		}
		_, err := b.memory.ByToken(t.Context(), hash)
		refused(t, err, fault.CodeUnauthenticated)
	}
}

func TestARememberedRunEndsWithItsTime(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	b := s.replica()
	l, hash := s.withToken(run.Order{TTL: 2 * time.Second})
	b.warm(t, hash)
	dbtest.Eventually(t, "the run is over", func() bool {
		got, err := b.memory.ByToken(t.Context(), hash)
		if err == nil && !got.Now.Before(l.Run.ExpiresAt) {
			t.Fatal("a capability was answered after its end")
		}
		return fault.Is(err, fault.CodeUnauthenticated)
	})
}

// A replica whose ears are cut off asks the database until it hears again.
func TestWhoHearsNothingRemembersNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	b := s.replica()
	_, hash := s.withToken(run.Order{})
	b.warm(t, hash)
	super, err := pgx.Connect(t.Context(), dbtest.Superuser(t, s.dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(context.Background())
	_, err = super.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Eventually(t, "it asks the database", func() bool { return !b.remembers(t, hash) })
	b.warm(t, hash) // and it hears again
	s.save(s.connection, policy.ReadOnly, everyTool...)
	l, err := b.memory.ByToken(t.Context(), hash)
	if err != nil || l.Grants[0].Now.Mode != policy.ReadOnly {
		t.Fatal(l, err)
	}
}

// A listener that was stopped in the middle, and does not answer, has forgotten by its own clock when the change is done.
func TestAListenerThatDoesNotAnswerIsWaitedOut(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	deaf, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close(context.Background())
	if _, err := deaf.Exec(t.Context(), `SELECT pg_advisory_lock_shared(7, 1)`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.save(s.connection, policy.ReadOnly, everyTool...)
	if took := time.Since(began); took < time.Second {
		t.Errorf("the change was done %v after it began, while a replica may have remembered for a second", took)
	}
}

// A transaction that notifies commits alone: neither staging, nor deciding, nor claiming may.
func TestAnActionNotifiesNobody(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	ear, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close(context.Background())
	if _, err := ear.Exec(t.Context(), `LISTEN countersign_capability`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.actions.Complete(t.Context(), s.claimed(), action.Succeeded([]byte(`{}`), action.Evidence{})); err != nil {
		t.Fatal(err)
	}
	s.sql(`SELECT pg_notify('countersign_capability', 'the end')`)
	n, err := ear.WaitForNotification(t.Context())
	if err != nil || n.Payload != "the end" {
		t.Errorf("an action's life notified %v, %v", n, err)
	}
}

func (s *scene) saveProfile(uses ...profile.Use) {
	s.t.Helper()
	profiles := db.Profiles{DB: s.db}
	p, err := profiles.Profile(s.t.Context(), s.org, "engineering")
	if err != nil {
		s.t.Fatal(err)
	}
	p.Uses = uses
	e := audit.Entry{Actor: audit.Operator, Event: audit.ProfileSaved, Object: audit.Object{Kind: "profile", ID: p.Name}}
	if err := profiles.SaveProfile(s.t.Context(), p, e); err != nil {
		s.t.Fatal(err)
	}
}
