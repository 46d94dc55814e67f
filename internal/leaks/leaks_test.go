package leaks

import (
	"strings"
	"testing"

	"countersign/internal/growth"
)

func TestEveryRuleCanBeRead(t *testing.T) {
	r := all()
	n := map[*rule]bool{}
	for _, list := range r.byStart {
		for _, k := range list {
			n[k.rule] = true
			if k.word != strings.ToLower(k.word) {
				t.Errorf("%s: its keyword %q is looked for in lower case and never found", k.rule.ID, k.word)
			}
			k.rule.form.of(k.rule.Regex)
			if k.rule.Path != "" {
				k.rule.path.of(k.rule.Path)
			}
			for _, a := range k.rule.Allowlists {
				a.paths.of(a.Paths...)
				a.regexes.of(a.Regexes...)
			}
		}
	}
	r.allowed.paths.of(r.allowed.Paths...)
	r.allowed.regexes.of(r.allowed.Regexes...)
	if len(n) != 221 { // one looks at a file's name alone
		t.Errorf("%d rules can be found by a keyword", len(n))
	}
}

func TestIn(t *testing.T) {
	const drawn = "k3J9xQ2mVb7LpR8tYw5Zc1NdK3j9Xq2Mv"
	for _, c := range []struct{ path, line, want string }{
		{"a.go", `key := "AGE-SECRET-` + "KEY-1" + strings.Repeat("QPZRY9X8GF", 5) + `QPZRY9X8"`, "age secret key"},
		{"a.env", "ADOBE_CLIENT_SECRET=p8e-" + drawn[:32], "adobe client secret"},
		{"a.env", "glpat" + "-" + drawn[:20], "gitlab pat"},
		{"a.go", `apiToken = "` + drawn + `"`, "generic api key"},
		{"node_modules/x/a.go", `apiToken = "` + drawn + `"`, ""},     // a path where such values are no secrets
		{"a.go", `apiToken = "example-` + drawn[:10] + `-about"`, ""}, // a word that no secret holds
		{"a.go", `apiToken = "aaaaaaaaaaaaaaaaaaaaaaaa"`, ""},         // nothing drawn
		{"main.tf", `password = "Xk3J9xQ2mVb7"`, "hashicorp tf password"},
		{"main.go", `"sha512-` + drawn + `"`, ""},
		{"", "", ""},
		{"", "İİİİ glpat", ""},
		{"", strings.Repeat("x", 1<<20) + "glpat" + "-" + drawn[:20], ""}, // beyond what is looked at
	} {
		if got := In(c.path, c.line); got != c.want {
			t.Errorf("%s: %.60q seems to hold %q, wanted %q", c.path, c.line, got, c.want)
		}
	}
}

// A line made of keywords is not looked at once for each of them.
func TestALineOfKeywordsCostsWhatItsLengthCosts(t *testing.T) {
	growth.Linear(t, "a line of keywords", 100, func(size int) func() {
		line := strings.Repeat("api key secret token sk ey ", size)
		return func() { In("a.go", line) }
	})
}
