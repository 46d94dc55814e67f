package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestADataDirectoryThatCannotBeWritten is a start on a disk that the system has mounted read-only, as it does after an error: not even
// root can write there. One sentence says which folder and what to do; nothing that was there is lost to the next start.
func TestADataDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	lived := newServer(t, "COUNTERSIGN_DEMO=1")
	lived.start(t)
	if code := lived.interrupt(t); code != 0 {
		t.Fatalf("Ctrl-C ends it with %d", code)
	}
	onlyKeys := prepare(t, t.TempDir())
	for _, file := range []string{"keyset.json", "sandbox-crm.json"} {
		raw, err := os.ReadFile(filepath.Join(lived.dir, file))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(onlyKeys.dir, file), raw, 0o600))
	}
	for _, c := range []struct {
		name string
		s    *server
		with []string
	}{
		{"an empty one", prepare(t, t.TempDir()), nil},
		{"an empty one, in a demo", prepare(t, t.TempDir()), []string{"COUNTERSIGN_DEMO=1"}},
		{"one with a keyset and no database", onlyKeys, nil},
		{"one a server has lived in", lived, nil},
		{"one a server has lived in, in a demo", lived, []string{"COUNTERSIGN_DEMO=1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.startsReadOnly(t, c.with...)
			if r.code != 3 {
				t.Errorf("want exit 3, got %v", r)
			}
			if said := sentences(r.stderr); len(said) != 1 || strings.Contains(r.stderr, "goroutine ") {
				t.Errorf("want one line, got %q", said)
			}
			for _, part := range []string{c.s.dir, "written", "writable", "COUNTERSIGN_DATA_DIR"} {
				if !strings.Contains(r.stderr, part) {
					t.Errorf("it does not say %q: %s", part, r.stderr)
				}
			}
		})
	}
	lived.start(t)
	if !strings.Contains(lived.output.String(), "Sign in at "+lived.url) {
		t.Errorf("with a disk that can be written again it starts like this:\n%s", lived.output)
	}
}

// startsReadOnly runs serve where its data directory is mounted read-only: in a mount namespace of its own, so that nobody else sees it and
// nothing is left mounted. Who is not root becomes it in a user namespace first.
func (s *server) startsReadOnly(t *testing.T, env ...string) ran {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal("unshare is missing; it comes with util-linux")
	}
	// The script proves that the mount holds before it lets the program begin.
	const script = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && ! touch "$1/probe" 2>/dev/null && exec "$2" serve; exit 99`
	args := []string{"--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	r := operator{append(s.env[:len(s.env):len(s.env)], env...), ""}.runsProgram(t, unshare, append(args, "sh", "-c", script, "sh", s.dir, binary)...)
	if r.code == 99 {
		t.Fatalf("the folder could not be mounted read-only: %v", r)
	}
	return r
}
