package web_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign/db"
	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/preferences"
)

// saved is the document as it is kept.
func (s *site) saved() preferences.Revision {
	s.T.Helper()
	r, err := db.Contexts{DB: s.DB}.Context(s.T.Context(), s.Org.ID)
	s.Must(err)
	return r
}

func TestContextIsWrittenCheckedAndRestored(t *testing.T) {
	s := newSite(t)
	key := s.connection(s.Org).Key.String()
	b := s.as("admin@harbor.test")
	b.get("/context").is(t, 200, "version = 3", "# [connectors."+key+"]", "Save as revision 1", `name="base" value="0"`).lacks(t, "History")
	b.get("/context/export").is(t, http.StatusNotFound)

	one := "version = 3\n\n[connectors." + key + "] # ours\npurpose = \"The shop\"\n"
	b.post("/context", "base", "0", "text", strings.ReplaceAll(one, "\n", "\r\n")).goes(t, "/context")
	b.get("/context").is(t, 200, "Saved as revision 1.", "The shop", "# ours", "Save as revision 2", "Revision 1</a>")
	if got := s.saved(); got.Text != one || got.By.Name == "" || got.How != preferences.Written {
		t.Errorf("%+v", got)
	}
	two := one + "\n[connectors.stripe-abcdef]\npurpose = \"Money\"\n\n[departments.legal.connectors." + key + "]\nmeaning = \"Evidence\"\n"
	b.post("/context/check", "base", "1", "text", two).is(t, 200, "This text can be saved.", "There is no connection “stripe-abcdef”", "No profile belongs to the department “legal”", "What it changes in revision 1", "<ins>")
	b.post("/context/check", "base", "1", "text", one).is(t, 200, "Nothing to save.")
	b.post("/context/check", "base", "1", "text", one+"mode = \"autonomous\"\n").is(t, 422, "1 thing is wrong", "Line 5: A connector has no “mode”", "set on its page and never here", `aria-invalid="true"`, "mode = &#34;autonomous&#34;")
	if got := s.saved().Number; got != 1 {
		t.Fatalf("a check saved revision %d", got)
	}
	b.post("/context", "base", "1", "text", two).goes(t, "/context")
	b.get("/context").is(t, 200, "Some names lead nowhere", "There is no connection “stripe-abcdef”")
	b.post("/context", "base", "2", "text", two+"\n\n").goes(t, "/context")
	b.get("/context").is(t, 200, "Nothing to change: the text is that of revision 2.")

	file := b.get("/context/export").is(t, 200)
	if file.body != two || file.Header.Get("Content-Disposition") != `attachment; filename="preferences.toml"` || !strings.HasPrefix(file.Header.Get("Content-Type"), "application/toml") {
		t.Errorf("%v %s", file.Header, file.body)
	}
	b.get("/context/revisions/1").is(t, 200, "It is the first one", "The newest is revision 2", "Restore as revision 3", "<del>")
	b.get("/context/revisions/2").is(t, 200, "What it changed", "<ins>", "The newest").lacks(t, "Restore as")
	b.post("/context/revisions/1/restore", "base", "2").goes(t, "/context")
	b.get("/context").is(t, 200, "Revision 1 is restored as revision 3.", "Restored")
	if got := s.saved(); got.Text != one || got.How != preferences.Restored {
		t.Errorf("%+v", got)
	}
	entries, err := s.Trail.Entries(t.Context(), s.Org.ID, audit.Filter{Event: string(audit.ContextSaved), Limit: 10})
	s.Must(err)
	if len(entries) != 3 || entries[0].Actor.ID != string(s.People[identity.Admin].ID) {
		t.Errorf("%d entries: %+v", len(entries), entries)
	}
}

func TestContextThatSomebodyElseSavedIsNotLost(t *testing.T) {
	s := newSite(t)
	b, other := s.as("admin@harbor.test"), s.as("owner@harbor.test")
	b.post("/context", "base", "0", "text", "version = 3\n").goes(t, "/context")
	other.post("/context", "base", "1", "text", "version = 3\n# theirs\n").goes(t, "/context")
	mine := "version = 3\n# mine\n"
	b.post("/context", "base", "1", "text", mine).is(t, 409, "Somebody else saved while you wrote. Nothing was saved.", "# mine", "<del>", "theirs", `name="base" value="2"`)
	b.post("/context/revisions/1/restore", "base", "1").is(t, 409, "Nothing was restored")
	b.post("/context/revisions/1/restore").is(t, 409, "Nothing was restored")
	if got := s.saved(); got.Number != 2 || !strings.Contains(got.Text, "theirs") {
		t.Errorf("%+v", got)
	}
	b.post("/context", "base", "2", "text", mine).goes(t, "/context")
	for _, base := range []string{"", "x", "-1", "02"} {
		b.post("/context", "base", base, "text", mine).is(t, 422, "does not say which revision")
	}
}

func TestWhoMayWriteContext(t *testing.T) {
	s := newSite(t)
	s.as("admin@harbor.test").post("/context", "base", "0", "text", "version = 3\n# read me\n").goes(t, "/context")
	member := s.as("member@harbor.test")
	member.get("/context").is(t, 200, "# read me", "Download").lacks(t, "<textarea", "Save as", "data-test=\"save-context\"")
	member.get("/context/revisions/1").is(t, 200, "# read me").lacks(t, "Restore as")
	for _, path := range []string{"/context", "/context/check", "/context/revisions/1/restore"} {
		member.post(path, "base", "1", "text", "version = 3\n").is(t, http.StatusForbidden)
	}
	stranger := s.as(s.Stranger.Email)
	stranger.get("/context").is(t, 200).lacks(t, "# read me")
	stranger.get("/context/revisions/1").is(t, http.StatusNotFound)
	stranger.post("/context/revisions/1/restore", "base", "0").is(t, http.StatusNotFound)
	for _, n := range []string{"0", "2", "01", "-1", "x", "99999999999999999999"} {
		member.get("/context/revisions/"+n).is(t, http.StatusNotFound)
	}
}

func TestTheHistoryGoesOn(t *testing.T) {
	s := newSite(t)
	b := s.as("admin@harbor.test")
	for i := range 22 {
		_, err := db.Contexts{DB: s.DB}.SaveContext(t.Context(), preferences.Edition{Org: s.Org.ID, Base: i, Text: "version = 3\n# " + strings.Repeat("x", i+1), How: preferences.Pushed, By: audit.Operator})
		s.Must(err)
	}
	b.get("/context").is(t, 200, "Revision 22</a>", "Revision 3</a>", "/context?before=3#history").lacks(t, "Revision 2</a>")
	b.get("/context?before=3").is(t, 200, "Revision 2</a>", "Revision 1</a>").lacks(t, "Revision 3</a>", "Older")
}

func TestAConnectionSaysWhatItMeans(t *testing.T) {
	s := newSite(t)
	c := s.connection(s.Org)
	key, path := c.Key.String(), "/connections/"+c.Key.String()
	b := s.as("admin@harbor.test")
	b.get(path).is(t, 200, "Meaning", "Save the meaning", `name="base" value="0"`)
	b.post(path+"/meaning", "base", "0").goes(t, path+"#meaning")
	if got := s.saved().Number; got != 0 {
		t.Fatalf("saying nothing made revision %d", got)
	}
	said := []string{"purpose", "The shop", "vocabulary", "deal = A quote\r\nwon = A quote = paid", "defaults", "currency = EUR", "avoid", "Haste\r\n\r\nRefunds"}
	b.post(path+"/meaning", append(said, "base", "0")...).goes(t, path+"#meaning")
	want := "version = 3\n\n[connectors." + key + "]\npurpose = \"The shop\"\navoid = [\"Haste\", \"Refunds\"]\n\n[connectors." + key + ".vocabulary]\ndeal = \"A quote\"\nwon = \"A quote = paid\"\n\n[connectors." + key + ".defaults]\ncurrency = \"EUR\"\n"
	if got := s.saved(); got.Text != want || got.How != preferences.Filled {
		t.Errorf("%s", got.Text)
	}
	b.get(path).is(t, 200, "Saved as revision 1 of preferences.toml.", "won = A quote = paid", `name="base" value="1"`)

	kept := "# from Git\n" + strings.Replace(want, "avoid", "# finance asked for this\navoid", 1) + "\n[departments.support.connectors." + key + "]\nmeaning = \"Look up\"\n\n[workflows.refund]\nuses = [\"" + key + "\"]\n"
	b.post("/context", "base", "1", "text", kept).goes(t, "/context")
	b.get(path).is(t, 200, "To the department", "support", "Look up", "Used by the workflows", "refund")
	said[1] = "The whole shop"
	b.post(path+"/meaning", append(said, "base", "2")...).goes(t, path+"#meaning")
	if got, want := s.saved().Text, strings.Replace(kept, "The shop", "The whole shop", 1); got != want {
		t.Errorf("it is\n%s\nand should be\n%s", got, want)
	}
	b.post(path+"/meaning", append(said, "base", "2")...).is(t, 409, "while you wrote. Nothing was saved.", "The whole shop")
	b.post(path+"/meaning", "base", "3", "vocabulary", "deal", "defaults", "a = b\na = c", "purpose", "kept").is(t, 422, "“deal” is not “name = text”.", "stands twice", "kept")
	b.post(path+"/meaning", "base", "3", "purpose", strings.Repeat("x", 4001)).is(t, 422, "may have 4000 bytes").lacks(t, "Line ")
	b.post(path+"/meaning", "base", "").is(t, 422, "does not say which revision")
	if got := s.saved().Number; got != 3 {
		t.Errorf("revision %d", got)
	}
	s.as("member@harbor.test").get(path).is(t, 200, "The whole shop", "To be avoided").lacks(t, "Save the meaning")
}

func TestWordsOfARetiredConnectionStayAndAreNotChanged(t *testing.T) {
	s := newShop(t)
	b := s.as("admin@harbor.test")
	key := b.installed()
	path := "/connections/" + key.String()
	b.post(path+"/meaning", "base", "0", "purpose", "The old shop").goes(t, path+"#meaning")
	b.post(path+"/retire", "version", b.version(key)).goes(t, path)
	b.get(path).is(t, 200, "Nobody is told these words any more.", "The old shop").lacks(t, "Save the meaning")
	b.post(path+"/meaning", "base", "1", "purpose", "x").is(t, 409, "retired")
	b.get("/context").is(t, 200, "is retired, and its key is never used again")
	if got := s.saved(); got.Number != 1 || !strings.Contains(got.Text, "The old shop") {
		t.Errorf("%+v", got)
	}
}

// A document that the form cannot change without losing something is changed as text alone.
func TestWordsOfSeveralLinesAreNotForced(t *testing.T) {
	s := newSite(t)
	key := s.connection(s.Org).Key.String()
	b := s.as("admin@harbor.test")
	b.post("/context", "base", "0", "text", "version = 3\n[connectors."+key+"]\navoid = [\"one\\ntwo\"]\n").goes(t, "/context")
	b.get("/connections/"+key).is(t, 200, "These words are changed in the document.", "one", "two").lacks(t, "Save the meaning")
	s.SQL(`INSERT INTO context_revisions (org_id, revision, text, how, actor_kind, actor_id, actor_name) VALUES ($1, 2, 'version = 4', 'written', 'person', 'x', 'x')`, string(s.Org.ID))
	b.get("/connections/"+key).is(t, 200, "The document cannot be read by this server.").lacks(t, "Save the meaning")
	b.get("/context").is(t, 200, "This server does not read the saved text")
	b.post("/connections/"+key+"/meaning", "base", "2", "purpose", "x").is(t, 422, "version")
	b.get("/context/revisions/2").is(t, 200, "does not accept this text")
	b.post("/context").is(t, 422)
}
