package release_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/catalog"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/release"
)

func keys(ms []manifest.Manifest) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Key)
	}
	return strings.Join(out, " ")
}

func TestSearchFindsByNeed(t *testing.T) {
	r := build(t, catalog.Files())
	for question, first := range map[string]string{
		"practice refunds":         "sandbox-crm", // a summary
		"Refunds":                  "lemonsqueezy",
		"who is on call":           "pagerduty",
		"search errors":            "sentry",
		"build failed":             "cloudflare-builds",
		"unblock":                  "buildkite", // a tool and its sentence
		"crm":                      "sandbox-crm",
		"watch pages":              "firecrawl",
		"code samples":             "microsoft-learn",
		"public github repos":      "deepwiki",
		"FIRE":                     "firecrawl", // the beginning of a name
		"context7":                 "context7",
		"documentation cloudflare": "cloudflare-docs",
		"resolve-library-id":       "context7", // a tool
		"delete contact in a crm":  "sandbox-crm",
	} {
		got := r.Search(release.Query{Text: question})
		if len(got) == 0 || got[0].Key != first {
			t.Errorf("%q finds %q first, wanted %s", question, keys(got), first)
		}
	}
	if got := r.Search(release.Query{Text: "zzzz"}); len(got) != 0 {
		t.Errorf("nonsense finds %s", keys(got))
	}
	if got := r.Search(release.Query{}); len(got) != len(r.Manifests()) {
		t.Errorf("no question lists %d of %d", len(got), len(r.Manifests()))
	}
	if got := r.Search(release.Query{Text: " the of !! "}); len(got) != len(r.Manifests()) {
		t.Errorf("filler alone lists %d of %d", len(got), len(r.Manifests()))
	}
	// No manifest has both: the ones with most of the words are better than an empty page.
	if got := r.Search(release.Query{Text: "practice zzzz"}); len(got) == 0 || got[0].Key != "sandbox-crm" {
		t.Errorf("half a match finds %s", keys(got))
	}
}

func TestSearchFilters(t *testing.T) {
	const (
		keyed = `contract = "token"
header = "Authorization"
format = "Bearer {secret}"

[[setup.fields]]
name = "api_key"
label = "API key"
secret = true
required = true
goes_to = "token"`
		open, shelf = `contract = "none"`, `category = "knowledge"`
	)
	r := build(t, folder(
		"desk.toml", desk("desk", "Desk"),
		"keyed.toml", desk("keyed", "Keyed desk", open, keyed),
		"library.toml", desk("library", "Library of desks", open, keyed, `category = "customers"`, shelf),
		"papers.toml", desk("papers", "Papers", `category = "customers"`, shelf),
	))
	for _, c := range []struct {
		q    release.Query
		want string
	}{
		{release.Query{Category: manifest.Customers}, "desk keyed"},
		{release.Query{Kind: registry.Hosted}, "desk keyed library papers"},
		{release.Query{Kind: registry.Git}, ""},
		{release.Query{Auth: manifest.Token}, "keyed library"},
		{release.Query{Text: "desk", Auth: manifest.Token, Category: manifest.Knowledge}, "library"},
	} {
		if got := keys(r.Search(c.q)); got != c.want {
			t.Errorf("%+v: %s, wanted %s", c.q, got, c.want)
		}
	}
}

// The places in order, in files that hold the word in one place each.
func TestSearchRanksByPlace(t *testing.T) {
	const word = "Harbour"
	r := build(t, folder(
		"a-text.toml", desk("a-text", "Plain one", "described at", word+" described at"),
		"b-tool.toml", desk("b-tool", "Plain two", "Close ticket {ticket_id}", "Close "+word+" {ticket_id}"),
		"c-summary.toml", desk("c-summary", "Plain three", "Tickets of a desk", word+" of a desk"),
		"d-name.toml", desk("d-name", word),
	))
	if got := keys(r.Search(release.Query{Text: "harbour"})); got != "d-name c-summary b-tool a-text" {
		t.Errorf("%s", got)
	}
}

// thousand is a catalog of 1,000 integrations.
func thousand(tb testing.TB) release.Release {
	tb.Helper()
	files := fstest.MapFS{}
	for i := range 1000 {
		key := fmt.Sprintf("desk-%03d", i)
		files[key+".toml"] = &fstest.MapFile{Data: []byte(desk(key, fmt.Sprintf("Desk %03d", i)))}
	}
	r, err := release.Build(files, registry.Trusted())
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// A question costs what it finds: nothing is parsed, split into words or put in order again for it.
func TestASearchOfAThousandMakesNothingButItsAnswer(t *testing.T) {
	r := thousand(t)
	q := release.Query{Text: "close ticket desk 777"}
	if got := keys(r.Search(q)); got != "desk-777" {
		t.Errorf("%s", got)
	}
	if made := testing.AllocsPerRun(20, func() { r.Search(q) }); made > 100 {
		t.Errorf("one question of 1,000 manifests makes %.0f allocations", made)
	}
	if got := r.Search(release.Query{Text: strings.Repeat("a b c d e f g ", 100_000)}); len(got) == 0 {
		t.Error("a huge question finds nothing at all")
	}
}

func BenchmarkSearchOfAThousand(b *testing.B) {
	r := thousand(b)
	b.ResetTimer()
	for b.Loop() {
		r.Search(release.Query{Text: "refund a customer, read errors"})
	}
}
