package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv makes this test binary act as a server that owns a cluster: it prints one line of childReport and then waits.
const childEnv = "EMBEDDED_TEST_SERVER"

type childReport struct {
	Access Access
	DSN    string
	Fault  string
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(actAsServer(dir))
	}
	os.Exit(m.Run())
}

func actAsServer(dataDir string) int {
	asked, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	c, err := Start(asked, Config{DataDir: dataDir, Log: quiet})
	report := childReport{}
	if err != nil {
		report.Fault = err.Error()
	} else {
		report.Access, report.DSN = c.Access, c.DSN(Database)
	}
	_ = json.NewEncoder(os.Stdout).Encode(report)
	if err != nil {
		return 3
	}
	<-asked.Done()
	if err := c.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// server starts the test binary as another process, as another user where uid is given.
func server(t *testing.T, binary, dataDir string, uid int) (*osexec.Cmd, childReport) {
	t.Helper()
	cmd := osexec.Command(binary)
	cmd.Env = []string{childEnv + "=" + dataDir, "PATH=" + os.Getenv("PATH"), "PG_BIN_DIR=" + anyBinDir(t)}
	cmd.Dir = filepath.Dir(binary)
	cmd.Stderr = os.Stderr
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the server said nothing: %v", err)
	}
	var r childReport
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatal(err)
	}
	return cmd, r
}

// anyBinDir prefers a PostgreSQL every user of the machine can reach.
func anyBinDir(t *testing.T) string {
	t.Helper()
	found := installed(t)
	for _, dir := range found {
		if strings.HasPrefix(dir, "/usr/") {
			return dir
		}
	}
	for _, dir := range found {
		return dir
	}
	return ""
}

// openPlaceForAll is a folder every user can pass through, with this test binary in it.
func openPlaceForAll(t *testing.T) (dir, binary string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "embedded")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "server")
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(binary, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Chmod(0o755), to.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, binary
}

func TestPostgreSQLStopsWhenItsServerIsKilledAndTheNextStartWaitsForIt(t *testing.T) {
	cfg := config(t)
	cmd, r := server(t, os.Args[0], cfg.DataDir, 0)
	if r.Fault != "" {
		t.Fatal(r.Fault)
	}
	do(t, r.DSN, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (5)")
	_, err := Start(t.Context(), cfg)
	wantFault(t, err, "in use by another server process", fmt.Sprintf("(process %d)", cmd.Process.Pid))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c := mustStart(t, Config{DataDir: cfg.DataDir, BinDir: anyBinDir(t), Log: quiet}) // at once, while the orphan shuts down
	if got := ask[int](t, c.DSN(Database), "SELECT n FROM kept"); got != 5 {
		t.Errorf("row is %d, want 5", got)
	}
	stop(t, c)
	if pid := c.place.occupant(); pid != 0 {
		t.Errorf("process %d is left", pid)
	}
}

func TestTheTerminalsInterruptDoesNotReachPostgreSQL(t *testing.T) {
	c := mustStart(t, config(t))
	group, err := syscall.Getpgid(c.process.pid)
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() || group != c.process.pid {
		t.Errorf("PostgreSQL is in group %d, ours is %d", group, syscall.Getpgrp())
	}
}

func TestAnOrdinaryUserNeedsNothingSpecial(t *testing.T) {
	dir, binary := openPlaceForAll(t)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	uid := 0 // as we are
	if os.Geteuid() == 0 {
		uid = 65534
		if err := os.Chown(data, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	cmd, r := server(t, binary, data, uid)
	if r.Fault != "" {
		t.Fatal(r.Fault)
	}
	if got := ask[int](t, r.DSN, "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an orderly stop exits 0: %v", err)
	}
}

func TestAReadOnlyDataDirectoryIsSaidInASentence(t *testing.T) {
	dir, binary := openPlaceForAll(t)
	uid := 0
	if os.Geteuid() == 0 {
		uid = 65534 // root writes where it likes
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o555); err != nil {
		t.Fatal(err)
	}
	_, r := server(t, binary, data, uid)
	want := "The data directory " + data + " cannot be written (permission denied). "
	if !strings.HasPrefix(r.Fault, want) {
		t.Errorf("got %q, want it to begin %q", r.Fault, want)
	}
}

func TestRootStepsDownWhereUserNamespacesAreForbidden(t *testing.T) {
	forbidden := func(string) (identity, error) { return serviceUser(), nil }
	dir, _ := openPlaceForAll(t)
	cfg := Config{DataDir: filepath.Join(dir, "data"), BinDir: anyBinDir(t), Log: quiet}
	if os.Geteuid() != 0 {
		nobodyElseStepsDown(t, cfg, forbidden)
		return
	}
	c, err := start(t.Context(), cfg, forbidden)
	if err != nil {
		t.Fatal(err)
	}
	owner := func(path string) int {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	if got := owner("/proc/" + fmt.Sprint(c.process.pid)); got != serviceUser().uid {
		t.Errorf("PostgreSQL runs as %d, want %d", got, serviceUser().uid)
	}
	do(t, c.DSN(Database), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (9)")
	stop(t, c)
	// Namespaces are allowed again: the files change hands back, and the rows stay.
	again := mustStart(t, cfg)
	if got := ask[int](t, again.DSN(Database), "SELECT n FROM kept"); got != 9 {
		t.Errorf("row is %d, want 9", got)
	}
	stop(t, again)

	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = filepath.Join(closed, "data")
	_, err = start(t.Context(), cfg, forbidden)
	wantFault(t, err, "cannot reach the data directory through "+closed)
}

// nobodyElseStepsDown is what an ordinary user sees: the choice falls on itself, and becoming somebody else is refused in a sentence.
func nobodyElseStepsDown(t *testing.T, cfg Config, forbidden func(string) (identity, error)) {
	t.Helper()
	who, err := chooseIdentity(cfg.BinDir)
	if err != nil || who.way != asWeAre || who.uid != os.Geteuid() {
		t.Errorf("an ordinary user is to be %+v, %v", who, err)
	}
	_, err = start(t.Context(), cfg, forbidden)
	wantFault(t, err, "could not be made in", "operation not permitted")
}

func TestOfManyStartsAtOnceExactlyOneWins(t *testing.T) {
	cfg := config(t)
	type result struct {
		c   *Cluster
		err error
	}
	results := make(chan result)
	const starters = 4
	for range starters {
		go func() {
			c, err := Start(t.Context(), cfg)
			results <- result{c, err}
		}()
	}
	won := 0
	for range starters {
		select {
		case r := <-results:
			if r.err != nil {
				wantFault(t, r.err, "is in use by")
				continue
			}
			won++
			t.Cleanup(func() { stop(t, r.c) })
		case <-time.After(time.Minute):
			t.Fatal("a start hangs")
		}
	}
	if won != 1 {
		t.Errorf("%d starts won, want 1", won)
	}
}
