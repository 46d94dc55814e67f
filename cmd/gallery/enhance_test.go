package main

import (
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"countersign/views/ui"
)

// evaluate runs a function in the page and returns what it gives as text.
func evaluate(t *testing.T, page playwright.Page, js string) string {
	t.Helper()
	got, err := page.Evaluate(js)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := got.(string)
	return s
}

// entry finds one entry by page and state.
func (l *look) entry(t *testing.T, name, state string) Entry {
	t.Helper()
	for _, e := range l.entries {
		if e.Name == name && e.State == state {
			return e
		}
	}
	t.Fatalf("the gallery has no entry %s, %s", name, state)
	return Entry{}
}

// The script moves the radio that says whether a tool list is meant, and nothing else.
func TestTickingAToolMeansTheList(t *testing.T) {
	l := openLook(t)
	page := l.page(t, deskByNight)
	l.open(t, page, l.entry(t, "Parts", "failed"))
	meant := `() => document.querySelector('input[name="tools_supplied"]:checked').value || "every tool"`
	if err := page.GetByText("Every tool this mode allows").Click(); err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, page, meant); got != "every tool" {
		t.Fatalf("the radio says %q", got)
	}
	if err := page.Locator(`input[value="contacts_get"]`).Click(); err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, page, meant); got != "1" {
		t.Fatalf("after a tool was unticked the radio says %q, want the list", got)
	}
}

// "Read them first" leads to the text itself, not to a closed triangle.
func TestALinkUnfoldsWhatItLeadsTo(t *testing.T) {
	l := openLook(t)
	page := l.page(t, telephone)
	l.open(t, page, l.entry(t, "Parts", "hostile"))
	evaluate(t, page, `() => {
		document.querySelector("figure.quoted").id = "arg-reason";
		const a = document.createElement("a");
		a.href = "#arg-reason"; a.textContent = "Read them first";
		document.querySelector("main").append(a);
	}`)
	if err := page.GetByText("Read them first").Click(); err != nil {
		t.Fatal(err)
	}
	if open := evaluate(t, page, `() => String(document.querySelector("figure.quoted details").open)`); open != "true" {
		t.Error("the folded lines stayed folded")
	}
}

// A second press of the same button posts nothing.
func TestAFormIsSentOnce(t *testing.T) {
	l := openLook(t)
	page := l.page(t, desk)
	l.open(t, page, l.entry(t, "Sign in", "empty"))
	sent := evaluate(t, page, `() => {
		const form = document.querySelector("form");
		let sent = 0;
		document.addEventListener("submit", (e) => { if (!e.defaultPrevented) sent++; e.preventDefault(); });
		form.noValidate = true;
		form.requestSubmit(); form.requestSubmit();
		return String(sent);
	}`)
	if sent != "1" {
		t.Errorf("the form was sent %s times", sent)
	}
}

// HTMX swaps a fragment and fills the live region under the very policy of the pages; a refused answer (422) is shown, too.
func TestHTMXLivesUnderThePolicy(t *testing.T) {
	l := openLook(t)
	c, err := l.context(desk)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	page, err := c.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	var toast strings.Builder
	if err := ui.Toasts(ui.OK, "Saved at 14:16.").Render(t.Context(), &toast); err != nil {
		t.Fatal(err)
	}
	err = page.Route("**/fragment", func(r playwright.Route) {
		defer toast.Reset() // the second answer has nothing to announce
		_ = r.Fulfill(playwright.RouteFulfillOptions{Status: playwright.Int(422), ContentType: playwright.String("text/html"), Body: `<p id="new">Not saved.</p>` + toast.String()})
	})
	if err != nil {
		t.Fatal(err)
	}
	page.OnConsole(func(m playwright.ConsoleMessage) {
		if strings.Contains(m.Text(), "Content Security Policy") {
			t.Error(m.Text())
		}
	})
	l.open(t, page, l.entry(t, "Parts", "empty"))
	evaluate(t, page, `() => {
		window.region = document.getElementById("toasts");
		const b = document.createElement("button");
		b.textContent = "Swap";
		b.setAttribute("hx-post", "/fragment");
		b.setAttribute("hx-target", ".head");
		document.querySelector("main").append(b);
		htmx.process(b);
	}`)
	if err := page.GetByText("Swap").Click(); err != nil {
		t.Fatal(err)
	}
	if err := page.Locator("#toasts .toast").WaitFor(); err != nil {
		t.Fatalf("no toast: %v", err)
	}
	if got := evaluate(t, page, `() => [
		document.querySelector(".head #new")?.textContent,
		String(window.region === document.getElementById("toasts")), window.region.getAttribute("role"),
	].join(" ")`); got != "Not saved. true status" {
		t.Errorf("after the swap: %q; want the fragment in place and the live region the same element", got)
	}
	if err := page.GetByText("Swap").Click(); err != nil {
		t.Fatal(err)
	}
	gone := playwright.LocatorWaitForOptions{State: playwright.WaitForSelectorStateDetached}
	if err := page.Locator("#toasts .toast").WaitFor(gone); err != nil {
		t.Errorf("the toast of the last action stays through the next: %v", err)
	}
}
