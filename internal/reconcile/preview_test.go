package reconcile_test

import (
	"context"
	"testing"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/provider"
)

// foresees is the service's own provider, which also shows what a call would meet.
type foresees struct {
	provider.Provider
	asked []provider.Call
}

func (f *foresees) CanPreview(call provider.Call) bool { return call.Tool == "refund_issue" }

func (f *foresees) Preview(_ context.Context, _ *provider.Conn, call provider.Call) (provider.Preview, error) {
	f.asked = append(f.asked, call)
	return provider.Preview{Sentence: "It will be refunded."}, nil
}

func TestOnlyWhoMayDecideIsShownWhatAWaitingActionMeets(t *testing.T) {
	w := newWorld(t, "refund_issue", refund)
	line, err := w.Lines.Open(t.Context(), w.Installed)
	if err != nil {
		t.Fatal(err)
	}
	shows := &foresees{Provider: line.Provider}
	line.Provider = shows
	w.ledger.action.State, w.ledger.action.OnBehalfOf = action.StateStaged, "per_asker"
	preview := func(by identity.Person) (provider.Preview, bool, error) {
		return w.reconciler.Preview(t.Context(), w.ledger.action.Org, w.ledger.action.ID, by)
	}
	for name, change := range map[string]func(p *identity.Person){
		"behind the run":    func(p *identity.Person) { p.ID = "per_asker" },
		"without the right": func(p *identity.Person) { p.Roles = []identity.Role{identity.Auditor} },
	} {
		p := robin
		change(&p)
		if _, _, err := preview(p); !fault.Is(err, fault.CodeForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.ledger.action.State = action.StateSucceeded
	if _, _, err := preview(robin); !fault.Is(err, fault.CodeStale) {
		t.Errorf("one that is done: %v", err)
	}
	if len(shows.asked) != 0 {
		t.Errorf("asked %v", shows.asked)
	}
	w.ledger.action.State = action.StateStaged
	v, able, err := preview(robin)
	if err != nil || !able || v.Sentence == "" || len(shows.asked) != 1 || string(shows.asked[0].Arguments) != refund || shows.asked[0].Action != string(w.ledger.action.ID) {
		t.Errorf("%+v %t %v, asked %v", v, able, err, shows.asked)
	}
	w.ledger.action.Tool = "contacts_delete"
	if _, able, err := preview(robin); able || err != nil {
		t.Errorf("a call of which nothing can be shown: %t %v", able, err)
	}
}
