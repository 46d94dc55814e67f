package agent_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/db/dbtest/reached"
	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/crm/crmtest"
	"countersign/internal/dispatch"
	"countersign/internal/gateway"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/run"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
	"countersign/web/agent"
)

const publicURL = "http://countersign.test"

// world is the gateway over a scene and the Sandbox CRM, with a second upstream whose list and answers the test writes.
type world struct {
	*scene.Scene
	*reached.Reached
	odd      *upstream
	token    servicetoken.Token
	recorder *db.Recorder
	gateway  *gateway.Gateway
	server   *httptest.Server
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s, odd := scene.New(t), newUpstream(t)
	w := &world{Scene: s, Reached: reached.New(s, map[registry.Key]string{"deepwiki.v1": odd.URL + "/mcp"}), odd: odd}
	w.token, _ = w.Token("runtime", servicetoken.RunsWrite)
	w.recorder = w.DB.NewRecorder(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { check(t, w.recorder.Close(context.Background())) })
	w.gateway = gateway.New(gateway.Config{
		Lines: w.Lines, Actions: w.Actions, Recorder: w.recorder, Trail: w.Trail, Observer: w.Service, PublicURL: publicURL,
		Room:     room{w.Actions, w.Runs, db.Profiles{DB: w.DB}},
		Dispatch: &dispatch.Dispatcher{Actions: w.Actions, Connections: w.Connections, Lines: w.Lines, Log: slog.New(slog.DiscardHandler)},
	})
	t.Cleanup(func() { w.gateway.Drain(context.Background()) })
	mux := http.NewServeMux()
	endpoint := agent.NewMCP(w.Runs, w.gateway, "test", agent.WithContext(db.Contexts{DB: w.DB}, w.Profiles))
	mux.Handle("/gateway/mcp", endpoint)
	mux.Handle("/gateway/mcp/{connection}", endpoint)
	mux.Handle("GET /gateway/config", agent.NewConfig(w.Runs, publicURL))
	mux.Handle("GET /gateway/preflight", agent.NewPreflight(w.Runs, w.gateway))
	w.server = httptest.NewServer(mux)
	t.Cleanup(w.server.Close)
	return w
}

// install connects an integration and grants it: every eligible tool of the mode, or those named.
func (w *world) install(integration, name string, mode policy.Mode, tools ...string) installation.Connection {
	w.T.Helper()
	setup := installation.Setup{Integration: integration, Name: name}
	if integration == "sandbox-crm" {
		setup.Secrets = map[string]secret.Value{"api_key": secret.New(crmtest.Bearer)}
	}
	c, err := w.Service.Install(w.T.Context(), w.People[identity.Owner], setup)
	check(w.T, err)
	if !c.Health.OK {
		w.T.Fatalf("%s does not work: %s", integration, c.Health.What)
	}
	return w.access(c, mode, tools...)
}

func (w *world) access(c installation.Connection, mode policy.Mode, tools ...string) installation.Connection {
	w.T.Helper()
	c, err := w.Service.SaveAccess(w.T.Context(), w.People[identity.Owner], installation.Access{Key: c.Key, Choice: policy.Choice{Mode: mode, Listed: len(tools) > 0, Tools: tools}})
	check(w.T, err)
	return c
}

// profile lets a kind of agent use connections as they are.
func (w *world) profile(name string, connections ...installation.Connection) {
	w.T.Helper()
	w.Profile(name, 500, scene.Uses(connections...)...)
}

// started is a run with its token.
type started struct {
	capability.Live
	bearer string
}

func (w *world) start(surface policy.Surface, profile string) started {
	w.T.Helper()
	o := run.Order{Surface: surface, Profile: profile}
	if surface == policy.Task {
		o.Task, o.OnBehalfOf = "ENG-12", w.People[identity.Member].Email
	}
	l, bearer := w.Mint(w.token, o)
	return started{l, bearer}
}

// dispatch sends an approved action as the worker would.
func (w *world) dispatch(id action.ID) {
	w.T.Helper()
	_, err := w.gateway.Dispatch.Dispatch(w.T.Context(), w.Org.ID, id)
	check(w.T, err)
}

// trail waits for entries of an event, since the recorder writes in batches.
func (w *world) trail(event audit.Event) (out []audit.Recorded) {
	w.T.Helper()
	dbtest.Eventually(w.T, "the trail holds "+string(event), func() bool {
		var err error
		out, err = w.Trail.Entries(w.T.Context(), w.Org.ID, audit.Filter{Event: string(event), Limit: 500})
		check(w.T, err)
		return len(out) > 0
	})
	return out
}

func fact(r audit.Recorded, name string) string {
	for _, f := range r.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
