package embedded

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/fault"
)

// The folders of a checkout, seen from this package.
const modulesDir = "../../node_modules"

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// installed lists every PostgreSQL of this machine, by major version.
func installed(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range searchDirs(modulesDir) {
		if b, err := examine(t.Context(), dir); err == nil && found[b.major] == "" {
			found[b.major] = b.dir
		}
	}
	if len(found) == 0 {
		t.Fatal("no PostgreSQL on this machine: run npm ci, or apt-get install postgresql")
	}
	return found
}

func config(t *testing.T) Config {
	t.Helper()
	return Config{DataDir: filepath.Join(t.TempDir(), "data"), ModulesDir: modulesDir, Log: quiet, Throwaway: true}
}

func mustStart(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func do(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func ask[T any](t *testing.T, dsn, query string) T {
	t.Helper()
	var v T
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func wantFault(t *testing.T, err error, parts ...string) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok {
		t.Fatalf("want a fault, got %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(f.Error(), part) {
			t.Errorf("the fault should say %q: %s", part, f.Error())
		}
	}
	if f.Next == "" || strings.Contains(f.What, "\n") {
		t.Errorf("a fault is one line and says what to do: %q, %q", f.What, f.Next)
	}
}

func TestRowsOutliveARestartOnEveryPostgreSQLOfThisMachine(t *testing.T) {
	for major, dir := range installed(t) {
		t.Run(major, func(t *testing.T) {
			cfg := config(t)
			cfg.BinDir, cfg.Throwaway = dir, false
			first := mustStart(t, cfg)
			do(t, first.DSN(Database), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
			if got := ask[string](t, first.DSN(Database), "SHOW server_version"); !strings.HasPrefix(got, major) {
				t.Errorf("runs %s, want %s", got, major)
			}
			stop(t, first)
			select {
			case <-first.Done():
			default:
				t.Error("Done is open after Stop")
			}
			second := mustStart(t, cfg)
			if got := ask[int](t, second.DSN(Database), "SELECT n FROM kept"); got != 7 {
				t.Errorf("row is %d, want 7", got)
			}
		})
	}
}

func TestTheOwnerIsNoSuperuserAndBecomesTheApplicationRole(t *testing.T) {
	c := mustStart(t, config(t))
	dsn := c.DSN(Database)
	if got := ask[bool](t, dsn, "SELECT bool_or(rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication) FROM pg_roles WHERE rolname LIKE 'countersign\\_%' AND rolname <> '"+Superuser+"'"); got {
		t.Error("a role of the server has a power it must not have")
	}
	do(t, dsn, "CREATE TABLE t (n int)")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "SET ROLE "+AppRole); err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"SELECT * FROM t", "DROP TABLE t", "CREATE TABLE u (n int)", "ALTER ROLE " + AppRole + " BYPASSRLS", "CREATE TEMPORARY TABLE v (n int)"} {
		if _, err := conn.Exec(t.Context(), forbidden); err == nil {
			t.Errorf("the application role may %s", forbidden)
		}
	}
}

func TestAPowerGivenByHandIsTakenBackAtTheNextStart(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	do(t, c.SuperDSN("postgres"), "ALTER ROLE "+AppRole+" BYPASSRLS LOGIN", "ALTER ROLE "+OwnerRole+" SUPERUSER")
	stop(t, c)
	c = mustStart(t, cfg)
	if ask[bool](t, c.DSN(Database), "SELECT bool_or(rolsuper OR rolbypassrls OR (rolcanlogin AND rolname = '"+AppRole+"')) FROM pg_roles WHERE rolname IN ('"+AppRole+"', '"+OwnerRole+"')") {
		t.Error("the power is still there")
	}
}

func TestNothingListensOnTheNetworkAndFilesArePrivate(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	if got := ask[string](t, c.DSN(Database), "SHOW listen_addresses"); got != "" {
		t.Errorf("listens on %q", got)
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "secret": 0o600, "run": 0o700, "cluster": 0o700} {
		info, err := os.Stat(filepath.Join(c.Directory(), path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q is %o, want %o", path, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(c.Directory(), "run", "initial-password")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the initial password is still on disk")
	}
	wrong := c.Access
	wrong.OwnerPassword = strings.Repeat("0", 64)
	if _, err := pgx.Connect(t.Context(), wrong.DSN(Database)); err == nil {
		t.Error("a wrong password opens the database")
	}
}

func TestTheLogHoldsNoStatementAndNoValue(t *testing.T) {
	var out strings.Builder
	cfg := config(t)
	cfg.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), c.DSN(Database))
	if err != nil {
		t.Fatal(err)
	}
	do(t, c.DSN(Database), "CREATE TABLE t (s text UNIQUE)", "INSERT INTO t VALUES ('canary-row')")
	for _, s := range []string{"SELECT 'canary-cast'::int", "INSERT INTO t VALUES ('canary-row')", "SELEKT 'canary-syntax'", "DO $$BEGIN RAISE WARNING 'canary-raise'; END$$"} {
		_, _ = conn.Exec(t.Context(), s)
	}
	_, _ = conn.Exec(t.Context(), "SELECT $1::int / 0", "4711")
	conn.Close(context.Background())
	stop(t, c)
	if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), c.OwnerPassword) || strings.Contains(out.String(), c.SuperPassword) {
		t.Errorf("the log repeats what it must not:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "database system is ready") {
		t.Errorf("the log lacks what PostgreSQL said:\n%s", out.String())
	}
}

func TestASecondStartIsToldThatTheDirectoryIsInUse(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	_, err := Start(t.Context(), cfg)
	wantFault(t, err, "is in use by another server process", "COUNTERSIGN_DATA_DIR")
	if got := ask[int](t, c.DSN(Database), "SELECT 1"); got != 1 {
		t.Error("the first cluster no longer answers")
	}
}

func TestAKilledPostgreSQLIsReportedAndRecovers(t *testing.T) {
	cfg := config(t)
	cfg.Throwaway = false
	c := mustStart(t, cfg)
	do(t, c.DSN(Database), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (1)")
	if err := syscall.Kill(c.process.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("Done stays open after PostgreSQL was killed")
	}
	_ = c.Stop(t.Context())
	again := mustStart(t, cfg)
	if got := ask[int](t, again.DSN(Database), "SELECT n FROM kept"); got != 1 {
		t.Errorf("row is %d, want 1", got)
	}
}

func TestAStalePidFileDoesNotKeepPostgreSQLFromStarting(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	stop(t, c)
	// Process 1 is alive and is no PostgreSQL: as if it had been given the number of a crashed one.
	stale := filepath.Join(c.Directory(), "cluster", "postmaster.pid")
	text := "1\n" + filepath.Dir(stale) + "\n1700000000\n5432\n" + c.SocketDir + "\n\n  0 0\nready\n"
	if err := os.WriteFile(stale, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again := mustStart(t, cfg)
	if got := ask[int](t, again.DSN(Database), "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
}

func TestAnInterruptedFirstStartIsBegunAfresh(t *testing.T) {
	cfg := config(t)
	half := filepath.Join(cfg.DataDir, "pg", "cluster.new")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustStart(t, cfg)
	if got := ask[int](t, c.DSN(Database), "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
}

func TestALongOrOddPathMovesTheSocketIntoAPrivateFolder(t *testing.T) {
	for name, dir := range map[string]string{"long": strings.Repeat("very-long-name/", 12), "comma": "a,b", "space and quote": "o'brien data"} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			cfg.DataDir = filepath.Join(t.TempDir(), dir)
			c := mustStart(t, cfg)
			if len(c.SocketDir)+1+len(socketName) > socketPathLimit {
				t.Errorf("the socket path is too long: %s", c.SocketDir)
			}
			info, err := os.Stat(c.SocketDir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the socket folder is %v (%v), want 0700", info, err)
			}
			if got := ask[int](t, c.DSN(Database), "SELECT 1"); got != 1 {
				t.Error("no answer")
			}
			stop(t, c)
			if _, err := os.Stat(c.SocketDir); !strings.HasPrefix(c.SocketDir, c.Directory()) && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket folder is left in the temporary directory: %v", err)
			}
		})
	}
}

func TestASocketFolderLaidInOurWayIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "planted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	wantFault(t, ownDir(dir), "belongs to somebody else")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	wantFault(t, ownDir(link), "belongs to somebody else")
}

func TestCreateAndDropDatabase(t *testing.T) {
	c := mustStart(t, config(t))
	ctx := t.Context()
	if err := c.CreateDatabase(ctx, "pattern", ""); err != nil {
		t.Fatal(err)
	}
	do(t, c.DSN("pattern"), "CREATE TABLE t (n int)", "INSERT INTO t VALUES (3)")
	if err := c.CreateDatabase(ctx, `odd "name`, "pattern"); err != nil {
		t.Fatal(err)
	}
	dsn := c.DSN(`odd "name`)
	if got := ask[int](t, dsn, "SELECT n FROM t"); got != 3 {
		t.Errorf("the copy holds %d, want 3", got)
	}
	open, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close(context.Background())
	for range 2 {
		if err := c.DropDatabase(ctx, `odd "name`); err != nil {
			t.Fatalf("drop, also with a connection open and also twice: %v", err)
		}
	}
}

func TestStopByForceStillReturnsAndTheNextStartRecovers(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.process.stop(ended)
	if err != nil && !strings.Contains(err.Error(), "by force") {
		t.Fatal(err)
	}
	stop(t, c)
	if got := ask[int](t, mustStart(t, cfg).DSN(Database), "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
}
