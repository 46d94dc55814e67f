package agent_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"countersign/internal/capability"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/secret"
)

// besides are the runtimes a run is told to start now.
func (w *world) besides(s started) (out []string) {
	w.T.Helper()
	status, _, body := w.send(http.MethodGet, s.bearer, "/gateway/config", "")
	var c capability.Config
	if err := json.Unmarshal([]byte(body), &c); status != http.StatusOK || err != nil {
		w.T.Fatalf("%d %s %v", status, body, err)
	}
	for _, b := range c.Stdio {
		out = append(out, b.Runtime)
	}
	return out
}

// TestARunIsToldWhatItsImageStarts follows a connection without an address: it is given by the profile and ends with either of them.
func TestARunIsToldWhatItsImageStarts(t *testing.T) {
	w := newWorld(t)
	owner := w.People[identity.Owner]
	install := func(integration string) installation.Connection {
		c, err := w.Service.Install(t.Context(), owner, installation.Setup{Integration: integration})
		check(t, err)
		if !c.Health.OK || c.Destination != "" || c.State != installation.Active {
			t.Fatalf("%+v", c)
		}
		return c
	}
	if _, err := w.Service.Install(t.Context(), owner, installation.Setup{Integration: "structured-questions", Secrets: map[string]secret.Value{"api_key": secret.New("kept-nowhere")}}); err == nil {
		t.Error("a credential was taken for what works beside the agent")
	}
	asks, thinks, again := install("structured-questions"), install("sequential-thinking"), install("structured-questions")
	crm := w.install("sandbox-crm", "CRM", policy.ReadOnly)
	w.profile("engineering", asks, thinks, again, crm)
	w.profile("support", crm)
	task, chat, other := w.start(policy.Task, "engineering"), w.start(policy.Chat, "engineering"), w.start(policy.Task, "support")
	want := []string{"sequential_thinking.v1", "structured_questions.v1"}
	for _, s := range []started{task, chat} {
		if got := w.besides(s); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("a %s run is told to start %v", s.Run.Surface, got)
		}
	}
	if got := w.besides(other); len(got) > 0 {
		t.Errorf("a run of another profile is told to start %v", got)
	}
	if status, _, body := w.send(http.MethodPost, task.bearer, "/gateway/mcp/"+asks.Key.String(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusOK {
		t.Errorf("its own address answers %d %s", status, body)
	}

	_, err := w.Service.Disconnect(t.Context(), owner, installation.Access{Key: thinks.Key})
	check(t, err)
	if got := w.besides(task); !slices.Equal(got, want[1:]) {
		t.Errorf("after one was disconnected: %v", got)
	}
	w.profile("engineering", crm)
	if got := w.besides(task); len(got) > 0 {
		t.Errorf("after the profile lost them: %v", got)
	}
}
