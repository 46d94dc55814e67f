package gh_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/internal/action"
	"countersign/internal/provider"
	"countersign/internal/provider/cli"
	"countersign/internal/provider/cli/gh"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/registry"
)

const token = "github_pat_0123456789abcdefghij"

// built is gh as an operator builds it, in a folder of commands: the source comes from the module proxy and is held to the checksum in
// testdata/source, the bytes that come out to the pin of the registry.
func built(t *testing.T) *cli.Provider {
	t.Helper()
	run := func(dir string, args ...string) []byte {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=go1.27.3", "GOFLAGS=", "GOWORK=off")
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
		}
		return out.Bytes()
	}
	var source struct{ Dir string }
	if err := json.Unmarshal(run("testdata/source", "mod", "download", "-json", "github.com/cli/cli/v2"), &source); err != nil || source.Dir == "" {
		t.Fatal(source, err)
	}
	commands := t.TempDir()
	run(source.Dir, "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(commands, "gh", "gh"), "./cmd/gh")
	p := gh.New(commands)
	t.Cleanup(p.Close)
	return p
}

// newService is what the command asks of GitHub's REST API, in its published shapes: docs.github.com/rest/actions, /rest/issues/labels and
// /rest/search.
func newService(t *testing.T) *directtest.Server {
	s := &directtest.Server{
		Name: func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		Refuse: func(w http.ResponseWriter, status int) {
			directtest.JSON(w, "application/json", status, map[string]string{"message": "Validation Failed"})
		},
	}
	deleted := false
	run := map[string]any{
		"id": 7, "name": "CI", "display_title": "Fix the cart", "run_number": 12, "run_attempt": 2, "event": "push", "status": "completed", "conclusion": "failure", "workflow_id": 3,
		"head_branch": "main", "created_at": "2026-11-30T08:00:00Z", "updated_at": "2026-11-30T08:05:00Z", "run_started_at": "2026-11-30T08:00:00Z",
		"html_url": "https://github.com/acme/web/actions/runs/7", "url": "https://api.github.com/repos/acme/web/actions/runs/7",
		"jobs_url": "https://api.github.com/repos/acme/web/actions/runs/7/jobs", "workflow_url": "https://api.github.com/repos/acme/web/actions/workflows/3",
	}
	workflow := map[string]any{"id": 3, "node_id": "W_3", "name": "CI", "path": ".github/workflows/ci.yml", "state": "active"}
	job := map[string]any{
		"id": 11, "run_id": 7, "name": "test", "status": "completed", "conclusion": "failure", "started_at": "2026-11-30T08:00:10Z", "completed_at": "2026-11-30T08:04:00Z",
		"html_url": "https://github.com/acme/web/actions/runs/7/job/11", "steps": []any{map[string]any{"name": "go test", "number": 1, "status": "completed", "conclusion": "failure"}},
	}
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(status int, v any) { directtest.JSON(w, "application/json", status, v) }
		done := func(operation string, status int) {
			s.Note(operation, r.URL.Path)
			w.WriteHeader(status)
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			answer(http.StatusUnauthorized, map[string]string{"message": "Bad credentials"})
			return
		}
		switch what := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/repos/acme/web"); {
		case what == "GET /search/issues":
			answer(http.StatusOK, map[string]any{"total_count": 1, "incomplete_results": false, "items": []any{map[string]any{
				"number": 42, "title": r.URL.Query().Get("q"), "state": "open", "repository_url": "https://api.github.com/repos/acme/web",
				"html_url": "https://github.com/acme/web/issues/42", "updated_at": "2026-11-30T08:00:00Z", "user": map[string]any{"login": "ada", "type": "User"},
			}}})
		case what == "GET /actions/runs":
			answer(http.StatusOK, map[string]any{"total_count": 1, "workflow_runs": []any{run}})
		case what == "GET /actions/runs/7" && !deleted, what == "GET /actions/runs/7/attempts/2":
			answer(http.StatusOK, run)
		case what == "GET /actions/runs/7/attempts/2/jobs":
			answer(http.StatusOK, map[string]any{"total_count": 1, "jobs": []any{job}})
		case what == "GET /actions/workflows":
			answer(http.StatusOK, map[string]any{"total_count": 1, "workflows": []any{workflow}})
		case what == "GET /actions/workflows/3":
			answer(http.StatusOK, workflow)
		case what == "POST /actions/runs/7/rerun":
			done("runs_rerun", http.StatusCreated)
		case what == "DELETE /actions/runs/7":
			deleted = true
			done("runs_delete", http.StatusNoContent)
		case what == "PUT /actions/workflows/3/enable":
			done("workflows_enable", http.StatusNoContent)
		case what == "PUT /actions/workflows/3/disable":
			done("workflows_disable", http.StatusNoContent)
		case what == "POST /labels":
			s.Note("labels_create", r.URL.Path)
			answer(http.StatusCreated, map[string]any{"id": 1, "name": "risk", "color": "ff0000", "description": ""})
		case what == "DELETE /labels/risk":
			done("labels_delete", http.StatusNoContent)
		default:
			answer(http.StatusNotFound, map[string]string{"message": "Not Found"})
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

// The real program, every one of its tools, against a service with the published shapes.
func TestTheProgramItself(t *testing.T) {
	p, s := built(t), newService(t)
	c := at(t, s.URL, token)
	for _, read := range []struct{ tool, arguments, says string }{
		{"runs_list", `{"repo":"acme/web"}`, "Fix the cart"},
		{"runs_view", `{"repo":"acme/web","run":"7"}`, `"attempt":2`},
		{"runs_jobs", `{"repo":"acme/web","run":"7","attempt":"2"}`, "go test"},
		{"workflows_list", `{"repo":"acme/web","limit":5}`, "ci.yml"},
		{"search_issues", `{"words":"cart is:open"}`, "cart is:open"},
		{"search_prs", `{"words":"cart"}`, "type:pr"},
	} {
		got, err := p.Read(t.Context(), c, call(read.tool, read.arguments))
		if err != nil || got.IsError || !bytes.Contains(got.Raw, []byte(read.says)) || bytes.Contains(got.Raw, []byte(token)) {
			t.Errorf("%s: %s %v", read.tool, got.Raw, err)
		}
	}
	if len(s.Effects("")) != 0 {
		t.Errorf("reading did %v", s.Effects(""))
	}
	for _, write := range []struct{ tool, arguments string }{
		{"runs_rerun", `{"repo":"acme/web","run":"7"}`},
		{"workflows_disable", `{"repo":"acme/web","workflow":"3"}`},
		{"workflows_enable", `{"repo":"acme/web","workflow":"3"}`},
		{"labels_create", `{"repo":"acme/web","label":"risk","color":"ff0000"}`},
		{"labels_delete", `{"repo":"acme/web","label":"risk"}`},
	} {
		if o := p.Execute(t.Context(), c, call(write.tool, write.arguments)); o.Kind() != action.OutcomeSucceeded || len(s.Effects(write.tool)) != 1 {
			t.Errorf("%s: %s %s, %v", write.tool, o.Kind(), o.Sentence(), s.Effects(write.tool))
		}
	}

	before := len(s.Requests())
	for _, hostile := range []struct{ tool, arguments string }{
		{"labels_create", `{"repo":"acme/web","label":"--force","color":"ff0000"}`},
		{"labels_create", `{"repo":"acme/web","label":"risk","color":"ff0000","description":"a\nb"}`},
		{"runs_rerun", `{"repo":"acme/../../user","run":"7"}`},
		{"runs_rerun", `{"repo":"acme/web","run":"7 --debug"}`},
		{"runs_rerun", `{"repo":"other.example/acme/web","run":"7"}`},
	} {
		if o := p.Execute(t.Context(), c, call(hostile.tool, hostile.arguments)); o.Kind() != action.OutcomeFailed {
			t.Errorf("%s %s: %s %s", hostile.tool, hostile.arguments, o.Kind(), o.Sentence())
		}
	}
	if got := s.Requests()[before:]; len(got) != 0 {
		t.Errorf("hostile arguments asked %v", got)
	}

	s.Break("DELETE /repos/acme/web/actions/runs/7", directtest.ApplyThenReset)
	lost := call("runs_delete", `{"repo":"acme/web","run":"7"}`)
	o := p.Execute(t.Context(), c, lost)
	if o.Kind() != action.OutcomeUncertain || len(s.Effects("runs_delete")) != 1 {
		t.Fatalf("%s %s, %v", o.Kind(), o.Sentence(), s.Effects(""))
	}
	if seen, err := p.Reconcile(t.Context(), c, lost, o.Evidence()); err != nil || seen.Sight != provider.Applied {
		t.Errorf("%+v %v", seen, err)
	}
	if _, err := p.Read(t.Context(), at(t, s.URL, "github_pat_another0123456789"), call("runs_list", `{"repo":"acme/web"}`)); !provider.IsUnauthorized(err) {
		t.Errorf("a refused credential: %v", err)
	}
	if asked := s.Requests(); slices.ContainsFunc(asked, func(r string) bool { return strings.Contains(r, "graphql") }) {
		t.Errorf("it asked by GraphQL: %v", asked)
	}
}
