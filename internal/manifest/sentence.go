package manifest

import (
	"regexp"
	"slices"
	"strings"
)

var argumentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// placeholders reads the argument names out of a sentence, in order, each once. The text is what is wrong with its braces, or empty.
func placeholders(sentence string) (names []string, wrong string) {
	rest := sentence
	for {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return names, ""
		}
		end := strings.IndexAny(rest[open+1:], "{}")
		if rest[open] == '}' || end < 0 || rest[open+1+end] == '{' {
			return names, "has a brace without its partner"
		}
		name := rest[open+1 : open+1+end]
		if !argumentName.MatchString(name) {
			return names, "has “{" + name + "}”, which is not an argument name"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		rest = rest[open+end+2:]
	}
}
