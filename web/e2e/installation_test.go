package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// ownerPassword is long enough for the rule and used in this test alone.
const ownerPassword = "correct horse, battery and staple"

// TestARealInstallation is an organization without the sandbox: from the operator's first command to people with combined roles and
// tokens that end.
func TestARealInstallation(t *testing.T) {
	t.Parallel()
	r := &realInstallation{s: newServer(t)}
	for _, chapter := range []struct {
		name string
		told func(*testing.T)
	}{
		{"before there is an organization, sign-in says how to make one", r.isEmpty},
		{"the operator creates it, and its owner signs in", r.begins},
		{"a person joins by an invitation link, which works once", r.invites},
		{"a person gets a password set, and changes it", r.setsAPassword},
		{"roles combine, and a change holds at once", r.combinesRoles},
		{"a lost password is reset by a link, which signs everybody else out", r.resets},
		{"who is deactivated is out at once", r.deactivates},
		{"service tokens have scopes, an end, and can be revoked", r.handsOutTokens},
		{"two organizations do not see each other", r.keepsApart},
	} {
		if !t.Run(chapter.name, chapter.told) {
			t.FailNow()
		}
	}
}

type realInstallation struct {
	s      *server
	owner  *person
	joiner *person // who came by invitation
}

func (r *realInstallation) isEmpty(t *testing.T) {
	r.s.start(t)
	somebody := r.s.visitor(t, desk)
	somebody.opens(t, "/sign-in")
	somebody.reads(t, "No organization yet", "countersign org create")
	if somebody.offers(t, "sign-in") {
		t.Error("there is a sign-in form for nobody")
	}
}

func (r *realInstallation) begins(t *testing.T) {
	command := []string{"org", "create", "--slug", "harbor", "--name", "Harbor & Pine", "--owner-email", "ines@harborpine.example", "--password-stdin"}
	if got := r.s.operator("short\n").runs(t, command...); got.code == 0 {
		t.Errorf("a short password is taken: %v", got)
	}
	if got := r.s.operator(ownerPassword+"\n").runs(t, command...); got.code != 0 {
		t.Fatalf("org create: %v", got)
	}
	if got := r.s.operator(ownerPassword+"\n").runs(t, command...); got.code != 1 || strings.Count(strings.TrimSpace(got.stderr), "\n") > 1 {
		t.Errorf("creating it again: want exit 1 and a sentence, got %v", got)
	}
	if got := r.s.operator("").runs(t, "audit", "verify", "--org", "harbor"); got.code != 0 {
		t.Errorf("its trail: %v", got)
	}
	r.owner = r.s.visitor(t, desk)
	r.owner.opens(t, "/sign-in")
	r.owner.fills(t, "email", "ines@harborpine.example")
	r.owner.fills(t, "password", "the wrong one entirely")
	r.owner.presses(t, "sign-in")
	r.owner.reads(t, "Sign in")
	r.owner.readsNot(t, "Sign out")
	r.owner.signsIn(t, "INES@harborpine.example", ownerPassword) // an address is the same in capitals
}

// add fills the form for a new person.
func (r *realInstallation) add(t *testing.T, email, name, with, password string, roles ...string) {
	t.Helper()
	r.owner.opens(t, "/people")
	r.owner.fills(t, "email", email)
	r.owner.fills(t, "name", name)
	for _, role := range roles {
		r.owner.ticks(t, "roles", role, true)
	}
	r.owner.ticks(t, "with", with, true)
	if password != "" {
		r.owner.fills(t, "password", password)
	}
	r.owner.presses(t, "add-person")
}

func (r *realInstallation) invites(t *testing.T) {
	r.add(t, "tomas@harborpine.example", "", "link", "", "approver")
	r.owner.reads(t, "Invitation for")
	link := r.owner.value(t, "invitation-link")
	r.owner.opens(t, "/people")
	r.owner.reads(t, "Has no password yet")
	r.owner.readsNot(t, link)

	r.joiner = r.s.visitor(t, desk)
	path := strings.TrimPrefix(link, r.s.url)
	r.joiner.opens(t, path)
	r.joiner.reads(t, "Join Harbor & Pine", "approver")
	r.joiner.fills(t, "name", "Tomas Lindqvist")
	r.joiner.fills(t, "password", "too short")
	r.joiner.presses(t, "accept-invitation")
	r.joiner.reads(t, "12 characters")
	r.joiner.fills(t, "password", "a sentence only Tomas knows")
	r.joiner.presses(t, "accept-invitation")
	r.joiner.reads(t, "Sign out")

	thief := r.s.visitor(t, desk)
	if status := thief.opens(t, path); status != http.StatusGone {
		t.Errorf("a used link answers %d", status)
	}
	thief.reads(t, "This invitation is over")
}

func (r *realInstallation) setsAPassword(t *testing.T) {
	r.add(t, "noor@harborpine.example", "Noor Haddad", "password", "set by the owner for now", "auditor")
	r.add(t, "noor@harborpine.example", "Somebody Else", "password", "set by the owner for now", "auditor")
	r.owner.reads(t, "noor@harborpine.example")
	noor := r.s.visitor(t, desk)
	noor.signsIn(t, "noor@harborpine.example", "set by the owner for now")
	noor.opens(t, "/settings")
	noor.fills(t, "current", "set by the owner for now")
	noor.fills(t, "password", "something Noor alone knows")
	noor.presses(t, "change-password")
	again := r.s.visitor(t, desk)
	again.signsIn(t, "noor@harborpine.example", "something Noor alone knows")
	again.opens(t, "/audit")
	again.reads(t, "Entries, newest first")
	again.readsNot(t, "something Noor alone knows", "set by the owner for now")
	if status := again.opens(t, "/people"); status != http.StatusForbidden {
		t.Errorf("an auditor who opens /people is answered %d", status)
	}
}

func (r *realInstallation) combinesRoles(t *testing.T) {
	if status := r.joiner.opens(t, "/audit"); status != http.StatusForbidden {
		t.Errorf("an approver who opens /audit is answered %d", status)
	}
	r.owner.opens(t, "/people")
	r.owner.follows(t, "Tomas Lindqvist")
	r.owner.ticks(t, "roles", "auditor", true)
	r.owner.presses(t, "save-roles")
	if status := r.joiner.opens(t, "/audit"); status != http.StatusOK {
		t.Errorf("approver and auditor: /audit is answered %d", status)
	}
	if status := r.joiner.opens(t, "/people"); status != http.StatusForbidden {
		t.Errorf("approver and auditor: /people is answered %d", status)
	}
}

func (r *realInstallation) resets(t *testing.T) {
	r.owner.opens(t, "/people")
	r.owner.follows(t, "Tomas Lindqvist")
	r.owner.presses(t, "password-link")
	link := strings.TrimPrefix(r.owner.value(t, "invitation-link"), r.s.url)
	fresh := r.s.visitor(t, desk)
	fresh.opens(t, link)
	fresh.reads(t, "Set a new password")
	fresh.fills(t, "password", "the second sentence of Tomas")
	fresh.presses(t, "accept-invitation")
	fresh.reads(t, "Sign out")
	r.joiner.opens(t, "/")
	r.joiner.reads(t, "Sign in")
	r.joiner.readsNot(t, "Sign out")
	r.joiner = fresh
}

func (r *realInstallation) deactivates(t *testing.T) {
	r.owner.opens(t, "/people")
	r.owner.follows(t, "Tomas Lindqvist")
	r.owner.presses(t, "deactivate")
	r.joiner.opens(t, "/")
	r.joiner.readsNot(t, "Sign out")
	r.owner.presses(t, "reactivate")
	r.joiner.signsIn(t, "tomas@harborpine.example", "the second sentence of Tomas")
}

func (r *realInstallation) handsOutTokens(t *testing.T) {
	r.owner.opens(t, "/tokens")
	r.owner.fills(t, "name", "ticket desk")
	r.owner.fills(t, "days", "30")
	r.owner.ticks(t, "scopes", "runs:write", true)
	r.owner.presses(t, "create-token")
	token := r.owner.value(t, "token-value")
	r.owner.opens(t, "/tokens")
	r.owner.readsNot(t, token)

	runtime := agentRuntime{r.s.url, token}
	refused := func(want int, method, path string, body any) {
		t.Helper()
		var answer struct {
			Error struct{ Code, Message, Next string }
		}
		if got := runtime.asks(t, method, path, body, &answer); got != want || answer.Error.Message == "" {
			t.Errorf("%s %s is answered %d %+v, want %d", method, path, got, answer, want)
		}
	}
	refused(http.StatusForbidden, http.MethodGet, "/api/v1/audit", nil)
	refused(http.StatusForbidden, http.MethodGet, "/api/v1/actions", nil)
	refused(http.StatusUnprocessableEntity, http.MethodPost, "/api/v1/runs", order{"surface": "chat", "profile": "nobody-made-it"})

	r.owner.unfolds(t, "Revoke")
	r.owner.presses(t, "revoke-token")
	refused(http.StatusUnauthorized, http.MethodPost, "/api/v1/runs", order{"surface": "chat", "profile": "nobody-made-it"})

	made := r.s.operator("").runs(t, "token", "create", "--org", "harbor", "--name", "reader", "--scopes", "actions:read,audit:read", "--days", "1", "--json")
	var printed struct{ Token string }
	if err := json.Unmarshal([]byte(made.stdout), &printed); made.code != 0 || err != nil {
		t.Fatalf("token create: %v", made)
	}
	runtime.token = printed.Token
	if status := runtime.asks(t, http.MethodGet, "/api/v1/audit", nil, nil); status != http.StatusOK {
		t.Errorf("a fresh token is answered %d", status)
	}
	conn := r.s.database(t)
	_, err := conn.Exec(t.Context(), `SET session_replication_role = replica`)
	must(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE service_tokens SET created_at = created_at - interval '2 days', expires_at = expires_at - interval '2 days' WHERE name = 'reader'`)
	must(t, err)
	refused(http.StatusUnauthorized, http.MethodGet, "/api/v1/audit", nil)
}

func (r *realInstallation) keepsApart(t *testing.T) {
	other := r.s.operator(ownerPassword+"\n").runs(t, "org", "create", "--slug", "elsewhere", "--name", "Elsewhere", "--owner-email", "owner@elsewhere.example", "--password-stdin")
	if other.code != 0 {
		t.Fatalf("a second organization: %v", other)
	}
	r.owner.opens(t, "/people")
	r.owner.follows(t, "Tomas Lindqvist")
	tomas := r.owner.URL()
	parsed, err := url.Parse(tomas)
	must(t, err)
	alien := r.s.visitor(t, desk)
	alien.signsIn(t, "owner@elsewhere.example", ownerPassword)
	if status := alien.opens(t, parsed.Path); status != http.StatusNotFound {
		t.Errorf("a person of another organization is answered %d", status)
	}
	alien.opens(t, "/people")
	alien.readsNot(t, "harborpine.example")
	alien.opens(t, "/tokens")
	alien.readsNot(t, "ticket desk")
	if got := r.s.operator("").runs(t, "audit", "verify", "--org", "nowhere"); got.code != 1 {
		t.Errorf("the trail of no organization: %v", got)
	}
}
