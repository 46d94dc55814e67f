package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign/db/dbtest"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

func read(org identity.Org, n int) audit.Entry {
	return audit.Entry{
		Org: org.ID, Actor: audit.Actor{Kind: audit.ByAgent, ID: "run_1", Name: "run"}, Event: audit.ToolRead,
		Object: audit.Object{Kind: "tool", ID: fmt.Sprint(n)}, Facts: make([]audit.Fact, n%4),
	}
}

// reads counts stored reads, and how many different ones they are.
func (w world) reads(t *testing.T) (all, different int) {
	t.Helper()
	return w.count(t, "SELECT count(*) FROM audit_entries WHERE event = 'tool.read'"),
		w.count(t, "SELECT count(DISTINCT (org_id, object_id)) FROM audit_entries WHERE event = 'tool.read'")
}

func TestClosingTheRecorderWritesEverythingItTook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	other, _ := w.newOrg(t, "other")
	r := w.NewRecorder(quiet)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				if err := r.Record(t.Context(), read([]identity.Org{org, other}[i%2], 1000*g+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, r.Close(t.Context()))
	must(t, r.Close(t.Context()))
	if all, different := w.reads(t); all != 1600 || different != 1600 {
		t.Fatalf("%d entries are stored, %d different ones", all, different)
	}
	isFault(t, r.Record(t.Context(), read(org, 1)), fault.CodeUnavailable)
	if ragged := w.count(t, "SELECT count(*) FROM audit_entries WHERE event = 'tool.read' AND cardinality(fact_names) <> object_id::int % 4"); ragged != 0 {
		t.Fatalf("%d entries have another one's facts", ragged)
	}
	w.seal(t)
	for _, o := range []identity.Org{org, other} {
		if got, err := (Audit{w.DB}).Verify(t.Context(), o.ID, key); err != nil || got.Sealed != 801 {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if n := w.count(t, "SELECT count(*) FROM audit_batches"); n != 1 {
		t.Fatalf("%d names of batches are kept", n)
	}
}

func TestAnEntryIsStoredShortlyWithoutBeingAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	r := w.NewRecorder(quiet)
	defer r.Close(context.Background())
	must(t, r.Record(t.Context(), read(org, 1)))
	dbtest.Eventually(t, "the entry is stored", func() bool { all, _ := w.reads(t); return all == 1 })
}

func TestEntriesOfOneCallerKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	r := w.NewRecorder(quiet)
	for i := range 700 {
		must(t, r.Record(t.Context(), read(org, i)))
	}
	must(t, r.Close(t.Context()))
	if n := w.count(t, `SELECT count(*) FROM (SELECT object_id::int - lag(object_id::int) OVER (ORDER BY id) AS step FROM audit_entries
		WHERE event = 'tool.read') s WHERE step <> 1`); n != 0 {
		t.Fatalf("%d entries are out of order", n)
	}
}

func TestReadsAreRefusedWhileTheTrailCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	r := w.NewRecorder(quiet)
	w.asSuper(t, "REVOKE INSERT ON audit_entries FROM "+AppRole)
	taken := 0
	refused := func() bool {
		err := r.Record(t.Context(), read(org, taken))
		if err == nil {
			taken++
			return false
		}
		isFault(t, err, fault.CodeUnavailable)
		return true
	}
	dbtest.Eventually(t, "reads are refused", refused)
	for range 20 {
		if !refused() {
			t.Fatal("a read was let through while nothing could be written")
		}
		isFault(t, r.Ready(), fault.CodeUnavailable)
	}
	w.asSuper(t, "GRANT INSERT ON audit_entries TO "+AppRole)
	dbtest.Eventually(t, "reads go on", func() bool { return !refused() })
	must(t, r.Close(t.Context()))
	if all, different := w.reads(t); all != taken || different != taken {
		t.Fatalf("%d reads were let through, %d entries are stored, %d different ones", taken, all, different)
	}
}

func TestConnectionsThatBreakLoseNothingAndDoubleNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	r := w.NewRecorder(quiet)
	stop := make(chan struct{})
	var breaker sync.WaitGroup
	breaker.Go(func() {
		tick := time.NewTicker(40 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = w.super.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'countersign'")
			}
		}
	})
	taken := 0
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		if r.Record(ctx, read(org, taken)) == nil {
			taken++
		}
		cancel()
	}
	close(stop)
	breaker.Wait()
	must(t, r.Close(t.Context()))
	if all, different := w.reads(t); all != taken || different != taken || taken == 0 {
		t.Fatalf("%d entries were taken, %d are stored, %d different ones", taken, all, different)
	}
}

func TestABatchWhoseCommitWasNotAnsweredIsNotWrittenTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	batch := []audit.Entry{read(org, 1), read(org, 2)}
	for range 3 {
		must(t, w.storeBatch(t.Context(), "rec_same", "", batch))
	}
	if all, _ := w.reads(t); all != 2 {
		t.Fatalf("%d entries", all)
	}
}

func TestAFullQueueMakesCallersWaitAsLongAsTheyWant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	hold, err := w.super.Begin(t.Context())
	must(t, err)
	_, err = hold.Exec(t.Context(), "LOCK TABLE audit_entries IN EXCLUSIVE MODE")
	must(t, err)
	r := w.newRecorder(quiet, 3)
	taken := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := r.Record(ctx, read(org, taken))
		cancel()
		if err != nil {
			isFault(t, err, fault.CodeUnavailable)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			break
		}
		if taken++; taken > recorderBatch+10 {
			t.Fatal("the queue has no bound")
		}
	}
	waiting := make(chan error, 1)
	go func() { waiting <- r.Record(t.Context(), read(org, taken)) }()
	must(t, hold.Rollback(t.Context()))
	must(t, <-waiting)
	must(t, r.Close(t.Context()))
	if all, different := w.reads(t); all != taken+1 || different != taken+1 {
		t.Fatalf("%d were taken, %d stored", taken+1, all)
	}
}

func TestAStopThatCannotWriteSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	w.asSuper(t, "REVOKE INSERT ON audit_entries FROM "+AppRole)
	r := w.NewRecorder(quiet)
	must(t, r.Record(t.Context(), read(org, 1)))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	isFault(t, r.Close(ctx), fault.CodeUnavailable)
	if r.lost != 1 {
		t.Fatalf("%d lost", r.lost)
	}
}

func TestAnEntryThatCouldNeverBeStoredIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	r := w.NewRecorder(quiet)
	if err := r.Record(t.Context(), audit.Entry{Event: audit.ToolRead}); err == nil {
		t.Fatal("an entry without an organization was taken")
	}
	if err := r.Record(t.Context(), audit.Entry{Org: org.ID}); err == nil {
		t.Fatal("an entry without an event was taken")
	}
	hostile := read(org, 1)
	hostile.Object.ID, hostile.Facts = "\x00\xff", []audit.Fact{{Name: "\x00", Value: `"},{`}}
	must(t, r.Record(t.Context(), hostile))
	must(t, r.Close(t.Context()))
	if all, _ := w.reads(t); all != 1 {
		t.Fatalf("%d entries", all)
	}
}
