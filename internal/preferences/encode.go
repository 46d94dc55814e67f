package preferences

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"countersign/internal/unseen"
)

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// keyText writes one part of a key.
func keyText(part string) string {
	if bare.MatchString(part) {
		return part
	}
	return quote(part)
}

// pathText writes a dotted key.
func pathText(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = keyText(p)
	}
	return strings.Join(parts, ".")
}

// quote writes a basic string on one line. What does not show is written as an escape, so that no reader takes the text for its end or
// for another line.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		writeRune(&b, r)
	}
	b.WriteByte('"')
	return b.String()
}

// quoteLines writes a text of several lines as people would; one line is written as quote does.
func quoteLines(s string) string {
	if !strings.Contains(s, "\n") {
		return quote(s)
	}
	var b strings.Builder
	b.WriteString("\"\"\"\n")
	for _, r := range s {
		if r == '\n' {
			b.WriteByte('\n')
			continue
		}
		writeRune(&b, r)
	}
	b.WriteString(`"""`)
	return b.String()
}

func writeRune(b *strings.Builder, r rune) {
	switch {
	case r == '"' || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r > 0xffff && !unicode.IsPrint(r):
		fmt.Fprintf(b, `\U%08X`, r)
	case r == ' ' || unicode.IsPrint(r) || unseen.Companion(r):
		b.WriteRune(r)
	default:
		fmt.Fprintf(b, `\u%04X`, r)
	}
}

// list writes an array of strings, on one line where it is short or must be.
func list(texts []string, oneLine bool) string {
	quoted := make([]string, len(texts))
	n := 0
	for i, s := range texts {
		quoted[i] = quote(s)
		n += len(quoted[i])
	}
	if oneLine || n <= 80 {
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return "[\n  " + strings.Join(quoted, ",\n  ") + ",\n]"
}
