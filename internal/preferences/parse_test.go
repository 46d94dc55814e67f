package preferences_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/growth"
	"countersign/internal/preferences"
	"countersign/internal/unseen"
)

var update = flag.Bool("update", false, "write what is found now as what should be found")

const (
	crm    = "sandbox-crm-k4x7qa"
	stripe = "stripe-abcdef"
)

func file(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func files(t testing.TB, folder string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", folder, "*.toml"))
	if err != nil || len(found) < 4 {
		t.Fatalf("%d files, %v", len(found), err)
	}
	out := map[string]string{}
	for _, f := range found {
		out[strings.TrimSuffix(filepath.Base(f), ".toml")] = file(t, filepath.Join(folder, filepath.Base(f)))
	}
	return out
}

func parsed(t testing.TB, text string) preferences.Document {
	t.Helper()
	d, found := preferences.Parse(preferences.Normal(text))
	if len(found) > 0 {
		t.Fatalf("%v in\n%s", found, text)
	}
	return d
}

// TestWhatIsWrongIsSaidByLine holds each bad file to the sentences beside it.
func TestWhatIsWrongIsSaidByLine(t *testing.T) {
	for name, text := range files(t, "bad") {
		t.Run(name, func(t *testing.T) {
			_, found := preferences.Parse(text)
			var got strings.Builder
			for _, f := range found {
				got.WriteString(f.String() + "\n")
			}
			if found.Err() == nil {
				t.Fatal("nothing is found")
			}
			beside := filepath.Join("testdata", "bad", name+".txt")
			if *update {
				if err := os.WriteFile(beside, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(file(t, filepath.Join("bad", name+".txt")), got.String()); diff != "" {
				t.Error(diff)
			}
			if lines := strings.Count(text, "\n") + 1; found[0].Line > lines {
				t.Errorf("line %d of %d", found[0].Line, lines)
			}
		})
	}
}

func TestEveryWayOfWritingIsRead(t *testing.T) {
	for name, text := range files(t, "good") {
		t.Run(name, func(t *testing.T) { parsed(t, text) })
	}
	d := parsed(t, file(t, "good/full.toml"))
	want := preferences.Document{
		Connectors: []preferences.Connector{{
			Key: crm, Line: 4, Purpose: "Contacts, deals and refunds of the shop.",
			Vocabulary: []preferences.Term{{Name: "deal", Means: "A quote that was sent"}, {Name: "won deal", Means: "A quote somebody has paid"}},
			Defaults:   []preferences.Term{{Name: "currency", Means: "EUR"}}, Avoid: []string{"Refunds over 500 EUR", "Deleting contacts"},
		}},
		Departments: []preferences.Department{
			{Name: "support", Line: 19, Meanings: []preferences.Meaning{{Key: crm, Line: 19, Words: "Where customers are looked up before they are answered."}}},
			{Name: "Sales & Success", Line: 22, Meanings: []preferences.Meaning{{Key: crm, Line: 22, Words: "The pipeline.\nEvery call ends with a note."}}},
		},
		Workflows: []preferences.Workflow{{Name: "refund", Line: 27, Uses: []connector.Key{crm, stripe}}},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	same := []string{"braces", "dotted"}
	for _, name := range same {
		d := parsed(t, file(t, "good/"+name+".toml"))
		c := d.Connector(crm)
		if c.Purpose != "Contacts" || len(c.Vocabulary) != 1 || c.Vocabulary[0] != (preferences.Term{Name: "deal", Means: "A quote"}) || d.Means(crm)[0] != (preferences.Term{Name: "support", Means: "Look up"}) || d.UsedIn(crm)[0] != "refund" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestTheNormalFormIsThatOfABrowserAndOfGit(t *testing.T) {
	const text = "version = 3\n\n[workflows.x]\nuses = []\n"
	for _, sent := range []string{text, "\ufeff" + text, strings.ReplaceAll(text, "\n", "\r\n"), text + "\n\n ", strings.TrimSpace(text)} {
		if got := preferences.Normal(sent); got != text {
			t.Errorf("%q became %q", sent, got)
		}
	}
	if got := preferences.Normal(" \r\n\n"); got != "" {
		t.Errorf("blanks became %q", got)
	}
}

// A text may be built to cost more than its length.
func TestAHostileTextIsReadInItsLength(t *testing.T) {
	texts := map[string]func(size int) string{
		"an endless path": func(size int) string {
			return "version = 3\n[" + strings.Repeat("a.", size/4) + "a]\n" + manyLeaves(size/2)
		},
		"endless brackets": func(size int) string {
			return "version = 3\nx = " + strings.Repeat("[", size/14) + strings.Repeat("]", size/14)
		},
		"endless braces": func(size int) string {
			return "version = 3\nx = " + strings.Repeat("{a=", size/14) + "1" + strings.Repeat("}", size/14)
		},
		"ten thousand findings": func(size int) string { return "version = 3\n" + manyLeaves(size) },
	}
	for name, text := range texts {
		growth.Linear(t, name, (preferences.MaxBytes-200)/4, func(size int) func() {
			hostile := text(size)
			return func() {
				if _, found := preferences.Parse(hostile); len(found) == 0 || len(found) > 31 {
					t.Errorf("%s: %d findings", name, len(found))
				}
			}
		})
	}
	if _, found := preferences.Parse("version = 3\n#" + strings.Repeat("x", preferences.MaxBytes)); len(found) != 1 || !strings.Contains(found[0].What, "131072") {
		t.Errorf("a text beyond the bound: %v", found)
	}
}

func manyLeaves(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		b.WriteString("b" + strings.Repeat("x", i%7) + "-" + strings.Repeat("y", i%11) + strings.Repeat("z", i/77) + " = 1\n")
	}
	return b.String()
}

func TestFindingsAreAFaultOfTheText(t *testing.T) {
	_, found := preferences.Parse("version = 2\n")
	f, ok := fault.As(found.Err())
	if !ok || f.Kind != fault.Invalid || f.Field != "text" || !strings.HasPrefix(f.What, "Line 1: ") {
		t.Errorf("%+v", f)
	}
}

// A finding quotes what stands in the text, and is read on a page and in a terminal.
func TestAFindingIsOneVisibleLine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\"\\u001b]0;owned\\u0007\" = 1", "[\"\\u202egnorw\"]", "[connectors.\"crm-aaaaaa\\u200b\"]", "[connectors.crm-aaaaaa.\"\\nLine 1: fine\"]\nx = \"y\"", "\"\\u001b[2J\".a = 1\n\"\\u001b[2J\" = 1",
		strings.Repeat("a", 100_000) + " = 1", "[workflows.w]\nuses = [\"" + strings.Repeat("\\u202e", 1000) + "\"]",
	} {
		_, found := preferences.Parse(preferences.Nothing + text + "\n")
		if len(found) == 0 {
			t.Errorf("%.60q is accepted", text)
		}
		for _, f := range found {
			if strings.ContainsFunc(f.String(), unseen.Is) || len(f.String()) > 2000 {
				t.Errorf("%.60q: %.200q", text, f)
			}
		}
	}
}
