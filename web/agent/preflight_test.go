package agent_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"countersign/db"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/gateway"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/profile"
)

// room is what limits a run, as the server puts it together.
type room struct {
	db.Actions
	db.Runs
	db.Profiles
}

func (w *world) preflight(s started) (p gateway.Preflight, tools map[string]gateway.PreflightTool) {
	w.T.Helper()
	status, _, body := w.send(http.MethodGet, s.bearer, "/gateway/preflight", "")
	if err := json.Unmarshal([]byte(body), &p); status != http.StatusOK || err != nil {
		w.T.Fatalf("%d %s %v", status, body, err)
	}
	tools = map[string]gateway.PreflightTool{}
	for _, t := range p.Tools {
		tools[t.Connection.String()+"/"+t.Tool] = t
	}
	return p, tools
}

// TestPreflightForesees compares what is foretold with what the same calls are then answered.
func TestPreflightForesees(t *testing.T) {
	w := newWorld(t)
	asks, acts := w.install("sandbox-crm", "Asks", policy.AskUserOnWrite), w.install("sandbox-crm", "Acts", policy.Autonomous)
	w.Profile("engineering", 500, profile.Use{Connection: asks.Key, DailyActions: 2, DailyAmount: manifest.Amount{Currency: "EUR", Units: 5_000_000}},
		profile.Use{Connection: acts.Key, Quorum: map[string]int{"contacts_delete": 2}})
	task, chat := w.start(policy.Task, "engineering"), w.start(policy.Chat, "engineering")

	p, tools := w.preflight(task)
	if p.Run != task.Run.ID || p.Surface != policy.Task || p.Budget.Used != 0 || p.Budget.Consequential == 0 || p.ExpiresAt.IsZero() {
		t.Errorf("%+v", p)
	}
	if len(p.Days) != 1 || p.Days[0].Connection != asks.Key || *p.Days[0].Actions != (gateway.PreflightLimit{Most: 2}) || p.Days[0].Amount.Most != "500" || p.Days[0].ResetsAt.Hour() != 0 {
		t.Errorf("the limits of the day: %+v", p.Days)
	}
	for name, want := range map[string]string{
		asks.Key.String() + "/contacts_list": "allow", asks.Key.String() + "/contacts_create": "stage", acts.Key.String() + "/contacts_create": "allow",
		acts.Key.String() + "/contacts_delete": "stage",
	} {
		if got := tools[name]; got.Verdict != want || got.Reason == "" || got.Code != "" || got.Name == "" {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	if _, tools := w.preflight(chat); tools[asks.Key.String()+"/contacts_create"].Code != fault.ConsequentialInChat || tools[asks.Key.String()+"/contacts_list"].Verdict != "allow" {
		t.Errorf("a chat run: %+v", tools)
	}

	s := w.client(task, eras[0], asks.Key)
	for _, name := range []string{"Ada", "Grace"} {
		call(t, s, "contacts_create", `{"name":"`+name+`","email":"a@example.com"}`)
	}
	p, tools = w.preflight(task)
	if got := tools[asks.Key.String()+"/contacts_create"]; got.Verdict != "refuse" || got.Code != fault.BudgetExceeded || got.Next == "" || p.Budget.Used != 2 || p.Days[0].Actions.Used != 2 {
		t.Errorf("with the day used up: %+v %+v", got, p)
	}
	if r := call(t, s, "contacts_create", `{"name":"Joan","email":"a@example.com"}`); r.code() != "budget_exceeded" {
		t.Errorf("and the call: %s", r.text)
	}

	owner := w.People[identity.Owner]
	_, err := w.Actions.Freeze(t.Context(), action.Press{Org: w.Org.ID, By: owner, Switch: action.Switch{Scope: action.ScopeConnection, Key: acts.Key.String()}, Reason: "stop"})
	check(t, err)
	if _, tools := w.preflight(task); tools[acts.Key.String()+"/contacts_create"].Code != fault.Frozen || tools[acts.Key.String()+"/contacts_list"].Verdict != "allow" {
		t.Errorf("frozen: %+v", tools)
	}

	w.access(asks, policy.ReadOnly)
	_, err = w.Service.Disconnect(t.Context(), owner, installation.Access{Key: acts.Key})
	check(t, err)
	_, tools = w.preflight(task)
	for name, code := range map[string]fault.Code{
		asks.Key.String() + "/contacts_create": fault.ReadOnlyConnection, acts.Key.String() + "/contacts_list": fault.ConnectionUnavailable,
	} {
		if got := tools[name]; got.Verdict != "refuse" || got.Code != code {
			t.Errorf("%s: %+v, want %s", name, got, code)
		}
	}
	if status, _, _ := w.send(http.MethodGet, "", "/gateway/preflight", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
}
