package gitgateway

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/internal/unseen"
)

// Visible makes what a stranger wrote into one line of text that shows what it holds: control, format and other invisible characters
// become their code points, and what is no UTF-8 its bytes.
func Visible(s string) string {
	clean := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var out strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, s[0])
		case r != '\t' && unseen.Is(r):
			out.WriteString("‹" + unseen.Point(r) + "›")
		default:
			out.WriteString(s[:n])
		}
		s = s[n:]
	}
	return out.String()
}

// Clip keeps a text within so many characters.
func Clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
