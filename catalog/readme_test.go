package catalog_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/manifest"
	"countersign/internal/registry"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every documented field exists, and every field is documented, once.
func TestReadmeDocumentsExactlyTheFieldsThereAre(t *testing.T) {
	_, table, ok := strings.Cut(readme(t), "## Every field")
	if !ok {
		t.Fatal("the README has no section about every field")
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	if fields := manifest.FieldPaths(); !slices.Equal(documented, fields) {
		t.Errorf("documented but not there: %v\nthere but not documented: %v", without(documented, fields), without(fields, documented))
	}
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func TestReadmeNamesEveryChoice(t *testing.T) {
	text := readme(t)
	for _, c := range manifest.Categories {
		if !strings.Contains(text, "`"+string(c)+"`") {
			t.Errorf("the category %s is not documented", c)
		}
	}
	for _, k := range registry.Kinds {
		if !strings.Contains(text, "| `"+string(k)+"` |") {
			t.Errorf("the decision guide has no row for %s", k)
		}
	}
	for _, c := range manifest.Contracts {
		if !strings.Contains(text, "`"+string(c)+"`") {
			t.Errorf("%s is not documented", c)
		}
	}
}

// The file people copy passes the check.
func TestReadmeExampleIsAManifest(t *testing.T) {
	m := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(readme(t))
	if m == nil {
		t.Fatal("the README has no example")
	}
	if _, err := manifest.Parse("help-desk.toml", []byte(m[1]), registry.Trusted()); err != nil {
		t.Error(err)
	}
}

// full.toml is the test of the parser; a field it does not use is one nobody has parsed.
func TestFullExampleUsesEveryField(t *testing.T) {
	b, err := os.ReadFile("../internal/manifest/testdata/good/full.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range manifest.FieldPaths() {
		last := path[strings.LastIndex(path, ".")+1:]
		if last != "<argument>" && last != "<name>" && !regexp.MustCompile(`(?m)(^|[{ ,])`+last+` = `).Match(b) {
			t.Errorf("full.toml does not use %s", path)
		}
	}
}

// The list people look through before they start anything is the catalog itself.
func TestReadmeListsEveryIntegration(t *testing.T) {
	text := readme(t)
	of := map[manifest.Category][]string{}
	for _, m := range built(t).Manifests() {
		of[m.Category] = append(of[m.Category], m.Name)
	}
	for c, names := range of {
		if row := "| " + c.Label() + " | " + strings.Join(names, ", ") + " |"; !strings.Contains(text, row) {
			t.Errorf("the README has no row %s", row)
		}
	}
}
