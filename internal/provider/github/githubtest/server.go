// Package githubtest owns a GitHub for tests: real repositories behind git's own HTTP server, the few answers of the REST API that the
// product reads, GitHub's refusals, and a journal of what was applied. It trusts one token, decides nothing for the product, and no
// product code imports it.
package githubtest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Token is the one it accepts.
const Token = "github_pat_11TESTONLY0aaaaaaaaaaaaaaaaaaaaaaaaa"

// Server is one GitHub.
type Server struct {
	*httptest.Server
	t    testing.TB
	root string
	cgi  *cgi.Handler

	mu       sync.Mutex
	repos    map[string]int64 // by lower-case "owner/name"
	renamed  map[string]string
	journal  []Entry
	fault    Fault
	pulls    []map[string]any
	said     []map[string]any // comments
	rights   rights
	asked    []map[string]string // who is asked to review
	answers  map[string]said     // what a test wants to be answered, by the part of a repository
	usual    string              // the default branch; empty: main
	withheld bool                // the list of repositories leaves some out
	ill      bool                // every advertisement for a push is answered with 502
}

// Entry is one request as it arrived.
type Entry struct {
	Method, Path string
	Headers      http.Header
	Pushed       string // "old new ref" of a push
}

// Fault is what goes wrong with the next push.
type Fault string

// The faults.
const (
	None       Fault = ""
	CutAfter   Fault = "cut_after"   // applied, and the connection ends before an answer
	CutBefore  Fault = "cut_before"  // not applied, and the connection ends all the same
	Truncated  Fault = "truncated"   // applied, and the answer ends in the middle
	BadGateway Fault = "bad_gateway" // applied, and answered with 502
)

// New starts a GitHub without repositories.
func New(t testing.TB) *Server {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, root: t.TempDir(), repos: map[string]int64{}, renamed: map[string]string{}, rights: enough}
	s.cgi = &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), InheritEnv: []string{"PATH"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=token", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + s.root},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Repository makes one with a number, and one commit on main; it answers where its files are.
func (s *Server) Repository(name string, id int64) string {
	s.t.Helper()
	dir := s.Dir(name)
	s.Git("", "init", "-q", "--bare", "-b", "main", dir)
	for _, pair := range [][2]string{{"http.receivepack", "true"}, {"uploadpack.allowFilter", "true"}, {"uploadpack.allowAnySHA1InWant", "true"}, {"receive.denyNonFastForwards", "true"}} {
		s.Git(dir, "config", pair[0], pair[1])
	}
	work := s.t.TempDir()
	s.Git("", "init", "-q", "-b", "main", work)
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("hello\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.Git(work, "add", "-A")
	s.Git(work, "commit", "-q", "-m", "first")
	s.Git(work, "push", "-q", dir, "HEAD:refs/heads/main", "HEAD:refs/pull/1/head")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[strings.ToLower(name)] = id
	return dir
}

// Dir is where a repository is.
func (s *Server) Dir(name string) string { return filepath.Join(s.root, name+".git") }

// Renumber gives a name to another repository, as when one is deleted and made again.
func (s *Server) Renumber(name string, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[strings.ToLower(name)] = id
}

// Rename gives a repository another name, under which it has the same number; the old one redirects, as GitHub's do.
func (s *Server) Rename(name, to string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.Dir(to)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.Dir(name), s.Dir(to)); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[strings.ToLower(to)] = s.repos[strings.ToLower(name)]
	delete(s.repos, strings.ToLower(name))
	delete(s.renamed, strings.ToLower(to))
	s.renamed[strings.ToLower(name)] = to
}

// Refuse lets a repository refuse every push with GitHub's words.
func (s *Server) Refuse(name, words string) {
	s.t.Helper()
	hook := filepath.Join(s.Dir(name), "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ncat >&2 <<'WORDS'\n"+words+"\nWORDS\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a hook is run
		s.t.Fatal(err)
	}
}

// Break lets the next push go wrong.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Journal is every request so far.
func (s *Server) Journal() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Entry(nil), s.journal...)
}

// Pushes are the pushes that reached it, as "old new ref".
func (s *Server) Pushes() (out []string) {
	for _, e := range s.Journal() {
		if e.Pushed != "" {
			out = append(out, e.Pushed)
		}
	}
	return out
}

// Git runs git in a folder, with a configuration of its own.
func (s *Server) Git(dir string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.root, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	e := Entry{Method: r.Method, Path: r.URL.Path, Headers: r.Header.Clone()}
	if strings.HasSuffix(r.URL.Path, "/git-receive-pack") && len(body) > 90 {
		line, _, _ := strings.Cut(string(body[4:]), "\x00")
		e.Pushed = line
	}
	s.mu.Lock()
	s.journal = append(s.journal, e)
	fault := s.fault
	if e.Pushed != "" || (r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/repos/")) {
		s.fault = None
	}
	s.mu.Unlock()
	if _, password, ok := r.BasicAuth(); !ok || password != Token {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, `{"message":"Bad credentials","status":"401"}`, http.StatusUnauthorized)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/repositories/") || r.URL.Path == "/user/repos":
		s.account(w, r)
	case strings.HasPrefix(r.URL.Path, "/repos/"):
		s.api(w, r, strings.TrimPrefix(r.URL.Path, "/repos/"), body, fault)
	case e.Pushed != "" && fault != None:
		s.broken(w, r, fault)
	default:
		s.git(w, r)
	}
}

func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(r.URL.Path, "/")), ".git/")
	if to := s.moved(name); to != "" {
		http.Redirect(w, r, "/"+to+".git/info/refs", http.StatusMovedPermanently)
		return
	}
	if r.URL.Query().Get("service") == "git-receive-pack" && s.sick() {
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return
	}
	if r.URL.Query().Get("service") == "git-receive-pack" && !s.held().may("contents", "write") {
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
		return
	}
	// The header names of a reply reflect nothing by themselves; a careless proxy in front of a real server does, so this one does.
	w.Header().Set("X-Reflected", r.Header.Get("Authorization"))
	w.Header().Set("Set-Cookie", "logged_in=no; path=/")
	w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	s.cgi.ServeHTTP(w, r)
}

func (s *Server) broken(w http.ResponseWriter, r *http.Request, fault Fault) {
	answer := httptest.NewRecorder()
	if fault != CutBefore {
		s.cgi.ServeHTTP(answer, r)
	}
	switch fault {
	case BadGateway:
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return
	case Truncated:
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

// Sicken lets every advertisement for a push fail with 502.
func (s *Server) Sicken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ill = true
}

func (s *Server) sick() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ill
}

func (s *Server) moved(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renamed[name]
}
