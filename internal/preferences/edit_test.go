package preferences_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/preferences"
)

// changed is the text with the connector of crm changed.
func changed(t *testing.T, text string, change func(*preferences.Connector)) string {
	t.Helper()
	c := parsed(t, text).Connector(crm)
	c.Vocabulary, c.Defaults, c.Avoid = slices.Clone(c.Vocabulary), slices.Clone(c.Defaults), slices.Clone(c.Avoid)
	change(&c)
	after, err := preferences.With(text, c)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	got := parsed(t, after).Connector(crm)
	if got.Purpose != c.Purpose || !slices.Equal(got.Avoid, c.Avoid) || !sameTerms(got.Vocabulary, c.Vocabulary) || !sameTerms(got.Defaults, c.Defaults) {
		t.Errorf("wanted %+v, got %+v", c, got)
	}
	return after
}

func sameTerms(a, b []preferences.Term) bool {
	byName := func(x, y preferences.Term) int { return strings.Compare(x.Name, y.Name) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName))
}

func TestAFormChangesItsLinesAlone(t *testing.T) {
	before := file(t, "good/full.toml")
	after := changed(t, before, func(c *preferences.Connector) {
		c.Purpose = `Contacts and "deals"`
		c.Vocabulary = []preferences.Term{{Name: "deal", Means: "A quote"}, {Name: "lead", Means: "Somebody who wrote"}}
		c.Avoid = []string{"Haste"}
	})
	want := before
	for _, r := range [][2]string{
		{`purpose = "Contacts, deals and refunds of the shop."`, `purpose = "Contacts and \"deals\""`},
		{"avoid = [\n  \"Refunds over 500 EUR\", # finance does those\n  \"Deleting contacts\",\n]", "# finance does those\navoid = [\"Haste\"]"},
		{`deal = "A quote that was sent"`, "deal = \"A quote\"\nlead = \"Somebody who wrote\""},
		{"\"won deal\" = \"A quote somebody has paid\"\n", ""},
	} {
		if !strings.Contains(want, r[0]) {
			t.Fatalf("the file has no %s", r[0])
		}
		want = strings.Replace(want, r[0], r[1], 1)
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
}

func TestEveryWayOfWritingIsEdited(t *testing.T) {
	all := func(c *preferences.Connector) {
		c.Purpose = "New\nin two lines"
		c.Vocabulary = append(c.Vocabulary, preferences.Term{Name: "x y", Means: "z"})
		c.Defaults = append(c.Defaults, preferences.Term{Name: "region", Means: "eu"})
		c.Avoid = []string{"This", strings.Repeat("that ", 30)}
	}
	for name, text := range map[string]string{
		"nothing": "", "nothing but the version": preferences.Nothing, "full": file(t, "good/full.toml"), "braces": file(t, "good/braces.toml"), "dotted": file(t, "good/dotted.toml"),
		"a header alone":    "version = 3\n[connectors." + crm + "] # ours\n",
		"other connectors":  "version = 3\n\n[connectors." + stripe + "]\npurpose = \"Money\" # all of it\n# end of connectors\n\n[workflows.a]\nuses = []\n",
		"its terms first":   "version = 3\n[connectors." + crm + ".vocabulary]\na = \"b\"\n\n# next\n[workflows.a]\nuses = []\n",
		"in connectors":     "version = 3\n[connectors]\n" + crm + ".purpose = \"x\" # why\n\n[workflows.a]\nuses = []\n",
		"braces in a table": "version = 3\n[connectors." + crm + "]\nvocabulary = { deal = \"x\" } # words\ndefaults = {}\n",
		"long braces":       "version = 3\n[connectors]\n" + crm + " = { # ours\n  purpose = \"x\", # why\n  avoid = [\"a\" # one\n  ],\n}\n",
		"no last line end":  "version = 3\n[connectors." + crm + "]\npurpose = '''\nx'''",
	} {
		t.Run(name, func(t *testing.T) {
			if text != "" {
				text = preferences.Normal(text)
			}
			start := text
			if start == "" {
				start = preferences.Nothing
			}
			after := changed(t, start, all)
			nothing := changed(t, after, func(c *preferences.Connector) { *c = preferences.Connector{Key: c.Key} })
			if text == "" {
				return
			}
			// What was there before, all of it about something else, is there after both.
			for _, line := range strings.Split(text, "\n") {
				_, comment, there := strings.Cut(line, "#")
				if there && (!strings.Contains(after, "#"+comment) || !strings.Contains(nothing, "#"+comment)) {
					t.Errorf("the comment #%s is lost in\n%s\nor\n%s", comment, after, nothing)
				}
			}
			if again := changed(t, after, func(*preferences.Connector) {}); again != after {
				t.Error("a form that says what is there already changed the text")
			}
		})
	}
}

func TestAnEditThatWouldLoseSomethingIsRefused(t *testing.T) {
	for name, c := range map[string]preferences.Connector{
		"too long":  {Key: crm, Purpose: strings.Repeat("x", preferences.MaxWords+1)},
		"hidden":    {Key: crm, Avoid: []string{"a\u202eb"}},
		"bad name":  {Key: crm, Vocabulary: []preferences.Term{{Name: " x", Means: "y"}}},
		"no words":  {Key: crm, Defaults: []preferences.Term{{Name: "x", Means: "\n"}}},
		"not UTF-8": {Key: crm, Purpose: "\xff\xfe"},
		"no key":    {Key: "crm", Purpose: "x"},
	} {
		if after, err := preferences.With(file(t, "good/full.toml"), c); err == nil || strings.Contains(err.Error(), "Line") {
			t.Errorf("%s: %v, %s", name, err, after)
		}
	}
	if _, err := preferences.With("version = 2\n", preferences.Connector{Key: crm, Purpose: "x"}); err == nil {
		t.Error("a text that is no document was edited")
	}
}
