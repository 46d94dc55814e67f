package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// withdraws takes what works beside the agent away while it runs: one out of the profile, one retired. Each ends with a sentence, and so does
// whatever a client starts in its place, while the command itself and the rest of the run go on.
func (w *agentImage) withdraws(t *testing.T) {
	h := w.starts(t, t.TempDir(), `cat "$COUNTERSIGN_MCP_CONFIG"; echo; echo shown; read _; git ls-remote -q https://github.com/acme/site HEAD; echo went on`)
	h.says(t, "shown")
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	must(t, json.NewDecoder(strings.NewReader(h.out.String())).Decode(&config))
	admin := w.s.signsIn(t, "admin@sandbox.test", desk)
	for n, c := range []struct {
		server string
		ends   func()
	}{
		{"structured-questions", func() {
			admin.opens(t, "/profiles/engineering")
			admin.ticks(t, "use", w.beside[0], false)
			admin.presses(t, "save-profile")
		}},
		{"sequential-thinking", func() {
			admin.opens(t, "/connections/"+w.beside[1])
			admin.presses(t, "retire")
		}},
	} {
		start := func() (*exec.Cmd, *transcript) {
			cmd, said := exec.Command(config.Servers[c.server].Command, slices.Insert(slices.Clone(config.Servers[c.server].Args), 1, "--every", "50ms")...), &transcript{}
			cmd.Stderr = said
			return cmd, said
		}
		cmd, said := start()
		near, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatalf("%s: %v %s", c.server, err, said)
		}
		c.ends()
		_ = near.Wait() // the server ends by itself, and so the session
		_ = near.Close()
		again, told := start()
		_ = again.Run()
		for _, s := range []string{said.String(), told.String()} {
			if !strings.Contains(s, "This run does not have the runtime") || !strings.Contains(s, "Go on without it") {
				t.Errorf("%d: the client reads %q", n, s)
			}
		}
		if code := again.ProcessState.ExitCode(); code != 3 {
			t.Errorf("%s starts again and ends with %d", c.server, code)
		}
	}
	_, err := h.in.Write([]byte("\n"))
	must(t, err)
	h.says(t, "went on")
	_ = h.cmd.Wait()
	if !strings.Contains(h.out.String(), "\tHEAD\n") {
		t.Errorf("the rest of the run does not go on: %s", h.out)
	}
}

// explainsAsJSON compares what doctor says to programs with what it says to people.
func (w *agentImage) explainsAsJSON(t *testing.T, words string) {
	t.Helper()
	got := runs(t, w.command(t, t.TempDir(), "doctor", "--json"))
	var f struct {
		Wrong             []string
		Git, Gateway      string
		GatewayAnswers    bool `json:"gateway_answers"`
		GatewayTakesToken bool `json:"gateway_takes_token"`
		ClockAgrees       bool `json:"clock_agrees"`
		Run               struct{ Surface string }
		Tools             []struct{ Name, Connection, Tool, Verdict, Reason string }
		Repositories      []struct {
			Repository, Push  string
			Remotes, Branches []string
		}
		Runtimes []struct {
			Runtime, Package string
			Fine             bool
		}
	}
	out := json.NewDecoder(strings.NewReader(got.stdout))
	must(t, out.Decode(&f))
	if got.code != 0 || out.More() || f.Wrong == nil || len(f.Wrong) != 0 || !f.GatewayAnswers || !f.GatewayTakesToken || !f.ClockAgrees || f.Run.Surface != "task" || f.Gateway != w.s.url || !strings.Contains(words, "Git "+f.Git+" can be used") {
		t.Errorf("doctor --json says %v", got)
	}
	for _, tool := range f.Tools {
		if !strings.Contains(words, "  "+tool.Tool) || !strings.Contains(words, tool.Reason) || tool.Name == "" || tool.Connection == "" || tool.Verdict == "" {
			t.Errorf("doctor says nothing of %+v", tool)
		}
	}
	if len(f.Repositories) != 3 || f.Repositories[0].Push != "stage" || !slices.Equal(f.Repositories[0].Branches, []string{"agent/**"}) ||
		!slices.Equal(f.Repositories[0].Remotes, []string{"https://github.com/acme/site", "git@github.com:acme/site", "ssh://git@github.com/acme/site"}) {
		t.Errorf("repositories: %+v", f.Repositories)
	}
	if len(f.Runtimes) != 2 || !f.Runtimes[0].Fine || f.Runtimes[1].Package != "" || !strings.Contains(words, filepath.Base(f.Runtimes[0].Package)) {
		t.Errorf("runtimes: %+v", f.Runtimes)
	}
	if strings.Contains(got.stdout, w.run.Token) {
		t.Error("doctor --json shows the token")
	}
	wrong := runs(t, w.commandWith(t, "nobody", t.TempDir(), "doctor", "--json"))
	if wrong.code != 1 || !json.Valid([]byte(wrong.stdout)) || !strings.Contains(wrong.stdout, `"run": null`) || !strings.Contains(wrong.stdout, `"gateway_answers": true`) || !strings.Contains(wrong.stdout, "missing, wrong, expired") {
		t.Errorf("with a token of nobody's: %v", wrong)
	}
}
