package preferences

import (
	"reflect"
	"slices"
	"strings"

	"countersign/internal/connector"
	"countersign/internal/fault"
)

// Form is what is said of one connector as four texts: a term a line, as “name = text”, and a thing to avoid a line.
type Form struct{ Purpose, Vocabulary, Defaults, Avoid string }

// FormOf is the form of a connector, and whether the form gives back the very same words: a text of several lines does not fit in a line.
func FormOf(c Connector) (Form, bool) {
	f := Form{c.Purpose, termLines(c.Vocabulary), termLines(c.Defaults), strings.Join(c.Avoid, "\n")}
	back, err := f.Connector(c.Key)
	back.Line = c.Line
	return f, err == nil && reflect.DeepEqual(back, c)
}

func termLines(terms []Term) string {
	lines := make([]string, len(terms))
	for i, t := range terms {
		lines[i] = t.Name + " = " + t.Means
	}
	return strings.Join(lines, "\n")
}

// Connector reads the form.
func (f Form) Connector(key connector.Key) (Connector, error) {
	var faults fault.List
	terms := func(field, label, text string) (out []Term) {
		for _, line := range textLines(text) {
			name, means, ok := strings.Cut(line, "=")
			t := Term{strings.TrimSpace(name), strings.TrimSpace(means)}
			switch {
			case !ok || t.Name == "" || t.Means == "":
				faults = append(faults, fault.Field(field, "“"+short(line)+"” is not “name = text”."))
			case slices.ContainsFunc(out, func(o Term) bool { return o.Name == t.Name }):
				faults = append(faults, fault.Field(field, "“"+short(t.Name)+"” stands twice in the "+label+"."))
			default:
				out = append(out, t)
			}
		}
		return out
	}
	c := Connector{Key: key, Purpose: strings.TrimSpace(strings.ReplaceAll(f.Purpose, "\r\n", "\n")), Avoid: textLines(f.Avoid)}
	c.Vocabulary, c.Defaults = terms("vocabulary", "vocabulary", f.Vocabulary), terms("defaults", "defaults", f.Defaults)
	return c, faults.Err()
}

// textLines are the lines that hold something.
func textLines(text string) (out []string) {
	for _, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
