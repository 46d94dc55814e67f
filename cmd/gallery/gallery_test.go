package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"countersign/internal/checkout"
)

// problems is what axe-core found: rule, how bad, and where.
type problems []struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (p problems) String() string {
	var b strings.Builder
	for _, v := range p {
		fmt.Fprintf(&b, "\n  %s (%s): %s", v.ID, v.Impact, v.Help)
		for _, n := range v.Nodes {
			fmt.Fprintf(&b, "\n    %s\n      %s", n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n      "))
		}
	}
	return b.String()
}

// look is one open browser with the gallery behind it.
type look struct {
	*browser
	origin  string
	axe     string
	entries []Entry
}

// openLook starts the browser and the gallery. A missing browser fails: an unlooked-at page is not a page that passed.
func openLook(t *testing.T) *look {
	t.Helper()
	entries, err := allEntries("")
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	axe, err := os.ReadFile(filepath.Join(root, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("axe-core is missing: run `npm ci` (%v)", err)
	}
	b, err := openBrowser()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	origin, stop, err := serveLocal(entries)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return &look{b, origin, string(axe), entries}
}

// page opens a page whose every complaint (script error, refused by policy, missing file) fails the test.
func (l *look) page(t *testing.T, v view) playwright.Page {
	t.Helper()
	c, err := l.context(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.AddInitScript(playwright.Script{Content: &l.axe}); err != nil {
		t.Fatal(err)
	}
	page, err := c.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	page.OnConsole(func(m playwright.ConsoleMessage) {
		if m.Type() == "error" || m.Type() == "warning" {
			t.Errorf("%s: console: %s", page.URL(), m.Text())
		}
	})
	page.OnPageError(func(err error) { t.Errorf("%s: script error: %v", page.URL(), err) })
	page.OnDialog(func(d playwright.Dialog) {
		t.Errorf("%s: hostile text ran as a script: %s", page.URL(), d.Message())
		_ = d.Dismiss()
	})
	return page
}

func (l *look) open(t *testing.T, page playwright.Page, e Entry) {
	t.Helper()
	res, err := page.Goto(l.origin + "/" + e.file())
	if err != nil {
		t.Fatal(err)
	}
	if res.Status() != 200 {
		t.Fatalf("%s answers %d", e.file(), res.Status())
	}
}

// Rules of axe-core: every one, or all but the one that colours can break and that takes most of the time, or that one.
const (
	everyRule      = `{}`
	allButContrast = `{rules: {"color-contrast": {enabled: false}}}`
	contrastRule   = `{runOnly: ["color-contrast"]}`
)

// inspect runs axe-core with some of its rules, and has it report nothing else than what is violated, which halves its time. Nothing is
// preloaded: only the rule about locked orientation wants the style sheets' text, which is the same on every page.
func inspect(t *testing.T, page playwright.Page, rules string) problems {
	t.Helper()
	raw, err := page.Evaluate(`async () => JSON.stringify((await axe.run(document, {reporter: "no-passes", resultTypes: ["violations"], preload: false, ...` + rules + `})).violations)`)
	if err != nil {
		t.Fatal(err)
	}
	var found problems
	if err := json.Unmarshal([]byte(raw.(string)), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// overflow says what reaches beyond the window: the page itself, or something that is cut off at its edge and cannot be scrolled to.
func overflow(t *testing.T, page playwright.Page) string {
	t.Helper()
	raw, err := page.Evaluate(`() => {
		const scrolls = (e) => { for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
		const cuts = (e) => /clip|hidden/.test(getComputedStyle(e).overflowX) && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1;
		const out = [...document.querySelectorAll("body *")].filter(e => !e.closest(".vh, svg, input, select, textarea") && (cuts(e) || (e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e))));
		const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
		if (wide <= 0 && out.length === 0) return "";
		return wide + "px: " + out.slice(-3).map(e => e.outerHTML.slice(0, 120)).join(" | ");
	}`)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(string)
}

// lanes is how many pages are looked at side by side.
const lanes = 2

// TestEveryEntryIsAccessibleAndFits opens each entry once, holds it to axe-core, and sees that it fits at both widths and in the narrowest
// window the guidelines ask for. States of a page share its colours and most of its parts: the full state is inspected at both widths and
// its contrast measured in all four looks, any other state at one width and in one look, in turn.
func TestEveryEntryIsAccessibleAndFits(t *testing.T) {
	l := openLook(t)
	for lane := range lanes {
		t.Run(fmt.Sprint("lane ", lane+1), func(t *testing.T) {
			t.Parallel()
			page := l.page(t, desk)
			for i, e := range l.entries {
				if i%lanes == lane {
					l.open(t, page, e)
					l.holds(t, page, e, i/lanes)
				}
			}
		})
	}
}

// reflowWidth is the narrowest window a page must fit without scrolling sideways (WCAG 2.2, 1.4.10).
const reflowWidth = 320

// holds looks at an open entry at every width, and leaves the page as it was.
func (l *look) holds(t *testing.T, page playwright.Page, e Entry, turn int) {
	t.Helper()
	clean := func(rules, where string) {
		t.Helper()
		if found := inspect(t, page, rules); len(found) > 0 {
			t.Errorf("%s, %s:%s", e.file(), where, found)
		}
	}
	fits := func(width int) {
		t.Helper()
		if wide := overflow(t, page); wide != "" {
			t.Errorf("%s scrolls sideways at %d by %s", e.file(), width, wide)
		}
	}
	for i, v := range looks {
		if v.scheme == playwright.ColorSchemeLight {
			resize(t, page, v.width, v.height)
			if e.State == "full" || v.width == looks[turn%len(looks)].width {
				clean(allButContrast, v.name)
			}
			fits(v.width)
		}
		if e.State == "full" || i == turn%len(looks) {
			emulate(t, page, v.scheme)
			clean(contrastRule, v.name)
			emulate(t, page, playwright.ColorSchemeLight)
		}
	}
	resize(t, page, reflowWidth, telephone.height)
	fits(reflowWidth)
	resize(t, page, desk.width, desk.height)
}

func emulate(t *testing.T, page playwright.Page, scheme *playwright.ColorScheme) {
	t.Helper()
	if err := page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: scheme}); err != nil {
		t.Fatal(err)
	}
}

func resize(t *testing.T, page playwright.Page, width, height int) {
	t.Helper()
	if err := page.SetViewportSize(width, height); err != nil {
		t.Fatal(err)
	}
}

// The menu is the browser's own popover: it opens, traps nothing, closes, and is as accessible open as shut.
func TestTheMenuOpensOnATelephone(t *testing.T) {
	l := openLook(t)
	page := l.page(t, telephone)
	l.open(t, page, l.entry(t, "Parts", "full"))
	rail := page.Locator("nav.rail")
	if shown, err := rail.IsVisible(); err != nil || shown {
		t.Fatalf("the menu is open before anyone opened it (%v)", err)
	}
	if err := page.Locator(`button[popovertarget="nav"]:visible`).Click(); err != nil {
		t.Fatal(err)
	}
	if err := page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Connections"}).WaitFor(); err != nil {
		t.Fatalf("the menu did not open: %v", err)
	}
	if found := inspect(t, page, everyRule); len(found) > 0 {
		t.Errorf("with the menu open:%s", found)
	}
	if err := page.Locator("nav.rail .close").Click(); err != nil {
		t.Fatal(err)
	}
	if shown, err := rail.IsVisible(); err != nil || shown {
		t.Fatalf("the menu did not close (%v)", err)
	}
}

// An inspection that finds nothing must be one that could have found something.
func TestTheInspectionSeesAFault(t *testing.T) {
	l := openLook(t)
	page := l.page(t, telephone)
	l.open(t, page, l.entries[0])
	if _, err := page.Evaluate(`() => {
		const button = document.createElement("button");
		button.className = "i";
		document.querySelector("main").append(button);
		const wide = document.createElement("pre");
		wide.textContent = "wide ".repeat(200);
		document.querySelector("main").append(wide);
	}`); err != nil {
		t.Fatal(err)
	}
	if found := inspect(t, page, everyRule).String(); !strings.Contains(found, "button-name") {
		t.Errorf("a button without a name went unseen; found:%s", found)
	}
	if overflow(t, page) == "" {
		t.Error("a line wider than the window went unseen")
	}
	// The page itself does not scroll, but what is cut off at the edge of a clipping box can never be read.
	if _, err := page.Evaluate(`() => document.querySelector("main").replaceChildren(Object.assign(document.createElement("figure"), {className: "quoted", innerHTML: "<pre>" + "wide ".repeat(200) + "</pre>"}))`); err != nil {
		t.Fatal(err)
	}
	if overflow(t, page) == "" {
		t.Error("a line cut off at the edge of a clipping box went unseen")
	}
}

// Without Chromium the tests above must fail with the command that helps, never skip.
func TestAMissingBrowserIsSaid(t *testing.T) {
	t.Setenv("CHROMIUM", filepath.Join(t.TempDir(), "nowhere"))
	if _, err := openBrowser(); err == nil || !strings.Contains(err.Error(), "npm ci") {
		t.Fatalf("got %v, want the command that installs it", err)
	}
}

func TestTheSiteIsWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	entries, err := allEntries("")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSite(t.Context(), dir, entries); err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(dir, e.file()))
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(body)), "</html>") {
			t.Errorf("%s is not a whole page (%v)", e.file(), err)
		}
		if !strings.Contains(string(index), `href="/`+e.file()+`"`) {
			t.Errorf("the index does not link to %s", e.file())
		}
	}
}
