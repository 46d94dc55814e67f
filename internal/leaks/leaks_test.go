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
		{"main.go", `password = "Xk3J9xQ2mVb7"`, "generic api key"},             // a form of other files
		{"a.properties", `sonar.token = "` + strings.Repeat("a", 40) + `"`, ""}, // the second group is the secret
		{"a.sh", `run --mount=type=secret,id=x apiToken = "` + drawn + `"`, ""}, // its line says that it is none
		{"a.go", `api_version_token = "` + drawn + `"`, ""},                     // its match does
		{"a.bb", `apiToken = "` + drawn + `"`, "generic api key"},               // such a path says so only with such a line,
		{"a.bb", `LICENSE_FLAGS_token = "` + drawn + `"`, ""},                   // like this one
		{"main.go", `"sha512-` + drawn + `"`, ""},
		{"", "", ""},
		{"", "İİİİ glpat", ""},
		{"", strings.Repeat("x ", 1<<19) + "glpat" + "-" + drawn[:20], "gitlab pat"},                                    // far along one line
		{"", strings.Repeat("x ", mostPiece/2-8) + "glpat" + "-" + drawn[:20] + strings.Repeat(" x", 99), "gitlab pat"}, // across the end of a piece
	} {
		if got := In(c.path, c.line, nil); got != c.want {
			t.Errorf("%s: %.60q seems to hold %q, wanted %q", c.path, c.line, got, c.want)
		}
	}
}

// A line made of keywords is not looked at once for each of them.
func TestALineOfKeywordsCostsWhatItsLengthCosts(t *testing.T) {
	growth.Linear(t, "a line of keywords", 100, func(size int) func() {
		line := strings.Repeat("api key secret token sk ey ", size)
		return func() { In("a.go", line, nil) }
	})
}

func TestEffortEnds(t *testing.T) {
	line := "glpat" + "-k3J9xQ2mVb7LpR8tYw5Z "
	e := NewEffort(10 * len(line))
	if In("", line, e) == "" || e.Over() {
		t.Error("what is within the effort is not looked at")
	}
	if In("", strings.Repeat("token api key secret ", 100)+line, e); !e.Over() {
		t.Error("what nobody looked at is not said")
	}
	if e.Spend(0) || In("", line, e) != "" {
		t.Error("an effort that is over begins again")
	}
}
