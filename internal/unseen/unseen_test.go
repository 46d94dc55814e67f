package unseen_test

import (
	"strings"
	"testing"

	"countersign/internal/unseen"
)

func TestWhatAReaderDoesNotSee(t *testing.T) {
	for _, r := range "\x00\t\n\x7f\u0085\u00ad\u061c\u180b\u180e\u200b\u200e\u202e\u2028\u2029\u2060\u2066\u2069\ufe00\ufe0f\ufeff\ufff9\ue000\U000e0041\U000e0100\U000f0000" {
		if !unseen.Is(r) {
			t.Errorf("U+%04X is taken for visible", r)
		}
	}
	for _, r := range " ~aé字ا́🙂\u00a0\u3000" {
		if unseen.Is(r) {
			t.Errorf("U+%04X is taken for unseen", r)
		}
	}
}

func TestProseMayHoldWhatScriptsAndPicturesNeed(t *testing.T) {
	for _, s := range []string{"", "plain", "⚠\ufe0f careful", "👩\u200d💻", "می\u200cخواهم"} {
		if r, found := unseen.InProse(s); found {
			t.Errorf("%q: U+%04X", s, r)
		}
	}
	for s, want := range map[string]rune{
		"\u200dx": '\u200d', "x" + strings.Repeat("\u200d", 3): '\u200d', "pay \u202ethgie": '\u202e', "a\nb": '\n', "x\ufe0e": '\ufe0e', "\U000e0068i": '\U000e0068',
	} {
		if r, found := unseen.InProse(s); !found || r != want {
			t.Errorf("%q: U+%04X %v, want U+%04X", s, r, found, want)
		}
	}
}

func TestWhatIsNotSeenIsShown(t *testing.T) {
	for s, want := range map[string]string{"": "", "“Zoë” – 東京": "“Zoë” – 東京", "\x1b[2Ja\nb": "U+001B[2JaU+000Ab", "x\u202e\U000e0041": "xU+202EU+E0041"} {
		if got := unseen.Shown(s); got != want {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
}
