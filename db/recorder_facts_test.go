package db

import (
	"slices"
	"testing"

	"countersign/internal/audit"
)

// TestFactsComeBackAsTheyWere writes in one batch what an array's text could take for a part of itself.
func TestFactsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	org, _ := w.newOrg(t, "acme")
	hard := []string{`"`, `\`, `\"`, `\\`, `{}`, `{a,b}`, `,`, `NULL`, `null`, ``, ` `, " a\t", "a\nb", `'; --`, "é😀", "\u2028", `$1`, `","`}
	facts := [][]audit.Fact{nil, {{Name: "only", Value: "one"}}, {}}
	for _, s := range hard {
		facts = append(facts, []audit.Fact{{Name: s, Value: "value"}, {Name: "name", Value: s}})
	}
	r := w.NewRecorder(quiet)
	for _, f := range facts {
		e := read(org, 1)
		e.Facts = f
		must(t, r.Record(t.Context(), e))
	}
	must(t, r.Close(t.Context()))
	stored, err := Audit{w.DB}.Entries(t.Context(), org.ID, audit.Filter{Event: string(audit.ToolRead), Limit: 500})
	must(t, err)
	slices.Reverse(stored)
	if len(stored) != len(facts) {
		t.Fatalf("%d entries are stored of %d", len(stored), len(facts))
	}
	for i, e := range stored {
		if !slices.Equal(e.Facts, facts[i]) {
			t.Errorf("%q came back as %q", facts[i], e.Facts)
		}
	}
}
