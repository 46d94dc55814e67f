package consent

import (
	"slices"
	"strings"

	"countersign/internal/manifest"
)

// missing are the wanted scopes that are not among those there are.
func missing(wanted, there []string) (out []string) {
	for _, s := range wanted {
		if !slices.Contains(there, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// scopesOf are the scopes of the grants that are not optional and of the chosen ones, each once, in the manifest's order.
func scopesOf(m manifest.Manifest, chosen []string) (out []string) {
	for _, g := range m.Grants {
		if !g.Optional || slices.Contains(chosen, g.ID) {
			out = append(out, missing(g.Scopes, out)...)
		}
	}
	return out
}

// listed splits a scope answer. The standard separates by spaces; some vendors answer with commas whatever they were asked with.
func listed(answer string) []string {
	var out []string
	for _, s := range strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' }) {
		out = append(out, missing([]string{s}, out)...)
	}
	return out
}

// joined writes scopes as the vendor wants them.
func joined(o manifest.OAuth, scopes []string) string {
	separator := o.ScopeSeparator
	if separator == "" {
		separator = " "
	}
	return strings.Join(scopes, separator)
}

func scopeParameter(o manifest.OAuth) string {
	if o.ScopeParameter != "" {
		return o.ScopeParameter
	}
	return "scope"
}
