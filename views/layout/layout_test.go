package layout

import (
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"countersign/views/ui"
)

func draw(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(templ.WithChildren(t.Context(), templ.Raw("<h1>Content</h1>")), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a role may not open is not offered. The guard of the route is the rule; this is courtesy.
func TestTheMenuOffersWhatTheRoleMayOpen(t *testing.T) {
	everybody := "overview inbox catalog connections profiles context runs releases settings"
	for _, c := range []struct {
		who  string
		v    Viewer
		more string
	}{
		{"member", Viewer{}, ""},
		{"approver", Viewer{MayDecide: true}, ""},
		{"auditor", Viewer{MayAudit: true}, "audit"},
		{"admin", Viewer{MayManage: true}, "people tokens"},
		{"owner", Viewer{MayManage: true, MayAudit: true, MayDecide: true}, "audit people tokens"},
	} {
		want := map[string]bool{}
		for _, id := range strings.Fields(everybody + " " + c.more) {
			want[id] = true
		}
		html := draw(t, Page(Frame{Viewer: c.v}))
		for _, g := range navigation(Viewer{MayManage: true, MayAudit: true, MayDecide: true}) {
			for _, e := range g.entries {
				link := regexp.MustCompile(`<li><a href="` + regexp.QuoteMeta(e.href) + `">`)
				if got := link.MatchString(html); got != want[e.id] {
					t.Errorf("%s: the entry %s is offered: %v, want %v", c.who, e.id, got, want[e.id])
				}
				delete(want, e.id)
			}
		}
		for id := range want {
			t.Errorf("%s: there is no entry %s", c.who, id)
		}
	}
}

func TestOnlyTheCurrentEntryIsMarked(t *testing.T) {
	html := draw(t, Page(Frame{Current: "connections"}))
	if n := strings.Count(html, "aria-current"); n != 1 || !strings.Contains(html, `<a href="/connections" aria-current="page">`) {
		t.Errorf("%d entries are marked as current; want connections alone", n)
	}
}

// A number that waits is for those who can act on it.
func TestCountsAreShownToWhomTheyConcern(t *testing.T) {
	v := Viewer{InboxWaiting: 3, NeedsReview: 1, RunsLive: 2}
	if html := draw(t, Page(Frame{Viewer: v})); strings.Contains(html, "waiting for you") {
		t.Error("somebody who may not decide is told that actions wait for them")
	}
	v.MayDecide = true
	html := draw(t, Page(Frame{Viewer: v}))
	for _, words := range []string{`3<span class="vh"> waiting for you</span>`, `1<span class="vh"> needs a review</span>`, `2<span class="vh"> live</span>`} {
		if !strings.Contains(html, words) {
			t.Errorf("the page lacks %s", words)
		}
	}
}

func TestThePageSaysWhatHappenedAndWhatIsStopped(t *testing.T) {
	html := draw(t, Page(Frame{Title: "In<box", Theme: "dark", Freeze: "Since 13:20 UTC.", Flash: &Flash{Tone: ui.OK, Text: "Saved <at> 14:16."}}))
	for _, want := range []string{`<title>In&lt;box · Countersign</title>`, `<html lang="en" data-theme="dark">`, "Everything consequential is stopped.", "Since 13:20 UTC.", "Saved &lt;at&gt; 14:16.", `<div id="toasts" class="toasts" role="status">`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if html := draw(t, Page(Frame{})); strings.Contains(html, "data-theme") || strings.Contains(html, `class="notices"`) {
		t.Error("a page without theme, flash and freeze has marks of them")
	}
}

// The door must work while nothing else does, and give nothing away.
func TestTheDoorHasNoNavigation(t *testing.T) {
	html := draw(t, Door("Sign in", ""))
	if strings.Contains(html, "<nav") || strings.Contains(html, "htmx") || !strings.Contains(html, "<h1>Content</h1>") {
		t.Errorf("the door: %s", html)
	}
}
