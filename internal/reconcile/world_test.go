package reconcile_test

import (
	"context"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/crm"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/reach/reachtest"
	"countersign/internal/reconcile"
)

// ledger is the store of one uncertain action: it keeps the settle window as the database does, and everything that was noted.
type ledger struct {
	mu        sync.Mutex
	action    action.Action
	taken     bool   // somebody has the turn
	settling  bool   // the lost call may still be applied
	meanwhile func() // what happens before a verdict is judged; nil: nothing

	sightings []sighting
	verdicts  []action.Probed
	lookUps   []action.LookUp
}

type sighting struct {
	sentence string
	next     action.NextProbe
}

func (l *ledger) ProbesDue(_ context.Context, limit int) ([]action.Waiting, error) {
	return []action.Waiting{{Org: l.action.Org, ID: l.action.ID}}[:min(limit, 1)], nil
}

func (l *ledger) TakeProbe(context.Context, identity.OrgID, action.ID) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := !l.taken
	l.taken = true
	return free, nil
}

func (l *ledger) KeepSighting(_ context.Context, _ identity.OrgID, _ action.ID, sentence string, next action.NextProbe) error {
	l.sightings = append(l.sightings, sighting{sentence, next})
	return nil
}

func (l *ledger) Action(context.Context, identity.OrgID, action.ID) (action.Action, error) {
	return l.action, nil
}

func (l *ledger) Reconcile(_ context.Context, _ identity.OrgID, _ action.ID, version int, p action.Probed) (action.Action, error) {
	if l.meanwhile != nil {
		l.meanwhile()
	}
	l.verdicts = append(l.verdicts, p)
	switch {
	case version != l.action.Version:
		return l.action, fault.Stale("It changed.")
	case !p.Found && !p.Conclusive && l.settling:
		return l.action, fault.New(fault.Conflict, fault.CodeConflict, "It may still be applied.", "")
	}
	l.action.Version++
	l.action.State = map[bool]action.State{true: action.StateSucceeded, false: action.StateFailed}[p.Found]
	return l.action, nil
}

func (l *ledger) KeepLookUp(_ context.Context, _ identity.OrgID, by identity.Person, seen action.LookUp) (action.LookUp, error) {
	seen.By = by.Name
	l.lookUps = append(l.lookUps, seen)
	return seen, nil
}

// world is a reconciler between a ledger and the Sandbox CRM.
type world struct {
	*reachtest.World
	t          *testing.T
	ledger     *ledger
	reconciler *reconcile.Reconciler
}

const deleteContact = `{"contact_id":"c_1001"}`

// newWorld holds one uncertain call, of which the CRM knows nothing; passages of the catalog are written otherwise in pairs.
func newWorld(t *testing.T, tool, arguments string, edits ...string) *world {
	t.Helper()
	var files fs.FS = catalog.Files()
	for e := range slices.Chunk(edits, 2) {
		files = reachtest.Edited(t, files, e[0], e[1])
	}
	r := reachtest.New(t, crm.New(crm.Config{BearerToken: reachtest.Credential, ControlToken: reachtest.Control}).Handler(), files)
	l := &ledger{action: r.Call(action.StateUncertain, tool, arguments)}
	return &world{World: r, t: t, ledger: l, reconciler: &reconcile.Reconciler{Actions: l, Connections: r, Lines: r.Lines, Log: slog.New(slog.DiscardHandler)}}
}

// probe takes the next turn.
func (w *world) probe() {
	w.t.Helper()
	w.ledger.taken = false
	if err := w.reconciler.Probe(w.t.Context(), w.ledger.action.Org, w.ledger.action.ID); err != nil {
		w.t.Fatal(err)
	}
}

// stays checks that the action is as uncertain as before, what the last turn noted, and how many reads that took.
func (w *world) stays(next action.NextProbe, reads int) {
	w.t.Helper()
	w.is(action.StateUncertain, next, reads)
}

func (w *world) is(state action.State, next action.NextProbe, reads int) {
	w.t.Helper()
	if w.ledger.action.State != state {
		w.t.Errorf("it is %s, want %s", w.ledger.action.State, state)
	}
	if n := len(w.ledger.sightings); n == 0 || w.ledger.sightings[n-1].next != next || w.ledger.sightings[n-1].sentence == "" {
		w.t.Errorf("noted %v, want %s", w.ledger.sightings, next)
	}
	if n := w.Upstream.Asked("tools/call contacts_get"); n != reads || w.Upstream.Asked("tools/call") != reads {
		w.t.Errorf("%d reads of %d calls, want %d", n, w.Upstream.Asked("tools/call"), reads)
	}
}
