package ui

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign/internal/unseen"

	"github.com/a-h/templ"
)

// foldAfter is how many lines Raw shows before it folds.
const foldAfter = 12

// combiningLimit is how many marks one letter may carry; more of them climb over the lines above and below.
const combiningLimit = 4

// drawing turns a text into lines of safe HTML, character by character. Nothing of the text reaches the page unescaped, and
// nothing that hides reaches it at all.
type drawing struct {
	block     bool // line breaks break lines; else they are marks in the line
	flat      bool // text for an attribute or a title: no tags, nothing escaped, marks in brackets
	runes     []rune
	bad       map[int]byte // positions of bytes that are not UTF-8
	alike     map[int]bool
	marks     Marks
	lines     []string
	line      strings.Builder
	combining int
}

// render returns the text as lines of safe HTML: one line when it is not a block.
func render(s string, block bool) ([]string, Marks) {
	d := drawing{block: block}
	d.draw(s)
	return d.lines, d.marks
}

func (d *drawing) draw(s string) {
	d.bad = map[int]byte{}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			d.bad[len(d.runes)] = s[i]
		}
		d.runes = append(d.runes, r)
		i += size
	}
	d.alike = lookAlikes(d.runes)
	d.marks.Characters = len(d.runes)
	for i := 0; i < len(d.runes); {
		i += d.step(i)
	}
	if d.line.Len() > 0 || len(d.lines) == 0 {
		d.endLine()
	}
	d.marks.Lines = len(d.lines)
	d.marks.Folded = max(0, len(d.lines)-foldAfter)
}

// text writes a piece of the text itself.
func (d *drawing) text(s string) {
	if !d.flat {
		s = templ.EscapeString(s)
	}
	d.line.WriteString(s)
}

func (d *drawing) endLine() {
	d.lines = append(d.lines, d.line.String())
	d.line.Reset()
}

// step draws what stands at i and returns how many characters that was.
func (d *drawing) step(i int) int {
	r := d.runes[i]
	if b, ok := d.bad[i]; ok {
		d.marks.BadBytes++
		d.ctl("byte 0x" + strings.ToUpper(strconv.FormatUint(uint64(b)|0x100, 16)[1:]))
		return 1
	}
	if r == '\n' || (r == '\r' && i+1 < len(d.runes) && d.runes[i+1] == '\n') {
		return d.breaks(i)
	}
	if r == '\t' {
		d.line.WriteByte('\t')
		return 1
	}
	if unicode.IsMark(r) {
		d.combining++
	} else {
		d.combining = 0
	}
	why, name := judge(r)
	switch {
	case d.alike[i]:
		d.marks.LookAlikes++
		d.ctl(string(r) + " " + unseen.Point(r) + " " + originOf(r))
		return 1
	case why == innocent && d.combining > combiningLimit:
		d.marks.Hidden++
		d.ctl(unseen.Point(r) + " piled-up mark")
		return 1
	case why == innocent:
		if isRTL(r) {
			return d.rightToLeft(i)
		}
		d.text(string(r))
		return 1
	case why == lookAlike:
		d.marks.LookAlikes++
		d.ctl(string(r) + " " + unseen.Point(r) + " " + name)
		return 1
	}
	return d.hidden(i, why, name)
}

// hidden draws a run of one hiding character as one mark with its count, and a run of tag characters as the words they spell.
func (d *drawing) hidden(i int, why suspicion, name string) int {
	r, n := d.runes[i], 1
	if isTag(r) {
		for i+n < len(d.runes) && isTag(d.runes[i+n]) {
			n++
		}
	}
	if n > 1 {
		d.marks.Hidden += n
		d.ctl(strconv.Itoa(n) + " tag characters spelling “" + spell(d.runes[i:i+n]) + "”")
		return n
	}
	for i+n < len(d.runes) && d.runes[i+n] == r {
		n++
	}
	if why == oddSpace {
		d.marks.Spaces += n
	} else {
		d.marks.Hidden += n
	}
	words := unseen.Point(r) + " " + name
	if n > 1 {
		words += " × " + Grouped(n)
	}
	d.ctl(words)
	return n
}

// rightToLeft draws a run of words that read from right to left apart from what surrounds it. Without that, digits and signs beside
// such a word change places: "100" could be read on the other side of it.
func (d *drawing) rightToLeft(i int) int {
	end, piled := i+1, 0
	for j := i + 1; j < len(d.runes) && piled <= combiningLimit; j++ {
		r := d.runes[j]
		why, _ := judge(r)
		switch {
		case why == innocent && isRTL(r) && unicode.IsLetter(r):
			end, piled = j+1, 0
			continue
		case why == innocent && unicode.IsMark(r) && end == j && piled < combiningLimit:
			end, piled = j+1, piled+1
			continue
		case r == ' ':
			continue
		}
		break
	}
	for _, r := range d.runes[i:end] {
		if r != ' ' {
			d.marks.RightToLeft++
		}
	}
	d.combining = piled
	if d.flat {
		d.text(string(d.runes[i:end]))
		return end - i
	}
	d.line.WriteString("<bdi>")
	d.text(string(d.runes[i:end]))
	d.line.WriteString("</bdi>")
	return end - i
}

// isRTL reports whether a character belongs to a script that runs from right to left.
func isRTL(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

func isTag(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }

// spell turns tag characters into the ASCII they stand for; the ends and blanks of a tag become dots.
func spell(tags []rune) string {
	var b strings.Builder
	for _, r := range tags {
		if c := r - 0xe0000; c >= 0x20 && c < 0x7f {
			b.WriteRune(c)
		} else {
			b.WriteRune('·')
		}
	}
	return b.String()
}

// breaks draws line breaks. Three or more in a row become one mark with the count, also when blanks are strewn between them: forty
// empty lines push what follows out of sight.
func (d *drawing) breaks(i int) int {
	n, blanks, pending, end := 0, 0, 0, i
	for j := i; j < len(d.runes); j++ {
		switch r := d.runes[j]; {
		case r == '\n':
			n, blanks, pending, end = n+1, blanks+pending, 0, j+1
			continue
		case r == '\r' && j+1 < len(d.runes) && d.runes[j+1] == '\n':
			continue
		case r == ' ' || r == '\t':
			pending++
			continue
		}
		break
	}
	return d.drawBreaks(i, n, blanks, end)
}

func (d *drawing) drawBreaks(i, n, blanks, end int) int {
	if n >= 3 {
		d.marks.BreakRuns++
		d.marks.MostBreaks = max(d.marks.MostBreaks, n)
		words := "↵ × " + Grouped(n) + " line breaks"
		if blanks > 0 {
			words += " with " + Count(blanks, "blank", "blanks") + " between"
		}
		if d.block && d.line.Len() > 0 {
			d.endLine()
		}
		d.ctl(words)
		if d.block {
			d.endLine()
		}
		return end - i
	}
	width := 1
	if d.runes[i] == '\r' {
		width = 2
	}
	switch {
	case !d.block && width == 2:
		d.ctl("CR↵ line break")
	case !d.block:
		d.ctl("↵ line break")
	default:
		d.line.WriteString(`<span class="nl" aria-hidden="true">` + map[bool]string{false: "↵", true: "CR↵"}[width == 2] + `</span>`)
		d.endLine()
	}
	return width
}

// ctl writes a visible mark. Its words are ours, but may quote one character of the text.
func (d *drawing) ctl(words string) {
	if d.flat {
		d.text("[" + words + "]")
		return
	}
	d.line.WriteString(`<b class="ctl">` + templ.EscapeString(words) + `</b>`)
}
