package ui

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Patch draws a unified difference as git writes one. It is hostile text: every line goes through the same drawing as Text.
func Patch(name, patch string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		b.WriteString(`<pre class="diff" tabindex="0" role="region" aria-label="` + templ.EscapeString(Flat(name)) + `">`)
		head := false
		for line := range strings.Lines(patch) {
			line = strings.TrimSuffix(line, "\n")
			head = strings.HasPrefix(line, "diff --git ") || head && !strings.HasPrefix(line, "@@")
			b.WriteString(patchLine(line, head))
		}
		b.WriteString("</pre>")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// patchLine is one line. In the head of a file, "---" and "+++" are no changed lines.
func patchLine(line string, head bool) string {
	tag, text := "span", line
	switch {
	case head:
	case strings.HasPrefix(line, "+"):
		tag, text = "ins", line[1:]
	case strings.HasPrefix(line, "-"):
		tag, text = "del", line[1:]
	case strings.HasPrefix(line, " "):
		text = line[1:]
	}
	lines, _ := render(text, false)
	html := strings.Join(lines, "")
	if head || strings.HasPrefix(line, "@@") {
		html = "<b>" + html + "</b>"
	}
	return "<" + tag + ">" + html + "</" + tag + ">"
}
