package dispatch_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/crm"
	"countersign/internal/dispatch"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/reach/reachtest"
)

// ledger is the store of one action: a claim is given once, and everything that was asked and reported is kept.
type ledger struct {
	mu       sync.Mutex
	action   action.Action
	claiming func() error // what a claim meets before it is given; nil meets nothing
	asked    func()       // called with every claim and report; nil is not
	away     int          // reports that the store cannot take
	refuses  error        // what it answers to a report; nil takes it

	claims  []action.Ready
	reports []action.Outcome
	holder  int64
}

func (l *ledger) Action(context.Context, identity.OrgID, action.ID) (action.Action, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.action, nil
}

func (l *ledger) Claim(_ context.Context, _ identity.OrgID, _ action.ID, r action.Ready) (action.Dispatch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meets()
	l.claims = append(l.claims, r)
	if l.claiming != nil {
		if err := l.claiming(); err != nil {
			return action.Dispatch{}, err
		}
	}
	if l.action.State != action.StateApproved {
		return action.Dispatch{}, action.NotClaimable
	}
	l.action.State = action.StateExecuting
	return action.Dispatch{Action: l.action, Fence: 42}, nil
}

func (l *ledger) Complete(_ context.Context, d action.Dispatch, o action.Outcome) (action.Action, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meets()
	l.reports, l.holder = append(l.reports, o), d.Fence
	if l.away != 0 {
		l.away--
		return action.Action{}, fault.New(fault.Unavailable, fault.CodeUnavailable, "The database is away.", "")
	}
	if l.refuses != nil {
		return action.Action{}, l.refuses
	}
	l.action.State = action.State(o.Kind())
	return l.action, nil
}

func (l *ledger) meets() {
	if l.asked != nil {
		l.asked()
	}
}

// world is a dispatcher between a ledger and the Sandbox CRM.
type world struct {
	*reachtest.World
	t      *testing.T
	ledger *ledger
	sender *dispatch.Dispatcher
}

// newWorld holds one approved call.
func newWorld(t *testing.T, tool, arguments string) *world {
	t.Helper()
	r := reachtest.New(t, crm.New(crm.Config{BearerToken: reachtest.Credential, ControlToken: reachtest.Control}).Handler(), catalog.Files())
	l := &ledger{action: r.Call(action.StateApproved, tool, arguments)}
	return &world{World: r, t: t, ledger: l, sender: &dispatch.Dispatcher{Actions: l, Connections: r, Lines: r.Lines, Log: slog.New(slog.DiscardHandler)}}
}

const deleteContact = `{"contact_id":"c_1001"}`

func newDelete(t *testing.T) *world {
	t.Helper()
	return newWorld(t, "contacts_delete", deleteContact)
}

func (w *world) dispatch() (action.Action, error) {
	return w.sender.Dispatch(context.Background(), w.ledger.action.Org, w.ledger.action.ID)
}

// wants checks how often the tool was called, and how often the effect came about.
func (w *world) wants(calls, effects int) {
	w.t.Helper()
	if n := w.Upstream.Asked("tools/call"); n != calls {
		w.t.Errorf("%d calls were sent, want %d", n, calls)
	}
	if n := len(w.Journal()); n != effects {
		w.t.Errorf("the CRM did it %d times, want %d", n, effects)
	}
}

// reported checks what the store was told, each time.
func (w *world) reported(times int, kind action.OutcomeKind) {
	w.t.Helper()
	if len(w.ledger.reports) != times {
		w.t.Errorf("%d reports, want %d", len(w.ledger.reports), times)
	}
	for _, o := range w.ledger.reports {
		if o.Kind() != kind {
			w.t.Errorf("it was reported as %s (%s), want %s", o.Kind(), o.Sentence(), kind)
		}
	}
}
