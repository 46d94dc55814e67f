package consent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"countersign/db"
	"countersign/internal/release"
)

// underTest is where the program that the suite starts finds the one it stands for.
const underTest = "CONSENT_CONFORMANCE"

// scenarioWithin is how long a scenario may take. One asks a question back and waits, which is answered by nobody.
const scenarioWithin = 15 * time.Second

// TestMain is also the client under test: a program that the suite starts for each scenario, with the address of the suite's server. It
// hands the scenario to the test, which plays it with everything a server has.
func TestMain(m *testing.M) {
	if at := os.Getenv(underTest); at != "" {
		os.Exit(standIn(at, os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

func standIn(at, server string) int {
	s := scenario{Name: os.Getenv("MCP_CONFORMANCE_SCENARIO"), Server: server}
	if told := os.Getenv("MCP_CONFORMANCE_CONTEXT"); told != "" {
		s.Context = json.RawMessage(told)
	}
	body, err := json.Marshal(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	res, err := http.Post(at, "application/json", bytes.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer res.Body.Close()
	_, _ = io.Copy(os.Stderr, res.Body)
	if res.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}

// scenario is one exercise of the suite.
type scenario struct {
	Name    string
	Server  string
	Context json.RawMessage `json:",omitempty"`
}

// TestConformance runs the official suite's client and authorization scenarios against our client side: discovery, client identity, consent,
// the sealed tokens in the database, and the calls with them. What does not apply is in testdata, each with its reason; a scenario there
// that passes fails the run, too.
func TestConformance(t *testing.T) {
	s := newSuite(t)
	w := newWorld(t, "")
	files := fstest.MapFS{}
	for key, grants := range map[string]string{"plain": "", "steps": stepGrants} {
		files[key+".toml"] = &fstest.MapFile{Data: []byte(strings.NewReplacer("%key", key, "%grants", grants).Replace(conformant))}
	}
	_, err := release.Publish(t.Context(), db.NewReleases(w.first.db, w.table), files, w.table)
	w.must(err)
	desk := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var s scenario
		err := json.NewDecoder(r.Body).Decode(&s)
		if err == nil {
			ctx, cancel := context.WithTimeout(r.Context(), scenarioWithin)
			defer cancel()
			err = (&exercise{world: w, scenario: s, ctx: ctx}).play()
		}
		if err != nil {
			t.Logf("%s: %v", s.Name, err)
			http.Error(rw, err.Error(), http.StatusUnprocessableEntity)
		}
	}))
	t.Cleanup(desk.Close)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			s.runs(t, revision, desk.URL)
		})
	}
}

// suite is the official conformance suite and a Node that it runs on.
type suite struct{ node, script string }

func newSuite(t *testing.T) suite {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("..", "..", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
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

func (s suite) runs(t *testing.T, revision, desk string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.node, s.script, "client", "--command", os.Args[0], "--requirements", revision,
		"--expected-failures", filepath.Join("testdata", "conformance-"+revision+".yml"))
	cmd.Env = append(os.Environ(), "NO_COLOR=1", underTest+"="+desk)
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("%s", out)
	}
	if err != nil {
		t.Error(err)
	}
	if !bytes.Contains(out, []byte("SUCCESS")) && !bytes.Contains(out, []byte("✓")) {
		t.Error("the suite checked nothing")
	}
}
