package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait. It is generous because a machine that runs many tests at once is slow; nothing waits this long when all
// is well.
const patience = 60 * time.Second

// repo is the repository's root: tests run in their package's folder.
var repo = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// binary is the program under test, built once; agentBinary is the one for the agent's image.
var binary, agentBinary string

func TestMain(m *testing.M) { os.Exit(withBinary(m)) }

// withBinary builds the programs, or takes those named in COUNTERSIGN_E2E_BINARY and COUNTERSIGN_E2E_AGENT_BINARY: of a release, say.
func withBinary(m *testing.M) int {
	defer closeBrowser()
	defer stopShared()
	if binary, agentBinary = os.Getenv("COUNTERSIGN_E2E_BINARY"), os.Getenv("COUNTERSIGN_E2E_AGENT_BINARY"); binary != "" && agentBinary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, p := range []struct {
		name string
		path *string
	}{{"countersign", &binary}, {"countersign-agent", &agentBinary}} {
		if *p.path != "" {
			continue
		}
		*p.path = filepath.Join(dir, p.name)
		build := exec.Command("go", "build", "-o", *p.path, "./cmd/"+p.name)
		build.Dir, build.Stdout, build.Stderr = repo, os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, p.name, "does not build:", err)
			return 1
		}
	}
	return m.Run()
}

// environment is ours without anything that would configure the server, and with what the test says.
func environment(set ...string) []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "COUNTERSIGN_") || name == "DATABASE_URL" || name == "MCPGODEBUG" {
			continue
		}
		env = append(env, e)
	}
	return append(env, set...)
}

// ran is a command that has ended.
type ran struct {
	code           int
	stdout, stderr string
}

func (r ran) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
}

// operator runs a command of the binary to its end.
type operator struct {
	env   []string
	stdin string
}

func (o operator) runs(t *testing.T, args ...string) ran {
	t.Helper()
	return o.runsProgram(t, binary, args...)
}

// runsProgram is for what is started through another program.
func (o operator) runsProgram(t *testing.T, program string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = repo, environment(o.env...), strings.NewReader(o.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// freeAddress is a loopback address nobody listens on. Somebody else could take it before the server does; the server then says so.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// poll asks until the condition holds or patience ends. Whoever here waits for something that gives no signal waits in this loop.
func poll(ctx context.Context, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// eventually polls, and ends the test when the condition never came to hold.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !poll(t.Context(), holds) {
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newerNode is the folder of a Node that current counterparts accept: the one `npm ci` brought, else whatever is on the PATH.
func newerNode(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	bundled := filepath.Join(repo, "node_modules", "node-linux-"+arch, "bin")
	if _, err := os.Stat(filepath.Join(bundled, "node")); err == nil {
		return bundled
	}
	found, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("Node is missing: run `npm ci`")
	}
	return filepath.Dir(found)
}

// counterpart is a program of node_modules, run by that Node.
func counterpart(t *testing.T, ctx context.Context, name string, args ...string) *exec.Cmd {
	t.Helper()
	node := newerNode(t)
	script := filepath.Join(repo, "node_modules", ".bin", name)
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("%s is missing: run `npm ci` (%v)", name, err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(node, "node"), append([]string{script}, args...)...)
	cmd.Env = append(environment(), "PATH="+node+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
