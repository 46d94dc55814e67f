package dbtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var migrations atomic.Int32

// migrate leaves a pool open, as a careless migration would.
func migrate(ctx context.Context, dsn string) error {
	migrations.Add(1)
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, "CREATE TABLE notes (text text NOT NULL); INSERT INTO notes VALUES ('from the pattern')")
	return err
}

func failing(context.Context, string) error { return errors.New("no such column") }

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func count(t *testing.T, dsn, query string, args ...any) int {
	t.Helper()
	var n int
	if err := connect(t, dsn).QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryTestHasADatabaseOfItsOwnFromOneMigration(t *testing.T) {
	t.Run("parallel", func(t *testing.T) {
		for _, name := range []string{"a", "b", "c", "d"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dsn := New(t, migrate)
				if _, err := connect(t, dsn).Exec(t.Context(), "INSERT INTO notes VALUES ('mine')"); err != nil {
					t.Fatal(err)
				}
				if got := count(t, dsn, "SELECT count(*) FROM notes"); got != 2 {
					t.Errorf("holds %d notes, want the pattern's and mine", got)
				}
			})
		}
	})
	if got := migrations.Load(); got != 1 {
		t.Errorf("migrated %d times, want once", got)
	}
}

func TestTheDatabaseIsDroppedWhenTheTestEnds(t *testing.T) {
	var dsn string
	t.Run("inner", func(t *testing.T) { dsn = New(t, migrate) })
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database is still there")
	}
}

func TestTheOwnerIsSignedInAndTheSuperuserCanBe(t *testing.T) {
	dsn := Empty(t)
	const super = "SELECT count(*) FROM pg_roles WHERE rolname = current_user AND rolsuper"
	if count(t, dsn, super) != 0 {
		t.Error("a test works as the superuser")
	}
	if count(t, Superuser(t, dsn), super) != 1 {
		t.Error("Superuser is none")
	}
	if got := count(t, dsn, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); got != 0 {
		t.Errorf("an empty database holds %d tables", got)
	}
}

func TestAFailedMigrationIsReportedAndNotTriedAgain(t *testing.T) {
	access, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := patternFor(access, failing); err == nil || !strings.Contains(err.Error(), "no such column") {
			t.Errorf("got %v", err)
		}
	}
}

func TestSweepRemovesTheFoldersOfTheDeadOnly(t *testing.T) {
	temporary := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	lay := func(name string, pid int, age time.Duration) string {
		dir := filepath.Join(temporary, throwawayPrefix+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, ownerFile)
		if err := errors.Join(os.WriteFile(file, []byte(strconv.Itoa(pid)), 0o600), os.Chtimes(file, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	swept := lay("dead", dead.Process.Pid, time.Hour)
	kept := []string{lay("young", dead.Process.Pid, 0), lay("alive", os.Getpid(), time.Hour), lay("odd", -1, time.Hour)}
	sweep(temporary)
	if _, err := os.Stat(swept); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder of a dead process is still there")
	}
	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("swept away: %v", err)
		}
	}
}

func TestASharedFileThatDescribesNoClusterIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.json")
	if _, err := readShared(path); err == nil {
		t.Error("an absent file was taken")
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readShared(path); err == nil {
		t.Error("an empty description was taken")
	}
}

func TestEventuallyAsksAgainUntilItHolds(t *testing.T) {
	asked := 0
	Eventually(t, "it holds at the third question", func() bool { asked++; return asked == 3 })
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

func TestWhereTheFolderForThrowawaysLies(t *testing.T) {
	t.Setenv("TMPDIR", "")
	if at := Memory(); at != memory && at != os.TempDir() {
		t.Errorf("it lies in %s", at)
	}
	chosen := t.TempDir()
	t.Setenv("TMPDIR", chosen)
	if at := Memory(); at != chosen {
		t.Errorf("with TMPDIR set it lies in %s", at)
	}
}
