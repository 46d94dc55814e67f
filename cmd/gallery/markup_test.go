package main

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"countersign/static"
)

// symbols are the icons there are.
func symbols(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := static.Each(func(urlPath string, body []byte) error {
		if urlPath != static.URL("icons.svg") {
			return nil
		}
		for _, part := range strings.Split(string(body), `<symbol id="`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			found[static.URL("icons.svg")+"#"+name] = true
		}
		return nil
	})
	if err != nil || len(found) < 20 {
		t.Fatalf("the sprite has %d symbols (%v)", len(found), err)
	}
	return found
}

// Every entry, as text: what the policy of the pages would refuse must not be there in the first place, whoever's words are shown.
func TestNoEntryNeedsALooserPolicy(t *testing.T) {
	entries, err := allEntries("")
	if err != nil {
		t.Fatal(err)
	}
	icons := symbols(t)
	for _, e := range entries {
		ids := map[string]bool{}
		for n := range parsed(t, e).Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			for _, fault := range refused(n) {
				t.Errorf("%s: <%s> %s", e.file(), n.Data, fault)
			}
			if n.Data == "use" && !icons[value(n, "href")] {
				t.Errorf("%s: there is no icon %s", e.file(), value(n, "href"))
			}
			if id := value(n, "id"); id != "" {
				if ids[id] {
					t.Errorf("%s: two elements have the id %q", e.file(), id)
				}
				ids[id] = true
			}
		}
	}
}

// What a page is about must be in what the server sends, not in what a script makes of it.
func TestEveryEntryReadsWithoutScript(t *testing.T) {
	entries, err := allEntries("")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := headings(parsed(t, e)); n != 1 {
			t.Errorf("%s has %d headings of the first rank with words in its main part, want one", e.file(), n)
		}
	}
}

// headings counts the h1 inside main that say something.
func headings(doc *html.Node) (n int) {
	for main := range doc.Descendants() {
		if main.DataAtom != atom.Main {
			continue
		}
		for h := range main.Descendants() {
			if h.DataAtom == atom.H1 && strings.TrimSpace(textOf(h)) != "" {
				n++
			}
		}
	}
	return n
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// parsed is an entry as a browser reads it.
func parsed(t *testing.T, e Entry) *html.Node {
	t.Helper()
	var b strings.Builder
	if err := e.Component.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// refused lists what a browser would refuse of one element, or obey although it should not.
func refused(n *html.Node) []string {
	var faults []string
	if n.Data == "script" && value(n, "src") == "" {
		faults = append(faults, "is an inline script")
	}
	if slices.Contains([]string{"style", "base", "iframe", "object", "embed"}, n.Data) {
		faults = append(faults, "may not be here")
	}
	if n.Data == "form" && value(n, "method") == "" {
		faults = append(faults, "has no method: say get or post")
	}
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on"):
			faults = append(faults, "has a script in "+a.Key)
		case a.Key == "style":
			faults = append(faults, "has inline style")
		case slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key) && strings.Contains(a.Val, "javascript:"):
			faults = append(faults, "leads to a script: "+a.Val)
		}
	}
	return faults
}

func value(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
