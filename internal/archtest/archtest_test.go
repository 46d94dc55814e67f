package archtest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const module = "countersign/"

// depth is the house, lowest first: a package imports only packages of lower lines. A package that is not here fails the test, so that
// adding one is a decision.
var depth = map[string]int{
	"internal/fault": 0, "internal/checkout": 0, "internal/growth": 0, "internal/unseen": 0, "internal/canonical": 1, "internal/secret": 1,
	"internal/policy": 1, "internal/registry": 1, "internal/connector": 1, "internal/identity": 1, "internal/schema": 1,
	"internal/crm/crmtest": 1,                                    // knows the CRM through HTTP only
	"internal/agentside":   2, "internal/agentside/questions": 6, // they know the gateway through HTTP only
	"internal/leaks": 2, "internal/audit": 2, "internal/run": 2, "internal/manifest": 2, "internal/egress": 2, "internal/people": 3, "internal/servicetoken": 3,
	"internal/release": 3, "internal/credential": 3, "internal/action": 3, "internal/profile": 3, "internal/preferences": 3,
	"internal/installation": 4, "internal/provider": 4, "internal/wording": 4,
	"internal/consent": 5, "internal/consent/consenttest": 6, "internal/gitgateway": 5,
	"internal/provider/providertest": 5, "internal/provider/mcpclient": 5, "internal/capability": 5,
	"internal/provider/hosted": 6,
	"internal/provider/remote": 6, "internal/provider/github": 6, "internal/provider/github/githubtest": 7, "internal/reach": 6,
	"internal/provider/direct": 6, "internal/provider/direct/lemonsqueezy": 7, "internal/provider/direct/upstash": 7, "internal/provider/direct/analytics": 7,
	"internal/provider/direct/mongodb": 7, "internal/provider/direct/mongodb/mongotest": 8,
	"internal/provider/direct/directtest": 7, "internal/provider/direct/lemonsqueezy/lemontest": 8, "internal/provider/direct/upstash/upstashtest": 8,
	"internal/provider/direct/analytics/analyticstest": 8,
	"internal/provider/cli/sandbox":                    1, "internal/provider/cli": 7, "internal/provider/cli/sentrycli": 8, "internal/provider/cli/sentrycli/sentrytest": 9, "internal/provider/cli/neonctl": 8, "internal/provider/cli/gh": 8,
	"internal/reach/reachtest": 7, "internal/dispatch": 7, "internal/reconcile": 7,
	"internal/gateway": 8,
}

// never says what a package must not import of ours, whatever its depth; "*" is everything but fault.
var never = map[string][]string{
	"internal/policy":       {"*"},                                              // pure; fault excepted below
	"internal/action":       {"internal/provider", "internal/credential", "db"}, // the heart knows neither who sends nor with what
	"internal/provider":     {"internal/credential", "internal/secret", "db"},
	"internal/provider/cli": {"internal/credential", "internal/secret"}, // a program never gets the credential, so whoever starts it has none
	"internal/egress":       {"internal/secret", "internal/credential"},
	"internal/gateway":      {"internal/secret", "internal/credential", "db", "web"},
	"internal/dispatch":     {"internal/secret", "internal/credential", "db", "web"},
	"internal/reconcile":    {"internal/secret", "internal/credential", "internal/dispatch", "db", "web"},
	"internal/installation": {"internal/preferences"},
	"internal/preferences":  {"internal/installation"},
	"views":                 {"db", "web", "internal/secret"}, // credential.Summary is what people see of one; a value would need secret
	"static":                {"*"},
}

// only says which packages may import something from outside. Tests are exempt.
var only = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk": {"internal/provider/mcpclient", "web/agent", "internal/crm", "cmd/countersign-agent", "internal/agentside/questions"},
	"github.com/jackc/pgx/v5":                {"db", "bench"}, // the benchmark measures PostgreSQL without us, as a floor
	"github.com/labstack/echo/v4":            {"web"},
	"github.com/riverqueue/river":            {"db"},
	"github.com/gorilla/sessions":            {"web/session"},
	"os/exec":                                {"internal/agentside", "internal/provider/cli", "internal/gitgateway", "internal/provider/github/githubtest", "db/embedded", "db/dbtest", "cmd/countersign", "cmd/gallery", "scripts/foreground", "bench", "internal/provider/direct/upstash/upstashtest", "internal/provider/direct/mongodb/mongotest"},
}

type listed struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages were found", len(all))
	}
	return all
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPackagesImportOnlyWhatLiesBelowThem(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !strings.HasPrefix(name, "internal/") || name == "internal/archtest" || name == "internal/proof" || name == "internal/crm" {
			continue
		}
		at, ok := depth[name]
		if !ok {
			t.Errorf("%s has no place in the house: give it a depth in archtest, and a line in docs/architecture.md", name)
			continue
		}
		for _, imported := range ours(p) {
			if below, ok := depth[imported]; !ok || below >= at {
				t.Errorf("%s (depth %d) imports %s (depth %d): imports point down", name, at, imported, below)
			}
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range ours(p) {
			for _, banned := range never[name] {
				if (banned == "*" && imported != "internal/fault") || imported == banned || strings.HasPrefix(imported, banned+"/") {
					t.Errorf("%s imports %s, which it must never know", name, imported)
				}
			}
			if imported == "db" && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "db/") && name != "bench" {
				t.Errorf("%s imports db: only cmd wires the database in", name)
			}
		}
		for _, imported := range p.Imports {
			for outside, allowed := range only {
				inside := imported == outside || strings.HasPrefix(imported, outside+"/")
				if inside && !slices.ContainsFunc(allowed, func(a string) bool { return name == a || strings.HasPrefix(name, a+"/") }) {
					t.Errorf("%s imports %s; only %s may", name, imported, strings.Join(allowed, ", "))
				}
			}
		}
	}
}

func ours(p listed) []string {
	var out []string
	for _, i := range p.Imports {
		if name, ok := strings.CutPrefix(i, module); ok {
			out = append(out, name)
		}
	}
	return out
}

// TestPackageCommentsSayWhatIsOwnedAndWhatNever reads each package comment: a stranger finds a rule by reading them.
func TestPackageCommentsSayWhatIsOwnedAndWhatNever(t *testing.T) {
	owns := regexp.MustCompile(`\b(owns?|holds|starts|renders|is the|carries)\b`)
	limits := regexp.MustCompile(`\b(never|nothing|nobody|no|not|only)\b`)
	for _, p := range packages(t) {
		if made(p) {
			continue
		}
		comment := packageComment(t, p)
		if comment == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		} else if !owns.MatchString(comment) || !limits.MatchString(comment) {
			t.Errorf("%s does not say what it owns and what it never does: %q", p.ImportPath, comment)
		}
	}
}

func packageComment(t *testing.T, p listed) string {
	t.Helper()
	for _, f := range p.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Doc != nil && !strings.HasPrefix(parsed.Doc.Text(), "Code generated") {
			return parsed.Doc.Text()
		}
	}
	return ""
}

// banned words name no package and no exported type of ours: each has a better word in docs/glossary.md.
var banned = []string{"manager", "helper", "util", "common", "types", "models", "core", "base", "marketplace", "plugin"}

func TestNamesFollowTheGlossary(t *testing.T) {
	for _, p := range packages(t) {
		last := p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]
		if slices.Contains(banned, last) {
			t.Errorf("%s is named with a banned word", p.ImportPath)
		}
		if made(p) {
			continue
		}
		for _, f := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range typeNames(parsed) {
				for _, word := range banned {
					if endsIn(declared, word) {
						t.Errorf("%s: the type %s ends in a banned word", p.ImportPath, declared)
					}
				}
			}
		}
	}
}

// endsIn compares the last capitalized word of a name: "database" does not end in "base".
func endsIn(name, word string) bool {
	from := strings.LastIndexFunc(name, unicode.IsUpper)
	return strings.EqualFold(name[max(from, 0):], word)
}

// made reports whether a package is the output of a generator.
func made(p listed) bool { return strings.HasSuffix(p.ImportPath, "db/rows") }

func typeNames(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					names = append(names, ts.Name.Name)
				}
			}
		}
	}
	return names
}

// TestTheMapIsTheTree compares the packages with docs/architecture.md: a map that lies is worse than none.
func TestTheMapIsTheTree(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/architecture.md does not mention `%s`", name)
		}
	}
	for _, mentioned := range regexp.MustCompile("`((?:internal|db|web|views|cmd|catalog|static)/[a-z/-]+)`").FindAllStringSubmatch(string(doc), -1) {
		if _, err := os.Stat(filepath.Join(root(t), mentioned[1])); err != nil {
			t.Errorf("docs/architecture.md mentions `%s`, which does not exist", mentioned[1])
		}
	}
}

// TestEveryDependencyHasAReason compares what go.mod requires directly with the table of docs/architecture.md, both ways.
func TestEveryDependencyHasAReason(t *testing.T) {
	read := func(path ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var required, reasons []string
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.]+\.[a-z]+/\S+) v\S+$`).FindAllStringSubmatch(read("go.mod"), -1) {
		required = append(required, m[1])
	}
	_, table, found := strings.Cut(read("docs", "architecture.md"), "## Dependencies")
	if !found || len(required) < 10 {
		t.Fatalf("the table was not found, or go.mod was not understood: %v", required)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(table, -1) {
		if strings.Contains(row, "in the module") {
			continue // of another go.mod
		}
		for _, m := range regexp.MustCompile("`([^`]+)`( \\(a tool\\))?").FindAllStringSubmatch(row, -1) {
			if strings.Contains(m[1], "/") && strings.Contains(strings.SplitN(m[1], "/", 2)[0], ".") && m[2] == "" {
				reasons = append(reasons, m[1])
			}
		}
	}
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/") }
	for _, m := range required {
		if !slices.ContainsFunc(reasons, func(r string) bool { return within(m, r) }) {
			t.Errorf("go.mod requires %s, and docs/architecture.md gives no reason for it", m)
		}
	}
	for _, r := range reasons {
		if !slices.ContainsFunc(required, func(m string) bool { return within(m, r) }) {
			t.Errorf("docs/architecture.md gives a reason for %s, which go.mod does not require directly", r)
		}
	}
}
