package ui

import (
	"context"
	"io"
	"strings"
	"unicode"

	"github.com/a-h/templ"
)

// lcsBound is how many cells a comparison may cost. Beyond it the whole middle is shown as replaced: more to read, never less.
const lcsBound = 4_000_000

// change is one line of a difference: ' ' kept, '-' gone, '+' new. parts alternate between unchanged and changed words.
type change struct {
	kind  byte
	parts []part
}

type part struct {
	text    string
	changed bool
}

// Diff draws the line difference of two texts with the changed words marked. Both may be hostile: every piece goes through Text.
// Name says to a screen reader what differs.
func Diff(name, before, after string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var b strings.Builder
		b.WriteString(`<pre class="diff" tabindex="0" role="region" aria-label="` + templ.EscapeString("Difference of "+Flat(name)) + `">`)
		for _, c := range diffLines(before, after) {
			tag := map[byte]string{' ': "span", '-': "del", '+': "ins"}[c.kind]
			b.WriteString("<" + tag + ">")
			for _, p := range c.parts {
				lines, _ := render(p.text, false)
				html := strings.Join(lines, "")
				if p.changed {
					html = "<mark>" + html + "</mark>"
				}
				b.WriteString(html)
			}
			b.WriteString("</" + tag + ">")
		}
		b.WriteString("</pre>")
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// diffLines compares by lines, then pairs each run of gone lines with the run of new ones after it and compares those by words.
func diffLines(before, after string) []change {
	var out []change
	var gone, fresh []string
	flush := func() {
		out = append(out, pair(gone, fresh)...)
		gone, fresh = nil, nil
	}
	for _, e := range edits(splitLines(before), splitLines(after)) {
		switch e.kind {
		case '-':
			gone = append(gone, e.text)
		case '+':
			fresh = append(fresh, e.text)
		default:
			flush()
			out = append(out, change{' ', []part{{e.text, false}}})
		}
	}
	flush()
	return out
}

// splitLines keeps carriage returns: a text that differs only in them must show a difference.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// pair draws gone lines, then new ones. Lines that stand at the same place of their runs are compared by words; what is left over
// beside them is changed as a whole.
func pair(gone, fresh []string) []change {
	var dels, inss []change
	both := min(len(gone), len(fresh))
	for i := range both {
		d, n := words(gone[i], fresh[i])
		dels, inss = append(dels, change{'-', d}), append(inss, change{'+', n})
	}
	for _, g := range gone[both:] {
		dels = append(dels, change{'-', []part{{g, both > 0}}})
	}
	for _, f := range fresh[both:] {
		inss = append(inss, change{'+', []part{{f, both > 0}}})
	}
	return append(dels, inss...)
}

// words compares two lines by words and returns both with the changed words apart.
func words(before, after string) (dels, inss []part) {
	for _, e := range edits(splitWords(before), splitWords(after)) {
		if e.kind != '+' {
			dels = grow(dels, e.text, e.kind == '-')
		}
		if e.kind != '-' {
			inss = grow(inss, e.text, e.kind == '+')
		}
	}
	return dels, inss
}

func grow(parts []part, text string, changed bool) []part {
	if n := len(parts); n > 0 && parts[n-1].changed == changed {
		parts[n-1].text += text
		return parts
	}
	return append(parts, part{text, changed})
}

// splitWords cuts at the edges of words, blanks and signs; joining the pieces gives the line back.
func splitWords(s string) []string {
	var out []string
	start, last := 0, 0
	for i, r := range s {
		class := 3
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			class = 1
		case unicode.IsSpace(r):
			class = 2
		}
		if i > start && (class != last || class == 3) {
			out = append(out, s[start:i])
			start = i
		}
		last = class
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

type edit struct {
	kind byte
	text string
}

// edits is the longest common subsequence as a script: kept, gone and new pieces in order.
func edits(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, edit{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	out := append(head, middle(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		out = append(out, tail[i])
	}
	return out
}

func middle(a, b []string) []edit {
	var out []edit
	if len(a)*len(b) > lcsBound {
		return appendRest(out, a, b)
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case common[(i+1)*width+j] >= common[i*width+j+1]:
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return appendRest(out, a[i:], b[j:])
}

func appendRest(out []edit, gone, fresh []string) []edit {
	for _, s := range gone {
		out = append(out, edit{'-', s})
	}
	for _, s := range fresh {
		out = append(out, edit{'+', s})
	}
	return out
}
