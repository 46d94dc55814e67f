package web_test

import (
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/catalog"
	"countersign/internal/manifest"
	"countersign/internal/release"
)

// mostOfAPage bounds a page of the catalog, in bytes before any compression.
const mostOfAPage = 30 << 10

// thousandEntries is a catalog of 1,000 integrations, spread over every area.
func thousandEntries(t *testing.T) fstest.MapFS {
	t.Helper()
	raw, err := fs.ReadFile(catalog.Files(), "deepwiki.toml")
	if err != nil {
		t.Fatal(err)
	}
	set := func(text, field, value string) string {
		return regexp.MustCompile(`(?m)^`+field+` = .*$`).ReplaceAllString(text, field+` = "`+value+`"`)
	}
	files := fstest.MapFS{}
	for i := range 1000 {
		text := set(string(raw), "key", fmt.Sprintf("wiki-%04d", i))
		text = set(text, "name", fmt.Sprintf("Wiki %04d", i))
		text = set(text, "category", string(manifest.Categories[i%len(manifest.Categories)]))
		files[fmt.Sprintf("wiki-%04d.toml", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// Nobody waits for the catalog: of a thousand integrations a page shows a few, and leads to the others.
func TestCatalogOfAThousandIsAShortPage(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test") // who sees the most
	_, err := release.Publish(t.Context(), s.Releases, thousandEntries(t), s.Table)
	s.Must(err)

	for path, texts := range map[string][]string{
		"/catalog":                                   {"1,000 integrations", "All 125 in Customers and money", "Wiki 0000"},
		"/catalog?q=wiki":                            {"1,000 of 1,000 integrations", "Best first", "Page 1 of 42", "page=2&amp;q=wiki"},
		"/catalog?q=wiki&page=42":                    {"Page 42 of 42", "Wiki 0999", "page=41&amp;q=wiki"},
		"/catalog?q=wiki&page=9999":                  {"Page 42 of 42"},
		"/catalog?q=wiki&page=-1":                    {"Page 1 of 42"},
		"/catalog?category=data&page=2":              {"125 of 1,000 integrations", "Page 2 of 6", "category=data&amp;page=3"},
		"/catalog?kind=hosted&page=oops":             {"By name", "Page 1 of 42"},
		"/catalog?q=" + url.QueryEscape("wiki 0777"): {"Wiki 0777", "1 of 1,000 integrations"},
	} {
		got := b.get(path).is(t, 200, texts...)
		if len(got.body) > mostOfAPage {
			t.Errorf("%s has %d bytes, more than %d", path, len(got.body), mostOfAPage)
		}
	}
	b.get("/catalog?q=wiki").lacks(t, "Previous")
	b.get("/catalog?q=wiki&page=42").lacks(t, `rel="next"`)
}

// Every integration of a page that is not whole is on exactly one of its pages.
func TestCatalogPagesLeaveNothingOut(t *testing.T) {
	s := newShop(t)
	b := s.as("member@harbor.test")
	_, err := release.Publish(t.Context(), s.Releases, thousandEntries(t), s.Table)
	s.Must(err)
	seen := map[string]int{}
	for page := range 6 {
		body := b.get(fmt.Sprintf("/catalog?category=data&page=%d", page+1)).body
		for _, m := range regexp.MustCompile(`<h3><a href="/catalog/(wiki-\d+)"`).FindAllStringSubmatch(body, -1) {
			seen[m[1]]++
		}
	}
	for key, times := range seen {
		if times != 1 {
			t.Errorf("%s is shown %d times", key, times)
		}
	}
	if len(seen) != 125 {
		t.Errorf("%d of 125 are shown", len(seen))
	}
}

// A stored release is read and parsed once in the life of a process, whoever asks and whatever for.
func TestCatalogIsParsedOnce(t *testing.T) {
	s := newShop(t)
	b := s.as("member@harbor.test")
	b.get("/catalog").is(t, 200)
	first, err := s.Releases.Current(t.Context())
	s.Must(err)
	b.get("/catalog?q=refund").is(t, 200)
	second, err := s.Releases.Current(t.Context())
	s.Must(err)
	if &first.Files()[0].Data[0] != &second.Files()[0].Data[0] {
		t.Error("the release was read from the database again")
	}
	if strings.Count(b.get("/catalog").is(t, 200).body, `class="offer"`) != first.Size() {
		t.Error("a catalog that fits on one page is not shown whole")
	}
}
