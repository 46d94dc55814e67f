package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/db/dbtest"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

func names(t *testing.T, w world, sql string, args ...any) []string {
	t.Helper()
	found, err := w.super.Query(t.Context(), sql, args...)
	must(t, err)
	out, err := pgx.CollectRows(found, pgx.RowTo[string])
	must(t, err)
	return out
}

// fencedTables are those that hold rows of one organization.
const fencedTables = `SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
	AND (c.relname = 'orgs' OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org_id' AND NOT a.attisdropped))`

func TestEveryTableOfAnOrganizationHasItsFence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := names(t, w, fencedTables)
	if len(all) < 10 {
		t.Fatalf("found only the tables %v", all)
	}
	if open := names(t, w, fencedTables+" AND NOT c.relrowsecurity"); len(open) > 0 {
		t.Errorf("without row-level security: %v", open)
	}
	if open := names(t, w, fencedTables+` AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd = '*')`); len(open) > 0 {
		t.Errorf("without a policy for every command: %v", open)
	}
	// Every policy is the one sentence. A second, permissive one would be added to it with OR.
	odd := names(t, w, `SELECT polrelid::regclass || ': ' || pg_get_expr(polqual, polrelid) FROM pg_policy
		WHERE pg_get_expr(polqual, polrelid) NOT IN ('(org_id = current_org())', '(id = current_org())') OR polwithcheck IS NOT NULL`)
	if len(odd) > 0 {
		t.Errorf("unusual policies: %v", odd)
	}
}

func TestATableWithoutAnOrganizationIsOneWeKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	global := names(t, w, `SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
		AND c.relname NOT LIKE 'river\_%' AND c.relname NOT IN (`+fencedTables+`) ORDER BY 1`)
	want := []string{"audit_batches", "goose_db_version", "release_choices", "release_files", "releases", "sign_in_attempts"}
	for _, g := range global {
		if !slices.Contains(want, g) {
			t.Errorf("the table %s belongs to no organization: is that meant?", g)
		}
	}
}

func TestOutsideAnOrganizationEveryTableIsEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, owner := w.newOrg(t, "acme")
	must(t, Audit{w.DB}.Record(t.Context(), audit.Entry{Org: org.ID, Actor: audit.Person(owner), Event: audit.SignedOut}))
	for _, table := range names(t, w, fencedTables) {
		var n int
		must(t, w.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&n))
		if n != 0 {
			t.Errorf("%s shows %d rows to a transaction without an organization", table, n)
		}
	}
	if w.count(t, "SELECT count(*) FROM orgs") == 0 {
		t.Fatal("there is nothing to be hidden")
	}
}

func TestAnotherOrganizationsRowsCanNeitherBeSeenNorWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, _ := w.newOrg(t, "acme")
	theirs, theirOwner := w.newOrg(t, "other")
	err := w.inOrg(t.Context(), mine.ID, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM people WHERE org_id = $1", string(theirs.ID)).Scan(&n); err != nil || n != 0 {
			return fmt.Errorf("saw %d of their people: %w", n, err)
		}
		tag, err := tx.Exec(t.Context(), "UPDATE people SET name = 'mine' WHERE id = $1", string(theirOwner.ID))
		if err != nil || tag.RowsAffected() != 0 {
			return fmt.Errorf("changed %d of their people: %w", tag.RowsAffected(), err)
		}
		return nil
	})
	must(t, err)
	err = w.inOrg(t.Context(), mine.ID, func(tx pgx.Tx) error {
		return insertAudit(t.Context(), tx, audit.Entry{Org: theirs.ID, Actor: audit.Operator, Event: audit.SignedOut})
	})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Fatalf("an entry in another organization's trail: got %v", err)
	}
}

func TestTheOrganizationOfATransactionIsGoneAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	conn, err := w.pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	must(t, pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{BeginQuery: "BEGIN; SET LOCAL countersign.org = '" + string(org.ID) + "'"}, func(pgx.Tx) error { return nil }))
	var n int
	must(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM people").Scan(&n))
	if n != 0 {
		t.Fatal("the next transaction of the connection still sees the organization")
	}
}

func TestAnOrganizationIsNeverAPieceOfSQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, org := range []identity.OrgID{"", "x'; SET ROLE countersign_owner; --", "a b", "org_\x00", identity.OrgID(strings.Repeat("a", 65))} {
		called := false
		err := w.inOrg(t.Context(), org, func(pgx.Tx) error { called = true; return nil })
		if isFault(t, err, fault.CodeNotFound); called {
			t.Fatalf("a transaction began for %q", org)
		}
	}
}

func TestTheServerWorksAsARoleWithoutPower(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var name string
	must(t, w.pool.QueryRow(t.Context(), "SELECT current_user").Scan(&name))
	if name != AppRole {
		t.Fatalf("works as %s", name)
	}
	conn, err := w.pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "RESET ROLE")
	must(t, err)
	must(t, conn.QueryRow(t.Context(), "SELECT current_user").Scan(&name))
	if name != AppRole {
		t.Fatalf("RESET ROLE leads to %s", name)
	}
	for _, forbidden := range []string{
		"UPDATE audit_entries SET event = 'x'", "DELETE FROM audit_entries", "TRUNCATE audit_entries", "UPDATE audit_seals SET seq = 1",
		"DELETE FROM audit_seals", "DELETE FROM audit_checkpoints", "INSERT INTO audit_pending VALUES ('a', 1)", "UPDATE releases SET file_count = 1",
		"DELETE FROM release_files", "ALTER TABLE people DISABLE ROW LEVEL SECURITY", "DROP TABLE people", "UPDATE people SET email = 'x'",
		"UPDATE people SET org_id = 'x'", "DELETE FROM people", "UPDATE orgs SET slug = 'x'", "ALTER TABLE audit_entries DISABLE TRIGGER ALL",
		"SET session_replication_role = replica", "CREATE TABLE mine (id int)",
	} {
		if _, err := conn.Exec(t.Context(), forbidden); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: got %v, want a refused permission", forbidden, err)
		}
	}
}

func TestADatabaseWhereTheRoleHasPowerIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asSuper(t, "CREATE TABLE owned (id int)")
	w.asSuper(t, "ALTER TABLE owned OWNER TO "+AppRole)
	if d, err := Open(t.Context(), w.dsn); err == nil {
		d.Close()
		t.Fatal("opened a database whose role owns a table")
	} else if !strings.Contains(err.Error(), "could read across organizations") {
		t.Fatalf("got %v", err)
	}
}

func TestDoorsAreFewAndTheirsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const definers = "SELECT p.proname FROM pg_proc p WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace"
	if open := names(t, w, definers+" AND p.prorettype <> 'trigger'::regtype AND has_function_privilege('public', p.oid, 'EXECUTE')"); len(open) > 0 {
		t.Errorf("anybody may use %v", open)
	}
	if loose := names(t, w, definers+` AND NOT coalesce(p.proconfig, '{}') && ARRAY ['search_path=public, pg_temp']`); len(loose) > 0 {
		t.Errorf("whoever calls it chooses what the names in %v mean", loose)
	}
}

func TestMigrateMayRunEverywhereAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Empty(t)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wg.Go(func() { errs[i] = Migrate(context.Background(), dsn) })
	}
	wg.Wait()
	for _, err := range append(errs, Migrate(t.Context(), dsn)) {
		must(t, err)
	}
	d, err := Open(t.Context(), dsn)
	must(t, err)
	defer d.Close()
	var jobs int
	must(t, d.pool.QueryRow(t.Context(), "SELECT count(*) FROM river_job").Scan(&jobs))
	if _, err := d.pool.Exec(t.Context(), "INSERT INTO river_queue (name, created_at, updated_at, metadata) VALUES ('q', now(), now(), '{}')"); err != nil {
		t.Fatalf("the queue's tables are not granted: %v", err)
	}
}

func TestADatabaseThatDoesNotAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), "postgres://nobody@/none?host="+t.TempDir()+"&connect_timeout=2")
	isFault(t, err, fault.CodeUnavailable)
	_, err = Open(t.Context(), "postgres://user:hunter2@:port/")
	isFault(t, err, fault.CodeUnavailable)
	if strings.Contains(err.Error(), "hunter2") {
		t.Fatal("the password is in the sentence")
	}
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	w.asSuper(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'countersign'")
	// The pool notices dead connections by using them: what fails is told as such, and the next one works.
	for {
		_, err := People{w.DB}.People(t.Context(), org.ID)
		if err == nil {
			return
		}
		isFault(t, err, fault.CodeUnavailable)
	}
}
