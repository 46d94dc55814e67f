package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestAgentsAreToldEveryRefusal compares the table of codes in docs/agents.md with the gateway's codes: agents branch on them.
func TestAgentsAreToldEveryRefusal(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), "internal", "fault", "fault.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, d := range parsed.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			kind, _ := v.Type.(*ast.Ident)
			if kind == nil || kind.Name != "Code" || strings.HasPrefix(v.Names[0].Name, "Code") { // those are shared with pages and the service API
				continue
			}
			code, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
	}
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| code | means |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(table, -1) {
		told = append(told, row[1])
	}
	slices.Sort(codes)
	slices.Sort(told)
	if len(codes) < 18 || !slices.Equal(codes, told) {
		t.Errorf("docs/agents.md tells of %v\nthe gateway refuses with %v", told, codes)
	}
}
