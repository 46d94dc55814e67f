package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
)

func TestWhatBecameOfACallIsReportedAsItIsKnown(t *testing.T) {
	for mode, want := range map[string]struct {
		kind    action.OutcomeKind
		effects int
	}{
		"reject":              {action.OutcomeFailed, 0}, // by the reviewed policy's words for it
		"reset":               {action.OutcomeUncertain, 0},
		"apply_then_reset":    {action.OutcomeUncertain, 1},
		"apply_then_500":      {action.OutcomeUncertain, 1},
		"apply_then_truncate": {action.OutcomeUncertain, 1},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newDelete(t)
			w.Breaks("contacts_delete", mode)
			if a, err := w.dispatch(); err != nil || a.State != action.State(want.kind) {
				t.Errorf("%s, %v", a.State, err)
			}
			w.wants(1, want.effects)
			w.reported(1, want.kind)
		})
	}
}

// blunder is a provider with a fault of its own, after or instead of sending.
type blunder struct {
	provider.Provider
	first bool // sends before it panics
}

func (b *blunder) Execute(ctx context.Context, c *provider.Conn, call provider.Call) action.Outcome {
	if b.first {
		b.Provider.Execute(ctx, c, call)
	}
	panic("a secret")
}

func TestAPanicWhileSendingIsAnOutcomeNobodyKnows(t *testing.T) {
	for name, sends := range map[string]bool{"before": false, "after": true} {
		t.Run(name+" the effect", func(t *testing.T) {
			w := newDelete(t)
			w.sender.Lines = w.NewLines(&blunder{Provider: hosted.New("test"), first: sends})
			if a, err := w.dispatch(); err != nil || a.State != action.StateUncertain {
				t.Errorf("%s, %v", a.State, err)
			}
			w.reported(1, action.OutcomeUncertain)
			if o := w.ledger.reports[0]; o.Code() != fault.CodeInternal || strings.Contains(o.Sentence(), "secret") {
				t.Errorf("%s: %s", o.Code(), o.Sentence())
			}
		})
	}
}

// Once claimed, nobody's hanging up stops the sending or the report.
func TestACallerWhoLeavesStopsNothing(t *testing.T) {
	w := newDelete(t)
	arrived, release := w.Upstream.Hold("tools/call contacts_delete")
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.sender.Dispatch(ctx, w.ledger.action.Org, w.ledger.action.ID)
		ended <- err
	}()
	<-arrived
	leave()
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.wants(1, 1)
	w.reported(1, action.OutcomeSucceeded)
}

func TestACallerWhoLeftBeforeTheClaimGetsNothingSent(t *testing.T) {
	w := newDelete(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := w.sender.Dispatch(ctx, w.ledger.action.Org, w.ledger.action.ID); err == nil || len(w.ledger.claims) != 0 {
		t.Errorf("%v, %d claims", err, len(w.ledger.claims))
	}
	w.wants(0, 0)
}

// A report is repeated while the store is away, and never the call.
func TestAnOutcomeIsReportedUntilTheStoreIsBack(t *testing.T) {
	w := newDelete(t)
	w.ledger.away = 3
	if a, err := w.dispatch(); err != nil || a.State != action.StateSucceeded {
		t.Errorf("%s, %v", a.State, err)
	}
	w.wants(1, 1)
	w.reported(4, action.OutcomeSucceeded)
}

// The store's answer to a report after the lease is the last word: the report was late evidence, or it comes from somebody else.
func TestARefusedReportIsNotRepeated(t *testing.T) {
	w := newDelete(t)
	w.ledger.refuses = fault.Stale("The lease has ended.")
	if _, err := w.dispatch(); !fault.Is(err, fault.CodeStale) {
		t.Error(err)
	}
	w.wants(1, 1)
	w.reported(1, action.OutcomeSucceeded)
}

// inItsOwnTime runs f where an hour passes at once as soon as everybody only waits for it. Whoever listens on a connection waits for
// something else, so the idle ones are closed whenever the store is asked.
func (w *world) inItsOwnTime(f func(t *testing.T)) {
	w.t.Helper()
	synctest.Test(w.t, func(t *testing.T) {
		w.sender.Lines = w.NewLines(hosted.New("test"))
		w.ledger.asked = w.sender.Lines.Close
		f(t)
	})
}

func TestNothingIsSentAfterTheSendWindow(t *testing.T) {
	for name, c := range map[string]struct {
		late    time.Duration
		kind    action.OutcomeKind
		effects int
	}{
		"within": {action.SendWindow - time.Second, action.OutcomeSucceeded, 1},
		"after":  {action.SendWindow + time.Second, action.OutcomeFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDelete(t)
			w.ledger.claiming = func() error { time.Sleep(c.late); return nil } // by the clock of the bubble: a worker that was stopped before it read the answer
			w.inItsOwnTime(func(t *testing.T) {
				if a, err := w.dispatch(); err != nil || a.State != action.State(c.kind) {
					t.Errorf("%s, %v", a.State, err)
				}
			})
			w.wants(c.effects, c.effects)
			w.reported(1, c.kind)
		})
	}
}

func TestAReportThatNobodyTakesEndsWithTheLease(t *testing.T) {
	w := newDelete(t)
	w.ledger.away = -1
	w.inItsOwnTime(func(t *testing.T) {
		began := time.Now()
		a, err := w.dispatch()
		if !errors.Is(err, context.DeadlineExceeded) || !fault.Is(err, fault.CodeUnavailable) || a.State != action.StateExecuting {
			t.Errorf("%s, %v", a.State, err)
		}
		if took := time.Since(began); took != action.Lease {
			t.Errorf("it gave up after %v, the lease is %v", took, action.Lease)
		}
	})
	w.wants(1, 1)
	if n := len(w.ledger.reports); n < 30 {
		t.Errorf("in three minutes it was reported %d times", n)
	}
}
