package identity_test

import (
	"regexp"
	"strings"
	"testing"

	"countersign/internal/identity"
)

func TestRolesGrantExactlyTheirRights(t *testing.T) {
	want := map[identity.Role]string{
		identity.Owner: "DMAV", identity.Admin: "MV", identity.Approver: "DV", identity.Auditor: "AV", identity.Member: "V",
	}
	rights := []struct {
		letter string
		right  identity.Right
	}{{"D", identity.Decide}, {"M", identity.Manage}, {"A", identity.ReadAudit}, {"V", identity.View}}
	for _, role := range identity.AllRoles {
		got := ""
		for _, r := range rights {
			if (identity.Person{Active: true, Roles: []identity.Role{role}}).May(r.right) {
				got += r.letter
			}
		}
		if got != want[role] {
			t.Errorf("%s may %s, want %s", role, got, want[role])
		}
	}
}

func TestRolesCombineAndEverythingElseIsDenied(t *testing.T) {
	both := identity.Person{Active: true, Roles: []identity.Role{identity.Admin, identity.Auditor}}
	if !both.May(identity.Manage) || !both.May(identity.ReadAudit) || both.May(identity.Decide) {
		t.Error("admin and auditor together are not the sum of both")
	}
	for sentence, p := range map[string]identity.Person{
		"somebody deactivated":  {Roles: []identity.Role{identity.Owner}},
		"somebody without role": {Active: true},
		"an unknown role":       {Active: true, Roles: []identity.Role{"root"}},
	} {
		if p.May(identity.View) {
			t.Errorf("%s may look", sentence)
		}
	}
	if (identity.Person{Active: true, Roles: identity.AllRoles}).May("fly") {
		t.Error("a right nobody defined is granted")
	}
}

func TestEmailsHaveOneForm(t *testing.T) {
	if got, err := identity.NormalizeEmail("  Ada@Example.TEST "); err != nil || got != "ada@example.test" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "ada", "@b", "a@", "a@b@c", "a b@c", "a@b\nBcc: x", "ä@b.test", "<a@b.test>", strings.Repeat("a", 250) + "@b.test", "a@b.test\x00"} {
		if _, err := identity.NormalizeEmail(bad); err == nil {
			t.Errorf("%q is taken for an address", bad)
		}
	}
}

func TestIdsAreRandom(t *testing.T) {
	shape := regexp.MustCompile(`^act_[a-z2-7]{26}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := identity.NewID("act_")
		if !shape.MatchString(id) || seen[id] {
			t.Fatalf("got %q", id)
		}
		seen[id] = true
	}
}
