package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var update = flag.Bool("update", false, "write what the pages say now as what they should say")

// TestWhatThePagesSay compares the words of every state with testdata/words, so that a change of wording is read by somebody before it
// is shipped. Markup and looks may change freely.
func TestWhatThePagesSay(t *testing.T) {
	for _, group := range [][]Entry{overviewPages(), previewPages(), consentPages(), consentStates(), profilePages(), contextPages(), auditPages(), releasePages(), peoplePages(), tokenPages(), settingsPages()} {
		for _, e := range group {
			t.Run(e.file(), func(t *testing.T) {
				var page strings.Builder
				if err := e.Component.Render(context.Background(), &page); err != nil {
					t.Fatal(err)
				}
				got := wordsOf(t, page.String())
				file := filepath.Join("testdata", "words", strings.TrimSuffix(e.file(), ".html")+".txt")
				if *update {
					if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatalf("%v (write it with: go test ./cmd/gallery -run TestWhatThePagesSay -update)", err)
				}
				if got != string(want) {
					t.Errorf("says another thing than %s:\n%s", file, firstDifference(string(want), got))
				}
			})
		}
	}
}

// wordsOf is the text of main, a line for each block, with what a form would send in square brackets.
func wordsOf(t *testing.T, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var main *html.Node
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Main {
			main = n
		}
	}
	if main == nil {
		t.Fatal("the page has no main")
	}
	var lines []string
	var line strings.Builder
	end := func() {
		if s := strings.Join(strings.Fields(line.String()), " "); s != "" {
			lines = append(lines, s)
		}
		line.Reset()
	}
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			line.WriteString(n.Data)
			return
		}
		block := !inline[n.DataAtom] && !strings.HasPrefix(n.Data, "svg")
		if block {
			end()
		}
		line.WriteString(control(n))
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if block {
			end()
		}
	}
	walk(main)
	end()
	return strings.Join(lines, "\n") + "\n"
}

var inline = map[atom.Atom]bool{atom.A: true, atom.B: true, atom.Code: true, atom.Span: true, atom.Time: true, atom.Small: true, atom.Svg: true, atom.Input: true, atom.I: true}

// control is what a control holds: [x] and [ ] for a choice, [text] for a field.
func control(n *html.Node) string {
	if n.DataAtom != atom.Input {
		return ""
	}
	a := map[string]string{}
	for _, at := range n.Attr {
		a[at.Key] = at.Val
	}
	_, checked := a["checked"]
	switch {
	case a["type"] == "hidden":
		return ""
	case a["type"] == "checkbox" || a["type"] == "radio":
		return map[bool]string{true: "[x] ", false: "[ ] "}[checked]
	default:
		return " [" + a["value"] + "] "
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "- " + w[i] + "\n+ " + g[i]
		}
	}
	return "one is longer than the other"
}
