package agent_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/db"
	"countersign/db/dbtest"
	"countersign/internal/policy"
	"countersign/web"
	"countersign/web/agent"
)

// TestConformance runs the official conformance suite against the endpoint of one connection whose upstream is the official SDK's
// everything-server, in both eras. What cannot apply to a gateway, and why, is in testdata; a scenario listed there that passes fails
// the run, too.
func TestConformance(t *testing.T) {
	s := needSuite(t)
	w := newWorld(t)
	everything := startEverything(t)
	swap(w.odd.next, everything)
	c := w.install("deepwiki", "Everything", policy.Autonomous)
	w.profile("engineering", c)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			front := w.front(t, w.start(policy.Task, "engineering"), c.Key.String(), nil)
			s.run(t, "--url", front, "--requirements", revision, "--expected-failures", filepath.Join("testdata", "conformance-"+revision+".yml"))
		})
	}
}

// suite is the official conformance suite and a Node that it runs on.
type suite struct{ node, script string }

// needSuite finds the suite where `npm ci` puts it.
func needSuite(t *testing.T) suite {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("..", "..", "node_modules"))
	check(t, err)
	s := suite{script: filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")}
	if _, err := os.Stat(s.script); err != nil {
		t.Fatalf("The conformance suite of the protocol is missing: run `npm ci` (%v)", err)
	}
	bundled, _ := filepath.Glob(filepath.Join(modules, "node-*", "bin", "node")) // the pattern is well formed
	for _, candidate := range append(bundled, "node") {
		if s.node, err = exec.LookPath(candidate); err == nil {
			return s
		}
	}
	t.Fatal("Node is missing: run `npm ci`")
	return s
}

func (s suite) run(t *testing.T, arguments ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.node, append([]string{s.script, "server"}, arguments...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("%s", out)
	}
	check(t, err)
	if !bytes.Contains(out, []byte("SUCCESS")) && !bytes.Contains(out, []byte("✓")) {
		t.Error("the suite checked nothing")
	}
}

// startEverything builds and starts the SDK's everything-server.
func startEverything(t *testing.T) *url.URL {
	t.Helper()
	program := filepath.Join(t.TempDir(), "everything-server")
	build, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, build)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := l.Addr().String()
	check(t, l.Close())
	cmd := exec.CommandContext(t.Context(), program, "-http="+address)
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	dbtest.Eventually(t, "the everything-server answers", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return &url.URL{Scheme: "http", Host: address}
}

// front adds the run's token to requests, since the suite cannot, and serves them as the whole server would, with its fences; Host and
// Origin stay as sent. After each answer it calls answered, where there is one.
func (w *world) front(t *testing.T, r started, key string, answered func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	host := listener.Addr().String()
	whole, err := web.New(web.Config{PublicURL: "http://" + host, Listen: host}, web.Handlers{Gateway: &web.Gateway{
		MCP: agent.NewMCP(w.Runs, w.gateway, "test", agent.WithContext(db.Contexts{DB: w.DB}, w.Profiles)), Config: agent.NewConfig(w.Runs, "http://"+host),
	}})
	check(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		q.Header.Set("Authorization", "Bearer "+r.bearer)
		whole.ServeHTTP(rw, q)
		if answered != nil {
			answered()
		}
	}), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + host + "/gateway/mcp/" + key
}

// forward hands a request to another server, but answers the connection test's own call, which that server does not know.
func forward(w http.ResponseWriter, r *http.Request, to *url.URL) {
	body, _ := io.ReadAll(r.Body)
	if bytes.Contains(body, []byte("read_wiki_structure")) {
		var m struct{ ID json.RawMessage }
		_ = json.Unmarshal(body, &m) // our own client wrote it
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"resultType":"complete","content":[]}}`)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	p := &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(to)
		pr.Out.URL.Path = strings.TrimSuffix(pr.In.URL.Path, "/")
		pr.Out.Host = to.Host
	}, ErrorLog: nil}
	p.ServeHTTP(w, r)
}
