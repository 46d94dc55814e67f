// Package unseen owns which characters a reader does not see as they are. Whoever reviews, approves or compares a text must read what a
// machine reads ("Trojan Source", CVE-2021-42574, and words smuggled in tag characters or variation selectors). It never decides what to
// do about one: refuse it, drop it or write its code point.
package unseen

import (
	"fmt"
	"strings"
	"unicode"
)

// selectors choose a form of the character before them and show nothing themselves; 256 of them spell any byte.
var selectors = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x180b, Hi: 0x180d, Stride: 1}, {Lo: 0x180f, Hi: 0x180f, Stride: 1}, {Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}},
}

// Is reports whether a character shows nothing, or changes how others are shown: controls with tab and line feed, bidirectional overrides,
// zero-width and tag characters, private use, line and paragraph separators, variation selectors.
func Is(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false // nearly all there is
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || Selector(r)
}

// Selector reports whether a character is a variation selector.
func Selector(r rune) bool { return unicode.Is(selectors, r) }

// Companion reports whether an unseen character is at home in ordinary words: the joiners of scripts and pictures, and the selector of a
// coloured picture.
func Companion(r rune) bool { return r == '\u200c' || r == '\u200d' || r == '\ufe0f' }

// InProse finds the first unseen character of what people write for people. Companions of a visible character belong to it; more than
// two in a row carry words of their own.
func InProse(s string) (rune, bool) {
	run := 0
	for i, r := range s {
		if Companion(r) {
			if run++; run > 2 || i == 0 {
				return r, true
			}
			continue
		}
		if run = 0; Is(r) {
			return r, true
		}
	}
	return 0, false
}

// Point writes a character as its code point, like U+202E: that can be read, whatever it shows.
func Point(r rune) string { return fmt.Sprintf("U+%04X", r) }

// Shown writes each unseen character as its code point. Somebody else's name in a sentence would rearrange the page it is read on, make two
// lines of one, or command the terminal it is printed to.
func Shown(s string) string {
	if !strings.ContainsFunc(s, Is) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if Is(r) {
			b.WriteString(Point(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
