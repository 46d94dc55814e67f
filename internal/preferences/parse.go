package preferences

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"countersign/internal/fault"
	"countersign/internal/unseen"
)

// Finding is something to say about one line of a document. Line 0 is the document itself.
type Finding struct {
	Line int
	What string
}

// String names the line first, as a compiler does.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.What
	}
	return fmt.Sprintf("Line %d: %s", f.Line, f.What)
}

// Findings are in the order of the lines.
type Findings []Finding

// maxFindings is how many are told at once; whoever mends those sees the next.
const maxFindings = 30

// Err is the findings as a fault about the input “text”; nil when there are none.
func (f Findings) Err() error {
	var list fault.List
	for _, one := range f {
		list = append(list, fault.Field("text", one.String()))
	}
	return list.Err()
}

// Normal is the one form in which a text is kept: a browser sends other line ends than Git does, and an editor may put a mark in front.
func Normal(text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if text = strings.TrimRight(text, " \t\n"); text == "" {
		return ""
	}
	return text + "\n"
}

// Parse reads a text in its normal form. A document with findings is not one to keep.
func Parse(text string) (Document, Findings) {
	d, _, found := parse(text)
	return d, found
}

func parse(text string) (Document, outline, Findings) {
	if found := readable(text); found != nil {
		return Document{}, outline{}, found
	}
	var whole map[string]any
	if err := toml.Unmarshal([]byte(text), &whole); err != nil {
		return Document{}, outline{}, Findings{syntax(err)}
	}
	o := outlineOf(text)
	r := reading{outline: &o}
	r.read()
	slices.SortStableFunc(r.found, func(a, b Finding) int { return a.Line - b.Line })
	if len(r.found) > maxFindings {
		r.found = append(r.found[:maxFindings:maxFindings], Finding{What: fmt.Sprintf("And %d more.", len(r.found)-maxFindings)})
	}
	return r.doc, o, r.found
}

// readable refuses what cannot be read as text, or would be read differently by a person.
func readable(text string) Findings {
	if strings.TrimSpace(text) == "" {
		return Findings{{1, "The document is empty. A document that says nothing is the line version = 3."}}
	}
	if len(text) > MaxBytes {
		return Findings{{What: fmt.Sprintf("The document is %d bytes long; it may have %d.", len(text), MaxBytes)}}
	}
	for i, line := range strings.Split(text, "\n") {
		if !utf8.ValidString(line) {
			return Findings{{i + 1, "The line is not UTF-8. Save the file as UTF-8."}}
		}
		if r, hidden := unseen.InProse(strings.ReplaceAll(line, "\t", " ")); hidden {
			return Findings{{i + 1, invisible(r)}}
		}
	}
	return nil
}

func invisible(r rune) string {
	return "There is an invisible character, " + unseen.Point(r) + ": people would not read what agents read. Remove it."
}

func syntax(err error) Finding {
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		return Finding{1, told("This is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ") + ".")}
	}
	row, column := bad.Position()
	return Finding{row, told(fmt.Sprintf("This is not TOML, at column %d: %s.", column, strings.TrimPrefix(bad.Error(), "toml: ")))}
}

// maxTold is how many characters a finding has: it may quote a name, and a name may be as long as the text.
const maxTold = 400

// told makes a finding of a sentence that may quote the text: an escape in a quoted key can hold any character.
func told(sentence string) string {
	if words := []rune(sentence); len(words) > maxTold {
		sentence = string(words[:maxTold]) + "…"
	}
	return unseen.Shown(sentence)
}
