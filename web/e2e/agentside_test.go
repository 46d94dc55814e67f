package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/provider/github/githubtest"
)

// TestTheAgentsSide is an agent's image from outside: the built countersign-agent with unmodified git and MCP clients, before a GitHub.
func TestTheAgentsSide(t *testing.T) {
	t.Parallel()
	hub := githubtest.New(t)
	hub.Repository("acme/site", 42)
	holds(t, hub, "acme/small", 43, 8)
	holds(t, hub, "acme/large", 44, 64)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "github.v1/git", hub.URL, "github.v1/api", hub.URL))
	s.start(t)
	admin, key := installs(t, s, "github", map[string]string{"access_token": githubtest.Token, "repositories": "acme/site acme/small acme/large"})
	judgesBranches(t, admin, key)
	beside := installsBeside(t, s, "structured-questions", "sequential-thinking")
	w := &agentImage{s: s, hub: hub, beside: beside, run: s.runtime().starts(t, task("engineering", "ENG-40"))}
	for _, chapter := range []struct {
		name string
		told func(*testing.T)
	}{
		{"a push over an ordinary remote is staged, approved and delivered, and no secret lies about", w.pushes},
		{"a clone of a long history takes no more memory than a short one", w.streams},
		{"MCP clients reach the gateway and what works beside the agent", w.connects},
		{"a runtime that was altered, or that nobody knows, is not started", w.refusesRuntimes},
		{"doctor says what the run may do", w.explains},
		{"signals and exit codes are the command's, and nothing is left", w.ends},
		{"a token that does not hold is one sentence", w.refusesTokens},
		{"a server beside the agent ends with its connection, and is not started again", w.withdraws},
	} {
		if !t.Run(chapter.name, chapter.told) {
			t.FailNow()
		}
	}
}

// judgesBranches asks on the connection's page what a push would meet.
func judgesBranches(t *testing.T, admin *person, key string) {
	t.Helper()
	admin.opens(t, "/connections/"+key)
	admin.reads(t, "The credential is a fine-grained token.", "Branches agents may push")
	for branch, words := range map[string]string{
		"agent/fix-1": "Yes, it fits agent/**", "main": "is the default branch, which agents never push to", "hotfix": "is none of these", "agent/<b>x": "is not a plain branch name",
	} {
		admin.fills(t, "branch", branch)
		admin.presses(t, "ask-branch")
		admin.reads(t, words)
	}
}

// installsBeside connects what works in the agent's image and lets engineering use it.
func installsBeside(t *testing.T, s *server, integrations ...string) (keys []string) {
	t.Helper()
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	for _, integration := range integrations {
		admin.opens(t, "/connections/new/"+integration)
		admin.presses(t, "install")
		admin.reads(t, "It works beside the agent", "there is no mode, no tool to choose and no credential")
		key := lastPart(admin.URL())
		admin.opens(t, "/profiles/engineering")
		admin.ticks(t, "use", key, true)
		admin.presses(t, "save-profile")
		keys = append(keys, key)
	}
	return keys
}

type agentImage struct {
	s      *server
	hub    *githubtest.Server
	beside []string // keys of what works beside the agent
	run    started
}

// tokenFile keeps a token as a runtime would.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run-token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return file
}

// command is countersign-agent with the run's token, for a workspace.
func (w *agentImage) command(t *testing.T, dir, verb string, args ...string) *exec.Cmd {
	t.Helper()
	return w.commandWith(t, w.run.Token, dir, verb, args...)
}

func (w *agentImage) commandWith(t *testing.T, token, dir, verb string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{verb, "--gateway", w.s.url, "--token-file", tokenFile(t, token), "--node-modules", filepath.Join(repo, "node_modules")}, args...)
	cmd := exec.CommandContext(t.Context(), agentBinary, args...)
	cmd.Dir = dir
	cmd.Env = append(environment(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_AUTHOR_NAME=Agent", "GIT_AUTHOR_EMAIL=agent@example.com", "GIT_COMMITTER_NAME=Agent", "GIT_COMMITTER_EMAIL=agent@example.com")
	return cmd
}

// runs runs a command to its end.
func runs(t *testing.T, cmd *exec.Cmd) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// halting is a command that runs a script in a workspace with what the run gives, and halts where the script reads a line.
type halting struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *transcript
}

func (w *agentImage) starts(t *testing.T, dir, script string) *halting {
	t.Helper()
	h := &halting{cmd: w.command(t, dir, "exec", "--", "sh", "-c", script), out: &transcript{}}
	var err error
	h.in, err = h.cmd.StdinPipe()
	must(t, err)
	h.cmd.Stdout, h.cmd.Stderr, h.cmd.WaitDelay = h.out, h.out, 5*time.Second // what it leaves behind must not hold us
	must(t, h.cmd.Start())
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	return h
}

// says waits for a line of the script.
func (h *halting) says(t *testing.T, line string) {
	t.Helper()
	eventually(t, "the script says "+line, func() bool { return strings.Contains(h.out.String(), line+"\n") })
}

var placeLine = regexp.MustCompile(`COUNTERSIGN_AGENT_PLACE=(\S+)`)

func (w *agentImage) pushes(t *testing.T) {
	workspace := t.TempDir()
	h := w.starts(t, workspace, `set -e
		env | grep COUNTERSIGN_AGENT_PLACE
		git clone -q https://github.com/acme/site site; cd site
		git remote get-url origin
		git checkout -q -b agent/fix-1; echo work > work.txt; git add -A; git commit -q -m work
		GIT_SSH_COMMAND=false git ls-remote -q ssh://git@github.com/acme/site.git HEAD | cut -f2; GIT_SSH_COMMAND=false git clone -q git@github.com:acme/site.git ../over-ssh
		! GIT_SSH_COMMAND=false git ls-remote -q git@github.com:acme/another.git 2>/dev/null || exit 1
		git push origin agent/fix-1 && exit 1
		echo pushed; read _
		git fetch -q; git rev-parse origin/agent/fix-1; echo fetched`)
	h.says(t, "pushed")
	said := h.out.String()
	id := regexp.MustCompile(`act_[a-z2-7]+`).FindString(said)
	if !strings.Contains(said, "remote: staged as action "+id+", NOT pushed: "+w.s.url+"/actions/"+id) || !strings.Contains(said, "acme/site") || len(w.hub.Pushes()) != 0 {
		t.Fatalf("git's user reads\n%s", said)
	}
	if !strings.Contains(said, "\nHEAD\n") || !isThere(filepath.Join(workspace, "over-ssh", "README.md")) {
		t.Errorf("a remote written for ssh does not lead to the gateway:\n%s", said)
	}
	place := placeLine.FindStringSubmatch(said)[1]
	if raw, err := os.ReadFile(filepath.Join(place, "token")); err != nil || string(raw) != w.run.Token {
		t.Errorf("the place holds no token: %v", err)
	}
	w.scans(t, workspace)

	approver := w.s.signsIn(t, "approver@sandbox.test", desk)
	approver.opens(t, "/actions/"+id)
	approver.reads(t, "work.txt", "agent/fix-1")
	approver.presses(t, "approve")
	w.s.runtime().settles(t, id, "succeeded")
	_, err := io.WriteString(h.in, "go on\n")
	must(t, err)
	must(t, h.cmd.Wait())
	tip := w.hub.Git(w.hub.Dir("acme/site"), "rev-parse", "agent/fix-1")
	if pushes := w.hub.Pushes(); len(pushes) != 1 || !strings.Contains(h.out.String(), tip+"\nfetched\n") {
		t.Errorf("GitHub saw %q, the branch is at %s, and git's user reads\n%s", pushes, tip, h.out)
	}
	w.scans(t, workspace)
	if _, err := os.Stat(place); !os.IsNotExist(err) {
		t.Errorf("the place is left: %v", err)
	}
}

// scans looks for the PAT and the run token wherever an agent or a neighbour could read them.
func (w *agentImage) scans(t *testing.T, workspace string) {
	t.Helper()
	secrets := map[string]string{"the PAT": githubtest.Token, "the run token": w.run.Token, "the service token": w.s.sandbox.Token}
	look := func(where string, raw []byte) {
		for name, secret := range secrets {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s holds %s", where, name)
			}
		}
	}
	files := 0
	must(t, filepath.WalkDir(workspace, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		look(path, raw)
		return err
	}))
	if files < 10 {
		t.Errorf("the workspace has only %d files", files)
	}
	for _, kind := range []string{"cmdline", "environ"} {
		processes, err := filepath.Glob("/proc/[0-9]*/" + kind)
		must(t, err)
		for _, p := range processes {
			if raw, err := os.ReadFile(p); err == nil { // else it ended since
				look(p, raw)
			}
		}
	}
}

func (w *agentImage) connects(t *testing.T) {
	h := w.starts(t, t.TempDir(), `cat "$COUNTERSIGN_MCP_CONFIG"; echo; echo shown; read _`)
	h.says(t, "shown")
	var config struct {
		Servers map[string]struct {
			URL, Command string
			Args         []string
			Headers      map[string]string
		} `json:"mcpServers"`
	}
	must(t, json.NewDecoder(strings.NewReader(h.out.String())).Decode(&config))
	if len(config.Servers) != 3 {
		t.Fatalf("the client is configured with %s", h.out)
	}
	client := func(o *mcp.ClientOptions) *mcp.Client {
		return mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, o)
	}
	gateway := config.Servers["countersign"]
	token := strings.TrimPrefix(gateway.Headers["Authorization"], "Bearer ")
	far, err := client(nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: gateway.URL, HTTPClient: &http.Client{Transport: bearing{token}}, MaxRetries: -1}, nil)
	must(t, err)
	if names := (agent{far}).tools(t); !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "__contacts_get") }) {
		t.Errorf("the gateway lists %v", names)
	}

	person := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "green"}}, nil
	}}
	for _, c := range []struct{ server, tool, arguments, answers string }{
		{"structured-questions", "ask", `{"question":"Which colour?","fields":[{"name":"colour","label":"Colour","type":"choice","options":["green","red"]}]}`, `"colour":"green"`},
		{"sequential-thinking", "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, `thoughtHistoryLength`},
	} {
		cmd := exec.Command(config.Servers[c.server].Command, config.Servers[c.server].Args...)
		near, err := client(person).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.server, err)
		}
		r, err := near.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
		must(t, err)
		if raw, _ := json.Marshal(r); r.IsError || !strings.Contains(string(raw), c.answers) {
			t.Errorf("%s answers %s", c.server, raw)
		}
		under := below(t, cmd.Process.Pid)
		must(t, near.Close())
		for _, pid := range under {
			if alive(pid) {
				t.Errorf("%s left process %d", c.server, pid)
			}
		}
	}
	must(t, h.in.Close())
	_ = h.cmd.Wait()
}

// below are the processes that a process has started.
func below(t *testing.T, pid int) (out []int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
	if err != nil {
		return nil // this kernel does not tell
	}
	for _, word := range strings.Fields(string(raw)) {
		child, err := strconv.Atoi(word)
		must(t, err)
		out = append(out, child)
	}
	return out
}

func (w *agentImage) refusesRuntimes(t *testing.T) {
	stdio := func(args ...string) ran {
		cmd := exec.CommandContext(t.Context(), agentBinary, append([]string{"stdio"}, args...)...)
		cmd.Env = environment()
		return runs(t, cmd)
	}
	if got := stdio("shell.v1"); got.code != 3 || !strings.Contains(got.stderr, "does not hold the runtime “shell.v1”") || got.stdout != "" {
		t.Errorf("an unknown runtime: %v", got)
	}
	pins, err := os.ReadFile(filepath.Join(repo, "internal", "agentside", "pins", "sequential_thinking.v1.txt"))
	must(t, err)
	altered := filepath.Join(t.TempDir(), "node_modules")
	for line := range strings.Lines(string(pins)) {
		name, _, _ := strings.Cut(line, " ")
		if from := filepath.Join(repo, "node_modules", name); !isThere(filepath.Join(altered, name)) && isThere(from) {
			must(t, os.CopyFS(filepath.Join(altered, name), os.DirFS(from)))
		}
	}
	script := filepath.Join(altered, "@modelcontextprotocol", "server-sequential-thinking", "dist", "index.js")
	raw, err := os.ReadFile(script)
	must(t, err)
	marker := filepath.Join(t.TempDir(), "ran")
	must(t, os.WriteFile(script, append([]byte("import { writeFileSync } from 'node:fs'; writeFileSync("+strconv.Quote(marker)+", 'x');\n"), raw...), 0o644))
	if got := stdio("--node-modules", altered, "sequential_thinking.v1"); got.code != 3 || !strings.Contains(got.stderr, "was altered. It is not started.") {
		t.Errorf("an altered runtime: %v", got)
	}
	cmd := w.command(t, t.TempDir(), "exec", "--node-modules", altered, "--", "sh", "-c", `cat "$COUNTERSIGN_MCP_CONFIG"`)
	if got := runs(t, cmd); got.code != 0 || !strings.Contains(got.stderr, "was altered. It is not started.") || strings.Contains(got.stdout, "sequential") || !strings.Contains(got.stdout, "structured-questions") {
		t.Errorf("exec with an altered runtime: %v", got)
	}
	if isThere(marker) {
		t.Error("the altered script ran")
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (w *agentImage) explains(t *testing.T) {
	inside := runs(t, w.command(t, t.TempDir(), "exec", "--", agentBinary, "doctor", "--node-modules", filepath.Join(repo, "node_modules")))
	got := runs(t, w.command(t, t.TempDir(), "doctor"))
	for _, said := range []ran{got, inside} {
		for _, words := range []string{
			"can be used.", "takes the run token.", "The clock agrees", "This is a task run.", "It may ask for 49 more changes; 1 of 50 are used.",
			"contacts_get                     allowed            It only reads.", "contacts_create                  waits for a person",
			"https://github.com/acme/site: clone and fetch are allowed. A push to agent/** waits for a person", "structured_questions.v1: a part of this program.",
			"server-sequential-thinking in " + filepath.Join(repo, "node_modules") + " is what this program was built with.",
		} {
			if said.code != 0 || !strings.Contains(said.stdout, words) {
				t.Errorf("doctor does not say %q: %v", words, said)
			}
		}
		if strings.Contains(said.stdout+said.stderr, w.run.Token) {
			t.Error("doctor shows the token")
		}
	}
	w.explainsAsJSON(t, got.stdout)
	chat := w.s.runtime().starts(t, chat("engineering"))
	if got := runs(t, w.commandWith(t, chat.Token, t.TempDir(), "doctor")); got.code != 0 || !strings.Contains(got.stdout, "This is a chat run.") || !strings.Contains(got.stdout, "(consequential_in_chat)") || !strings.Contains(got.stdout, "A push is refused") {
		t.Errorf("a chat run: %v", got)
	}
}

func (w *agentImage) ends(t *testing.T) {
	for script, code := range map[string]int{"exit 7": 7, "exit 0": 0, "kill -9 $$": 128 + 9} {
		if got := runs(t, w.command(t, t.TempDir(), "exec", "--", "sh", "-c", script)); got.code != code {
			t.Errorf("%s: %v", script, got)
		}
	}
	if got := runs(t, w.command(t, t.TempDir(), "exec", "--", "no-such-command-here")); got.code != 3 || !strings.Contains(got.stderr, "“no-such-command-here” cannot be started.") {
		t.Errorf("a missing command: %v", got)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		h := w.starts(t, t.TempDir(), `env | grep COUNTERSIGN_AGENT_PLACE; echo "child $$"; exec sleep 1000`)
		eventually(t, "the command runs", func() bool { return strings.Contains(h.out.String(), "child ") })
		place := placeLine.FindStringSubmatch(h.out.String())[1]
		child, err := strconv.Atoi(regexp.MustCompile(`child (\d+)`).FindStringSubmatch(h.out.String())[1])
		must(t, err)
		if !isThere(place) {
			t.Errorf("there is no %s", place)
		}
		must(t, h.cmd.Process.Signal(s))
		_ = h.cmd.Wait()
		if code := h.cmd.ProcessState.ExitCode(); code != 128+int(s) || isThere(place) || alive(child) {
			t.Errorf("after %v: exit %d, the place is there: %v, the command lives: %v", s, code, isThere(place), alive(child))
		}
	}
	h := w.starts(t, t.TempDir(), `trap 'echo told; exit 9' TERM; echo ready; while :; do read _ || sleep 0.05; done`)
	h.says(t, "ready")
	must(t, h.cmd.Process.Kill()) // nobody can clean up now, but the command does not go on alone
	h.says(t, "told")
}

func (w *agentImage) refusesTokens(t *testing.T) {
	const sentence = "countersign-agent: The run token is missing, wrong, expired or of an ended run. Start a run and use its token.\n"
	over := w.s.runtime().starts(t, chat("engineering"))
	if status := w.s.runtime().asks(t, http.MethodPost, "/api/v1/runs/"+over.ID+"/end", nil, nil); status != http.StatusOK {
		t.Fatalf("ending a run answers %d", status)
	}
	late := w.s.runtime().starts(t, chat("engineering"))
	conn := w.s.database(t)
	_, err := conn.Exec(t.Context(), `SET session_replication_role = replica`)
	must(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE runs SET started_at = started_at - interval '1 day', expires_at = expires_at - interval '1 day' WHERE id = $1`, late.ID)
	must(t, err)
	for name, token := range map[string]string{"wrong": "csr_" + strings.Repeat("a", 40), "ended": over.Token, "expired": late.Token} {
		if got := runs(t, w.commandWith(t, token, t.TempDir(), "exec", "--", "touch", "started")); got.code != 3 || got.stderr != sentence || got.stdout != "" {
			t.Errorf("%s: %v", name, got)
		}
		if got := runs(t, w.commandWith(t, token, t.TempDir(), "doctor")); got.code != 1 || !strings.Contains(got.stdout, "WRONG: The run token is missing, wrong, expired or of an ended run.") {
			t.Errorf("doctor, %s: %v", name, got)
		}
	}
	open := tokenFile(t, w.run.Token)
	must(t, os.Chmod(open, 0o644))
	for name, c := range map[string]struct {
		args  []string
		code  int
		words string
	}{
		"no token":            {[]string{"exec", "--", "true"}, 2, "--token-file FILE or --token-fd N"},
		"no command":          {[]string{"exec", "--token-file", open}, 2, "expected"},
		"a flag nobody knows": {[]string{"exec", "--token", "x", "--", "true"}, 2, "An unknown flag"},
		"an open file":        {[]string{"exec", "--token-file", open, "--", "true"}, 3, "chmod 600"},
		"nobody there":        {[]string{"exec", "--gateway", "http://" + freeAddress(t), "--token-file", tokenFile(t, "x"), "--", "true"}, 3, "does not answer"},
		"plain http":          {[]string{"exec", "--gateway", "http://gateway.example.com", "--token-file", tokenFile(t, "x"), "--", "true"}, 2, "without https"},
		"unknown client":      {[]string{"exec", "--clients", "emacs", "--token-file", tokenFile(t, "x"), "--", "true"}, 2, "There is no client “emacs”"},
		"closed descriptor":   {[]string{"exec", "--token-fd", "9", "--", "true"}, 3, "No run token can be read from descriptor 9."},
	} {
		cmd := exec.CommandContext(t.Context(), agentBinary, c.args...)
		cmd.Env = environment()
		if got := runs(t, cmd); got.code != c.code || !strings.Contains(got.stderr, c.words) {
			t.Errorf("%s: %v", name, got)
		}
	}
	file, err := os.Open(tokenFile(t, w.run.Token))
	must(t, err)
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), agentBinary, "exec", "--gateway", w.s.url, "--token-fd", "3", "--clients", "mcp", "--", "sh", "-c", `ls -l /proc/$$/fd; test -z "$COUNTERSIGN_CODEX_HOME" && cat "$COUNTERSIGN_MCP_CONFIG"`)
	cmd.Env, cmd.ExtraFiles = environment(), []*os.File{file}
	if got := runs(t, cmd); got.code != 0 || !strings.Contains(got.stdout, "Bearer "+w.run.Token) || strings.Contains(got.stdout, "run-token") {
		t.Errorf("a token from a descriptor: %v", got)
	}
}
