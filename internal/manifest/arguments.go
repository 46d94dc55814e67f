package manifest

import (
	"maps"
	"math"
	"slices"
)

// hasJSON reports whether a decoded TOML value has one obvious JSON form: no dates, no infinities.
func hasJSON(v any) bool {
	switch x := v.(type) {
	case string, bool, int64:
		return true
	case float64:
		return !math.IsInf(x, 0) && !math.IsNaN(x)
	case []any:
		for _, e := range x {
			if !hasJSON(e) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range x {
			if !hasJSON(e) {
				return false
			}
		}
		return true
	}
	return false
}

// textsIn lists every text inside a decoded TOML value, in a fixed order.
func textsIn(v any) []string {
	var out []string
	switch x := v.(type) {
	case string:
		out = append(out, x)
	case []any:
		for _, e := range x {
			out = append(out, textsIn(e)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			out = append(out, textsIn(x[name])...)
		}
	}
	return out
}
