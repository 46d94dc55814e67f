package agentside

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary be a supervisor of its own: whose children are left over can only be seen in a process that has no others.
func TestMain(m *testing.M) {
	if script := os.Getenv("AGENTSIDE_SUPERVISES"); script != "" {
		code, err := supervise(context.Background(), exec.Command("/bin/sh", "-c", script), os.Stdin, os.Stdout)
		if err != nil || len(adopted()) > 0 {
			code = 99
		}
		os.Exit(code)
	}
	if key := os.Getenv("AGENTSIDE_SERVES"); key != "" {
		code, err := Serve(context.Background(), key, "../../node_modules")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 99
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestAServerFindsNothingOfTheRun serves a pinned package with the run's place and somebody's keys around it, and looks at what it was given.
func TestAServerFindsNothingOfTheRun(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AGENTSIDE_SERVES=sequential_thinking.v1", placeVariable+"=/run/place", "GITHUB_TOKEN=ghp_of_somebody", "NODE_OPTIONS=--require=/tmp/evil.js", "HTTPS_PROXY=http://198.51.100.7", "BROWSER=/tmp/evil")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	must(t, cmd.Start())
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	must(t, err)
	if lines := bufio.NewScanner(out); !lines.Scan() || !strings.Contains(lines.Text(), "serverInfo") {
		t.Errorf("it answers %q", lines.Text())
	}
	var environ string
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
	for _, file := range children {
		raw, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(raw)) {
			found, err := os.ReadFile("/proc/" + pid + "/environ")
			must(t, err)
			environ += string(found)
		}
	}
	must(t, in.Close())
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v %s", err, said.String())
	}
	var names []string
	for _, v := range strings.Split(strings.Trim(environ, "\x00"), "\x00") {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"DISABLE_THOUGHT_LOGGING", "HOME", "LANG", "PATH", "TMPDIR"}; !slices.Equal(names, want) {
		t.Errorf("it was given %v", names)
	}
}

// TestAServerEndsWithItsClient starts a server that leaves children in its own group and outside of it, and takes its client away.
func TestAServerEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  string
		code int
	}{
		"its input ends":    {`cat >/dev/null; exit 7`, 7},
		"it is told to":     {`exec cat >/dev/null`, 128 + int(syscall.SIGKILL)},
		"it ends by itself": {`exit 5`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), `AGENTSIDE_SUPERVISES=sleep 1000 & echo $!; setsid sh -c 'sleep 1000 & echo $!; echo $$; exec sleep 1000' & read _; `+c.end)
			in, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			var left []int
			for lines := bufio.NewScanner(out); len(left) < 3 && lines.Scan(); {
				pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
				must(t, err)
				left = append(left, pid)
			}
			_, err = io.WriteString(in, "go\n")
			must(t, err)
			switch name {
			case "its input ends":
				must(t, in.Close())
			case "it is told to":
				must(t, cmd.Process.Signal(syscall.SIGTERM))
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code {
				t.Errorf("ended with %d, not %d", got, c.code)
			}
			for _, pid := range left {
				if syscall.Kill(pid, 0) == nil {
					t.Errorf("process %d is left", pid)
				}
			}
			if len(left) != 3 {
				t.Errorf("only %v were started", left)
			}
		})
	}
}
