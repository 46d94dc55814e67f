package views

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/policy"
)

// definitionText writes a tool's definition as lines to compare: every member once, in an order people read, texts quoted so that no
// text can pass for a line of the definition. What the digest leaves out is left out here. Bytes that are no JSON object are shown as
// they are.
func definitionText(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a number is shown as it was written
	var members map[string]any
	if d.Decode(&members) != nil {
		return string(raw)
	}
	delete(members, "_meta")
	delete(members, "icons")
	var b strings.Builder
	writeMembers(&b, members, "", []string{"name", "title", "description", "annotations", "inputSchema"})
	return b.String()
}

func writeMembers(b *strings.Builder, members map[string]any, indent string, first []string) {
	names := slices.Sorted(maps.Keys(members))
	slices.SortStableFunc(names, func(x, y string) int { return place(first, x) - place(first, y) })
	for _, name := range names {
		writeValue(b, indent+key(name)+":", members[name], indent)
	}
}

func place(first []string, name string) int {
	if i := slices.Index(first, name); i >= 0 {
		return i
	}
	return len(first)
}

// deepest bounds the indentation: a hostile definition nested ten thousand deep would cost its depth squared.
const deepest = 48

func writeValue(b *strings.Builder, lead string, v any, indent string) {
	if len(indent) > 2*deepest {
		b.WriteString(lead + " " + scalar(v) + "\n")
		return
	}
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			b.WriteString(lead + " {}\n")
			return
		}
		b.WriteString(lead + "\n")
		writeMembers(b, x, indent+"  ", []string{"type", "title", "description", "properties", "required"})
	case []any:
		if flat, ok := oneLine(x); ok {
			b.WriteString(lead + " " + flat + "\n")
			return
		}
		b.WriteString(lead + "\n")
		for _, e := range x {
			writeValue(b, indent+"  -", e, indent+"  ")
		}
	default:
		b.WriteString(lead + " " + scalar(x) + "\n")
	}
}

// oneLine writes a list of scalars on one line.
func oneLine(list []any) (string, bool) {
	words := make([]string, len(list))
	for i, e := range list {
		switch e.(type) {
		case map[string]any, []any:
			return "", false
		}
		words[i] = scalar(e)
	}
	return "[" + strings.Join(words, ", ") + "]", true
}

// scalar writes a value as JSON. Marks of HTML stay as they are: the renderer escapes them, and a reader should see what was sent.
func scalar(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

func key(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return scalar(name)
}

// effectShift says in a sentence when an upstream's change makes a tool do something else than what was granted; empty otherwise.
func effectShift(before policy.Pinned, now policy.Class) string {
	switch {
	case before.Effect == policy.Read && now.Effect != policy.Read:
		return "It was granted as a read. It now counts as consequential: accepting lets agents ask for changes with it."
	case before.Effect != policy.Read && now.Effect == policy.Read:
		return "It was granted as consequential. It now counts as a read: accepting lets agents call it without anybody deciding."
	case !before.Destructive && now.Destructive:
		return "It is now marked as destructive: what it does cannot be undone."
	case before.Destructive && !now.Destructive:
		return "It is no longer marked as destructive."
	}
	return ""
}
