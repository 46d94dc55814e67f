package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"
)

// violations is what axe-core found: rule and where.
type violations []struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// inspectsPage runs axe-core over the page as it stands.
func (p *person) inspectsPage(t *testing.T, axe string) {
	t.Helper()
	_, err := p.Evaluate(axe)
	must(t, err)
	raw, err := p.Evaluate(`async () => JSON.stringify((await axe.run(document, {reporter: "no-passes", resultTypes: ["violations"], preload: false})).violations)`)
	must(t, err)
	var found violations
	must(t, json.Unmarshal([]byte(raw.(string)), &found))
	for _, v := range found {
		for _, n := range v.Nodes {
			t.Errorf("%s: %s (%s): %.200s", p.URL(), v.ID, v.Help, n.HTML)
		}
	}
	wide, err := p.Evaluate(`() => document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	must(t, err)
	if n, ok := wide.(int); ok && n > 0 {
		t.Errorf("%s scrolls sideways by %d px", p.URL(), n)
	}
}

// mainPages are the pages of the journey, with an action that waits.
func mainPages(s *server, action, run string) map[string]string {
	return map[string]string{
		"overview": "/", "catalog": "/catalog", "integration": "/catalog/sandbox-crm", "install": "/connections/new/sandbox-crm", "connections": "/connections",
		"connection": "/connections/" + s.sandbox.Connections[0].Key, "inbox": "/actions", "action": "/actions/" + action, "runs": "/runs", "run": "/runs/" + run,
		"context": "/context", "revision": "/context/revisions/1", "profiles": "/profiles", "profile": "/profiles/support", "people": "/people", "tokens": "/tokens", "audit": "/audit", "releases": "/releases", "settings": "/settings",
	}
}

// TestThePagesAreAccessible walks the real pages with axe-core, on a telephone by night and a desk by day; the gallery's test has every
// view in all four looks. With COUNTERSIGN_E2E_SHOTS it walks in all four, too, and leaves a picture of each page for people to look at.
func TestThePagesAreAccessible(t *testing.T) {
	s := sharedServer(t)
	axe, err := os.ReadFile(filepath.Join(repo, "node_modules", "axe-core", "axe.min.js"))
	must(t, err)
	run := s.runtime().starts(t, task("support", "SUP-1"))
	action := run.connects(t, eras[0]).stages(t, s.sandbox.Connections[0].Key+"__refund_issue", refundArguments)
	looks := views[1:3]
	if shotFile("") != "" {
		looks = views
	}
	for _, v := range looks {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			p := s.signsIn(t, "owner@sandbox.test", v)
			for name, path := range mainPages(s, action, run.ID) {
				if status := p.opens(t, path); status != 200 {
					t.Errorf("%s answers %d", path, status)
				}
				p.inspectsPage(t, string(axe))
				if file := shotFile(name + "-" + v.name); file != "" {
					_, err := p.Screenshot(playwright.PageScreenshotOptions{Path: &file, FullPage: playwright.Bool(true)})
					must(t, err)
				}
			}
		})
	}
}

// TestWithTheKeyboardAlone goes from the sign-in form to an approved action without a pointer.
func TestWithTheKeyboardAlone(t *testing.T) {
	s := sharedServer(t)
	id := s.runtime().starts(t, task("support", "SUP-2")).connects(t, eras[0]).stages(t, s.sandbox.Connections[0].Key+"__notes_add", `{"contact_id":"c_1001","text":"by keyboard"}`)
	p := s.visitor(t, desk)
	p.opens(t, "/sign-in?to=/actions/"+id)
	must(t, p.Keyboard().Type("approver@sandbox.test")) // the first field has the focus
	must(t, p.Keyboard().Press("Tab"))
	must(t, p.Keyboard().Type(s.password(t, "approver@sandbox.test")))
	must(t, p.Keyboard().Press("Enter"))
	p.reads(t, "Countersign", "by keyboard")
	p.tabsTo(t, "approve")
	must(t, p.Keyboard().Press("Enter"))
	s.runtime().settles(t, id, "succeeded")
}

// tabsTo presses Tab until the button of a data-test name has the focus, which must be visible.
func (p *person) tabsTo(t *testing.T, test string) {
	t.Helper()
	for range 150 {
		must(t, p.Keyboard().Press("Tab"))
		at, err := p.Evaluate(`() => { const e = document.activeElement, s = getComputedStyle(e); return (e.dataset.test || "") + "|" + (s.outlineStyle !== "none" || s.boxShadow !== "none"); }`)
		must(t, err)
		name, seen, _ := strings.Cut(at.(string), "|")
		if seen != "true" && name != "" {
			t.Errorf("the focus on %s cannot be seen", name)
		}
		if name == test {
			return
		}
	}
	p.stuck(t, "tabbing to "+test, nil)
}

// TestWithoutJavaScript is the admin's and the approver's work in a browser that runs no script.
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s := newServer(t, "COUNTERSIGN_DEMO=1")
	s.start(t)
	plain := desk
	plain.noScript = true
	admin := s.signsIn(t, "admin@sandbox.test", plain)
	admin.opens(t, "/catalog")
	admin.fills(t, "q", "refund a customer")
	must(t, admin.Keyboard().Press("Enter"))
	admin.reads(t, "Best first")
	admin.opens(t, "/connections/new/sandbox-crm")
	admin.fills(t, "name", "No script")
	admin.fills(t, "api_key", s.crmCredential(t))
	admin.presses(t, "install")
	admin.reads(t, "Working")
	key := lastPart(admin.URL())
	admin.ticks(t, "mode", "ask_user_on_write", true)
	admin.presses(t, "save-access")
	admin.ticks(t, "tools", "wait", false) // which of the two is meant is asked, not guessed
	admin.ticks(t, "tools_supplied", "", true)
	admin.presses(t, "save-access")
	admin.reads(t, "Not saved")
	admin.opens(t, "/profiles/support")
	admin.ticks(t, "use", key, true)
	admin.presses(t, "save-profile")

	a := s.runtime().starts(t, task("support", "SUP-3")).connects(t, eras[1])
	yes := a.stages(t, key+"__notes_add", `{"contact_id":"c_1001","text":"without a script"}`)
	no := a.stages(t, key+"__contacts_delete", `{"contact_id":"c_1001"}`)
	approver := s.signsIn(t, "approver@sandbox.test", plain)
	approver.opens(t, "/actions")
	approver.reads(t, "notes_add")
	approver.opens(t, "/actions/"+yes)
	approver.presses(t, "approve")
	s.runtime().settles(t, yes, "succeeded")
	approver.opens(t, "/actions/"+no)
	approver.fills(t, "reason", "Keep the contact.")
	approver.presses(t, "deny")
	s.runtime().settles(t, no, "denied")
	if n := len(s.crm(t).Effects("notes_add")) + len(s.crm(t).Effects("contacts_delete")); n != 1 {
		t.Errorf("the CRM did %d things, want the approved one", n)
	}
}
