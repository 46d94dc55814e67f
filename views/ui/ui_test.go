package ui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"

	"countersign/static"
)

var update = flag.Bool("update", false, "write the golden files again")

// draw renders a component to HTML with the sprite's hash taken out, so that a new icon changes no golden file.
func draw(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), static.URL("icons.svg"), "/icons.svg")
}

var at = time.Date(2026, time.November, 30, 13, 54, 11, 250_000_000, time.FixedZone("elsewhere", 3*3600))

func TestGolden(t *testing.T) {
	for name, components := range map[string][]templ.Component{
		"button": {
			Button(Press{Label: "Approve and refund $240.00", Weight: Primary, Test: "approve"}),
			Button(Press{Label: "Deny, send nothing", Action: "/actions/a/deny", Name: "answer", Value: "deny", Icon: "denied"}),
			Button(Press{Label: "Not available", Off: true, Small: true}),
			LinkButton("Replace the key", "#cred", Quiet),
			CopyButton("Copy", "token"),
			LinkButton("Run me", "javascript:alert(1)", Normal),
			Button(Press{Label: "Run me", Action: "javascript:alert(1)"}),
		},
		"field": {
			Field(Input{Name: "email", Label: "Email", Type: "email", Value: `a"b<c>@x.test`, Required: true}),
			Field(Input{Name: "key", Label: "New key", Type: "password", Value: "must never be printed", Hint: "Write only.", Error: "Refused (401). The old key is still in use."}),
			TextArea(Input{ID: "why", Name: "reason", Label: "Reason", Value: "\nfirst line is empty </textarea>", Hint: "The agent reads it."}),
			Select(Input{Name: "role", Label: "Role", Value: "b", Options: []Option{{Value: "a", Label: "A"}, {Value: "b", Label: "B"}}, Error: "Choose one."}),
			Checkbox(Choice{Name: "tools", Value: "deals_move", Label: "deals_move", Hint: "Held back.", Off: true}),
			Problems("Not saved.", []Problem{{ID: "key", Text: "The key was refused."}}),
		},
		"notice": {
			NoteText(Plain, "Plain.", "Nothing to do."),
			NoteText(Bad, "Could not reach it.", "Since 13:20."),
			NoteText(Unknown, "Outcome unknown.", "Sent once."),
			Toasts(OK, "Saved at 14:16."),
		},
		"way": {
			Crumbs(Crumb{Label: "Inbox", Href: "/actions"}, Crumb{Label: "act_1", Mono: true}),
			Tabs("Parts", []Tab{{Label: "Open", Href: "/a", Current: true, Count: 1200, CountWords: "open"}, {Label: "Changes", Href: "#d", Count: 1, NeedsLook: true}, {Label: "History", Href: "#h", Count: -1}}),
			Pager(Cursor{First: "/audit", Next: "/audit?after=x", Words: "40 entries"}),
		},
		"time":   {Stamp(at), Day(at), Clock(at), Seconds(at), Millis(at), Until(at.Add(38*time.Minute), at), Since(at.Add(-3*time.Hour), at)},
		"meter":  {Meter(1, 1, 3), Meter(411, 1, 1000), Meter(0, 0, 0)},
		"digest": {Digest("02d489dbe00088570637782c772c55bc4929a84ef05e632393b70bd32639fd2b"), Strip("zz"), ShortDigest("02d489dbe000")},
		"timeline": {Timeline([]Event{
			{At: at, Text: "Run started", By: "x <b>"},
			{At: at, Lead: "Asked.", Text: "Nothing has been sent.", Now: true, Exact: true},
		})},
		"hostile": {
			Text("Refund\u202e 00.04$ <b>"), Raw("a\u200b\n\n\n\nb\r\nc\td  e\x00"), Quoted("Written by the agent.", "ok"),
			RawLine("“quoted”"), ReadClosely(Scan("a\u200b")), ReadClosely(Scan("honest")), ExactBytes("Exact bytes", "{\"a\":\"\u202e\U0001f600\"}"),
		},
		"diff": {Diff("deals_move", "keep\nold word here\ntail", "keep\nnew word here\nmore\u200b\ntail")},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, c := range components {
				b.WriteString(draw(t, c) + "\n")
			}
			file := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("%s (-want +got), go test ./views/ui -update writes it again:\n%s", file, d)
			}
		})
	}
}

func TestASecretIsNeverPrinted(t *testing.T) {
	if html := draw(t, Field(Input{Name: "key", Type: "password", Value: "sk_live_1"})); strings.Contains(html, "sk_live_1") {
		t.Fatalf("the value of a password came back: %s", html)
	}
}

func TestLeftNeverPromisesMore(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "no time", 0: "no time", 59 * time.Second: "less than 1 min", 119*time.Minute + 59*time.Second: "119 min",
		2 * time.Hour: "2 h", 47*time.Hour + 59*time.Minute: "47 h", 49 * time.Hour: "2 days",
	} {
		if got := Left(d); got != want {
			t.Errorf("Left(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestNumbersInWords(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th"} {
		if got := Ordinal(n); got != want {
			t.Errorf("Ordinal(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 tools", 1: "1 tool", 999: "999 tools", 41208: "41,208 tools", -1234567: "-1,234,567 tools"} {
		if got := Count(n, "tool", "tools"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
