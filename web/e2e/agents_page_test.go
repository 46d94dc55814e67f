package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTheAgentsPage reads docs/agents.md as a developer does: it keeps the programs and runs the shell blocks in order, in one shell beside a real server's data
// directory, lets a person approve where the page says so, and holds each answer to the block that shows it. In those, "…" stands for
// what differs from run to run, numbers stand for any number, and an empty list for any list.
func TestTheAgentsPage(t *testing.T) {
	s := sharedServer(t)
	page, err := os.ReadFile(filepath.Join(repo, "docs", "agents.md"))
	must(t, err)
	sh := startShell(t, s.dir)
	var answer []byte
	steps := regexp.MustCompile("(?ms)^```(sh|json|go|ts)\n(.*?)^```$|^<!-- test: (.*?) -->$").FindAllSubmatch(page, -1)
	for _, step := range steps {
		kind, text, act := string(step[1]), step[2], string(step[3])
		switch {
		case kind == "sh":
			answer = sh.runs(t, text)
		case kind == "go" || kind == "ts":
			name, _, _ := strings.Cut(strings.TrimPrefix(string(text), "// "), "\n")
			must(t, os.WriteFile(filepath.Join(sh.dir, name), text, 0o600))
		case kind == "json":
			shows(t, text, answer)
		case act == "the approver approves":
			approver := s.signsIn(t, "approver@sandbox.test", desk)
			approver.opens(t, "/actions/"+strings.TrimSpace(string(sh.runs(t, []byte("echo $ACTION\n")))))
			approver.presses(t, "approve")
		default:
			t.Fatalf("nobody here can do %q", act)
		}
	}
	if len(steps) < 20 {
		t.Errorf("the page has only %d steps", len(steps))
	}
	listed := strings.Fields(string(sh.runs(t, []byte(`mcp '{"jsonrpc":"2.0","id":9,"method":"tools/list"}' | jq -r '.result.tools[].name'`+"\n"))))
	listed = slices.DeleteFunc(listed, func(name string) bool { return !strings.HasPrefix(name, "countersign__") })
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(countersign__[a-z_]+)`").FindAllSubmatch(page, -1) {
		named = append(named, string(row[1]))
	}
	if !slices.Equal(listed, named) {
		t.Errorf("the page names the companion tools %v, the server lists %v", named, listed)
	}
}

// shell is one bash whose variables live from block to block.
type shell struct {
	dir string
	in  io.Writer
	out *bufio.Reader
	err *transcript
	n   int
}

func startShell(t *testing.T, data string) *shell {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is missing: run `apt-get install %s`", tool, tool)
		}
	}
	dir := t.TempDir()
	must(t, os.Symlink(data, filepath.Join(dir, "data")))
	installsSDKs(t, dir)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-s")
	path := strings.Join([]string{filepath.Dir(agentBinary), newerNode(t), os.Getenv("PATH")}, string(os.PathListSeparator))
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(environment(), "PATH="+path), 5*time.Second
	s := &shell{dir: dir, err: &transcript{}}
	cmd.Stderr = s.err
	var err error
	s.in, err = cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	s.out = bufio.NewReader(out)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return s
}

// installsSDKs is what a developer's go get and npm install would have brought: the versions of this repository.
func installsSDKs(t *testing.T, dir string) {
	t.Helper()
	must(t, os.Symlink(filepath.Join(repo, "node_modules"), filepath.Join(dir, "node_modules")))
	module, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), bytes.Replace(module, []byte("module countersign\n"), []byte("module agent\n"), 1), 0o600))
	sums, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
}

// runs runs a block and answers what it printed. A command that fails ends the shell, and the test.
func (s *shell) runs(t *testing.T, block []byte) []byte {
	t.Helper()
	s.n++
	end := fmt.Sprintf("--- end of block %d ---\n", s.n)
	_, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%%s' '%s'\n", block, end)
	must(t, err)
	var out bytes.Buffer
	for {
		line, err := s.out.ReadString('\n')
		if line == end {
			return out.Bytes()
		}
		if out.WriteString(line); err != nil {
			t.Fatalf("the shell ended in\n%s\nafter %s%s", block, out.Bytes(), s.err)
		}
	}
}

// shows compares the values a block shows with those that were answered.
func shows(t *testing.T, block, answer []byte) {
	t.Helper()
	shown, told := json.NewDecoder(bytes.NewReader(block)), json.NewDecoder(bytes.NewReader(answer))
	for n := 1; ; n++ {
		var want, got any
		switch err := shown.Decode(&want); {
		case err == io.EOF:
			if n == 1 || told.More() {
				t.Errorf("the page shows %d values of\n%s", n-1, answer)
			}
			return
		case err != nil:
			t.Fatalf("the page shows no JSON: %v\n%s", err, block)
		}
		if err := told.Decode(&got); err != nil {
			t.Fatalf("value %d is missing: %v\n%s", n, err, answer)
		}
		if where := differs(want, got, ""); where != "" {
			t.Errorf("the page shows another answer: %s\n%s", where, answer)
		}
	}
}

// differs says where a shown value is not the real one; empty where it is.
func differs(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for name, value := range want {
			if _, there := members[name]; !there {
				return at + "." + name + " is missing"
			}
			if where := differs(value, members[name], at+"."+name); where != "" {
				return where
			}
		}
	case []any:
		items, ok := got.([]any)
		if !ok || len(want) > len(items) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for i, value := range want {
			if where := differs(value, items[i], fmt.Sprintf("%s[%d]", at, i)); where != "" {
				return where
			}
		}
	case string:
		text, ok := got.(string)
		prefix, open := strings.CutSuffix(want, "…")
		if !ok || open && !strings.HasPrefix(text, prefix) || !open && text != want {
			return fmt.Sprintf("%s is %q, not %q", at, got, want)
		}
	case float64:
		if _, ok := got.(float64); !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
	default:
		if want != got {
			return fmt.Sprintf("%s is %v, not %v", at, got, want)
		}
	}
	return ""
}
