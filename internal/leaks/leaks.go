// Package leaks owns the forms that issuers of credentials gave them, and finds one in a line of text. The forms are those of gitleaks, which
// its community keeps: config/gitleaks.toml of github.com/zricethezav/gitleaks/v8 v8.30.1 (MIT, LICENSE.gitleaks), without its comments. Its
// engine is not taken along: it brings a command line, archives and clients of services. It never repeats what it found.
package leaks

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"countersign/internal/secret"
)

//go:embed gitleaks.toml
var source []byte

// allowlist is what is no secret although it has the form of one.
type allowlist struct {
	Condition   string   // AND: all that it names must hold; otherwise one of them
	Paths       []string // of the file
	Regexes     []string // of what Target names
	RegexTarget string   // match, line, or the secret itself
	Stopwords   []string // within the secret

	paths, regexes patterns
}

// rule is one form.
type rule struct {
	ID          string
	Regex       string
	Path        string // of the files it is looked for in; empty: all
	Entropy     float64
	SecretGroup int
	Keywords    []string
	Allowlists  []*allowlist

	form, path patterns
}

// patterns are compiled when the first line asks for them: all of them together weigh more than a server at rest.
type patterns struct {
	once sync.Once
	list []*regexp.Regexp
}

func (p *patterns) of(texts ...string) []*regexp.Regexp {
	p.once.Do(func() {
		for _, text := range texts {
			p.list = append(p.list, regexp.MustCompile(text)) // a test compiles every one
		}
	})
	return p.list
}

func (p *patterns) match(s string, texts ...string) bool {
	return slices.ContainsFunc(p.of(texts...), func(r *regexp.Regexp) bool { return r.MatchString(s) })
}

// keyword is a word without which a rule cannot match.
type keyword struct {
	word string
	rule *rule
}

// rules are all of them, found by the first two bytes of their keywords.
type rules struct {
	byStart map[[2]byte][]keyword
	allowed *allowlist // for every rule
}

var all = sync.OnceValue(func() rules {
	var file struct {
		Allowlist *allowlist
		Rules     []*rule
	}
	if err := toml.Unmarshal(source, &file); err != nil {
		panic(err) // the file is part of the program
	}
	out := rules{byStart: map[[2]byte][]keyword{}, allowed: file.Allowlist}
	for _, r := range file.Rules {
		for _, w := range r.Keywords {
			start := [2]byte([]byte(w))
			out.byStart[start] = append(out.byStart[start], keyword{w, r})
		}
	}
	return out
})

// Effort is how many bytes forms may still be tried on; nil is without bound. A line of nothing but keywords has every rule tried on it, and
// megabytes of such lines would keep a processor for minutes.
type Effort struct{ left int }

// NewEffort allows so many bytes.
func NewEffort(bytes int) *Effort { return &Effort{bytes} }

// Spend takes bytes away, and reports whether they were there. Once they were not, nothing more is given.
func (e *Effort) Spend(bytes int) bool {
	if e == nil {
		return true
	}
	if e.left < bytes {
		e.left = -1
	}
	if e.Over() {
		return false
	}
	e.left -= bytes
	return true
}

// Over reports whether something was not looked at.
func (e *Effort) Over() bool { return e != nil && e.left < 0 }

// A longer line is looked at in pieces, since all matches of a form in one are held at once. What lies across an end lies whole in the next.
const (
	mostPiece = 16 << 10
	overlap   = 1 << 10
)

// In names the form of what a line of a file seems to hold, like “stripe access token”; empty where nothing looks like a credential. Path is
// that of the file, empty where there is none.
func In(path, line string, e *Effort) string {
	for ; len(line) > mostPiece; line = line[mostPiece-overlap:] {
		if said := inPiece(path, line[:mostPiece], e); said != "" {
			return said
		}
	}
	return inPiece(path, line, e)
}

func inPiece(path, line string, e *Effort) string {
	r := all()
	lower := strings.ToLower(line)
	var tried []*rule
	said := ""
	for i := 0; i+2 <= len(lower); i++ {
		for _, k := range r.byStart[[2]byte{lower[i], lower[i+1]}] {
			if !strings.HasPrefix(lower[i:], k.word) || slices.Contains(tried, k.rule) {
				continue
			}
			if !e.Spend(len(line)) {
				return said
			}
			if tried = append(tried, k.rule); !k.rule.finds(path, line, r.allowed) {
				continue
			}
			if said = strings.ReplaceAll(k.rule.ID, "-", " "); said != anyone {
				return said
			}
		}
	}
	return said
}

// anyone is the form that is nobody's own; one that is says more.
const anyone = "generic api key"

func (r *rule) finds(path, line string, everywhere *allowlist) bool {
	if r.Path != "" && !r.path.match(path, r.Path) || r.Regex == "" {
		return false
	}
	for _, groups := range r.form.of(r.Regex)[0].FindAllStringSubmatch(line, -1) {
		found := r.secretOf(groups)
		if r.Entropy > 0 && secret.Entropy(found) <= r.Entropy || everywhere.allows(path, line, groups[0], found) {
			continue
		}
		if !slices.ContainsFunc(r.Allowlists, func(a *allowlist) bool { return a.allows(path, line, groups[0], found) }) {
			return true
		}
	}
	return false
}

// secretOf is the part of a match that is the credential itself: the named group, the first that holds something, or all of it.
func (r *rule) secretOf(groups []string) string {
	if r.SecretGroup > 0 && r.SecretGroup < len(groups) {
		return groups[r.SecretGroup]
	}
	for _, g := range groups[1:] {
		if g != "" {
			return g
		}
	}
	return groups[0]
}

// allows is gitleaks' own reading of an allowlist: what it does not name says nothing.
func (a *allowlist) allows(path, line, match, found string) bool {
	target := found
	switch a.RegexTarget {
	case "match":
		target = match
	case "line":
		target = line
	}
	var holds []bool
	if len(a.Paths) > 0 {
		holds = append(holds, a.paths.match(path, a.Paths...))
	}
	if len(a.Regexes) > 0 {
		holds = append(holds, a.regexes.match(target, a.Regexes...))
	}
	if len(a.Stopwords) > 0 {
		lower := strings.ToLower(found)
		holds = append(holds, slices.ContainsFunc(a.Stopwords, func(w string) bool { return strings.Contains(lower, w) }))
	}
	if a.Condition == "AND" {
		return !slices.Contains(holds, false)
	}
	return slices.Contains(holds, true)
}
