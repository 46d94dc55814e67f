package gitgateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/internal/gitgateway"
)

// upstream answers from the origin by real upload-pack.
func (r repository) upstream(_ context.Context, body []byte) (io.ReadCloser, error) {
	cmd := exec.Command("git", "upload-pack", "--stateless-rpc", r.origin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_PROTOCOL=version=2", "GIT_CONFIG_NOSYSTEM=1"}
	cmd.Stdin = bytes.NewReader(body)
	out, err := cmd.Output()
	return io.NopCloser(bytes.NewReader(out)), err
}

// look admits what the clone's HEAD adds to a branch, and summarizes it.
func (r repository) look(mirrors *gitgateway.Mirrors, p gitgateway.Push, pack []byte) (gitgateway.Summary, error) {
	r.t.Helper()
	m, err := mirrors.Hold(r.t.Context(), "con_1-42")
	if err != nil {
		r.t.Fatal(err)
	}
	defer m.Release()
	refs, err := m.Sync(r.t.Context(), r.upstream)
	if err != nil {
		r.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(r.t.TempDir(), "pack"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(pack); err != nil {
		r.t.Fatal(err)
	}
	q, err := m.Admit(r.t.Context(), file, p)
	if err != nil {
		return gitgateway.Summary{}, err
	}
	defer q.Close()
	return q.Summarize(r.t.Context(), p, refs, "main")
}

func pushOf(old, next, branch string) gitgateway.Push {
	return gitgateway.Push{Command: gitgateway.Command{Old: old, New: next, Ref: "refs/heads/" + branch}}
}

func TestAPushIsSummarized(t *testing.T) {
	r := newRepository(t)
	first := git(t, r.clone, "rev-parse", "HEAD")
	r.write(".github/workflows/ci.yml", "on: push\n")
	r.write(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = https://github.com/o/x\n")
	r.write("picture.bin", "\x00\x01\x02")
	r.write("big.txt", strings.Repeat("a line of text\n", 100_000))
	r.write("trojan.go", "var x = 1 // \u202e hidden\n")
	r.write("keys.txt", "gh"+"p_"+strings.Repeat("a1B2", 9)+"\n")
	r.commit("adds a secret\u202e")
	r.write("keys.txt", "gone\n")
	r.write("README.md", "hello\nworld\n")
	tip := r.commit("takes it out")
	t.Chdir(t.TempDir())
	mirrors := &gitgateway.Mirrors{Dir: "made/when/needed"} // as an operator may write it
	s, err := r.look(mirrors, pushOf(gitgateway.Zero, tip, "agent/x"), r.pack(tip, "^"+first))
	if err != nil {
		t.Fatal(err)
	}
	if s.Kind != gitgateway.Create || s.CommitCount != 2 || s.FileCount != 7 || s.Commits[0].ID != tip || s.Commits[0].Author != "Ada <ada@example.com>" || s.Commits[0].Committer != "Agent <agent@example.com>" {
		t.Errorf("%+v", s)
	}
	if s.Commits[1].Subject != "adds a secret‹U+202E›" {
		t.Errorf("the subject is shown as %q", s.Commits[1].Subject)
	}
	for name, mark := range map[string]gitgateway.Mark{
		".github/workflows/ci.yml": gitgateway.MarkWorkflow, ".gitmodules": gitgateway.MarkSubmodule, "picture.bin": gitgateway.MarkBinary, "big.txt": gitgateway.MarkLarge,
		"trojan.go": gitgateway.MarkInvisible, "keys.txt": gitgateway.MarkSecret,
	} {
		i := slices.IndexFunc(s.Files, func(f gitgateway.File) bool { return f.Path == name })
		if i < 0 || !slices.Contains(s.Files[i].Marks, mark) || !slices.Contains(s.Marks, mark) {
			t.Errorf("%s is not marked %s: %+v", name, mark, s.Files)
		}
	}
	if len(s.Secrets) != 1 || !strings.HasPrefix(s.Secrets[0], "a GitHub token in keys.txt, commit ") {
		t.Errorf("secrets %q", s.Secrets)
	}
	raw, _ := json.Marshal(s)
	if strings.Contains(string(raw), "a1B2a1B2") {
		t.Error("the summary repeats the secret")
	}
	if !strings.Contains(s.Diff, "+world\n") || strings.Contains(s.Diff, "\u202e") || !strings.Contains(s.Diff, "‹U+202E›") {
		t.Error("the difference is not shown as it is")
	}
	left, err := os.ReadDir(filepath.Join(mirrors.Dir, "con_1-42.git"))
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "quarantine") }) {
		t.Errorf("a quarantine is left behind: %v %v", left, err)
	}
	if out, err := gitTry(filepath.Join(mirrors.Dir, "con_1-42.git"), nil, "cat-file", "-t", tip); err == nil {
		t.Errorf("what was only looked at is in the mirror: %s", out)
	}
}

func TestAncestry(t *testing.T) {
	r := newRepository(t)
	first := git(t, r.clone, "rev-parse", "HEAD")
	r.write("a.txt", "a\n")
	second := r.commit("second")
	git(t, r.clone, "push", "-q", r.origin, "HEAD:refs/heads/agent/x")
	r.write("a.txt", "b\n")
	third := r.commit("third")
	mirrors := &gitgateway.Mirrors{Dir: t.TempDir()}
	if s, err := r.look(mirrors, pushOf(second, third, "agent/x"), r.pack(third, "^"+second)); err != nil || s.Kind != gitgateway.Update || s.CommitCount != 1 || s.Additions != 1 || s.Deletions != 1 {
		t.Errorf("%+v %v", s, err)
	}
	git(t, r.clone, "reset", "-q", "--hard", first)
	r.write("other.txt", "x\n")
	aside := r.commit("aside")
	git(t, r.clone, "checkout", "-q", "--orphan", "lonely")
	lonely := r.commit("lonely")
	for name, c := range map[string]struct {
		push gitgateway.Push
		pack []byte
		says string
	}{
		"a rewrite":                {pushOf(second, aside, "agent/x"), r.pack(aside, "^"+first), "would rewrite"},
		"a branch that moved":      {pushOf(first, aside, "agent/x"), r.pack(aside, "^"+first), "has moved"},
		"a branch that is there":   {pushOf(gitgateway.Zero, third, "agent/x"), r.pack(third, "^"+second), "exists on GitHub already"},
		"a commit without parents": {pushOf(gitgateway.Zero, third, "agent/y"), r.pack(aside, "^"+first), "point at a commit"},
		"a rewrite from elsewhere": {pushOf(second, lonely, "agent/x"), r.pack(lonely), "would rewrite"},
	} {
		if _, err := r.look(mirrors, c.push, c.pack); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := r.look(mirrors, pushOf(gitgateway.Zero, lonely, "agent/lonely"), r.pack(lonely)); err != nil || s.CommitCount != 1 || s.FileCount == 0 {
		t.Errorf("%+v %v", s, err)
	}
}

// TestBrokenObjectsAreRefused pushes what git itself would take without receive.fsckObjects, and what is more than it says.
func TestBrokenObjectsAreRefused(t *testing.T) {
	r := newRepository(t)
	first := git(t, r.clone, "rev-parse", "HEAD")
	tree := git(t, r.clone, "rev-parse", "HEAD^{tree}")
	out, err := gitTry(r.clone, []byte("tree "+tree+"\nparent "+first+"\nauthor nobody\ncommitter nobody\n\nno dates\n"), "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	if err != nil {
		t.Fatal(err, out)
	}
	broken := strings.TrimSpace(out)
	mirrors := &gitgateway.Mirrors{Dir: t.TempDir()}
	if _, err := r.look(mirrors, pushOf(gitgateway.Zero, broken, "agent/x"), r.pack(broken, "^"+first)); err == nil || !strings.Contains(err.Error(), "Git finds the pushed objects broken") {
		t.Errorf("%v", err)
	}
	tip := r.commit("fine")
	pack := r.pack(tip, "^"+first)
	if _, err := r.look(mirrors, pushOf(gitgateway.Zero, tip, "agent/x"), append(slices.Clone(pack), "PACK"...)); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("something behind the pack: %v", err)
	}
	child := r.commit("builds on what nobody sends")
	if _, err := r.look(mirrors, pushOf(gitgateway.Zero, child, "agent/x"), r.pack(child, "^"+tip)); err == nil {
		t.Error("a commit whose parent is nowhere was admitted")
	}
}

// Repositories that nobody pushes to any more must not fill the disk, and what is held must not go.
func TestMirrorsKeepWithinTheirRoom(t *testing.T) {
	r := newRepository(t)
	mirrors := &gitgateway.Mirrors{Dir: t.TempDir(), Room: 1} // less than one takes
	hold := func(name string) *gitgateway.Mirror {
		m, err := mirrors.Hold(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Sync(t.Context(), r.upstream); err != nil {
			t.Fatal(err)
		}
		return m
	}
	there := func() (names []string) {
		all, err := os.ReadDir(mirrors.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	held, other := hold("con_1-1"), hold("con_1-2")
	other.Release()
	if got := there(); !slices.Equal(got, []string{"con_1-1.git"}) {
		t.Errorf("beside the one that is held there is %v", got)
	}
	held.Release()
	if got := there(); len(got) != 0 {
		t.Errorf("%v is kept", got)
	}
	mirrors.Room = 1 << 20
	for _, name := range []string{"con_1-3", "con_1-4", "con_1-3"} {
		hold(name).Release()
	}
	before := there()
	big := filepath.Join(mirrors.Dir, "con_1-4.git", "big")
	if err := os.WriteFile(big, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"con_1-3"} {
		hold(name).Release()
	}
	if got := there(); len(before) != 2 || !slices.Equal(got, []string{"con_1-3.git"}) {
		t.Errorf("of %v, used longest ago and too large, %v is left", before, got)
	}
}
