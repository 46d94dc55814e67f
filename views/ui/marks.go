package ui

import "strings"

// Marks counts what a text holds that would not show, or would show as something else, if it were printed as it is. The caller
// prints a "Read this one closely" notice (ReadClosely) when Any.
type Marks struct {
	Hidden      int // characters that hide, reverse, cover or strike text
	LookAlikes  int // letters that pass for others
	Spaces      int // spaces that are not the space
	BadBytes    int // bytes that are not UTF-8
	BreakRuns   int // runs of 3 or more line breaks
	MostBreaks  int // the longest of them
	RightToLeft int // letters that read from right to left: honest, and kept from moving what stands beside them
	Lines       int // lines as drawn, after runs of breaks became one mark
	Folded      int // of these, how many Raw folds away
	Characters  int
}

// Any reports whether the reader must be told.
func (m Marks) Any() bool {
	return m.Hidden+m.LookAlikes+m.Spaces+m.BadBytes+m.BreakRuns > 0
}

// Sentence says what was found, in words: "It holds 3 characters that hide or reverse text and 48 line breaks in a row."
func (m Marks) Sentence() string {
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, Count(n, one, many))
		}
	}
	add(m.Hidden, "character that hides or reverses text", "characters that hide or reverse text")
	add(m.LookAlikes, "look-alike letter", "look-alike letters")
	add(m.Spaces, "unusual space", "unusual spaces")
	add(m.BadBytes, "byte that is not text", "bytes that are not text")
	if m.BreakRuns > 0 {
		parts = append(parts, Count(m.MostBreaks, "line break", "line breaks")+" in a row")
	}
	switch len(parts) {
	case 0:
		return ""
	case 1:
		return "It holds " + parts[0] + "."
	default:
		return "It holds " + strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1] + "."
	}
}

// Scan counts without drawing.
func Scan(s string) Marks {
	_, m := render(s, true)
	return m
}
