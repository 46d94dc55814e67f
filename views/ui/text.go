package ui

import (
	"context"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/a-h/templ"
)

// Text draws somebody else's words inside a line of ours: escaped, isolated from the direction of the text around it, and with
// everything that hides, reverses or passes for something else replaced by a visible mark.
func Text(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		if plainASCII(s) {
			_, err := io.WriteString(w, templ.EscapeString(s))
			return err
		}
		lines, _ := render(s, false)
		_, err := io.WriteString(w, `<span class="txt">`+strings.Join(lines, "")+`</span>`)
		return err
	})
}

// Flat is Text for places that hold no markup: a page title, an attribute, a mail. Marks stand in brackets.
func Flat(s string) string {
	if plainASCII(s) {
		return s
	}
	d := drawing{flat: true}
	d.draw(s)
	return strings.Join(d.lines, "")
}

// plainASCII reports whether s can stand in a line as it is: the common case, without a span around it. Two spaces cannot, since
// HTML would show one.
func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e || (s[i] == ' ' && i+1 < len(s) && s[i+1] == ' ') {
			return false
		}
	}
	return true
}

// Raw draws a whole text in our frame for other people's words: every line, breaks shown, marks in place. After 12 lines the rest
// is folded with a sentence that says how much; repeat Scan(s).Folded next to the buttons. Nothing is ever cut.
func Raw(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		lines, m := render(s, true)
		shown, rest := lines, []string(nil)
		if m.Folded > 0 {
			shown, rest = lines[:foldAfter], lines[foldAfter:]
		}
		html := `<code class="raw">` + strings.Join(shown, "\n") + `</code>`
		if len(rest) > 0 {
			html += `<details><summary>Show the other ` + Count(len(rest), "line", "lines") + `</summary><code class="raw">` + strings.Join(rest, "\n") + `</code></details>`
		}
		_, err := io.WriteString(w, html)
		return err
	})
}

// ASCII writes s with every character outside printable ASCII as a \u escape, for the view of the exact bytes: canonical JSON
// stays JSON of the same value, and no character of it can hide.
func ASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || (r >= 0x20 && r < 0x7f):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b.WriteString(escape(hi) + escape(lo))
		default:
			b.WriteString(escape(r))
		}
	}
	return b.String()
}

func escape(r rune) string {
	return `\u` + strconv.FormatInt(int64(r)|0x10000, 16)[1:]
}

// Lines draws a whole text line by line, marks in place, for a frame that folds nothing and marks no ends.
func Lines(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for _, line := range splitLines(s) {
			pieces, _ := render(line, false)
			b.WriteString(strings.Join(pieces, "") + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}
