package neonctl_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/provider"
	"countersign/internal/provider/cli/neonctl"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/registry"
)

const (
	token    = "napi_0123456789abcdef0123456789abcdef"
	password = "the-branch-password-9"
	id       = "br-cool-sun-12345678"
)

var neon = neonctl.New("../../../../node_modules")

func TestMain(m *testing.M) {
	code := m.Run()
	neon.Close()
	os.Exit(code)
}

func newService(t *testing.T) *directtest.Server {
	s := &directtest.Server{
		Name: func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		Refuse: func(w http.ResponseWriter, status int) {
			directtest.JSON(w, "application/json", status, map[string]string{"message": "refused"})
		},
	}
	branch := map[string]any{"id": id, "name": "main", "project_id": "shop-1", "default": true, "current_state": "ready", "created_at": "2026-11-30T00:00:00Z"}
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(status int, v any) { directtest.JSON(w, "application/json", status, v) }
		switch what := r.Method + " " + r.URL.Path; {
		case r.Header.Get("Authorization") != "Bearer "+token:
			answer(http.StatusUnauthorized, map[string]string{"message": "not you"})
		case what == "GET /users/me":
			answer(http.StatusOK, map[string]any{"id": "u_1", "login": "ada", "email": "ada@harbor.example", "projects_limit": 3, "auth": r.Header.Get("Authorization")})
		case what == "GET /projects/shop-1/branches":
			answer(http.StatusOK, map[string]any{"branches": []any{branch}, "pagination": map[string]string{}})
		case what == "POST /projects/shop-1/branches":
			s.Note("branches_create", r.URL.Path)
			answer(http.StatusCreated, map[string]any{"branch": branch, "endpoints": []any{}, "connection_uris": []any{map[string]any{
				"connection_uri": "postgres://u:" + password + "@h/db", "connection_parameters": map[string]string{"database": "db", "role": "u", "password": password, "host": "h"},
			}}})
		case r.Method == http.MethodDelete:
			s.Note("branches_delete", r.URL.Path)
			answer(http.StatusOK, map[string]any{"branch": branch})
		default:
			answer(http.StatusNotFound, map[string]string{"message": "not found"})
		}
	})
	return s.Start(t)
}

func at(t *testing.T, url, key string) *provider.Conn {
	t.Helper()
	return directtest.Connect(t, provider.Settings{}, map[registry.Role]directtest.At{registry.API: {URL: url, Editor: directtest.Bearer(t, url, key)}})
}

func call(tool, arguments string) provider.Call {
	return provider.Call{Tool: tool, Arguments: json.RawMessage(arguments), Action: "act_1"}
}

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	if m := directtest.Agrees(t, neon.Provider, catalog.Files(), "neonctl.toml"); m.Runtime != neonctl.Key {
		t.Errorf("the catalog's runtime is %s", m.Runtime)
	}
}

// The real command, with everything it consists of, against a service with the published shapes.
func TestTheCommandReadsAndWrites(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := at(t, s.URL, token)
	f, err := neon.Test(t.Context(), c)
	if err != nil || !f.Proven || f.Broken != 0 {
		t.Fatalf("%+v %v", f, err)
	}
	o := neon.Execute(t.Context(), c, call("branches_create", `{"project":"shop-1","name":"@risk"}`))
	if o.Kind() != action.OutcomeFailed || len(s.Effects("")) != 0 {
		t.Errorf("a name that begins with a sign: %s %s", o.Kind(), o.Sentence())
	}
	o = neon.Execute(t.Context(), c, call("branches_create", `{"project":"shop-1","name":"dev = 1"}`))
	if o.Kind() != action.OutcomeSucceeded || len(s.Effects("branches_create")) != 1 || !strings.Contains(string(o.Result()), id) {
		t.Errorf("%s %s %s, %v", o.Kind(), o.Sentence(), o.Result(), s.Effects(""))
	}
	if strings.Contains(string(o.Result()), password) {
		t.Error("the password of a new branch came back")
	}
}

// What the command does after a lost answer is not left to it: the service is asked once, and a read finds out.
func TestALostDeleteIsLookedFor(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := at(t, s.URL, token)
	s.Break("DELETE /projects/shop-1/branches/"+id, directtest.ApplyThenReset)
	lost := call("branches_delete", `{"project":"shop-1","branch":"`+id+`"}`)
	o := neon.Execute(t.Context(), c, lost)
	if o.Kind() != action.OutcomeUncertain || len(s.Effects("branches_delete")) != 1 {
		t.Fatalf("%s %s, %v", o.Kind(), o.Sentence(), s.Effects(""))
	}
	seen, err := neon.Reconcile(t.Context(), c, lost, o.Evidence())
	if err != nil || seen.Sight != provider.Applied {
		t.Errorf("%+v %v", seen, err)
	}
	if _, err := neon.Read(t.Context(), at(t, s.URL, "another-token"), call("me", `{}`)); !provider.IsUnauthorized(err) {
		t.Errorf("a refused credential: %v", err)
	}
}
