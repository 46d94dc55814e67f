package reconcile_test

import (
	"strings"
	"testing"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
)

const refund = `{"contact_id":"c_1001","amount_cents":500}`

var robin = identity.Person{ID: "per_robin", Org: "org_home", Name: "Robin", Roles: []identity.Role{identity.Approver}, Active: true}

func (w *world) lookUp(n int, by identity.Person) (action.LookUp, error) {
	return w.reconciler.LookUp(w.t.Context(), w.ledger.action.Org, w.ledger.action.ID, n, by)
}

// kept checks how much was kept and how often the service was asked.
func (w *world) kept(n int) {
	w.t.Helper()
	if len(w.ledger.lookUps) != n || w.Upstream.Asked("tools/call") != n {
		w.t.Errorf("%d look-ups are kept, %d were sent, want %d", len(w.ledger.lookUps), w.Upstream.Asked("tools/call"), n)
	}
}

func TestAPersonSeesWhatTheServiceSays(t *testing.T) {
	w := newWorld(t, "refund_issue", refund)
	l, err := w.lookUp(0, robin)
	if err != nil || l.Tool != "contacts_get" || string(l.Arguments) != `{"contact_id":"c_1001"}` || !strings.Contains(l.Seen, "c_1001") || l.IsError || l.By != "Robin" {
		t.Errorf("%+v, %v", l, err)
	}
	w.kept(1)
	if w.ledger.action.State != action.StateUncertain || len(w.ledger.verdicts) != 0 || len(w.Journal()) != 0 {
		t.Errorf("a look-up settled it: %s, %+v", w.ledger.action.State, w.ledger.verdicts)
	}
}

func TestAnErrorOfTheServiceIsSeenToo(t *testing.T) {
	w := newWorld(t, "refund_issue", `{"contact_id":"c_9999","amount_cents":500}`)
	if l, err := w.lookUp(0, robin); err != nil || !l.IsError || !strings.Contains(l.Seen, "There is no contact") {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestOnlyWhoMayDecideLooksUp(t *testing.T) {
	w := newWorld(t, "refund_issue", refund)
	w.ledger.action.OnBehalfOf, w.ledger.action.TokenOwner = "per_asker", "per_owner"
	for name, change := range map[string]func(p *identity.Person){
		"behind the run":       func(p *identity.Person) { p.ID = "per_asker" },
		"owner of the token":   func(p *identity.Person) { p.ID = "per_owner" },
		"without the right":    func(p *identity.Person) { p.Roles = []identity.Role{identity.Admin} },
		"another organization": func(p *identity.Person) { p.Org = "org_other" },
	} {
		p := robin
		change(&p)
		if _, err := w.lookUp(0, p); !fault.Is(err, fault.CodeForbidden) && !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.kept(0)
}

func TestALookUpIsRefusedForItsOwnCause(t *testing.T) {
	for name, c := range map[string]struct {
		n    int
		code fault.Code
		set  func(w *world)
	}{
		"known by now":     {0, fault.CodeStale, func(w *world) { w.ledger.action.State = action.StateSucceeded }},
		"nobody's":         {7, fault.CodeNotFound, func(*world) {}},
		"before the first": {-1, fault.CodeNotFound, func(*world) {}},
		"not reviewed":     {0, fault.CodeNotFound, func(w *world) { w.ledger.action.Tool = "notes_add" }},
		"no value for it":  {0, fault.CodeConflict, func(w *world) { w.ledger.action.Arguments = []byte(`{}`) }},
		"elsewhere now":    {0, fault.ConnectionUnavailable, func(w *world) { w.ledger.action.Destination = "https://elsewhere.test/mcp" }},
		"not granted":      {0, fault.ToolNotGranted, func(w *world) { w.Grant() }},
		"an effect": {0, fault.ToolNotGranted, func(w *world) {
			p, _ := w.Installed.Standing.Snapshot.Find("contacts_get")
			p.Effect = policy.Consequential
			w.Grant(p)
		}},
		"changed": {0, fault.DefinitionChanged, func(w *world) { w.Patch("contacts_get", `{"title":"Other"}`); w.Installed.Version++ }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "refund_issue", refund)
			c.set(w)
			if _, err := w.lookUp(c.n, robin); !fault.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			w.kept(0)
		})
	}
}

func TestWhereNothingWasSeenNothingIsKept(t *testing.T) {
	w := newWorld(t, "refund_issue", refund)
	w.Server.Close()
	if _, err := w.lookUp(0, robin); !fault.Is(err, fault.ConnectionUnavailable) {
		t.Error(err)
	}
	if len(w.ledger.lookUps) != 0 {
		t.Errorf("%+v", w.ledger.lookUps)
	}
}
