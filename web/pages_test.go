package web_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/catalog"
	"countersign/db/dbtest/scene"
	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/registry"
	"countersign/internal/release"
)

func TestPeopleOfAnotherOrganizationAreAbsent(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	alien := "/people/" + string(s.Stranger.ID)
	b.get(alien).is(t, http.StatusNotFound, "There is no such person")
	for _, path := range []string{"/roles", "/deactivate", "/reactivate", "/link"} {
		b.post(alien+path, "roles", "member").is(t, http.StatusNotFound)
	}
	b.get("/people").is(t, http.StatusOK).lacks(t, "elsewhere")
	s.as("owner@elsewhere.test").get("/").is(t, http.StatusOK)
}

func TestRolesJourney(t *testing.T) {
	s := newSite(t)
	owner, admin := s.as("owner@harbor.test"), s.as("admin@harbor.test")
	at := func(r identity.Role) string { return "/people/" + string(s.People[r].ID) }

	member := s.as("member@harbor.test")
	owner.post(at(identity.Member)+"/roles", "roles", "auditor", "roles", "approver").goes(t, at(identity.Member))
	owner.get(at(identity.Member)).is(t, http.StatusOK, "is now approver and auditor")
	owner.get(at(identity.Member)).lacks(t, "is now approver") // said once
	member.get("/audit").is(t, http.StatusOK)                  // holds at once
	owner.post(at(identity.Member)+"/roles").is(t, http.StatusUnprocessableEntity, "at least one role")
	owner.post(at(identity.Member)+"/roles", "roles", "root").is(t, http.StatusUnprocessableEntity, "There is no role")

	owner.get(at(identity.Owner)).is(t, http.StatusOK, "Nothing to change here")
	owner.post(at(identity.Owner)+"/roles", "roles", "member").is(t, http.StatusForbidden)
	admin.post(at(identity.Owner)+"/deactivate").is(t, http.StatusForbidden)
	admin.post(at(identity.Owner)+"/link").is(t, http.StatusForbidden)
	admin.post(at(identity.Member)+"/roles", "roles", "owner").is(t, http.StatusForbidden)
	admin.post(at(identity.Admin)+"/roles", "roles", "approver").is(t, http.StatusForbidden)
	admin.post("/people", "email", "mole@harbor.test", "roles", "owner", "with", "password", "password", scene.Password).is(t, http.StatusForbidden)
	owner.get("/people").is(t, http.StatusOK).lacks(t, "mole@")

	owner.post(at(identity.Approver)+"/deactivate").goes(t, at(identity.Approver))
	owner.post(at(identity.Approver)+"/deactivate").goes(t, at(identity.Approver)) // pressed twice
	s.browser().post("/sign-in", "email", "approver@harbor.test", "password", scene.Password).is(t, http.StatusUnprocessableEntity)
	owner.post(at(identity.Approver)+"/link").is(t, http.StatusConflict, "Reactivate them first")
	owner.post(at(identity.Approver)+"/reactivate").goes(t, at(identity.Approver))
	s.as("approver@harbor.test")
	if got := s.Events(s.Org.ID); countOf(got, audit.PersonDeactivated) != 1 || countOf(got, audit.PersonReactivated) != 1 {
		t.Fatalf("trail: %v", got)
	}
}

func countOf(list []audit.Event, e audit.Event) (n int) {
	for _, one := range list {
		if one == e {
			n++
		}
	}
	return n
}

func TestAddingPeople(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	hostile := `<script>alert(1)</script>` + "\u202e\u200b"
	p := b.post("/people", "email", "not an address", "name", hostile, "roles", "member", "with", "password", "password", "short secret").is(t, http.StatusUnprocessableEntity,
		"is not an email address", "&lt;script&gt;", `value="not an address"`)
	p.lacks(t, "<script>alert", "short secret")
	b.post("/people", "email", "h@harbor.test", "name", hostile, "roles", "member", "with", "password", "password", scene.Password).is(t, http.StatusSeeOther)
	b.get("/people").is(t, http.StatusOK, "&lt;script&gt;", "U+202E").lacks(t, "<script>alert", "\u202e")
	b.post("/people", "email", "h@harbor.test", "roles", "member").is(t, http.StatusUnprocessableEntity, "h@harbor.test")
	b.post("/people", "email", "owner@elsewhere.test", "roles", "member").is(t, http.StatusUnprocessableEntity)
	b.post("/people", "email", "long@harbor.test", "name", strings.Repeat("x", 101), "roles", "member").is(t, http.StatusUnprocessableEntity, "at most 100 characters")
	b.get("/people?password=secret").is(t, http.StatusOK).lacks(t, "secret")
}

func TestProfileJourney(t *testing.T) {
	s := newSite(t)
	c := s.connection(s.Org)
	theirs := s.connection(s.Other)
	b, key := s.as("admin@harbor.test"), c.Key.String()
	b.get("/profiles").is(t, http.StatusOK, "No profiles yet")
	b.get("/profiles/new").is(t, http.StatusOK, key, "contacts_delete", "Destructive").lacks(t, theirs.Key.String())
	b.post("/profiles", "name", "Bad Name", "budget", "many").is(t, http.StatusUnprocessableEntity, "lower-case letters", "whole number", `value="many"`)
	b.post("/profiles", "name", "support", "budget", "10", "use", theirs.Key.String()).is(t, http.StatusUnprocessableEntity, "There is no connection")
	b.post("/profiles", "name", "support", "budget", "10", "use", key, "mode."+key, "root").is(t, http.StatusUnprocessableEntity, "There is no mode")
	b.post("/profiles", "name", "support", "budget", "10", "use", key, "tools."+key, "contacts_search").is(t, http.StatusUnprocessableEntity, "left “every tool” chosen")
	b.post("/profiles", "name", "support", "budget", "10", "department", "Support", "use", key, "mode."+key, "read_only", "listed."+key, "1", "tools."+key, "contacts_search", "tools."+key, "rm -rf").goes(t, "/profiles/support")
	b.post("/profiles", "name", "support", "budget", "99").is(t, http.StatusConflict, "already")

	p := b.get("/profiles/support").is(t, http.StatusOK, "Support")
	version := p.between(t, `name="version" value="`, `"`)
	got, err := s.Profiles.Profile(t.Context(), s.Org.ID, "support")
	s.Must(err)
	if len(got.Uses) != 1 || !slices.Equal(got.Uses[0].Tools, []string{"contacts_search"}) || got.Budget != 10 || got.Uses[0].Mode != "read_only" {
		t.Fatalf("stored: %+v", got)
	}
	b.post("/profiles/support", "version", version, "budget", "20", "use", key).goes(t, "/profiles/support")
	b.post("/profiles/support", "version", version, "budget", "30", "use", key).is(t, http.StatusConflict, "Somebody else changed this profile", `value="20"`)
	b.post("/profiles/support", "budget", "30").is(t, http.StatusConflict)
	b.post("/profiles/support/remove", "version", version).is(t, http.StatusConflict)
	b.post("/profiles/nothing", "version", "1", "budget", "1").is(t, http.StatusNotFound)

	s.as("member@harbor.test").get("/profiles/support").is(t, http.StatusOK, "disabled").lacks(t, `data-test="save-profile"`)
	s.as("owner@elsewhere.test").get("/profiles/support").is(t, http.StatusNotFound)
	s.as("owner@elsewhere.test").post("/profiles/support/remove", "version", version).is(t, http.StatusNotFound)

	version = b.get("/profiles/support").between(t, `name="version" value="`, `"`)
	b.post("/profiles/support/remove", "version", version).goes(t, "/profiles")
	b.post("/profiles/support/remove", "version", version).is(t, http.StatusNotFound)
}

func TestAuditLedger(t *testing.T) {
	s := newSite(t)
	auditor := s.as("auditor@harbor.test")
	for i := range 120 {
		e := audit.Entry{Org: s.Org.ID, Actor: audit.Actor{Kind: audit.ByService, ID: "tok_x", Name: fmt.Sprintf("prog %03d", i)}, Event: audit.RunStarted, Object: audit.Object{Kind: "run", ID: fmt.Sprintf("run_%03d", i)}}
		s.Must(s.Trail.Record(t.Context(), e))
	}
	first := auditor.get("/audit").is(t, http.StatusOK, "prog 119", "100 entries", "Older").lacks(t, "prog 019", "owner@elsewhere.test")
	next := strings.ReplaceAll(first.between(t, `href="/audit?before=`, `"`), "&amp;", "&")
	auditor.get("/audit?before="+next).is(t, http.StatusOK, "prog 019", "Newest").lacks(t, "prog 020")
	auditor.get("/audit?actor=prog+007").is(t, http.StatusOK, "1 entry", `value="prog 007"`)
	auditor.get("/audit?event=person.").is(t, http.StatusOK, "Signed in").lacks(t, "prog 1")
	auditor.get("/audit?object=run_003").is(t, http.StatusOK, "prog 003")
	auditor.get("/audit?actor=nobody").is(t, http.StatusOK, "No entry fits")
	auditor.get("/audit?from=yesterday").is(t, http.StatusUnprocessableEntity, "“yesterday” is not a day")
	auditor.get("/audit?before=minus").is(t, http.StatusOK)
	auditor.get("/audit?from=2020-01-01&until=2020-01-02").is(t, http.StatusOK, "No entry fits")
	auditor.get("/audit?actor='+OR+1=1--").is(t, http.StatusOK, "No entry fits")
	auditor.get("/audit?actor="+strings.Repeat("x", 300)).is(t, http.StatusOK)
}

func TestAuditChainIsVerified(t *testing.T) {
	s := newSite(t)
	b := s.as("auditor@harbor.test")
	b.get("/audit").is(t, http.StatusOK, "has not walked the chain")
	trail := s.Trail
	_, err := trail.Seal(t.Context(), s.signer)
	s.Must(err)
	b.post("/audit/verify").goes(t, "/audit")
	b.get("/audit").is(t, http.StatusOK, "Unbroken: ", "entries from the first one on")
	s.as("owner@elsewhere.test").get("/audit").is(t, http.StatusOK, "has not walked the chain")

	s.SQLAsSuper("UPDATE audit_entries SET actor_name = 'somebody else' WHERE id = (SELECT min(id) FROM audit_entries WHERE org_id = $1)", s.Org.ID)
	b.post("/audit/verify").goes(t, "/audit")
	b.get("/audit").is(t, http.StatusOK, "The chain is broken", "At position 1", "was edited")
}

func TestAuditExportRunsNothing(t *testing.T) {
	s := newSite(t)
	names := []string{`=HYPERLINK("http://evil.test","x")`, "+1", "-1", "@SUM(A1)", "\t=1", " =1", "fine, \"quoted\"\nline", "|calc"}
	for _, n := range names {
		s.Must(s.Trail.Record(t.Context(), audit.Entry{
			Org: s.Org.ID, Actor: audit.Actor{Kind: audit.ByService, ID: "tok_x", Name: n}, Event: audit.RunStarted, Object: audit.Object{Kind: "run", ID: n},
			Facts: []audit.Fact{{Name: "=x", Value: "=y"}},
		}))
	}
	for range 600 { // more than one batch
		s.Must(s.Trail.Record(t.Context(), audit.Entry{Org: s.Org.ID, Actor: audit.System("filler"), Event: audit.RunEnded, Object: audit.Object{Kind: "run", ID: "run_x"}}))
	}
	p := s.as("auditor@harbor.test").get("/audit/export").is(t, http.StatusOK)
	if h := p.Header; !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; filename=") || !strings.HasPrefix(h.Get("Content-Type"), "text/csv") || h.Get("Cache-Control") != "no-store" {
		t.Fatalf("headers: %v", h)
	}
	rows, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	s.Must(err)
	if len(rows) < 600+len(names) {
		t.Fatalf("%d rows", len(rows))
	}
	seen := 0
	for _, row := range rows[1:] {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(strings.TrimLeft(cell, " \t\r\n")[:1], "=+-@|") {
				t.Errorf("a spreadsheet would run %q", cell)
			}
		}
		if row[6] == string(audit.RunStarted) {
			seen++
		}
	}
	if seen != len(names) {
		t.Errorf("%d of %d entries", seen, len(names))
	}
	s.as("auditor@harbor.test").get("/audit/export?from=x").is(t, http.StatusUnprocessableEntity)
	s.as("member@harbor.test").get("/audit/export").is(t, http.StatusForbidden)
}

func TestReleases(t *testing.T) {
	s := newSite(t)
	b := s.as("member@harbor.test")
	b.get("/releases").is(t, http.StatusOK, "Nothing is published yet")
	first := s.Publish()
	b.get("/releases").is(t, http.StatusOK, first.Short(), "New connections are made from this one")
	b.get("/releases/"+string(first)).is(t, http.StatusOK, "The first release", "Sandbox CRM", "sandbox-crm")

	files := fstest.MapFS{}
	entries, err := catalog.Files().ReadDir(".")
	s.Must(err)
	for _, e := range entries {
		data, err := catalog.Files().ReadFile(e.Name())
		s.Must(err)
		if e.Name() != "exa.toml" {
			files[e.Name()] = &fstest.MapFile{Data: data}
		}
	}
	second, err := release.Publish(t.Context(), s.ReleasesFor(registry.Trusted()), files, registry.Trusted())
	s.Must(err)
	b.get("/releases/"+string(second.Digest)).is(t, http.StatusOK, "Removed", "Exa", first.Short())
	b.get("/releases/"+string(first)).is(t, http.StatusOK, "A newer one is in use")
	b.get("/releases/sha256:"+strings.Repeat("0", 64)).is(t, http.StatusNotFound)
	b.get("/releases/..%2f..%2fetc").is(t, http.StatusNotFound)
}

func TestSettings(t *testing.T) {
	s := newSite(t)
	b := s.as("member@harbor.test")
	b.get("/settings").is(t, http.StatusOK, "harbor", "None published yet", "approver@harbor.test")
	theme := b.post("/settings/theme", "theme", "dark").goes(t, "/settings").Cookies()[0]
	if theme.Name != "theme" || theme.Value != "dark" || !theme.HttpOnly {
		t.Fatalf("%+v", theme)
	}
	b.get("/settings").is(t, http.StatusOK, `data-theme="dark"`, "The look is saved")
	b.post("/settings/theme", "theme", `"><script>`).is(t, http.StatusUnprocessableEntity).lacks(t, `"><script>`)
	b.post("/settings/theme", "theme", "").goes(t, "/settings")
	b.get("/settings").lacks(t, "data-theme")

	other := s.as("member@harbor.test")
	b.post("/settings/password", "current", "wrong wrong wrong", "password", "another long sentence").is(t, http.StatusUnprocessableEntity, "not your current password").lacks(t, "another long sentence")
	b.post("/settings/password", "current", scene.Password, "password", "short").is(t, http.StatusUnprocessableEntity, "12 to 200 characters")
	b.post("/settings/password", "current", scene.Password, "password", "another long sentence").goes(t, "/settings")
	b.get("/settings").is(t, http.StatusOK, "Your password is changed")
	other.get("/settings").is(t, http.StatusSeeOther)
	s.browser().post("/sign-in", "email", "member@harbor.test", "password", "another long sentence").goes(t, "/")
	for range 5 {
		b.post("/settings/password", "current", "wrong wrong wrong", "password", "another long sentence")
	}
	b.post("/settings/password", "current", "another long sentence", "password", scene.Password).is(t, http.StatusTooManyRequests, "Too many tries")
}

func TestOverview(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	b.get("/").is(t, http.StatusOK, "All quiet", "Nothing waits", "No run is live", "No action was decided or sent today")
	c := s.connection(s.Org)
	_, err := s.Connections.End(t.Context(), c, installation.Disconnected, scene.Note(s.Org.ID, audit.ConnectionDisconnect, "connection", c.Key.String()))
	s.Must(err)
	b.get("/").is(t, http.StatusOK, "1 thing waits", "Not working", "Sandbox CRM")
	s.as("owner@elsewhere.test").get("/").is(t, http.StatusOK).lacks(t, "Sandbox CRM")
	s.SQL("ALTER TABLE runs RENAME TO runs_gone")
	b.get("/").is(t, http.StatusOK, "This part could not be read", "Sandbox CRM").lacks(t, "runs_gone", "SQLSTATE")
}
