package ui

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"countersign/internal/growth"
)

// Each trick is replaced by a mark that names it.
func TestWhatHidesIsShown(t *testing.T) {
	for in, want := range map[string]string{
		"a\u202eb":                        "U+202E right-to-left override",
		"a\u202cb":                        "U+202C end of override",
		"a\u2066b\u2069":                  "U+2066 left-to-right isolate",
		"a\u200bb":                        "U+200B zero-width space",
		"a\u200b\u200b\u200bb":            "U+200B zero-width space × 3",
		"a\u00adb":                        "U+00AD soft hyphen",
		"a\ufeffb":                        "U+FEFF byte order mark",
		"a\x00b":                          "U+0000 null",
		"a\x1b[2Kb":                       "U+001B escape",
		"a\rb":                            "U+000D carriage return",
		"a\u0085b":                        "U+0085 next line",
		"a\u2028b":                        "U+2028 line separator",
		"a\u00a0b":                        "U+00A0 no-break space",
		"a\u3164b":                        "U+3164 Hangul filler",
		"a\u2800b":                        "U+2800 blank braille",
		"a\ufe0fb":                        "U+FE0F variation selector",
		"a\U000e0101b":                    "U+E0101 variation selector",
		"a\ue000b":                        "U+E000 private use",
		"a\U000f0000b":                    "U+F0000 private use",
		"a\u0378b":                        "U+0378 unassigned",
		"a\xffb":                          "byte 0xFF",
		"a\xe2\x80":                       "byte 0xE2",
		"no\u0336t":                       "U+0336 mark drawn over a letter",
		"z\u0301\u0301\u0301\u0301\u0301": "U+0301 piled-up mark",
		"\U000e0069\U000e0067\U000e006e":  "3 tag characters spelling “ign”",
		"\U000e0041":                      "U+E0041 tag “A”",
		"\u0441ustomer":                   "с U+0441 Cyrillic",
		"pay\u03bfut":                     "ο U+03BF Greek",
		"\u13aclient":                     "U+13AC Cherokee",
		"ｐay":                             "ｐ U+FF50 styled letter",
		"𝐩ay":                             "U+1D429 styled letter",
		"send to \u0440\u0430\u0443\u0440\u0430\u04cf now": "р U+0440 Cyrillic",
		"\u043e\u200bne":          "о U+043E Cyrillic", // a zero-width space does not split the word for us
		"Кaфе":                    "a U+0061 Latin",
		"total 1\u09ea0":          "\u09ea U+09EA digit 4", // drawn like an 8
		"send \u0661\u0662\u0663": "\u0661 U+0661 digit 1",
		"good.test\u2215evil":     "\u2215 U+2215 looks like /",
		"lo\u0261in":              "\u0261 U+0261 looks like g",
		"a\n\n\nb":                "↵ × 3 line breaks",
		"a\n \n\t\nb":             "↵ × 3 line breaks with 2 blanks between",
	} {
		out := draw(t, Raw(in))
		if !strings.Contains(out, `<b class="ctl">`) || !strings.Contains(out, want) {
			t.Errorf("Raw(%+q) lacks the mark %q: %s", in, want, out)
		}
		if !Scan(in).Any() {
			t.Errorf("Scan(%+q) finds nothing", in)
		}
	}
}

// Honest text stays as it is: a notice that cries at every name would soon go unread.
func TestHonestTextStaysClean(t *testing.T) {
	for _, in := range []string{
		"", "Refund $240.00", "two\nlines", "a\n\nb", "tab\tand  two spaces", "windows\r\nlines",
		"Zoë, Łukasz, Ångström, naïve, ß", "Привет, мир", "Москва и Kyiv", "Добро пожаловать в GitHub", "Ελλάδα", "5 µm, Δx, λ-calculus, π",
		"日本語とkanji", "東京タワー", "한국어", "মোট ১৪০ টাকা", "\u0627\u0644\u0645\u0628\u0644\u063a \u0661\u0662\u0663", "ไทย", "हिन्दी", "مرحبا", "שלום", "😀 🚀", "“quotes” – dashes … ✓ ↵ €", "x² ½ №", "co\u0301mo",
	} {
		if m := Scan(in); m.Any() || m.Sentence() != "" {
			t.Errorf("Scan(%q) = %+v: this is honest text", in, m)
		}
		if out := draw(t, Raw(in)); strings.Contains(out, "ctl") {
			t.Errorf("Raw(%q) has a mark: %s", in, out)
		}
	}
}

func TestRightToLeftWordsMoveNothingElse(t *testing.T) {
	got := draw(t, Text("\u05e9\u05dc\u05d5\u05dd \u05d0 100 $"))
	if want := "<span class=\"txt\"><bdi>\u05e9\u05dc\u05d5\u05dd \u05d0</bdi> 100 $</span>"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestInlineTextStaysOnItsLine(t *testing.T) {
	if got := draw(t, Text("a\nb")); strings.Contains(got, "\n") || !strings.Contains(got, "↵ line break") {
		t.Errorf("a line break left its line: %q", got)
	}
	if got := draw(t, Text("Refund $240.00")); got != "Refund $240.00" {
		t.Errorf("plain text got a wrapping: %s", got)
	}
}

func TestFoldingHidesNothing(t *testing.T) {
	lines := strings.Repeat("line\n", 30)
	if m := Scan(lines); m.Lines != 30 || m.Folded != 18 {
		t.Fatalf("Scan: %d lines, %d folded; want 30 and 18", m.Lines, m.Folded)
	}
	out := draw(t, Raw(lines))
	if !strings.Contains(out, "<details><summary>Show the other 18 lines</summary>") || strings.Count(out, "line<span") != 30 {
		t.Errorf("the folded text is not whole: %s", out)
	}
	if strings.Contains(draw(t, Raw(strings.Repeat("x\n", 12))), "<details>") {
		t.Error("12 lines are folded")
	}
}

func TestTheSentenceCounts(t *testing.T) {
	s := "ref\u200bund \u202e00\u202c \u0441ustomer" + strings.Repeat("\n", 48) + "end"
	if got, want := Scan(s).Sentence(), "It holds 3 characters that hide or reverse text, 1 look-alike letter and 48 line breaks in a row."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestASCIIHidesNothing(t *testing.T) {
	if got, want := ASCII("{\"a\":\"\u202e\u00e9\U0001f600\x7f\"}"), `{"a":"\u202e\u00e9\ud83d\ude00\u007f"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFlatTextHasNoMarkup(t *testing.T) {
	for in, want := range map[string]string{
		"Refund $240.00": "Refund $240.00",
		"a\u202eb<i>\n":  "a[U+202E right-to-left override]b<i>[↵ line break]",
		"\u05d0 1":       "\u05d0 1",
	} {
		if got := Flat(in); got != want {
			t.Errorf("Flat(%+q) = %q, want %q", in, got, want)
		}
	}
}

var tag = regexp.MustCompile(`<[^<>]*>`)

// Whatever the bytes: the HTML is valid UTF-8, holds only our own tags, and no character that hides.
func FuzzNothingHidesInTheHTML(f *testing.F) {
	for _, s := range []string{"plain", "\u202e\u200b\U000e0041\xff", "<script>&amp;\"'", "a\n\n\n\r\n\r", "\u05d0\u0301\u0301\u0301\u0301\u0301\u0301 1", "\u0441us\u0336", " \n \n \n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{draw(t, Raw(s)), draw(t, Text(s)), draw(t, Diff("x", s, s+"y"))} {
			if !utf8.ValidString(out) {
				t.Fatalf("%+q gives invalid UTF-8: %+q", s, out)
			}
			for _, m := range tag.FindAllString(out, -1) {
				switch m {
				case `<code class="raw">`, `</code>`, `<b class="ctl">`, `</b>`, `<span class="nl" aria-hidden="true">`, `</span>`, `<bdi>`, `</bdi>`, `<span class="txt">`,
					`<details>`, `</details>`, `<summary>`, `</summary>`, `<pre class="diff" tabindex="0" role="region" aria-label="Difference of x">`, `</pre>`,
					`<span>`, `<del>`, `</del>`, `<ins>`, `</ins>`, `<mark>`, `</mark>`:
				default:
					t.Fatalf("%+q gives the tag %s", s, m)
				}
			}
			for _, r := range html.UnescapeString(tag.ReplaceAllString(out, "")) + Flat(s) {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Fatalf("%+q lets %U through: %+q", s, r, out)
				}
			}
		}
	})
}

// An argument may be as large as a call may be.
func TestALargeTextIsBounded(t *testing.T) {
	for name, unit := range map[string]string{
		"plain": "word ", "hidden": "\u200b\u200c", "breaks": "\n \n", "right to left": "\u05d0    ", "piled": "\u05d0\u0301\u0301\u0301\u0301\u0301", "blanks": "\n" + strings.Repeat(" ", 500) + "x", "mixed": "\u0430b\u0441d ",
	} {
		growth.Linear(t, name, 64<<10, func(size int) func() {
			s := strings.Repeat(unit, size/len(unit))
			return func() {
				if Scan(s).Characters == 0 {
					t.Fatal("nothing was read")
				}
			}
		})
	}
}
