package proof

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db/dbtest"
	"countersign/db/embedded"
	"countersign/internal/action"
)

// patience bounds every wait; nothing waits this long when all is well.
const patience = 60 * time.Second

// world is the built server, in processes that are really killed, over a PostgreSQL of its own, with the Sandbox CRM in a process that
// survives all of it: its journal is what really happened.
type world struct {
	t       *testing.T
	dir     string
	binary  string
	cluster *embedded.Cluster
	super   *pgxpool.Pool // past every trigger: time passes
	owner   *pgxpool.Pool
	crmAt   string
	control string // token of the CRM's journal and faults
	token   string // service token
	key     string // of the connection
	people  map[string]string

	mu  sync.Mutex
	seq int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), crmAt: freeAddress(t), people: map[string]string{}}
	w.binary = filepath.Join(w.dir, "countersign")
	build := exec.Command("go", "build", "-o", w.binary, "./cmd/countersign")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("the server does not build: %v\n%s", err, out)
	}
	w.postgres()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = w.cluster.Stop(ctx)
	})
	w.runs("key", "create", "--out", filepath.Join(w.dir, "keyset.json"))
	must(t, os.WriteFile(filepath.Join(w.dir, "endpoints.toml"), fmt.Appendf(nil, "[endpoints]\n\"sandbox_crm.v1\" = \"http://%s/mcp\"\n", w.crmAt), 0o600))
	w.seed()
	w.super, w.owner = pool(t, w.cluster.SuperDSN(embedded.Database)+"&options=-c%20session_replication_role%3Dreplica"), pool(t, w.cluster.DSN(embedded.Database))
	crm := w.process("sandbox-crm", "--data-dir", w.dir, "--listen", w.crmAt, "--log", "error")
	w.eventually("the CRM answers", func() bool {
		conn, err := net.Dial("tcp", w.crmAt)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	t.Cleanup(crm.kill)
	return w
}

func (w *world) postgres() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(w.dir, "data"), ModulesDir: "../../node_modules", Log: slog.New(slog.DiscardHandler)})
	must(w.t, err)
	w.cluster = c
}

// restartPostgres is what an immediate shutdown and a start are: no goodbye, and recovery from the log.
func (w *world) restartPostgres() {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.cluster.Directory(), "cluster", "postmaster.pid"))
	must(w.t, err)
	var pid int
	_, err = fmt.Sscanf(string(raw), "%d", &pid)
	must(w.t, err)
	must(w.t, syscall.Kill(pid, syscall.SIGQUIT))
	<-w.cluster.Done()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = w.cluster.Stop(ctx) // lets go of the directory
	w.postgres()
	w.super.Reset()
	w.owner.Reset()
}

// seed lets the demo make an organization, people, a connection and profiles, and ends it the hard way.
func (w *world) seed() {
	w.t.Helper()
	s := &server{world: w, listen: freeAddress(w.t), dsn: w.cluster.DSN(embedded.Database), env: []string{"COUNTERSIGN_DEMO=1", "COUNTERSIGN_CRM_LISTEN=" + w.crmAt}}
	s.start()
	s.kill()
	raw, err := os.ReadFile(filepath.Join(w.dir, "sandbox.json"))
	must(w.t, err)
	var facts struct {
		Users []struct{ Email, Password string }
		Token string `json:"service_token"`
		CRM   struct {
			Control string `json:"control_token"`
		}
		Connections []struct{ Key string }
	}
	must(w.t, json.Unmarshal(raw, &facts))
	w.token, w.control, w.key = facts.Token, facts.CRM.Control, facts.Connections[0].Key
	for _, u := range facts.Users {
		w.people[u.Email] = u.Password
	}
	w.eventually("the demo's CRM is gone with its parent", func() bool {
		l, err := net.Listen("tcp", w.crmAt)
		if err != nil {
			return false
		}
		return l.Close() == nil
	})
}

// process is a program that runs until it is killed.
type process struct {
	cmd    *exec.Cmd
	output *bytes.Buffer
	exited chan struct{}
}

func (w *world) process(args ...string) *process { return w.processWith(nil, args...) }

func (w *world) processWith(env []string, args ...string) *process {
	w.t.Helper()
	p := &process{cmd: exec.Command(w.binary, args...), output: &bytes.Buffer{}, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = w.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	must(w.t, p.cmd.Start())
	go func() { defer close(p.exited); _ = p.cmd.Wait() }()
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// stop stops the process and answers when all its threads stand: the signal alone returns while one on another core still runs.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process did not stop: %v, %v", status, err)
	}
}

// runs runs an operator's command to its end.
func (w *world) runs(args ...string) string {
	w.t.Helper()
	cmd := exec.Command(w.binary, args...)
	cmd.Dir, cmd.Env = w.dir, []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("countersign %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// server is one replica, with a line of its own to the database.
type server struct {
	*world
	listen, dsn string
	env         []string
	*process
	cutter *cutter
	client *http.Client // the approver's browser
}

func (w *world) server() *server {
	w.t.Helper()
	c := newCutter(w.t, w.cluster.SocketDir)
	dsn := strings.Replace(w.cluster.DSN(embedded.Database), url.QueryEscape(w.cluster.SocketDir), url.QueryEscape(c.dir), 1)
	s := &server{world: w, listen: freeAddress(w.t), dsn: dsn, cutter: c}
	s.env = []string{"COUNTERSIGN_ENDPOINTS_FILE=" + filepath.Join(w.dir, "endpoints.toml")}
	s.start()
	w.t.Cleanup(func() {
		if s.kill(); w.t.Failed() {
			w.t.Logf("the server said:\n%s", s.output)
		}
	})
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	s.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	status, _, err := s.form("/sign-in", url.Values{"email": {"approver@sandbox.test"}, "password": {w.people["approver@sandbox.test"]}})
	if err != nil || status != http.StatusSeeOther {
		w.t.Fatalf("signing in: %d, %v", status, err)
	}
	return s
}

// start starts the process and waits until it is ready.
func (s *server) start() {
	s.t.Helper()
	if s.super != nil { // the dead server led the queue; its successors would wait for that to lapse
		_, _ = s.super.Exec(context.Background(), `DELETE FROM river_leader`)
	}
	s.process = s.processWith(append([]string{
		"DATABASE_URL=" + s.dsn, "COUNTERSIGN_DATA_DIR=" + s.dir, "COUNTERSIGN_KEYSET_FILE=" + filepath.Join(s.dir, "keyset.json"), "COUNTERSIGN_LISTEN=" + s.listen, "COUNTERSIGN_LOG=error",
	}, s.env...), "serve")
	s.eventually("the server is ready", func() bool {
		select {
		case <-s.exited:
			s.t.Fatalf("the server ended: %s", s.output)
		default:
		}
		res, err := http.Get("http://" + s.listen + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	dbtest.Eventually(w.t, what, holds)
}

func (s *server) send(method, path, contentType, body string, headers ...string) (int, string, error) {
	client := s.client
	if contentType == "application/json" || client == nil {
		client = http.DefaultClient
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.listen+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return res.StatusCode, string(out), err
}

func (s *server) form(path string, values url.Values) (int, string, error) {
	return s.send(http.MethodPost, path, "application/x-www-form-urlencoded", values.Encode())
}

// startRun starts a task run and returns its token.
func (s *server) startRun() string {
	s.t.Helper()
	status, body, err := s.send(http.MethodPost, "/api/v1/runs", "application/json", `{"surface":"task","profile":"support","task":"SUP-1","on_behalf_of":"admin@sandbox.test"}`, "Authorization", "Bearer "+s.token)
	var run struct{ Token string }
	if err != nil || status != http.StatusCreated || json.Unmarshal([]byte(body), &run) != nil {
		s.t.Fatalf("starting a run: %d %s %v", status, body, err)
	}
	return run.Token
}

// contact is the name of a contact nobody created before: by it an action is found in the journal.
func (w *world) contact() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	return fmt.Sprintf("Nr %d", w.seq)
}

// stage asks for a contact. Whatever goes wrong is answered: it is what the test is about.
func (s *server) stage(run, contact string) (string, error) {
	return s.ask(run, "contacts_create", fmt.Sprintf(`{"name":%q,"email":"a@example.com"}`, contact))
}

// ask calls a consequential tool and answers the action.
func (s *server) ask(run, tool, arguments string) (string, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s__%s","arguments":%s}}`, s.key, tool, arguments)
	status, out, err := s.send(http.MethodPost, "/gateway/mcp", "application/json", body, "Authorization", "Bearer "+run, "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-06-18")
	if err != nil {
		return "", err
	}
	i := strings.Index(out, "act_")
	if status != http.StatusOK || i < 0 {
		return "", fmt.Errorf("%d %s", status, out)
	}
	end := strings.IndexFunc(out[i+4:], func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return out[i : i+4+end], nil
}

func (s *server) staged(run string) (id, contact string) {
	s.t.Helper()
	contact = s.contact()
	id, err := s.stage(run, contact)
	must(s.t, err)
	return id, contact
}

// approve posts what the form would: the digest and version of the row.
func (s *server) approve(id string) (int, error) {
	var digest, version string
	err := s.super.QueryRow(context.Background(), `SELECT args_digest, version::text FROM actions WHERE id = $1`, id).Scan(&digest, &version)
	if err != nil {
		return 0, err
	}
	status, _, err := s.form("/actions/"+id+"/approve", url.Values{"args_digest": {digest}, "version": {version}})
	return status, err
}

func (w *world) state(id string) (s action.State) {
	_ = w.super.QueryRow(context.Background(), `SELECT state FROM actions WHERE id = $1`, id).Scan(&s)
	return s
}

func (w *world) becomes(id string, states ...action.State) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is %v", id, states), func() bool {
		now := w.state(id)
		for _, s := range states {
			if now == s {
				return true
			}
		}
		return false
	})
}

// tell asks the CRM's control side.
func (w *world) tell(method, path, body string) []byte {
	w.t.Helper()
	req, err := http.NewRequest(method, "http://"+w.crmAt+path, strings.NewReader(body))
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+w.control)
	res, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	must(w.t, err)
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, out)
	}
	return out
}

// breaks makes the CRM's next creations go wrong.
func (w *world) breaks(mode string, times int, seconds float64) {
	w.t.Helper()
	w.fault("contacts_create", mode, times, seconds)
}

func (w *world) fault(tool, mode string, times int, seconds float64) {
	w.t.Helper()
	w.tell(http.MethodPost, "/faults", fmt.Sprintf(`{"tool":%q,"mode":%q,"times":%d,"seconds":%g}`, tool, mode, times, seconds))
}

// subject is what a call is about, by which its action is found in the journal: the name of a new contact, or the id of one.
type subject struct {
	Name      string
	ContactID string `json:"contact_id"`
}

func (s subject) String() string { return cmp.Or(s.ContactID, s.Name) }

// effects counts what the CRM really did, by contact.
func (w *world) effects() map[string]int {
	w.t.Helper()
	var journal []struct{ Arguments subject }
	must(w.t, json.Unmarshal(w.tell(http.MethodGet, "/journal", ""), &journal))
	out := map[string]int{}
	for _, e := range journal {
		out[e.Arguments.String()]++
	}
	return out
}
