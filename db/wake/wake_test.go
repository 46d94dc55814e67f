package wake_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/db/wake"
	"countersign/internal/action"
	"countersign/internal/identity"
)

// dispatcher notes what it is asked for, and may hold a caller.
type dispatcher struct {
	mu    sync.Mutex
	asked map[action.ID]int
	hold  chan struct{} // nil: nobody is held
	news  chan action.ID
}

func (d *dispatcher) Dispatch(_ context.Context, _ identity.OrgID, id action.ID) (action.Action, error) {
	d.mu.Lock()
	d.asked[id]++
	d.mu.Unlock()
	d.news <- id
	if d.hold != nil {
		<-d.hold
	}
	if id == "act_panics" {
		panic("as asked")
	}
	return action.Action{}, action.NotClaimable
}

// sweeper finds what it is given, once.
type sweeper struct {
	mu   sync.Mutex
	left []action.Waiting
}

func (s *sweeper) ExpireDue(context.Context) (int, error)   { return 0, nil }
func (s *sweeper) LeasesEnded(context.Context) (int, error) { return 0, nil }
func (s *sweeper) Approved(context.Context, int) ([]action.Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.left
	s.left = nil
	return out, nil
}

func start(t *testing.T, d *dispatcher, s *sweeper) *wake.Queue {
	t.Helper()
	database, err := db.Open(t.Context(), dbtest.New(t, db.Migrate))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Close)
	q, err := wake.New(database.Pool(), d, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := q.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return q
}

func (d *dispatcher) next(t *testing.T) action.ID {
	t.Helper()
	select {
	case id := <-d.news:
		return id
	case <-time.After(30 * time.Second):
		t.Fatal("nobody was woken")
		return ""
	}
}

func newDispatcher() *dispatcher {
	return &dispatcher{asked: map[action.ID]int{}, news: make(chan action.ID, 10_000)}
}

func TestAWakeUpReachesAWorkerAlsoAfterOnePanicked(t *testing.T) {
	d := newDispatcher()
	q := start(t, d, &sweeper{})
	for range 20 { // more than there are workers
		if err := q.Wake(t.Context(), "org_a", "act_panics"); err != nil {
			t.Fatal(err)
		}
		d.next(t)
	}
	if err := q.Wake(t.Context(), "org_a", "act_1"); err != nil {
		t.Fatal(err)
	}
	if got := d.next(t); got != "act_1" {
		t.Errorf("%s was woken", got)
	}
}

func TestWhatAProcessLeftBehindIsSwept(t *testing.T) {
	d := newDispatcher()
	start(t, d, &sweeper{left: []action.Waiting{{Org: "org_a", ID: "act_left"}}})
	if got := d.next(t); got != "act_left" {
		t.Errorf("%s was woken", got)
	}
}

// A process whose workers all wait for slow upstreams gives what is more to River, whose workers are others; nothing is lost.
func TestABusyProcessSharesItsWork(t *testing.T) {
	d := newDispatcher()
	d.hold = make(chan struct{})
	q := start(t, d, &sweeper{})
	const some = 300 // more than this process keeps
	for i := range some {
		if err := q.Wake(t.Context(), "org_a", action.ID(identity.NewID("act_"))); err != nil {
			t.Fatal(i, err)
		}
	}
	close(d.hold)
	for range some {
		d.next(t)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) != some {
		t.Errorf("%d of %d were woken", len(d.asked), some)
	}
}
