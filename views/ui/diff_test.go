package ui

import (
	"strings"
	"testing"

	"countersign/internal/growth"
)

// sides puts the two texts of a difference together again.
func sides(changes []change) (before, after string) {
	var b, a []string
	for _, c := range changes {
		var line strings.Builder
		for _, p := range c.parts {
			line.WriteString(p.text)
		}
		if c.kind != '+' {
			b = append(b, line.String())
		}
		if c.kind != '-' {
			a = append(a, line.String())
		}
	}
	return strings.Join(b, "\n"), strings.Join(a, "\n")
}

func FuzzADifferenceLosesNothing(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc")
	f.Add("", "new")
	f.Add("one two three", "one 2 three\nfour")
	f.Add("a\r\nb", "a\nb")
	f.Fuzz(func(t *testing.T, before, after string) {
		b, a := sides(diffLines(before, after))
		if b != strings.TrimSuffix(before, "\n") || a != strings.TrimSuffix(after, "\n") {
			t.Fatalf("the difference of %q and %q reads as %q and %q", before, after, b, a)
		}
	})
}

func TestOnlyTheChangedWordsAreMarked(t *testing.T) {
	got := draw(t, Diff("x", "Moves a deal to another stage.", "Moves a deal to another stage and emails the contact."))
	want := `<pre class="diff" tabindex="0" role="region" aria-label="Difference of x"><del>Moves a deal to another stage.</del><ins>Moves a deal to another stage<mark> and emails the contact</mark>.</ins></pre>`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A text that differs only in what does not show must show a difference.
func TestAHiddenChangeIsSeen(t *testing.T) {
	for _, after := range []string{"a b\r", "a\u200b b", "a  b", "a\u00a0b"} {
		if got := draw(t, Diff("x", "a b", after)); !strings.Contains(got, "<ins>") || !strings.Contains(got, "<mark>") {
			t.Errorf("the change to %+q does not show: %s", after, got)
		}
	}
}

// An upstream may send a definition made to be slow to compare.
func TestALargeDifferenceIsBounded(t *testing.T) {
	growth.Linear(t, "nothing in common", 5_000, func(lines int) func() {
		before, after := strings.Repeat("a b c d e f\n", lines), strings.Repeat("f e d c b a\n", lines)
		return func() {
			if b, a := sides(diffLines(before, after)); b+"\n" != before || a+"\n" != after {
				t.Error("lines were lost")
			}
		}
	})
}
