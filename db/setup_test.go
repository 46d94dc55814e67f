package db

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db/dbtest"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// world is a database of its own, opened as the server opens it, with the superuser beside it for what only a tamperer could do.
type world struct {
	*DB
	super *pgxpool.Pool
	dsn   string
}

func newWorld(t *testing.T) world {
	t.Helper()
	dsn := dbtest.New(t, Migrate)
	d, err := Open(t.Context(), dsn)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(d.Close)
	super, err := pgxpool.New(t.Context(), dbtest.Superuser(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(super.Close)
	return world{DB: d, super: super, dsn: dsn}
}

// asSuper runs a statement past row-level security, triggers of immutability switched off, and says how many rows it hit.
func (w world) asSuper(t *testing.T, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	err := pgx.BeginFunc(t.Context(), w.super, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL session_replication_role = replica"); err != nil {
			return err
		}
		tag, err := tx.Exec(t.Context(), sql, args...)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// count is one number past row-level security.
func (w world) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := w.super.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// newOrg makes an organization with one owner and returns the owner.
func (w world) newOrg(t *testing.T, slug string) (identity.Org, identity.Person) {
	t.Helper()
	org := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: slug, Name: "The " + slug}
	owner := newPerson(org, "owner@"+slug+".test", identity.Owner)
	must(t, People{w.DB}.CreateOrganization(t.Context(), org, owner, "hash", note(audit.OrgCreated, "organization", string(org.ID))))
	return org, owner
}

func (w world) addPerson(t *testing.T, org identity.Org, email string, roles ...identity.Role) identity.Person {
	t.Helper()
	p := newPerson(org, email, roles...)
	must(t, People{w.DB}.AddPerson(t.Context(), p, "hash", note(audit.PersonAdded, "person", string(p.ID))))
	return p
}

func newPerson(org identity.Org, email string, roles ...identity.Role) identity.Person {
	return identity.Person{ID: identity.PersonID(identity.NewID("per_")), Org: org.ID, Email: email, Roles: roles, Active: true}
}

// note is an entry as a page would write it.
func note(event audit.Event, kind, id string) audit.Entry {
	return audit.Entry{Actor: audit.Operator, Event: event, Object: audit.Object{Kind: kind, ID: id}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isFault fails unless err is a fault of this code.
func isFault(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("got %v, want a fault %s", err, code)
	}
}

// isField fails unless err is about this input.
func isField(t *testing.T, err error, field string) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Field != field {
		t.Fatalf("got %v, want a fault about %s", err, field)
	}
}

// testSigner is a keyed MAC with a key of its own.
type testSigner string

func (k testSigner) MAC(data []byte) ([]byte, error) {
	h := hmac.New(sha256.New, []byte(k))
	h.Write(data)
	return h.Sum(nil), nil
}

func (k testSigner) Verify(mac, data []byte) bool {
	want, _ := k.MAC(data)
	return hmac.Equal(mac, want)
}

var quiet = slog.New(slog.DiscardHandler)

// events lists the events of an organization's trail, oldest first.
func (w world) events(t *testing.T, org identity.OrgID) []audit.Event {
	t.Helper()
	found, err := w.super.Query(context.Background(), "SELECT event FROM audit_entries WHERE org_id = $1 ORDER BY id", string(org))
	must(t, err)
	out, err := pgx.CollectRows(found, pgx.RowTo[audit.Event])
	must(t, err)
	return out
}
