package db

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

const key = testSigner("a key of this test")

// withTrail makes an organization with a sealed trail of n entries; entry ids are returned oldest first.
func (w world) withTrail(t *testing.T, slug string, n int) (identity.Org, []int64) {
	t.Helper()
	org, owner := w.newOrg(t, slug)
	for range n - 1 {
		must(t, Audit{w.DB}.Record(t.Context(), audit.Entry{Org: org.ID, Actor: audit.Person(owner), Event: audit.ToolRead, Facts: []audit.Fact{{Name: "a", Value: "b"}}}))
	}
	w.seal(t)
	found, err := w.super.Query(t.Context(), "SELECT id FROM audit_entries WHERE org_id = $1 ORDER BY id", string(org.ID))
	must(t, err)
	defer found.Close()
	var ids []int64
	for found.Next() {
		var id int64
		must(t, found.Scan(&id))
		ids = append(ids, id)
	}
	return org, ids
}

func (w world) seal(t *testing.T) {
	t.Helper()
	_, err := Audit{w.DB}.Seal(t.Context(), key)
	must(t, err)
}

func TestAnUntouchedTrailVerifies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, _ := w.withTrail(t, "acme", 30)
	other, _ := w.withTrail(t, "other", 3)
	must(t, a.Record(ctx, audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.SignedOut}))
	if got, err := a.Verify(ctx, org.ID, key); err != nil || got != (Verified{Sealed: 30, Pending: 1}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	w.seal(t)
	if got, err := a.Verify(ctx, org.ID, key); err != nil || got != (Verified{Sealed: 31}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got, err := a.Verify(ctx, other.ID, key); err != nil || got != (Verified{Sealed: 3}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if n, err := a.Seal(ctx, key); err != nil || n != 0 {
		t.Fatalf("sealed %d again, %v", n, err)
	}
	entries, err := a.Entries(ctx, org.ID, audit.Filter{Limit: 500})
	must(t, err)
	for i, e := range entries {
		if e.Seq != int64(31-i) || len(e.MAC) == 0 {
			t.Fatalf("entry %d has position %d", e.ID, e.Seq)
		}
	}
	var b *audit.Break
	if _, err := a.Verify(ctx, org.ID, testSigner("another key")); !errors.As(err, &b) || b.Seq != 1 {
		t.Fatalf("under another key: %v", err)
	}
}

func TestVerifyNamesTheFirstBadRow(t *testing.T) {
	t.Parallel()
	const first = 0 // where a case breaks: an index into the ids, counted from the chain's start
	for name, c := range map[string]struct {
		tamper string
		args   func(ids []int64) []any
		seq    int64
		entry  func(ids []int64) int64
		says   string
	}{
		"an edited name":   {"UPDATE audit_entries SET actor_name = 'nobody' WHERE id = $1", at(4), 5, is(4), "edited"},
		"an edited time":   {"UPDATE audit_entries SET at = at + interval '1 microsecond' WHERE id = $1", at(4), 5, is(4), "edited"},
		"an edited fact":   {"UPDATE audit_entries SET fact_values = '{c}' WHERE id = $1", at(4), 5, is(4), "edited"},
		"a fact moved":     {"UPDATE audit_entries SET fact_names = '{}', fact_values = '{}' WHERE id = $1", at(4), 5, is(4), "edited"},
		"an edited event":  {"UPDATE audit_entries SET event = 'x' WHERE id = $1", at(first), 1, is(first), "edited"},
		"an edited seal":   {"UPDATE audit_seals SET mac = 'x' WHERE entry_id = $1", at(7), 8, is(7), "edited"},
		"a deleted entry":  {"DELETE FROM audit_entries WHERE id = $1", at(6), 7, is(6), "deleted"},
		"the last deleted": {"DELETE FROM audit_entries WHERE id = $1", at(9), 10, is(9), "deleted"},
		"a deleted seal":   {"DELETE FROM audit_seals WHERE entry_id = $1", at(6), 7, is(7), "deleted"},
		"an entry and its seal deleted": {
			"WITH e AS (DELETE FROM audit_entries WHERE id = $1) DELETE FROM audit_seals WHERE entry_id = $1",
			at(6), 7, is(7), "deleted",
		},
		"pointed elsewhere": {
			"UPDATE audit_seals SET entry_id = -1 WHERE entry_id = $1",
			at(3), 4, func([]int64) int64 { return -1 }, "deleted",
		},
		"moved to another organization": {"UPDATE audit_entries SET org_id = (SELECT max(id) FROM orgs WHERE slug = 'other') WHERE id = $1", at(2), 3, is(2), ""},
		"truncated": {
			"WITH s AS (DELETE FROM audit_seals WHERE entry_id >= $1 AND org_id = $2) DELETE FROM audit_entries WHERE id >= $1 AND org_id = $2",
			func(ids []int64) []any { return []any{ids[7], nil} }, 8, func([]int64) int64 { return 0 }, "truncated",
		},
		"slipped in": {
			"INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id) VALUES ($2, 'person', '', '', 'x.y', '', '')",
			func([]int64) []any { return []any{nil, nil} }, 0, nil, "around the product",
		},
		"taken before its seal": {
			"INSERT INTO audit_pending (org_id, entry_id) VALUES ($2, 999999)",
			func([]int64) []any { return []any{nil, nil} }, 0, func([]int64) int64 { return 999999 }, "before it was sealed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			org, ids := w.withTrail(t, "acme", 10)
			other, _ := w.withTrail(t, "other", 3)
			args := c.args(ids)
			for i := range args {
				if args[i] == nil {
					args[i] = string(org.ID)
				}
			}
			sql := c.tamper
			if strings.Contains(sql, "$2") && !strings.Contains(sql, "$1") {
				sql, args = strings.ReplaceAll(sql, "$2", "$1"), args[1:]
			}
			if w.asSuper(t, sql, args...) == 0 {
				t.Fatal("nothing was tampered with")
			}
			_, err := Audit{w.DB}.Verify(t.Context(), org.ID, key)
			var b *audit.Break
			if !errors.As(err, &b) || b.Seq != c.seq || !strings.Contains(b.What, c.says) {
				t.Fatalf("got %v", err)
			}
			if c.entry != nil && b.EntryID != c.entry(ids) {
				t.Fatalf("names entry %d of %v", b.EntryID, ids)
			}
			if _, err := (Audit{w.DB}).Verify(t.Context(), other.ID, key); err != nil && name != "moved to another organization" {
				t.Fatalf("the other organization's chain: %v", err)
			}
		})
	}
}

func at(i int) func([]int64) []any     { return func(ids []int64) []any { return []any{ids[i]} } }
func is(i int) func(ids []int64) int64 { return func(ids []int64) int64 { return ids[i] } }

func TestAChainThatWasClosedUpBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, ids := w.withTrail(t, "acme", 10)
	w.asSuper(t, "DELETE FROM audit_seals WHERE entry_id = $1", ids[4])
	w.asSuper(t, "DELETE FROM audit_entries WHERE id = $1", ids[4])
	for _, id := range ids[5:] {
		w.asSuper(t, "UPDATE audit_seals SET seq = seq - 1 WHERE entry_id = $1", id)
	}
	var b *audit.Break
	if _, err := (Audit{w.DB}).Verify(t.Context(), org.ID, key); !errors.As(err, &b) || b.Seq != 5 || b.EntryID != ids[5] {
		t.Fatalf("got %v", err)
	}
}

func TestACheckpointKeptElsewhereShowsWhatTheDatabaseCannot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, ids := w.withTrail(t, "acme", 10)
	other, _ := w.withTrail(t, "other", 3)
	kept, err := a.Checkpoint(ctx, org.ID)
	must(t, err)
	if kept.Seq != 10 || kept.Org != string(org.ID) {
		t.Fatalf("got %+v", kept)
	}
	must(t, a.Record(ctx, audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.SignedOut}))
	w.seal(t)
	if _, err := a.Verify(ctx, org.ID, key, kept); err != nil {
		t.Fatalf("the chain grew past the checkpoint: %v", err)
	}
	_, err = a.Verify(ctx, other.ID, key, kept)
	isField(t, err, "checkpoint")
	// Somebody who owns the database takes the end away with every trace of it.
	w.asSuper(t, "DELETE FROM audit_seals WHERE entry_id >= $1 AND org_id = $2", ids[7], string(org.ID))
	w.asSuper(t, "DELETE FROM audit_entries WHERE id >= $1 AND org_id = $2", ids[7], string(org.ID))
	w.asSuper(t, "DELETE FROM audit_checkpoints WHERE org_id = $1", string(org.ID))
	if _, err := a.Verify(ctx, org.ID, key); err != nil {
		t.Fatalf("without a checkpoint nothing shows: %v", err)
	}
	var b *audit.Break
	if _, err := a.Verify(ctx, org.ID, key, kept); !errors.As(err, &b) || b.Seq != 8 {
		t.Fatalf("got %v", err)
	}
	// And lets it grow again to the same length.
	for range 3 {
		must(t, a.Record(ctx, audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.SignedOut}))
	}
	w.seal(t)
	if _, err := a.Verify(ctx, org.ID, key, kept); !errors.As(err, &b) || b.Seq != 10 {
		t.Fatalf("got %v", err)
	}
	_, err = a.Checkpoint(ctx, "org_none")
	isFault(t, err, fault.CodeNotFound)
}

func TestSealersAndWritersAtOnceMakeOneChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	other, stranger := w.newOrg(t, "other")
	var writers, sealers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		sealers.Go(func() {
			for {
				if _, err := a.Seal(ctx, key); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 6 {
		writers.Go(func() {
			for range 40 {
				for _, p := range []identity.Person{owner, stranger} {
					if err := a.Record(ctx, audit.Entry{Org: p.Org, Actor: audit.Person(p), Event: audit.ToolRead}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	sealers.Wait()
	w.seal(t)
	for _, o := range []identity.Org{org, other} {
		if got, err := a.Verify(ctx, o.ID, key); err != nil || got != (Verified{Sealed: 241}) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
}

// brokenSigner cannot sign for one organization.
type brokenSigner struct {
	testSigner
	not string
}

func (b brokenSigner) MAC(data []byte) ([]byte, error) {
	if strings.Contains(string(data), b.not) {
		return nil, errors.New("no key")
	}
	return b.testSigner.MAC(data)
}

func TestAnOrganizationThatCannotBeSealedKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	broken, _ := w.newOrg(t, "broken")
	fine, _ := w.newOrg(t, "fine")
	n, err := a.Seal(ctx, brokenSigner{key, string(broken.ID)})
	if err == nil || n != 1 {
		t.Fatalf("sealed %d, %v", n, err)
	}
	if got, err := a.Verify(ctx, fine.ID, key); err != nil || got.Sealed != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	w.seal(t)
	if got, err := a.Verify(ctx, broken.ID, key); err != nil || got.Sealed != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestABatchLargerThanOneIsSealedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	const more = 2*verifyBatch + 7
	_, err := w.super.Exec(ctx, `INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id)
		SELECT $1, 'system', 's', 's', 'tool.read', '', '' FROM generate_series(1, $2)`, string(org.ID), more)
	must(t, err)
	if n, err := a.Seal(ctx, key); err != nil || n != more+1 {
		t.Fatalf("sealed %d, %v", n, err)
	}
	if got, err := a.Verify(ctx, org.ID, key); err != nil || got.Sealed != more+1 {
		t.Fatalf("got %+v, %v", got, err)
	}
}
