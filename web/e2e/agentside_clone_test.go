package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/provider/github/githubtest"
)

// holds makes a repository with so much in its history that cannot be compressed.
func holds(t *testing.T, hub *githubtest.Server, name string, id int64, mebibytes int) {
	t.Helper()
	dir, work := hub.Repository(name, id), t.TempDir()
	hub.Git(work, "init", "-q", "-b", "main", ".")
	for _, at := range []string{work, dir} {
		hub.Git(at, "config", "core.compression", "0")         // neither that
		hub.Git(at, "config", "core.bigFileThreshold", "512k") // nor the search for what two files share would do anything but take time
	}
	part := make([]byte, 8<<20)
	for n := 0; n < mebibytes; n += 8 {
		_, _ = rand.Read(part) // it never fails
		must(t, os.WriteFile(filepath.Join(work, fmt.Sprintf("part-%03d.bin", n)), part, 0o600))
	}
	hub.Git(work, "add", "-A")
	hub.Git(work, "commit", "-q", "-m", "large")
	hub.Git(work, "push", "-q", dir, "HEAD:refs/heads/long")
}

// streams clones a small history and then one eight times as long: the server needs no more memory for it, and git's user sees how far it is.
func (w *agentImage) streams(t *testing.T) {
	w.clones(t, "acme/small") // what the first clone of a server makes it load is no part of the difference
	small := w.clones(t, "acme/small")
	large := w.clones(t, "acme/large")
	t.Logf("a clone of 8 MiB took the server to %d MiB, one of 64 MiB to %d MiB", small>>20, large>>20)
	if grown := large - small; grown > 24<<20 {
		t.Errorf("a clone of 56 MiB more took %d MiB more memory", grown>>20)
	}
}

// clones answers the most memory that the server held meanwhile, in bytes.
func (w *agentImage) clones(t *testing.T, name string) (peak int64) {
	t.Helper()
	process := fmt.Sprintf("/proc/%d/", w.s.cmd.Process.Pid)
	must(t, os.WriteFile(process+"clear_refs", []byte("5"), 0)) // the peak begins anew
	got := runs(t, w.command(t, t.TempDir(), "exec", "--", "git", "clone", "--progress", "https://github.com/"+name+".git", "site"))
	if got.code != 0 || !strings.Contains(got.stderr, "remote: Counting objects: ") || !strings.Contains(got.stderr, "Receiving objects: 100%") {
		t.Fatalf("%s: git's user sees\n%v", name, got)
	}
	status, err := os.ReadFile(process + "status")
	must(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d", &peak); err != nil {
		t.Fatalf("this kernel tells no peak: %s", status)
	}
	return peak << 10
}
