package reconcile_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"countersign/internal/action"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/provider/mcpclient"
)

// gone is a deletion that was applied, as far as a read can tell: this contact does not exist.
const gone = `{"contact_id":"c_9999"}`

func TestWhatAReadShowsAsAppliedSucceeded(t *testing.T) {
	w := newWorld(t, "contacts_delete", gone)
	w.ledger.settling = true // an effect that is there need not be waited for
	w.probe()
	w.is(action.StateSucceeded, action.ProbeAgain, 1)
	if v := w.ledger.verdicts; len(v) != 1 || !v[0].Found || v[0].Conclusive || v[0].Sentence != w.ledger.sightings[0].sentence {
		t.Errorf("%+v", v)
	}
}

// That it is not there proves nothing while the lost call may still arrive.
func TestAnAbsenceIsAnAnswerOnlyAfterTheSettleWindow(t *testing.T) {
	w := newWorld(t, "contacts_delete", deleteContact)
	w.ledger.settling = true
	w.probe()
	w.stays(action.ProbeSettling, 1)
	if last := w.ledger.sightings[0].sentence; !strings.Contains(last, "may still be applied") {
		t.Errorf("a person reads %q", last)
	}
	w.ledger.settling = false
	w.probe()
	w.is(action.StateFailed, action.ProbeAgain, 2)
	for _, v := range w.ledger.verdicts {
		if v.Found || v.Conclusive {
			t.Errorf("a plain read is said to be conclusive: %+v", v)
		}
	}
	if n := len(w.Journal()); n != 0 {
		t.Errorf("finding out had %d effects", n)
	}
}

func TestAReadThatDoesNotTellSettlesNothing(t *testing.T) {
	w := newWorld(t, "contacts_delete", deleteContact, `absent = '"id":\s*"{contact_id}"'`, `absent = '"identity":\s*"{contact_id}"'`)
	w.probe()
	w.stays(action.ProbeAgain, 1)
	if len(w.ledger.verdicts) != 0 {
		t.Errorf("judged as %+v", w.ledger.verdicts)
	}
}

// Where no read leaves no doubt, nothing is read and a person decides.
func TestWhatNoReadCanTellIsLeftToAPerson(t *testing.T) {
	for name, call := range map[string][2]string{
		"no reviewed probe":            {"refund_issue", `{"contact_id":"c_1001","amount_cents":500}`},
		"nobody has reviewed the tool": {"notes_add", `{"contact_id":"c_1001","text":"x"}`},
		"no value for the probe":       {"contacts_delete", `{"contact":"c_1001"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, call[0], call[1])
			w.probe()
			w.stays(action.ProbeHopeless, 0)
			if !strings.Contains(w.ledger.sightings[0].sentence, "a person decides") || len(w.ledger.verdicts) != 0 {
				t.Errorf("%+v, %+v", w.ledger.sightings, w.ledger.verdicts)
			}
		})
	}
}

func TestATurnIsTakenOnce(t *testing.T) {
	w := newWorld(t, "contacts_delete", gone)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := w.reconciler.Probe(context.Background(), w.ledger.action.Org, w.ledger.action.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.is(action.StateSucceeded, action.ProbeAgain, 1)
	if n := len(w.ledger.verdicts); n != 1 {
		t.Errorf("%d verdicts", n)
	}
}

func TestNothingIsReadAboutAnActionThatIsOver(t *testing.T) {
	w := newWorld(t, "contacts_delete", gone)
	for _, s := range action.States {
		if w.ledger.action.State = s; s != action.StateUncertain {
			w.probe()
		}
	}
	if n := w.Upstream.Asked(""); n != 0 || len(w.ledger.sightings) != 0 || len(w.ledger.verdicts) != 0 {
		t.Errorf("%d requests, %+v, %+v", n, w.ledger.sightings, w.ledger.verdicts)
	}
}

// Late evidence, or a person, may settle the action while the reconciler looks: theirs stands.
func TestWhoeverWasQuickerIsRight(t *testing.T) {
	w := newWorld(t, "contacts_delete", deleteContact)
	w.ledger.meanwhile = func() {
		w.ledger.action.State = action.StateSucceeded
		w.ledger.action.Version++
	}
	w.probe()
	if w.ledger.action.State != action.StateSucceeded || len(w.ledger.sightings) != 0 {
		t.Errorf("%s, noted %+v", w.ledger.action.State, w.ledger.sightings)
	}
}

// What stands in the way of looking leaves everything as it is, and is noted in words.
func TestWhatCouldNotBeSeenIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		meets func(w *world)
		reads int
	}{
		"nobody there":            {func(w *world) { w.Installed.Version++; w.Server.Close() }, 0},
		"the connection ended":    {func(w *world) { w.Installed.State = "retired" }, 0},
		"it leads elsewhere now":  {func(w *world) { w.ledger.action.Destination = "https://elsewhere.test/mcp" }, 0},
		"the read is not granted": {func(w *world) { w.Grant() }, 0},
		"granted as an effect": {func(w *world) {
			p, _ := w.Installed.Standing.Snapshot.Find("contacts_get")
			p.Effect = policy.Consequential
			w.Grant(p)
		}, 0},
		"the read was changed":  {func(w *world) { w.Patch("contacts_get", `{"description":"Tells everybody."}`); w.Installed.Version++ }, 0},
		"the read is gone":      {func(w *world) { w.Patch("contacts_get", `null`); w.Installed.Version++ }, 0},
		"our own program fails": {func(w *world) { w.reconciler.Lines = w.NewLines(clumsy{hosted.New("test").(*mcpclient.Client)}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "contacts_delete", gone)
			c.meets(w)
			w.probe()
			if len(w.ledger.verdicts) != 0 {
				t.Errorf("settled as %+v", w.ledger.verdicts)
			}
			w.stays(action.ProbeAgain, c.reads)
		})
	}
}

// clumsy panics when it is asked what became of a call.
type clumsy struct{ *mcpclient.Client }

func (clumsy) Reconcile(context.Context, *provider.Conn, provider.Call, action.Evidence) (provider.Sighting, error) {
	panic("a secret")
}

// keyed is a provider whose writes were conditional: an absence is final.
type keyed struct {
	*mcpclient.Client
	told *action.Evidence
}

func (k keyed) Reconcile(_ context.Context, _ *provider.Conn, _ provider.Call, e action.Evidence) (provider.Sighting, error) {
	*k.told = e
	return provider.Sighting{Sight: provider.Absent, Final: true, Sentence: "The key was never used."}, nil
}

func TestAnAbsenceThatIsFinalNeedNotSettle(t *testing.T) {
	w := newWorld(t, "contacts_delete", deleteContact)
	var told action.Evidence
	w.reconciler.Lines = w.NewLines(keyed{hosted.New("test").(*mcpclient.Client), &told})
	w.ledger.settling, w.ledger.action.Evidence = true, &action.Evidence{BytesWritten: 77}
	w.probe()
	w.is(action.StateFailed, action.ProbeAgain, 0)
	if told.BytesWritten != 77 {
		t.Errorf("the provider was told %+v", told)
	}
}

func TestTheListOfWhatIsDueIsTheStores(t *testing.T) {
	w := newWorld(t, "contacts_delete", gone)
	if due, err := w.reconciler.Due(t.Context(), 10); err != nil || len(due) != 1 || due[0].ID != w.ledger.action.ID {
		t.Errorf("%v, %v", due, err)
	}
}
