package gitgateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/internal/fault"
)

// Upstream answers one exchange with git-upload-pack in version 2. Whoever implements it is authorised already.
type Upstream func(ctx context.Context, body []byte) (io.ReadCloser, error)

// Mirrors keeps a bare copy of each repository that is pushed to, in a folder of this replica. It is a cache: losing it costs a fetch.
type Mirrors struct {
	Dir  string
	Room int64 // bytes of disk between pushes; 0: Room

	mu   sync.Mutex
	open map[string]*sync.Mutex
}

// quarantineWithin bounds everything git does for one push.
const quarantineWithin = 5 * time.Minute

// mirrorBytes bounds what is fetched into a mirror at once.
const mirrorBytes = 4 << 30

// Mirror is one repository, as long as the caller holds it. Nobody else does anything with it meanwhile.
type Mirror struct {
	dir     string
	release func()
}

// Hold opens the mirror of a repository, making it the first time. Name is made of ids of ours.
func (m *Mirrors) Hold(ctx context.Context, name string) (*Mirror, error) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isWord(byte(r)) && r != '-' && r != '_' || r > 127 }) {
		return nil, fmt.Errorf("%q names no mirror", name)
	}
	folder, err := filepath.Abs(m.Dir) // a child works elsewhere
	if err != nil {
		return nil, err
	}
	lock := m.lock(name)
	lock.Lock()
	mirror := &Mirror{dir: filepath.Join(folder, name+".git")}
	mirror.release = func() {
		now := time.Now()
		_ = os.Chtimes(mirror.dir, now, now) // what is used goes last
		lock.Unlock()
		m.makeRoom()
	}
	if _, err := os.Stat(filepath.Join(mirror.dir, "HEAD")); err == nil {
		return mirror, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		lock.Unlock()
		return nil, err
	}
	if _, err := (child{dir: folder}).run(ctx, nil, "init", "--quiet", "--bare", "--template=", mirror.dir); err != nil {
		lock.Unlock()
		return nil, err
	}
	return mirror, nil
}

func (m *Mirrors) lock(name string) *sync.Mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == nil {
		m.open = map[string]*sync.Mutex{}
	}
	lock := m.open[name]
	if lock == nil {
		lock = &sync.Mutex{}
		m.open[name] = lock
	}
	return lock
}

// Release lets the next one in, and keeps the disk that mirrors take within its bound.
func (m *Mirror) Release() { m.release() }

// Sync brings the branches of the repository into the mirror: what a push can build on.
func (m *Mirror) Sync(ctx context.Context, ask Upstream) ([]Ref, error) {
	answer, err := ask(ctx, LsRefs(heads))
	if err != nil {
		return nil, err
	}
	refs, err := ReadRefs(answer)
	_ = answer.Close()
	if err != nil {
		return nil, err
	}
	wants, err := m.missing(ctx, refs)
	if err != nil {
		return nil, err
	}
	if len(wants) > 0 {
		if err := m.fetch(ctx, ask, wants); err != nil {
			return nil, err
		}
	}
	return refs, m.keep(ctx, refs)
}

// missing are the tips that the mirror does not hold. What it holds it holds with its history, since a fetch is kept whole or not at all.
func (m *Mirror) missing(ctx context.Context, refs []Ref) ([]string, error) {
	var ask strings.Builder
	for _, r := range refs {
		ask.WriteString(r.OID + "\n")
	}
	out, err := m.child().run(ctx, strings.NewReader(ask.String()), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	var wants []string
	for line := range strings.Lines(string(out)) {
		if oid, rest, _ := strings.Cut(strings.TrimSpace(line), " "); rest == "missing" && !contains(wants, oid) {
			wants = append(wants, oid)
		}
	}
	return wants, nil
}

func (m *Mirror) fetch(ctx context.Context, ask Upstream, wants []string) error {
	out, err := m.child().run(ctx, nil, "for-each-ref", "--format=%(objectname)", "--count=256", "--sort=-committerdate")
	if err != nil {
		return err
	}
	answer, err := ask(ctx, FetchPack(wants, strings.Fields(string(out))))
	if err != nil {
		return err
	}
	defer answer.Close()
	pack, err := Packfile(answer)
	if err != nil {
		return err
	}
	_, err = m.child().run(ctx, pack, "index-pack", "--stdin", "--fix-thin", "--max-input-size="+strconv.FormatInt(mirrorBytes, 10))
	return err
}

// keep points the mirror's refs at what was listed, so that the next fetch knows what is there.
func (m *Mirror) keep(ctx context.Context, refs []Ref) error {
	listed := map[string]string{}
	var change strings.Builder
	for _, r := range refs {
		if plainRef(r.Name) {
			listed[r.Name] = r.OID
			change.WriteString("update " + r.Name + " " + r.OID + "\n")
		}
	}
	now, err := m.child().run(ctx, nil, "for-each-ref", "--format=%(refname)")
	if err != nil {
		return err
	}
	var gone strings.Builder
	for name := range strings.FieldsSeq(string(now)) {
		if listed[name] == "" {
			gone.WriteString("delete " + name + "\n")
		}
	}
	_, err = m.child().run(ctx, strings.NewReader(gone.String()+change.String()), "update-ref", "--stdin")
	return err
}

func (m *Mirror) child() child { return child{dir: m.dir} }

// Quarantine is a pack beside a mirror: its objects can be read together with the mirror's, and never become part of it.
type Quarantine struct {
	child
	mirror *Mirror
	temp   string
}

// Admit indexes a pack in a quarantine and checks each object and every link. What is wrong with it is a fault for git's user.
func (m *Mirror) Admit(ctx context.Context, pack *os.File, p Push) (*Quarantine, error) {
	temp, err := os.MkdirTemp(m.dir, "quarantine-")
	if err != nil {
		return nil, err
	}
	q := &Quarantine{mirror: m, temp: temp}
	q.child = child{dir: m.dir, env: []string{"GIT_OBJECT_DIRECTORY=" + temp, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(m.dir, "objects")}}
	if err := q.admit(ctx, pack, p); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// Close removes the quarantine.
func (q *Quarantine) Close() { _ = os.RemoveAll(q.temp) }

func (q *Quarantine) admit(ctx context.Context, pack *os.File, p Push) error {
	if err := os.MkdirAll(filepath.Join(q.temp, "pack"), 0o700); err != nil {
		return err
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// The child reads the file itself: of a file, and of nothing else, git notices what stands behind a pack's end.
	_, err := q.run(ctx, pack, "index-pack", "--stdin", "--fix-thin", "--strict", "--threads=1")
	if _, said := fault.As(err); said {
		return err
	}
	if problem := (*exec.ExitError)(nil); errors.As(err, &problem) {
		return refuse(fault.InvalidArguments, "Git finds the pushed objects broken ("+firstLine(problem.Stderr)+").", "Run git fsck, repair the commits, and push again.").Wrap(err)
	}
	if err != nil {
		return err
	}
	if kind, err := q.run(ctx, nil, "cat-file", "-t", p.New); err != nil || strings.TrimSpace(string(kind)) != "commit" {
		return refuse(fault.InvalidArguments, "The branch would not point at a commit of the push or of the repository.", "Push a branch of a clone of this repository.").Wrap(err)
	}
	// Links of objects inside the pack were checked; a commit may still build on one that GitHub's branches do not hold.
	if _, err := q.run(ctx, nil, "rev-list", "--objects", "--quiet", p.New, "--not", "--all"); err != nil {
		return refuse(fault.InvalidArguments, "The commits build on others that no branch of the repository holds.", "Fetch, rebase onto a branch of the repository, and push again.").Wrap(err)
	}
	return nil
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return Clip(Visible(line), 200)
}

// child runs git: without a shell, a network, hooks, prompts, or any configuration but what stands here.
type child struct {
	dir string
	env []string
}

// allocation bounds one piece of memory that git takes. Git rebuilds what a delta describes in memory, and a delta of a kilobyte can describe
// gigabytes; and it loads a new file whole to say that it is binary. GitHub takes no file of more than 100 MiB.
const allocation = 128 << 20

// most bounds what is read of a child's answer.
const most = 16 << 20

func (c child) run(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	out := &bounded{left: most}
	err := c.start(ctx, in, out, args)
	return out.to.Bytes(), err
}

// part reads the beginning of an answer, and says whether there was more.
func (c child) part(ctx context.Context, bytes int, args ...string) ([]byte, bool, error) {
	out := &bounded{left: bytes, drop: true}
	err := c.start(ctx, nil, out, args)
	return out.to.Bytes(), out.over, err
}

func (c child) start(ctx context.Context, in io.Reader, out *bounded, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, quarantineWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append(slices.Clone(settings), args...)...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ATTR_NOSYSTEM=1", "GIT_ALLOC_LIMIT=" + strconv.Itoa(allocation),
	}, c.env...)
	if args[0] != "init" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+c.dir)
	}
	said := &bounded{left: 16 << 10, drop: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = in, out, said, 5*time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return fault.New(fault.Unavailable, fault.UpstreamTimeout, "Looking through the push took too long.", "Push fewer commits at once.").Wrap(ctx.Err())
	}
	if out.over && !out.drop {
		return fault.New(fault.TooLarge, fault.ResultTooLarge, "The push changes more files, or deeper folders, than can be shown to a person.", "Push fewer changes at once.").Wrap(err)
	}
	if err != nil && bytes.Contains(said.to.Bytes(), []byte("attempting to allocate")) {
		return fault.New(fault.TooLarge, fault.ResultTooLarge, "The push holds a file, or the change of one, of more than "+strconv.Itoa(allocation>>20)+" MiB.", "Take it out of every commit of the push; GitHub takes no file of more than 100 MiB.").Wrap(err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		exit.Stderr = said.to.Bytes()
		return fmt.Errorf("git %s: %w: %s", args[0], exit, firstLine(exit.Stderr))
	}
	return err
}

// settings stand in place of every configuration file.
var settings = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.bigFileThreshold=4m", "-c", "protocol.allow=never", "-c", "gc.auto=0",
	"-c", "core.quotePath=false",
}

// bounded keeps a child's words within a bound: what goes over ends the child, or is dropped.
type bounded struct {
	to   bytes.Buffer
	left int
	drop bool
	over bool
}

var errTooMuch = errors.New("git answered more than expected")

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.to.Write(p[:n])
	b.left -= n
	if n == len(p) {
		return n, nil
	}
	if b.over = true; !b.drop {
		return n, errTooMuch
	}
	return len(p), nil
}
