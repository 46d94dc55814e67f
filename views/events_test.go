package views

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"countersign/internal/audit"
)

// TestEveryEventHasWords holds the ledger's words to the constants of the audit package, in both directions.
func TestEveryEventHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/audit/events.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, _ := strconv.Unquote(lit.Value); strings.Contains(s, ".") {
				declared[s] = true
			}
		}
		return true
	})
	if len(declared) < 40 {
		t.Fatalf("found only %d events", len(declared))
	}
	said := map[string]bool{}
	for _, e := range events {
		if said[e.words] || !declared[string(e.name)] {
			t.Errorf("%s (%s) stands twice or is no event", e.name, e.words)
		}
		said[e.words] = true
		delete(declared, string(e.name))
	}
	for name := range declared {
		t.Errorf("%s has no words", name)
	}
	if got := EventWords("tool.invented"); got != "tool.invented" {
		t.Errorf("an unknown event reads %q", got)
	}
}

func TestObjectsLinkOnlyWhereTheViewerMayGo(t *testing.T) {
	for _, c := range []struct {
		object  audit.Object
		manages bool
		want    string
	}{
		{audit.Object{Kind: "action", ID: "act_x"}, false, "/actions/act_x"},
		{audit.Object{Kind: "person", ID: "per_x"}, false, ""},
		{audit.Object{Kind: "person", ID: "per_x"}, true, "/people/per_x"},
		{audit.Object{Kind: "connection", ID: "../../x?y"}, true, "/connections/..%2F..%2Fx%3Fy"},
		{audit.Object{Kind: "token", ID: "tok_x"}, true, ""},
		{audit.Object{Kind: "run"}, true, ""},
	} {
		if got := objectHref(c.object, c.manages); got != c.want {
			t.Errorf("%+v: %q, want %q", c.object, got, c.want)
		}
	}
}
