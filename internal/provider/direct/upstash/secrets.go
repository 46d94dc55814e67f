package upstash

import (
	"regexp"

	"countersign/internal/provider/direct"
)

var (
	secretName = regexp.MustCompile(`(?i)(password|token|secret|credential|signing_?key|api_?key|access_?key|private_?key)`)
	userInURL  = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s/@]*:[^\s/@]*@`)
)

const hidden = "[not shown]"

// bare takes every secret out of an answer. The vendor's database objects hold the password and both tokens, its users those of QStash, and
// ?credentials=hide helps with a single database alone.
func bare(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, e := range x {
			if !secretName.MatchString(name) {
				out[name] = bare(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = bare(e)
		}
		return out
	case string:
		if userInURL.MatchString(x) {
			return hidden
		}
	}
	return v
}

// shown is a management answer as an agent gets it: an object as it is, a list as items, anything else as a text.
func shown(r direct.Reply) (direct.Answer, error) {
	var v any
	if err := r.JSON(&v); err != nil {
		return direct.Answer{}, err
	}
	switch x := bare(v).(type) {
	case map[string]any:
		return direct.Answer{Structured: x}, nil
	case []any:
		return direct.Answer{Structured: map[string]any{"items": x}}, nil
	case string:
		return direct.Answer{Text: x}, nil
	}
	return direct.Answer{Text: "Done."}, nil
}
