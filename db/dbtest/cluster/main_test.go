package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/db/dbtest"
)

// actAs makes this test binary the command itself, so that exit codes and signals are the real ones.
const actAs = "CLUSTER_TEST_ACT"

func TestMain(m *testing.M) {
	if os.Getenv(actAs) != "" {
		main()
	}
	os.Exit(m.Run())
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), actAs+"=1")
	return cmd
}

func TestTheCommandSeesTheClusterAndItsExitCodePassesThrough(t *testing.T) {
	cmd := command("--", "sh", "-c", `stat -c %a "$`+dbtest.SharedEnv+`" && echo "$`+dbtest.SharedEnv+`" && exit 7`)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 7 {
		t.Fatalf("ended with %v, want exit code 7", err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 2 || lines[0] != "600" {
		t.Fatalf("the command printed %q", out)
	}
	if _, err := os.Stat(filepath.Dir(lines[1])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster's folder is left: %v", err)
	}
}

func TestTestsOfAnotherProcessUseTheSharedCluster(t *testing.T) {
	if path := os.Getenv("CLUSTER_TEST_INNER"); path != "" {
		conn, err := pgx.Connect(t.Context(), dbtest.Superuser(t, dbtest.Empty(t)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var dir string
		if err := conn.QueryRow(t.Context(), "SHOW unix_socket_directories").Scan(&dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(dir), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	answer := filepath.Join(t.TempDir(), "answer")
	cmd := command("--", "env", "-u", actAs, "CLUSTER_TEST_INNER="+answer, os.Args[0], "-test.run=^"+t.Name()+"$")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir, err := os.ReadFile(answer)
	if err != nil || len(dir) == 0 {
		t.Fatalf("the inner test did not reach a cluster: %v", err)
	}
	if _, err := os.Stat(string(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster outlives its run: %v", err)
	}
}

func TestASignalPassesThroughAsInAShell(t *testing.T) {
	cmd := command("sh", "-c", "kill -TERM $$")
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Fatalf("ended with %v, want exit code 143", err)
	}
}

func TestWhatCannotBeRunIsSaidInASentence(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"nothing": {nil, exitUsage, "Name the command to run"},
		"absent":  {[]string{"--", "no-such-command"}, exitCannotRun, "no-such-command cannot be run"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(c.args...)
			var said bytes.Buffer
			cmd.Stderr = &said
			err := cmd.Run()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() != c.code || !strings.Contains(said.String(), c.say) {
				t.Errorf("ended with %v and said %q", err, said.String())
			}
		})
	}
}
