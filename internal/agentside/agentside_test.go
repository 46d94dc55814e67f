package agentside

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"countersign/internal/secret"
)

const canary = "csr_canary0123456789abcdef"

func TestATokenFileIsOneUsersAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for mode, text := range map[os.FileMode]string{0o600: "", 0o400: "", 0o640: "has mode 0640", 0o604: "has mode 0604", 0o666: "has mode 0666"} {
		_ = os.Remove(file)
		must(t, os.WriteFile(file, []byte(canary+"\n"), 0o600))
		must(t, os.Chmod(file, mode))
		token, err := TokenSource{File: file}.Read()
		if text == "" && (err != nil || token.Reveal() != canary) || text != "" && (err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "chmod 600")) {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	if info, err := os.Stat(file); err != nil || exposed(info, os.Geteuid()+1) == "" && os.Geteuid() != 0 {
		t.Errorf("another user's file is taken: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for name, text := range map[string]string{pipe: "is no regular file", filepath.Dir(file): "is no regular file", file + ".not": "cannot be opened"} {
		if _, err := (TokenSource{File: name}).Read(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.Chmod(file, 0o600))
	for _, text := range []string{"", "\n", "two words", "two\nlines", strings.Repeat("x", maxToken+1), "bell\a"} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := (TokenSource{File: file}).Read(); err == nil || !strings.Contains(err.Error(), "holds no run token") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, s := range []TokenSource{{}, {File: file, FD: 3}, {FD: 1}} {
		if _, err := s.Read(); err == nil {
			t.Errorf("%+v is read", s)
		}
	}
}

// TestOnlyGrantedRepositoriesMove asks real git where it would go.
func TestOnlyGrantedRepositoriesMove(t *testing.T) {
	t.Parallel()
	const at = "http://127.0.0.1:1/gateway/git/github-k4x7qa/"
	c := Config{Git: []Repository{
		{Connection: "github-k4x7qa", Name: "acme/site", URL: at + "acme/site.git", InsteadOf: "https://github.com/acme/site"},
		{Connection: "github-k4x7qa", Name: "acme/site-two", URL: at + "acme/site-two.git", InsteadOf: "https://github.com/acme/site-two"},
	}}
	c.MCP.URL = "http://127.0.0.1:1/gateway/mcp"
	p, err := NewPlace(secret.New(canary))
	must(t, err)
	t.Cleanup(p.Remove)
	must(t, p.Write(siblingsFile, []byte(siblings(c))))
	env := gitEnvironment([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=Ada"}, gitSettings(c, "/opt/it's/countersign-agent", p))
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = t.TempDir(), env
		out, err := cmd.Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	for from, to := range map[string]string{
		"https://github.com/acme/site":               at + "acme/site.git",
		"https://github.com/acme/site.git":           at + "acme/site.git",
		"https://github.com/acme/site/":              at + "acme/site.git/",
		"https://github.com/acme/site-two":           at + "acme/site-two.git",
		"https://github.com/acme/site-two.git":       at + "acme/site-two.git",
		"https://github.com/acme/site-three.git":     "",
		"https://github.com/acme/site2":              "",
		"https://github.com/acme/site.github.io":     "",
		"https://github.com/acme/site.github.io.git": "",
		"https://github.com/acme/site.gists":         "",
		"https://github.com/acme/site_old":           "",
		"https://github.com/acme/other":              "",
		"git@github.com:acme/site.git":               at + "acme/site.git",
		"git@github.com:acme/site":                   at + "acme/site.git",
		"ssh://git@github.com/acme/site.git":         at + "acme/site.git",
		"ssh://git@github.com/acme/site-two":         at + "acme/site-two.git",
		"git@github.com:acme/site-three.git":         "",
		"git@github.com:acme/other.git":              "",
		"ssh://git@github.com/acme/site.github.io":   "",
		"ssh://git@github.example/acme/site.git":     "",
		"git@gitlab.com:acme/site.git":               "",
	} {
		if to == "" {
			to = from
		}
		if got := git("ls-remote", "--get-url", from); got != to {
			t.Errorf("%s leads to %s, not to %s", from, got, to)
		}
	}
	if git("config", "user.name") != "Ada" {
		t.Error("what the environment configured is lost")
	}
	if said := strings.Join(env, "\n"); strings.Contains(said, canary) || !strings.Contains(said, "GIT_TERMINAL_PROMPT=0") || !strings.Contains(said, `it'\''s`) {
		t.Errorf("the environment is\n%s", said)
	}
}

func TestTheHelperAnswersForTheGatewayAlone(t *testing.T) {
	t.Parallel()
	p, err := NewPlace(secret.New(canary))
	must(t, err)
	t.Cleanup(p.Remove)
	must(t, p.Write(originFile, []byte("http://127.0.0.1:1")))
	for question, answer := range map[string]string{
		"protocol=http\nhost=127.0.0.1:1\n\n":                  "username=run\npassword=" + canary + "\n",
		"protocol=http\nhost=127.0.0.1:1\nusername=run\n\n":    "username=run\npassword=" + canary + "\n",
		"protocol=https\nhost=127.0.0.1:1\n\n":                 "",
		"protocol=http\nhost=127.0.0.1:2\n\n":                  "",
		"protocol=https\nhost=github.com\n\n":                  "",
		"":                                                     "",
		"host=127.0.0.1:1\n\n":                                 "",
		"protocol=http\nhost=127.0.0.1:1@evil.example.com\n":   "",
		"protocol=http\nhost=127.0.0.1:1\nhost=github.com\n\n": "",
	} {
		for operation, want := range map[string]string{"get": answer, "store": "", "erase": ""} {
			var out bytes.Buffer
			if err := Credential(p.Dir, operation, strings.NewReader(question), &out); err != nil || out.String() != want {
				t.Errorf("%s %q: %q %v", operation, question, &out, err)
			}
		}
	}
}

// TestEachClientsOwnForm compares the files with what the vendors document, member by member: Codex ignores "headers", VS Code asks for a type
// everywhere, and none of them knows the others' names.
func TestEachClientsOwnForm(t *testing.T) {
	t.Parallel()
	p, err := NewPlace(secret.New(canary))
	must(t, err)
	t.Cleanup(p.Remove)
	_, err = configure(p, Clients(), []server{{name: "far", url: "http://127.0.0.1:1/mcp", bearer: secret.New(canary)}, {name: "near", command: "/bin/x", args: []string{"stdio", "k"}}})
	must(t, err)
	const far, near = `"url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer ` + canary + `"}}`, `"command":"/bin/x","args":["stdio","k"]}`
	typed := `{"far":{"type":"http",` + far + `,"near":{"type":"stdio",` + near + `}}`
	for name, want := range map[string]string{
		"mcp.json": `{"mcpServers":` + typed, "claude/mcp.json": `{"mcpServers":` + typed, "vscode/User/mcp.json": `{"servers":` + typed,
		"cursor/mcp.json":   `{"mcpServers":{"far":{` + far + `,"near":{` + near + `}}`,
		"codex/config.toml": "[mcp_servers][mcp_servers.far]url='http://127.0.0.1:1/mcp'[mcp_servers.far.http_headers]Authorization='Bearer " + canary + "'[mcp_servers.near]command='/bin/x'args=['stdio','k']",
	} {
		raw, err := os.ReadFile(filepath.Join(p.Dir, name))
		must(t, err)
		squeeze := strings.NewReplacer("\n", "", "  ", "", ": ", ":", " = ", "=", ", ", ",").Replace
		if got := squeeze(string(raw)); got != squeeze(want) {
			t.Errorf("%s holds\n%s, not\n%s", name, got, want)
		}
	}
}

// TestClientsAreConfigured reads each file as its client does.
func TestClientsAreConfigured(t *testing.T) {
	t.Parallel()
	p, err := NewPlace(secret.New(canary))
	must(t, err)
	t.Cleanup(p.Remove)
	list := []server{{name: "countersign", url: "http://127.0.0.1:1/gateway/mcp", bearer: secret.New(canary)}, {name: "structured-questions", command: "/bin/countersign-agent", args: []string{"stdio", "structured_questions.v1"}}}
	env, err := configure(p, Clients(), list)
	must(t, err)
	type entry struct {
		Type, URL, Command string
		Args               []string
		Headers            map[string]string
		HTTPHeaders        map[string]string `toml:"http_headers" json:"-"`
	}
	type file struct {
		MCPServers map[string]entry `json:"mcpServers" toml:"mcp_servers"`
		Servers    map[string]entry `json:"servers" toml:"-"`
	}
	want := map[string]string{
		"COUNTERSIGN_MCP_CONFIG": "", "COUNTERSIGN_CLAUDE_MCP_CONFIG": "", "COUNTERSIGN_CODEX_HOME": "config.toml", "COUNTERSIGN_VSCODE_USER_DATA_DIR": "User/mcp.json", "COUNTERSIGN_CURSOR_MCP_CONFIG": "",
	}
	for _, v := range env {
		name, path, _ := strings.Cut(v, "=")
		raw, err := os.ReadFile(filepath.Join(path, want[name]))
		must(t, err)
		var f file
		if name == "COUNTERSIGN_CODEX_HOME" {
			err = toml.NewDecoder(bytes.NewReader(raw)).DisallowUnknownFields().Decode(&f)
		} else {
			err = json.Unmarshal(raw, &f)
		}
		must(t, err)
		servers := f.MCPServers
		if name == "COUNTERSIGN_VSCODE_USER_DATA_DIR" {
			servers = f.Servers
		}
		gateway, questions := servers["countersign"], servers["structured-questions"]
		bearer := gateway.Headers["Authorization"] + gateway.HTTPHeaders["Authorization"]
		if gateway.URL != list[0].url || bearer != "Bearer "+canary || questions.Command != "/bin/countersign-agent" || len(questions.Args) != 2 || len(servers) != 2 {
			t.Errorf("%s: %s", name, raw)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("nobody is told of %v", want)
	}
	must(t, filepath.WalkDir(p.Dir, func(path string, d os.DirEntry, err error) error {
		info, _ := d.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}))
	if env, err := configure(p, []string{"codex"}, list); err != nil || len(env) != 1 {
		t.Errorf("one client: %v %v", env, err)
	}
	if CheckClients([]string{"mcp", "emacs"}) == nil {
		t.Error("an unknown client passes")
	}
}

// A place whose owner was killed is thrown away by the next one; one that is used, or just being made, is not.
func TestAbandonedPlacesAreThrownAway(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	used, err := newPlace(base)
	must(t, err)
	t.Cleanup(used.Remove)
	left, err := newPlace(base)
	must(t, err)
	must(t, left.Write(tokenFile, []byte(canary)))
	must(t, left.lock.Close()) // as the kernel does when its owner is killed
	fresh, err := newPlace(base)
	must(t, err)
	must(t, fresh.lock.Close())
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(used.Dir, long, long))
	must(t, os.Chtimes(left.Dir, long, long))
	sweep(base)
	for dir, want := range map[string]bool{used.Dir: true, fresh.Dir: true, left.Dir: false} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v", dir, err == nil)
		}
	}
}

// TestTheTokenGoesToOneOrigin refuses gateways and configurations that would carry it elsewhere.
func TestTheTokenGoesToOneOrigin(t *testing.T) {
	t.Parallel()
	for address, fine := range map[string]bool{
		"https://countersign.example.com": true, "http://127.0.0.1:8080/gateway/mcp": true, "http://localhost:8080": true, "http://[::1]:1": true,
		"http://countersign.example.com": false, "ftp://127.0.0.1": false, "https://user:pass@countersign.example.com": false, "countersign.example.com": false, "": false,
	} {
		if _, err := Open(address, secret.New(canary), false); (err == nil) != fine {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := Open("http://countersign.example.com", secret.New(canary), true); err != nil {
		t.Errorf("plain http that was asked for: %v", err)
	}
	var body string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s got %v", r.URL, r.Header) }))
	t.Cleanup(elsewhere.Close)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body == "redirect" {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	g, err := Open(s.URL, secret.New(canary), false)
	must(t, err)
	own := func(repository, instead string) string {
		return `{"mcp":{"url":"` + s.URL + `/gateway/mcp"},"git":[{"repository":"o/r","url":"` + repository + `","instead_of":"` + instead + `"}]}`
	}
	for text, fine := range map[string]bool{
		own(s.URL+"/gateway/git/k/o/r.git", "https://github.com/o/r"):    true,
		own(elsewhere.URL+"/o/r.git", "https://github.com/o/r"):          false,
		own(s.URL+"/o/r.git", "/home/agent"):                             false,
		own(s.URL+"/o/r.git", `https://github.com/o/r\n[core]`):          false,
		own(s.URL+`/o\"]\n[core]`, "https://github.com/o/r"):             false,
		`{"mcp":{"url":"http://evil.example.com/gateway/mcp"},"git":[]}`: false,
		`<html>`:   false,
		"redirect": false,
	} {
		body = text
		if _, err := g.Config(t.Context(), false); (err == nil) != fine {
			t.Errorf("%s: %v", text, err)
		}
	}
}
