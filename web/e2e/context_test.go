package e2e

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/playwright-community/playwright-go"
)

// wording is an organization of its own that says what its connection means.
type wording struct {
	s     *server
	email string
	owner *wire
	key   string
	token string
}

func newWording(t *testing.T, slug string) wording {
	t.Helper()
	w := wording{s: sharedServer(t), email: "owner@" + slug + ".example"}
	if r := w.s.operator(ownerPassword).runs(t, "org", "create", "--slug", slug, "--name", "Words & more", "--owner-email", w.email, "--password-stdin"); r.code != 0 {
		t.Fatalf("org create: %v", r)
	}
	w.token = strings.TrimSpace(w.s.operator("").runs(t, "token", "create", "--org", slug, "--name", "runtime", "--scopes", "runs:write").stdout)
	w.owner = w.s.signedIn(t, w.email, ownerPassword)
	w.key = (&scene{s: w.s}).installs(t, w.owner)
	if got := w.owner.form(t, "/profiles", url.Values{"name": {"support"}, "department": {"Care"}, "budget": {"5"}, "version": {"0"}, "use": {w.key}}); got.status != http.StatusSeeOther {
		t.Fatalf("a profile: %d %s", got.status, plainText(got.body))
	}
	return w
}

// TestWhatAnOrganizationSaysReachesItsAgents goes from the editor, with and without script, over a connection's page and a checkout to
// what an agent is told.
func TestWhatAnOrganizationSaysReachesItsAgents(t *testing.T) {
	w := newWording(t, "words")
	p := w.s.visitor(t, views[2])
	p.signsIn(t, w.email, ownerPassword)
	p.opens(t, "/context")
	p.reads(t, "Nothing here grants anything")
	good := "version = 3 # of the schema\n\n[connectors." + w.key + "]\npurpose = \"The shop\"\n"
	p.fills(t, "text", good+"mode = \"autonomous\"\n")
	p.reads(t, "1 thing is wrong. This text cannot be saved yet.", "Line 5: A connector has no “mode”", "set on its page and never here")
	p.fills(t, "text", good)
	p.reads(t, "This text can be saved.")
	p.readsNot(t, "is wrong")
	p.presses(t, "save-context")
	p.reads(t, "Saved as revision 1.")

	file := filepath.Join(t.TempDir(), "preferences.toml")
	must(t, os.WriteFile(file, []byte(good+"\n[departments.Care.connectors."+w.key+"]\nmeaning = \"Look them up first\"\n"), 0o600))
	must(t, p.Locator("input[type=file]").SetInputFiles(file))
	p.reads(t, "This text can be saved.", "What it changes in revision 1")
	p.presses(t, "save-context")
	p.reads(t, "Saved as revision 2.")

	plain := views[1]
	plain.noScript = true
	q := w.s.visitor(t, plain)
	q.signsIn(t, w.email, ownerPassword)
	q.opens(t, "/connections/"+w.key)
	q.fills(t, "avoid", "Refunds over 500 EUR")
	q.presses(t, "save-meaning")
	q.reads(t, "Saved as revision 3 of preferences.toml.")
	q.opens(t, "/context")
	if shown, err := q.Locator("input[type=file]").IsVisible(); err != nil || shown {
		t.Errorf("without script a file can be chosen that goes nowhere (%v)", err)
	}
	q.fills(t, "text", "version = 4")
	q.presses(t, "check-context")
	q.reads(t, "1 thing is wrong")
	q.opens(t, "/context/revisions/2")
	q.presses(t, "restore-context")
	q.reads(t, "Revision 2 is restored as revision 4.")

	w.checksOut(t, file)
	w.tells(t)
	if _, err := p.Reload(playwright.PageReloadOptions{}); err != nil {
		t.Fatal(err)
	}
	p.reads(t, "Pushed", "by operator")
}

// checksOut pulls, changes and pushes as people do who keep the document in Git.
func (w wording) checksOut(t *testing.T, file string) {
	t.Helper()
	command := func(code int, args ...string) ran {
		t.Helper()
		r := w.s.operator("").runs(t, append([]string{"context", args[0], "--org", "words"}, args[1:]...)...)
		if r.code != code {
			t.Fatalf("context %v: %v", args, r)
		}
		return r
	}
	says := func(text string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("no %q in %s", word, text)
			}
		}
	}
	if r := w.s.operator("").runs(t, "context", "pull", "--org", "no-such"); r.code != 1 {
		t.Errorf("of no organization: %v", r)
	}
	says(command(0, "pull", "--out", file).stdout, "is revision 4.")
	raw, err := os.ReadFile(file)
	must(t, err)
	text := string(raw)
	says(text, "# of the schema", "Look them up first")
	if r := command(0, "pull"); r.stdout != text || !strings.Contains(r.stderr, "Revision 4.") {
		t.Errorf("to standard output: %v", r)
	}
	write := func(name, text string) { must(t, os.WriteFile(name, []byte(text), 0o600)) }

	write(file, text+"mode = \"autonomous\"\n[connectors.crm]\n")
	says(command(1, "push", "--in", file).stderr, file+":8: A connector of a department has no “mode”", file+":9: “crm” is no connector key")
	write(file, strings.Replace(text, "The shop", "The shop of Git", 1)+"\n[workflows.refund]\nuses = [\"gone-abcdef\"]\n")
	pushed := command(0, "push", "--in", file)
	says(pushed.stdout, "Saved as revision 5.")
	says(pushed.stderr, "The workflow “refund” uses “gone-abcdef”, which is no connection.")
	says(command(0, "push", "--in", file).stdout, "Nothing to save: revision 5 says the same.")

	before := filepath.Join(filepath.Dir(file), "before.toml")
	pulled, err := os.ReadFile(file)
	must(t, err)
	write(before, string(pulled))
	write(file, string(pulled)+"# six\n")
	says(command(1, "push", "--in", file, "--base", "4").stderr, "Somebody saved another context", "changed from revision 4", "Nothing was saved")
	says(command(0, "push", "--in", file, "--after", before).stdout, "Saved as revision 6.")
	says(command(1, "push", "--in", file, "--after", before).stderr, "is not what is saved now")
	command(2, "push", "--in", file, "--after", before, "--base", "6")
	command(2, "push", "--in", before)
	command(2, "push", "--in", filepath.Join(filepath.Dir(file), "none.toml"))
	write(file+".revision", "six\n")
	command(2, "push", "--in", file)
}

// tells starts a run and reads what its agent is told.
func (w wording) tells(t *testing.T) {
	t.Helper()
	run := agentRuntime{w.s.url, w.token}.starts(t, chat("support"))
	for _, era := range eras {
		a := run.connects(t, era)
		read, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "countersign://context"})
		must(t, err)
		for _, text := range []string{read.Contents[0].Text, a.InitializeResult().Instructions} {
			for _, word := range []string{`"Words & more"`, "revision 6", "The shop of Git", "Look them up first", "grant nothing"} {
				if !strings.Contains(text, word) {
					t.Errorf("%s: no %q in %s", era, word, text)
				}
			}
		}
	}
}
