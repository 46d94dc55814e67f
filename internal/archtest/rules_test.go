package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestEveryRuleHasAHome checks that each symbol in docs/rules.md exists, once.
func TestEveryRuleHasAHome(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root(t), "docs", "rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	symbols := exported(t)
	rows := regexp.MustCompile("(?m)^\\| (.+) \\| `([a-z]+\\.[A-Za-z.]+)` \\|$").FindAllStringSubmatch(string(doc), -1)
	if len(rows) < 30 {
		t.Fatalf("only %d rules were found in docs/rules.md", len(rows))
	}
	homes := map[string]string{}
	for _, row := range rows {
		rule, home := row[1], row[2]
		if !symbols[home] {
			t.Errorf("“%s” names `%s` as its home, which does not exist", rule, home)
		}
		if other, taken := homes[home]; taken {
			t.Errorf("`%s` is the home of two rules: “%s” and “%s”", home, other, rule)
		}
		homes[home] = rule
	}
}

// exported is every exported symbol as package.Name or package.Type.Method.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	symbols := map[string]bool{}
	for _, p := range packages(t) {
		for _, f := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				note(symbols, parsed.Name.Name, d)
			}
		}
	}
	return symbols
}

func note(symbols map[string]bool, pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := pkg + "."
		if d.Recv != nil {
			name += receiver(d.Recv.List[0].Type) + "."
		}
		symbols[name+d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				symbols[pkg+"."+s.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range s.Names {
					symbols[pkg+"."+n.Name] = true
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
