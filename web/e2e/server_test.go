package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/embedded"
	"countersign/internal/crm/crmtest"
)

// server is one `countersign serve` in a process of its own, with a data directory that outlives it.
type server struct {
	dir     string // data directory
	url     string
	env     []string
	cmd     *exec.Cmd
	output  *transcript
	exited  chan struct{} // closed when the process has ended
	sandbox sandbox       // read once it is ready; empty without the demo
	atEnd   []func()      // what people and tests hold open until then
}

// sandbox is <data>/sandbox.json.
type sandbox struct {
	URL   string `json:"url"`
	Org   string `json:"org"`
	Users []struct{ Email, Password, Role string }
	Token string `json:"service_token"`
	CRM   struct {
		URL     string `json:"url"`
		Control string `json:"control_token"`
	} `json:"crm"`
	Connections []struct{ Key, Integration string }
}

// transcript keeps what a process printed.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// newServer prepares a server with a data directory of its own, which ends with the test; it does not start it.
func newServer(t *testing.T, env ...string) *server {
	t.Helper()
	s := prepare(t, t.TempDir(), env...)
	t.Cleanup(s.end)
	return s
}

func prepare(t *testing.T, dir string, env ...string) *server {
	t.Helper()
	listen := freeAddress(t)
	s := &server{dir: dir, url: "http://" + listen}
	s.env = append([]string{"COUNTERSIGN_DATA_DIR=" + dir, "COUNTERSIGN_LISTEN=" + listen, "COUNTERSIGN_CRM_LISTEN=" + freeAddress(t)}, env...)
	return s
}

// start starts the process and waits until it says that it is ready.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.output, s.exited = &transcript{}, make(chan struct{})
	s.cmd = exec.Command(binary, "serve")
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = repo, environment(s.env...), s.output, s.output
	must(t, s.cmd.Start())
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	eventually(t, "the server is ready", func() bool {
		select {
		case <-s.exited:
			t.Fatalf("the server ended with %d:\n%s", s.cmd.ProcessState.ExitCode(), s.output)
		default:
		}
		res, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	raw, err := os.ReadFile(filepath.Join(s.dir, "sandbox.json"))
	if os.IsNotExist(err) {
		return
	}
	must(t, err)
	must(t, json.Unmarshal(raw, &s.sandbox))
}

// interrupt is Ctrl-C; it returns the exit code.
func (s *server) interrupt(t *testing.T) int {
	t.Helper()
	must(t, s.cmd.Process.Signal(os.Interrupt))
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatalf("the server did not stop:\n%s", s.output)
	}
	return s.cmd.ProcessState.ExitCode()
}

// end stops whatever still runs, after the test.
func (s *server) end() {
	for _, do := range s.atEnd {
		do()
	}
	if s.atEnd = nil; s.cmd == nil || s.cmd.Process == nil {
		return
	}
	select {
	case <-s.exited:
		return
	default:
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// family is every process below the server.
func (s *server) family(t *testing.T) []int {
	t.Helper()
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	for _, file := range stats {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // ended since
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	var out []int
	next := []int{s.cmd.Process.Pid}
	for len(next) > 0 {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		out = append(out, children[pid]...)
	}
	return out
}

// alive reports whether a process still exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// operator is somebody at the shell of the machine the server runs on.
func (s *server) operator(stdin string) operator { return operator{s.env, stdin} }

// password is a demo person's.
func (s *server) password(t *testing.T, email string) string {
	t.Helper()
	for _, u := range s.sandbox.Users {
		if u.Email == email {
			return u.Password
		}
	}
	t.Fatalf("sandbox.json has no %s", email)
	return ""
}

// crm is the Sandbox CRM's control side: the ground truth of what really happened, and how to make things go wrong.
func (s *server) crm(t *testing.T) crmtest.CRM {
	return crmtest.CRM{T: t, URL: s.sandbox.CRM.URL, Token: s.sandbox.CRM.Control}
}

// crmCredential is what an admin pastes to connect the CRM.
func (s *server) crmCredential(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, "sandbox-crm.json"))
	must(t, err)
	var tokens struct{ Bearer string }
	must(t, json.Unmarshal(raw, &tokens))
	return tokens.Bearer
}

// database connects as the superuser: whoever broke into the database server, for tests that tamper.
func (s *server) database(t *testing.T) *pgx.Conn {
	t.Helper()
	access, ok := embedded.Attach(t.Context(), s.dir)
	if !ok {
		t.Fatal("the embedded database does not answer")
	}
	conn, err := pgx.Connect(t.Context(), access.SuperDSN(embedded.Database))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// anotherDatabase is an empty database in the server's cluster, as an operator's own PostgreSQL would have one.
func (s *server) anotherDatabase(t *testing.T, name string) string {
	t.Helper()
	access, ok := embedded.Attach(t.Context(), s.dir)
	if !ok {
		t.Fatal("the embedded database does not answer")
	}
	must(t, access.CreateDatabase(t.Context(), name, ""))
	return access.DSN(name)
}
