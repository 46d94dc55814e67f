package gitgateway_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// git runs real git in a folder, with a configuration of the test's own.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := gitTry(dir, nil, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func gitTry(dir string, in []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Agent", "GIT_COMMITTER_EMAIL=agent@example.com",
	}
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// repository is an origin with one commit on main, and a clone of it.
type repository struct {
	t             testing.TB
	origin, clone string
}

func newRepository(t testing.TB) repository {
	t.Helper()
	r := repository{t, filepath.Join(t.TempDir(), "origin.git"), filepath.Join(t.TempDir(), "clone")}
	git(t, t.TempDir(), "init", "-q", "--bare", "-b", "main", r.origin)
	git(t, filepath.Dir(r.clone), "init", "-q", "-b", "main", r.clone)
	r.write("README.md", "hello\n")
	r.commit("first")
	git(t, r.clone, "push", "-q", r.origin, "HEAD:refs/heads/main")
	return r
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.clone, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) commit(message string) string {
	r.t.Helper()
	git(r.t, r.clone, "add", "-A")
	git(r.t, r.clone, "commit", "-q", "--allow-empty", "-m", message)
	return git(r.t, r.clone, "rev-parse", "HEAD")
}

// pack is what git sends for commits that the origin does not have.
func (r repository) pack(revisions ...string) []byte {
	r.t.Helper()
	cmd := exec.Command("git", "pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "-q")
	cmd.Dir, cmd.Stdin = r.clone, strings.NewReader(strings.Join(revisions, "\n")+"\n")
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}
