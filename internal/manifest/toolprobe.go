package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"countersign/internal/canonical"
	"countersign/internal/policy"
)

// ToolProbe finds out with a reviewed read what became of a call whose answer was lost. It may exist only where the answer leaves no
// doubt: where an equal earlier call would look the same in it, a person decides.
type ToolProbe struct {
	Call
	Applied string `toml:"applied" json:"applied"`         // RE2 over the read's text: the world is as the call makes it
	Absent  string `toml:"absent" json:"absent,omitempty"` // RE2: it is as it was before; empty: that cannot be told, only a person can
}

// Question is a probe with the values of one action in it.
type Question struct {
	Tool            string
	Arguments       json.RawMessage
	applied, absent *regexp.Regexp
}

// inPattern finds the placeholders of a pattern. A repetition like {2} is none: names do not start with a digit.
var inPattern = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]{0,63})\}`)

// For puts the values of an action's canonical arguments into the probe. It is an error where one is missing, or is no text, number or
// truth value: then the probe cannot tell.
func (p ToolProbe) For(arguments []byte) (Question, error) {
	values, err := valuesOf(arguments)
	if err != nil {
		return Question{}, err
	}
	q := Question{Tool: p.Tool}
	if q.Arguments, err = p.fill(values); err != nil {
		return Question{}, err
	}
	if q.applied, err = patternFor(p.Applied, values); err != nil {
		return Question{}, err
	}
	if p.Absent != "" {
		q.absent, err = patternFor(p.Absent, values)
	}
	return q, err
}

// Sees judges the text of the read's answer. An answer that both patterns know, or neither, tells nothing.
func (q Question) Sees(text string) (applied, absent bool) {
	applied = q.applied.MatchString(text)
	absent = q.absent != nil && q.absent.MatchString(text)
	return applied && !absent, absent && !applied
}

// Filled is the arguments of a look-up with the values of an action in them, as canonical JSON. It is an error where a value is missing.
func (c Call) Filled(arguments []byte) (json.RawMessage, error) {
	values, err := valuesOf(arguments)
	if err != nil {
		return nil, err
	}
	return c.fill(values)
}

func (c Call) fill(values map[string]json.RawMessage) (json.RawMessage, error) {
	filled, err := fillIn(c.Arguments, values)
	if err != nil {
		return nil, err
	}
	if filled == nil {
		return json.RawMessage("{}"), nil
	}
	b, err := json.Marshal(filled)
	if err != nil {
		return nil, err
	}
	return canonical.Limits{Bytes: 1 << 20}.Object(b)
}

func valuesOf(arguments []byte) (map[string]json.RawMessage, error) {
	var values map[string]json.RawMessage
	err := json.Unmarshal(arguments, &values)
	return values, err
}

// fillIn copies a decoded TOML value and puts an action's own bytes where a whole text is {argument}.
func fillIn(v any, values map[string]json.RawMessage) (any, error) {
	switch x := v.(type) {
	case string:
		name, ok := strings.CutPrefix(x, "{")
		if !ok || !strings.HasSuffix(name, "}") {
			return x, nil
		}
		if value, ok := values[strings.TrimSuffix(name, "}")]; ok {
			return value, nil
		}
		return nil, fmt.Errorf("the action has no argument %s", x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			var err error
			if out[i], err = fillIn(e, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if x == nil {
			return nil, nil
		}
		out := make(map[string]any, len(x))
		for name, e := range x {
			var err error
			if out[name], err = fillIn(e, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// patternFor puts values into a pattern as themselves: an agent's value must never act as an expression, nor match as a part of a longer
// word, or c_1 would be found in c_12.
func patternFor(pattern string, values map[string]json.RawMessage) (*regexp.Regexp, error) {
	var missing error
	filled := inPattern.ReplaceAllStringFunc(pattern, func(placeholder string) string {
		text, ok := plain(values[placeholder[1:len(placeholder)-1]])
		if !ok || text == "" {
			missing = fmt.Errorf("the action has no plain value for %s", placeholder)
		}
		return whole(text)
	})
	if missing != nil {
		return nil, missing
	}
	return regexp.Compile(filled)
}

var wordByte = regexp.MustCompile(`^[0-9A-Za-z_]$`)

func whole(text string) string {
	out := regexp.QuoteMeta(text)
	if text != "" && wordByte.MatchString(text[:1]) {
		out = `\b` + out
	}
	if text != "" && wordByte.MatchString(text[len(text)-1:]) {
		out += `\b`
	}
	return out
}

// plain is a text as it reads, or a number or truth value as it is written.
func plain(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		var s string
		return s, json.Unmarshal(raw, &s) == nil
	case '{', '[', 'n':
		return "", false
	}
	return string(raw), true
}

// toolProbe holds a probe to what makes it safe to settle an action without a person.
func (c *check) toolProbe(p string, t ToolPolicy) {
	if t.Probe == nil {
		return
	}
	path := p + ".probe"
	switch {
	case t.Effect == policy.Read:
		c.at(path, "“"+t.Name+"” is a read; nothing of it has to be found out.", "Remove its probe.")
	case t.Money != nil:
		c.at(path, "“"+t.Name+"” moves money, and an equal earlier amount would look the same to a probe.", "Remove the probe and offer look_ups: a person decides.")
	}
	c.readWith(path, "The probe of “"+t.Name+"”", t.Probe.Call, t)
	c.probePattern(path+".applied", t.Probe.Applied, t)
	if c.index.has(path + ".absent") {
		c.probePattern(path+".absent", t.Probe.Absent, t)
	}
	if t.Probe.Applied != "" && t.Probe.Applied == t.Probe.Absent {
		c.at(path+".absent", "The probe of “"+t.Name+"” cannot tell: “applied” and “absent” are the same.", "Write what the read says before the call, or leave absent out.")
	}
}

// sampleValue stands for an argument while a pattern is judged.
const sampleValue = `"x1"`

func (c *check) probePattern(path, pattern string, t ToolPolicy) {
	found := inPattern.FindAllStringSubmatch(pattern, -1)
	sample := map[string]json.RawMessage{}
	for _, m := range found {
		c.argument(path, "The probe of “"+t.Name+"” looks for", m[1], t)
		sample[m[1]] = json.RawMessage(sampleValue)
	}
	re, err := patternFor(pattern, sample)
	switch {
	case err != nil || len(pattern) > 200 || pattern == "":
		c.at(path, "“"+t.Name+"” has a probe pattern that is no regular expression of 1 to 200 characters.", "Write it in RE2 syntax.")
	case len(found) == 0:
		c.at(path, "A probe pattern of “"+t.Name+"” names no argument of the action, so it would match what another call did.", "Put {argument} where the read shows the action's own value.")
	default:
		for _, text := range append(ambiguous, "x1", `{"error":"x1"}`) {
			if re.MatchString(text) {
				c.at(path, "A probe pattern of “"+t.Name+"” also matches “"+text+"”, which says nothing about the call.", "Write the words of the read around the argument, anchored where they begin.")
				return
			}
		}
	}
}
