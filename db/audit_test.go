package db

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"countersign/internal/audit"
)

func TestAnEntryReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	want := audit.Entry{
		Org: org.ID, Actor: audit.Person(owner), Event: audit.ActionApproved, Object: audit.Object{Kind: "action", ID: "act_x"}, Digest: "sha256:aa",
		Facts: []audit.Fact{{Name: "quote", Value: `a "b", {c} \ d`}, {Name: "empty", Value: ""}, {Name: "empty", Value: "twice"}, {Name: "ü", Value: "\u202e\u202e"}},
	}
	must(t, a.Record(ctx, want))
	got, err := a.Entries(ctx, org.ID, audit.Filter{Limit: 1})
	must(t, err)
	if len(got) != 1 || got[0].Seq != 0 || got[0].At.Location() != time.UTC {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff(want, got[0].Entry); diff != "" {
		t.Fatal(diff)
	}
}

func TestHostileTextCannotMakeTheTrailUnwritable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	hostile := "a\x00b\xff" + strings.Repeat("ü", 4000)
	e := audit.Entry{
		Org: org.ID, Actor: audit.Actor{Kind: audit.ByAgent, ID: hostile, Name: hostile}, Event: audit.ToolRefused, Object: audit.Object{Kind: "tool", ID: hostile},
		Digest: hostile, Facts: []audit.Fact{{Name: hostile, Value: hostile}},
	}
	must(t, a.Record(ctx, e))
	got, err := a.Entries(ctx, org.ID, audit.Filter{Limit: 1, Object: short(hostile)})
	must(t, err)
	if len(got) != 1 || !strings.HasPrefix(got[0].Object.ID, "a\uFFFDb\uFFFDü") || !strings.HasSuffix(got[0].Object.ID, "ü…") || !utf8.ValidString(got[0].Actor.Name) {
		t.Fatalf("got %+v", got)
	}
	if n := len(got[0].Facts[0].Value); n > maxText+len("…") {
		t.Fatalf("kept %d bytes", n)
	}
}

func TestEntriesAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, ctx := Audit{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	other, _ := w.newOrg(t, "other")
	must(t, a.Record(ctx, audit.Entry{Org: other.ID, Actor: audit.Operator, Event: audit.SignedIn}))
	for i := range 60 {
		actor := audit.Person(owner)
		if i%2 == 1 {
			actor = audit.Actor{Kind: audit.ByAgent, ID: "run_1", Name: "50% Off_Agent"}
		}
		must(t, a.Record(ctx, audit.Entry{Org: org.ID, Actor: actor, Event: []audit.Event{audit.ActionStaged, audit.ActionDenied, audit.ToolRead}[i%3], Object: audit.Object{Kind: "n", ID: fmt.Sprint(i)}}))
	}
	for name, c := range map[string]struct {
		f    audit.Filter
		want int
	}{
		"nothing asked":           {audit.Filter{}, 50},
		"more than there are":     {audit.Filter{Limit: 10_000}, 61},
		"actor by id":             {audit.Filter{Actor: "run_1", Limit: 500}, 30},
		"part of a name":          {audit.Filter{Actor: "off_agent", Limit: 500}, 30},
		"no wildcard":             {audit.Filter{Actor: "%", Limit: 500}, 30},
		"an underscore is itself": {audit.Filter{Actor: "5_%", Limit: 500}, 0},
		"an event":                {audit.Filter{Event: "action.denied", Limit: 500}, 20},
		"a family of events":      {audit.Filter{Event: "action.", Limit: 500}, 40},
		"half an event":           {audit.Filter{Event: "action", Limit: 500}, 0},
		"an object":               {audit.Filter{Object: "7"}, 1},
		"from the future":         {audit.Filter{From: time.Now().Add(time.Hour)}, 0},
		"until the past":          {audit.Filter{Until: time.Now().Add(-time.Hour)}, 0},
		"around now":              {audit.Filter{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour), Limit: 500}, 61},
		"hostile":                 {audit.Filter{Actor: "\x00'; DROP", Event: "\xff.", Object: "\x00"}, 0},
	} {
		got, err := a.Entries(ctx, org.ID, c.f)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d entries, %v; want %d", name, len(got), err, c.want)
		}
	}
	seen := map[int64]bool{}
	f := audit.Filter{Limit: 7}
	for {
		page, err := a.Entries(ctx, org.ID, f)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if seen[e.ID] || (f.Before > 0 && e.ID >= f.Before) {
				t.Fatalf("entry %d came twice or out of order", e.ID)
			}
			seen[e.ID], f.Before = true, e.ID
		}
	}
	if len(seen) != 61 {
		t.Fatalf("the pages hold %d entries", len(seen))
	}
}

func TestAChangeWithoutItsEntryDoesNotHappen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	w.asSuper(t, "REVOKE INSERT ON audit_entries FROM "+AppRole)
	p := newPerson(org, "late@acme.test", "member")
	if err := (People{w.DB}).AddPerson(t.Context(), p, "", note(audit.PersonAdded, "person", "")); err == nil {
		t.Fatal("added without an entry")
	}
	if n := w.count(t, "SELECT count(*) FROM people WHERE email = $1", p.Email); n != 0 {
		t.Fatal("the person is there")
	}
	if err := w.readOrg(t.Context(), org.ID, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE people SET name = 'x'")
		return err
	}); err == nil {
		t.Fatal("a reading transaction wrote")
	}
}
