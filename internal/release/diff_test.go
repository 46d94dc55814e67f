package release_test

import (
	"strings"
	"testing"

	"countersign/internal/release"
)

func TestDiffSaysWhatCameAndWent(t *testing.T) {
	a := build(t, folder("one.toml", desk("one", "One"), "two.toml", desk("two", "Two")))
	b := build(t, folder("two.toml", desk("two", "Two"), "three.toml", desk("three", "Three")))
	got := release.Diff(a, b)
	words := strings.Join(got.Words(), "\n")
	if words != "Added Three (three).\nRemoved One (one); its connections keep working with the release they were made from." {
		t.Errorf("%s", words)
	}
	if got.From != a.Digest() || got.To != b.Digest() || got.None() || got.Widens() {
		t.Errorf("%+v", got)
	}
	if same := release.Diff(a, a); !same.None() || same.Words()[0] != "Nothing differs." {
		t.Errorf("%+v", same)
	}
	if first := release.Diff(release.Release{}, a); len(first.Added) != 2 || first.From != "" {
		t.Errorf("%+v", first)
	}
}

// Each edit of one file, the line that tells it, and whether it lets agents do more.
func TestDiffOfOneManifest(t *testing.T) {
	const closeReview = "[tools.tickets_close]\neffect = \"consequential\"\nreviewed = \"2026-11-30\"\nwhy = \"Closes a ticket for the customer.\"\narguments = [\"ticket_id\"]\nsentence = \"Close ticket {ticket_id}\"\n"
	for name, c := range map[string]struct {
		from, to string
		line     string
		widens   bool
	}{
		"a text":              {"Tickets of a desk", "Tickets of the desk", "summary was “Tickets of a desk that exists for tests.” and is now “Tickets of the desk that exists for tests.”.", false},
		"an effect to read":   {`effect = "consequential"`, `effect = "read"`, "tools.tickets_close.effect was “consequential” and is now “read”.", true},
		"an error pattern":    {`arguments = ["ticket_id"]`, "arguments = [\"ticket_id\"]\ndefinite_errors = [\"^no ticket\"]", "tools.tickets_close.definite_errors[0] is now “^no ticket”.", true},
		"a review is gone":    {closeReview, "", "“tickets_close” is no longer reviewed (it was consequential); what the service says of it counts from now on.", true},
		"a new write review":  {"[probe]", "[tools.tickets_open]\neffect = \"consequential\"\nreviewed = \"2026-11-30\"\nwhy = \"Opens a ticket again.\"\nsentence = \"Open a ticket\"\n\n[probe]", "“tickets_open” is now reviewed: consequential.", false},
		"a new read review":   {"[probe]", "[tools.tickets_get]\neffect = \"read\"\nreviewed = \"2026-11-30\"\nwhy = \"Reads one ticket.\"\n\n[probe]", "“tickets_get” is now reviewed: read.", true},
		"destructive":         {`effect = "consequential"`, "effect = \"consequential\"\ndestructive = true\nstakes = \"The ticket is gone.\"", "tools.tickets_close.destructive is now “true”.", false},
		"another runtime":     {"sandbox_crm.v1", "deepwiki.v1", "runtime was “sandbox_crm.v1” and is now “deepwiki.v1”.", true},
		"another contract":    {"[[auth]]\ncontract = \"none\"", "[[setup.fields]]\nname = \"k\"\nlabel = \"Key\"\nsecret = true\nrequired = true\ngoes_to = \"token\"\n\n[[auth]]\ncontract = \"token\"\nheader = \"Authorization\"\nformat = \"Bearer {secret}\"", "auth[0].contract was “none” and is now “token”.", true},
		"a resource argument": {`arguments = ["ticket_id"]`, "arguments = [\"ticket_id\"]\nresource = { argument = \"ticket_id\" }", "tools.tickets_close.resource.argument is now “ticket_id”.", true},
	} {
		a := build(t, folder("one.toml", desk("one", "One")))
		b := build(t, folder("one.toml", desk("one", "One", c.from, c.to)))
		got := release.Diff(a, b)
		if len(got.Changed) != 1 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		found := false
		for _, l := range got.Changed[0].Lines {
			if l.Text == c.line {
				found = true
				if l.Widens != c.widens {
					t.Errorf("%s: widens is %t", name, l.Widens)
				}
			}
		}
		if !found {
			t.Errorf("%s: %q is missing in %v", name, c.line, got.Words())
		}
		if got.Widens() != c.widens {
			t.Errorf("%s: the whole change widens: %t", name, got.Widens())
		}
	}
}

func TestAnEffectTakenBackNarrows(t *testing.T) {
	wide := build(t, folder("one.toml", desk("one", "One", `effect = "consequential"`, `effect = "read"`)))
	got := release.Diff(wide, build(t, folder("one.toml", desk("one", "One"))))
	if got.None() || got.Widens() {
		t.Errorf("%v", got.Words())
	}
}

func TestALostDestructiveMarkWidens(t *testing.T) {
	marked := []string{`effect = "consequential"`, "effect = \"consequential\"\ndestructive = true\nstakes = \"The ticket is gone.\""}
	got := release.Diff(build(t, folder("one.toml", desk("one", "One", marked...))), build(t, folder("one.toml", desk("one", "One"))))
	if !got.Widens() {
		t.Errorf("%v", got.Words())
	}
}
