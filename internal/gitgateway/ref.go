package gitgateway

import (
	"regexp"
	"slices"
	"strings"

	"countersign/internal/fault"
)

// Zero is the id of "no such ref".
const Zero = "0000000000000000000000000000000000000000"

const heads = "refs/heads/"

// isOID reports whether s is a full SHA-1 in lower case.
func isOID(s string) bool {
	if len(s) != len(Zero) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

const maxRef = 244

// plainRef reports whether a ref name is one that git accepts and that looks like what it is: ASCII, without the characters that mean
// something to a shell, a URL or git's own revision syntax.
func plainRef(name string) bool {
	if len(name) > maxRef || !strings.HasPrefix(name, "refs/") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") || strings.Contains(part, "..") {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !isWord(c) && !strings.ContainsRune("._-+=#,@", rune(c)) {
				return false
			}
		}
	}
	return !strings.Contains(name, "@{")
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// DefaultBranches is what a connection allows that says nothing else.
const DefaultBranches = "agent/**"

// Rules are the branches of a connection that agents may push: patterns without refs/heads/, where * stands for part of one name and
// ** for any rest, and the default branch, which none of them reaches.
type Rules []string

// ParseRules reads the patterns of a connection: separated by spaces or commas, DefaultBranches where there are none.
func ParseRules(text string) (Rules, error) {
	rules := Rules(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }))
	if len(rules) == 0 {
		return Rules{DefaultBranches}, nil
	}
	for _, p := range rules {
		sample := strings.NewReplacer("**", "x", "*", "x").Replace(p)
		if !plainRef(heads + sample) {
			return nil, fault.Field("branches", "“"+p+"” is no pattern of branches; one looks like agent/** or fix-*.")
		}
		if i := strings.Index(p, "**"); i >= 0 && i != len(p)-2 {
			return nil, fault.Field("branches", "In “"+p+"” the ** is not at the end; * stands for part of one name, ** for any rest.")
		}
	}
	return rules, nil
}

// Allows says why a branch may not be pushed; nil when it may. Branch is the name after refs/heads/.
func (r Rules) Allows(branch, defaultBranch string) *fault.Error {
	switch {
	case !plainRef(heads + branch):
		return refuse(fault.OutsideResource, "“"+Visible(branch)+"” is not a plain branch name.", "Use letters, digits and - _ . / in the name of the branch.")
	case strings.EqualFold(branch, defaultBranch):
		return refuse(fault.OutsideResource, "“"+branch+"” is the default branch, which agents never push to.", "Push to a branch like "+r.example()+" and open a pull request.")
	case !r.match(branch):
		return refuse(fault.OutsideResource, "The connection allows pushes to "+strings.Join(r, ", ")+", and “"+branch+"” is none of these.",
			"Rename the branch, for example to "+r.example()+", and push that.")
	}
	return nil
}

func (r Rules) match(branch string) bool { return r.Deciding(branch) != "" }

// Deciding is the first pattern that a branch fits; empty where none does.
func (r Rules) Deciding(branch string) string {
	if i := slices.IndexFunc(r, func(p string) bool { return expression(p).MatchString(branch) }); i >= 0 {
		return r[i]
	}
	return ""
}

// expression is a pattern as a regular expression over the whole name.
func expression(pattern string) *regexp.Regexp {
	rest, open := strings.CutSuffix(pattern, "**")
	parts := strings.Split(rest, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	out := strings.Join(parts, "[^/]*")
	if open {
		out += ".+"
	}
	return regexp.MustCompile("^" + out + "$")
}

// example is a branch that the first pattern allows.
func (r Rules) example() string {
	if len(r) == 0 {
		return "agent/fix-1"
	}
	return strings.NewReplacer("**", "fix-1", "*", "fix-1").Replace(r[0])
}

func refuse(code fault.Code, what, next string) *fault.Error {
	return fault.New(fault.Forbidden, code, what, next)
}
