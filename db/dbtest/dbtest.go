// Package dbtest owns the databases of the tests: every test gets one of its own, a copy of a migrated pattern, in a real
// PostgreSQL. The cluster is the one named in COUNTERSIGN_TEST_CLUSTER (`make test` starts one for the whole run), else a private
// one that lives as long as the test binary. It never touches a database it did not make, and it knows no table.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/db/embedded"
	"countersign/internal/identity"
)

// limit bounds one operation on the cluster. The pattern's migrations are the longest.
const limit = 2 * time.Minute

// New returns the connection string of a fresh database, in which migrate has been run, as the owner role. It is dropped when the
// test ends. Migrate runs once per test binary and per function: every database is a copy of its result, which takes 0.2 s. Pass a
// declared function and no closure: two closures made by one line count as one.
func New(t testing.TB, migrate func(ctx context.Context, dsn string) error) string {
	t.Helper()
	access, err := cluster()
	if err != nil {
		t.Fatalf("dbtest: no cluster: %v", err)
	}
	pattern, err := patternFor(access, migrate)
	if err != nil {
		t.Fatalf("dbtest: the pattern database: %v", err)
	}
	return fresh(t, access, pattern)
}

// Empty returns the connection string of a database in which nothing was run, for the tests of the migrations themselves.
func Empty(t testing.TB) string {
	t.Helper()
	access, err := cluster()
	if err != nil {
		t.Fatalf("dbtest: no cluster: %v", err)
	}
	return fresh(t, access, "")
}

// Superuser turns a connection string from New into the superuser's for the same database, for tests that must see past row-level
// security or break something on purpose.
func Superuser(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("dbtest: not a connection string of ours")
	}
	access, err := cluster()
	if err != nil {
		t.Fatalf("dbtest: no cluster: %v", err)
	}
	return access.SuperDSN(u.Path[1:])
}

func fresh(t testing.TB, access embedded.Access, pattern string) string {
	t.Helper()
	name := identity.NewID("test_")
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := access.CreateDatabase(ctx, name, pattern); err != nil {
		t.Fatalf("dbtest: create database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := access.DropDatabase(ctx, name); err != nil && !gone(err) {
			t.Errorf("dbtest: drop database: %v", err)
		}
	})
	return access.DSN(name)
}

// gone reports that the server is not there any more: a test that stopped it on purpose has no database left to drop.
func gone(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}

// patterns are the pattern databases of this test binary, by migrate function.
var patterns struct {
	sync.Mutex
	made map[uintptr]*pattern
}

type pattern struct {
	once sync.Once
	name string
	err  error
}

// patternFor makes the pattern on first use. Test binaries that share a cluster make one each: they may have been built from
// different migrations, and a shared one would have to be proven equal first.
func patternFor(access embedded.Access, migrate func(context.Context, string) error) (string, error) {
	key := reflect.ValueOf(migrate).Pointer()
	patterns.Lock()
	if patterns.made == nil {
		patterns.made = map[uintptr]*pattern{}
	}
	p := patterns.made[key]
	if p == nil {
		p = &pattern{}
		patterns.made[key] = p
	}
	patterns.Unlock()
	p.once.Do(func() { p.name, p.err = makePattern(access, migrate) })
	return p.name, p.err
}

func makePattern(access embedded.Access, migrate func(context.Context, string) error) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	name := identity.NewID("pattern_")
	if err := access.CreateDatabase(ctx, name, ""); err != nil {
		return "", err
	}
	if err := migrate(ctx, access.DSN(name)); err != nil {
		return "", err
	}
	return name, seal(ctx, access, name)
}

// seal ends what migrate left connected and refuses new connections: PostgreSQL copies no database that somebody uses, and a pool's
// connection that closes a moment later would make the first test fail now and then.
func seal(ctx context.Context, access embedded.Access, name string) error {
	conn, err := pgx.Connect(ctx, access.SuperDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
		return fmt.Errorf("end the connections of the pattern: %w", err)
	}
	return nil
}
