package ui

import (
	"unicode"

	"countersign/internal/unseen"
)

// suspicion says why a character is not passed through as it is.
type suspicion uint8

const (
	innocent suspicion = iota
	hides              // shows nothing, or moves, covers or strikes other text
	lookAlike
	oddSpace
)

// wellKnown names the characters that attacks are made of, in words a reviewer can act on.
var wellKnown = map[rune]string{
	0x00: "null", 0x07: "bell", 0x08: "backspace", 0x0b: "vertical tab", 0x0c: "form feed", 0x0d: "carriage return", 0x1b: "escape", 0x7f: "delete",
	0x85: "next line", 0x9b: "control sequence introducer",
	0xa0: "no-break space", 0xad: "soft hyphen", 0x034f: "combining grapheme joiner", 0x061c: "Arabic letter mark",
	0x115f: "Hangul filler", 0x1160: "Hangul filler", 0x17b4: "invisible vowel", 0x17b5: "invisible vowel", 0x180e: "Mongolian vowel separator",
	0x200b: "zero-width space", 0x200c: "zero-width non-joiner", 0x200d: "zero-width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
	0x2028: "line separator", 0x2029: "paragraph separator",
	0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "end of override", 0x202d: "left-to-right override", 0x202e: "right-to-left override",
	0x202f: "narrow no-break space", 0x2060: "word joiner", 0x2061: "invisible function", 0x2062: "invisible times", 0x2063: "invisible separator", 0x2064: "invisible plus",
	0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate", 0x2069: "end of isolate",
	0x2800: "blank braille", 0x3000: "wide space", 0x3164: "Hangul filler", 0xfeff: "byte order mark", 0xffa0: "Hangul filler", 0xfffc: "object replacement",
	0x1d159: "invisible notehead",
}

// blank are characters that Unicode calls printable and that show nothing.
var blank = map[rune]bool{
	0x034f: true, 0x115f: true, 0x1160: true, 0x17b4: true, 0x17b5: true, 0x2800: true, 0x3164: true, 0xffa0: true, 0xfffc: true, 0x1d159: true,
}

// signs are punctuation that reads as the sign a path, an address or a price is cut at.
var signs = map[rune]string{
	0x2044: "looks like /", 0x2215: "looks like /", 0x29f8: "looks like /", 0x2571: "looks like /", 0x3033: "looks like /",
	0x2236: "looks like :", 0xa789: "looks like :", 0xfe55: "looks like :", 0x037e: "looks like ;", 0x2024: "looks like a full stop", 0xfe52: "looks like a full stop",
	0x01c0: "looks like |", 0x01c3: "looks like !", 0x0261: "looks like g", 0x0251: "looks like a", 0xfe6b: "looks like @", 0x201a: "looks like a comma",
}

// overlays are combining marks that draw over the letter before them: with them a sentence can look struck out, or be covered.
var overlays = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x0334, Hi: 0x0338, Stride: 1}, {Lo: 0x0488, Hi: 0x0489, Stride: 1}, {Lo: 0x20d2, Hi: 0x20e5, Stride: 1}, {Lo: 0x20e6, Hi: 0x20ef, Stride: 1}}, LatinOffset: 0}

// judge looks at one character alone. Tab, line feed and carriage return before a line feed are handled by the caller.
func judge(r rune) (suspicion, string) {
	if name, ok := wellKnown[r]; ok {
		if unicode.Is(unicode.Zs, r) {
			return oddSpace, name
		}
		return hides, name
	}
	switch {
	case r >= 0x20 && r < 0x7f:
		return innocent, ""
	case r >= 0xe0000 && r <= 0xe007f:
		return hides, tagName(r)
	case unicode.Is(unicode.Cc, r):
		return hides, "control character"
	case unicode.Is(unicode.Co, r):
		return hides, "private use"
	case unseen.Selector(r):
		return hides, "variation selector"
	case unicode.Is(unicode.Cf, r):
		return hides, "format character"
	case unicode.Is(unicode.Zs, r):
		return oddSpace, "unusual space"
	case blank[r]:
		return hides, "blank character"
	case unicode.Is(overlays, r):
		return hides, "mark drawn over a letter"
	case r >= 0x1d400 && r <= 0x1d7ff || r >= 0xff01 && r <= 0xff5e || r >= 0x1f130 && r <= 0x1f189 || r >= 0x24b6 && r <= 0x24e9:
		return lookAlike, "styled letter" // mathematical, full-width, enclosed: another character that reads as the plain one
	case signs[r] != "":
		return lookAlike, signs[r]
	case r >= 0x1d00 && r <= 0x1d2b:
		return lookAlike, "small capital"
	case !unicode.IsPrint(r):
		return hides, "unassigned"
	}
	return innocent, ""
}

// tagName reads a tag character: they spell ASCII that no font shows.
func tagName(r rune) string {
	if c := r - 0xe0000; c > 0x20 && c < 0x7f {
		return "tag “" + string(c) + "”"
	}
	return "tag character"
}
