package people_test

import (
	"slices"
	"strings"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/secret"
)

func TestEveryFailedSignInLooksTheSame(t *testing.T) {
	hash, err := people.HashPassword(secret.New("correct horse battery"))
	if err != nil {
		t.Fatal(err)
	}
	active := people.Account{Person: identity.Person{Active: true}, PasswordHash: hash}
	if err := people.Verify(active, secret.New("correct horse battery")); err != nil {
		t.Fatalf("the right password: %v", err)
	}
	gone := active
	gone.Person.Active = false
	for sentence, err := range map[string]error{
		"a wrong password":                 people.Verify(active, secret.New("incorrect horse")),
		"nobody":                           people.Verify(people.Account{}, secret.New("correct horse battery")),
		"somebody deactivated":             people.Verify(gone, secret.New("correct horse battery")),
		"somebody who never set one":       people.Verify(people.Account{Person: identity.Person{Active: true}}, secret.New("")),
		"somebody who has no password yet": people.Verify(people.Account{Person: identity.Person{Active: true}}, secret.New("no such person")),
		"an empty password":                people.Verify(active, secret.Value{}),
		"the password with a space after":  people.Verify(active, secret.New("correct horse battery ")),
	} {
		if err != error(people.SignInRefused) {
			t.Errorf("%s is answered with %v", sentence, err)
		}
	}
}

func TestAPasswordHasTwelveToTwoHundredCharacters(t *testing.T) {
	for password, fine := range map[string]bool{
		"elevenchars": false, "twelve chars": true, "zwölf Zeichen": true, strings.Repeat("x", 200): true, strings.Repeat("x", 201): false, "twelve\xffchars": false, "": false,
	} {
		if _, err := people.HashPassword(secret.New(password)); (err == nil) != fine {
			t.Errorf("%d bytes: %v", len(password), err)
		}
	}
}

func TestWhoMayChangeWhom(t *testing.T) {
	who := func(id string, roles ...identity.Role) identity.Person {
		return identity.Person{ID: identity.PersonID(id), Org: "org_1", Active: true, Roles: roles}
	}
	owner, admin, member := who("o", identity.Owner), who("a", identity.Admin), who("m", identity.Member)
	stranger := member
	stranger.Org = "org_2"
	for _, c := range []struct {
		sentence string
		actor    identity.Person
		target   identity.Person
		roles    []identity.Role
		may      bool
	}{
		{"an owner changes an owner", owner, who("o2", identity.Owner), nil, true},
		{"an owner makes an owner", owner, member, []identity.Role{identity.Owner}, true},
		{"an admin changes a member", admin, member, []identity.Role{identity.Approver}, true},
		{"an admin does not change an owner", admin, owner, nil, false},
		{"an admin makes no owner", admin, member, []identity.Role{identity.Owner}, false},
		{"nobody changes their own roles", owner, owner, nil, false},
		{"a member changes nobody", member, who("m2", identity.Member), nil, false},
		{"an approver changes nobody", who("p", identity.Approver), member, nil, false},
		{"nobody reaches into another organization", owner, stranger, nil, false},
	} {
		if err := people.MayChange(c.actor, c.target, c.roles); (err == nil) != c.may {
			t.Errorf("%s: %v", c.sentence, err)
		}
	}
}

func TestRolesCombineInOrderOnce(t *testing.T) {
	got, err := people.ParseRoles([]string{"auditor", "admin", "auditor"})
	if err != nil || !slices.Equal(got, []identity.Role{identity.Admin, identity.Auditor}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][]string{nil, {"root"}, {"Owner"}, {""}} {
		if _, err := people.ParseRoles(bad); !fault.Is(err, fault.CodeInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestANewPersonIsToldEverythingThatIsWrong(t *testing.T) {
	_, err := people.NewPerson("org_1", "not an address", strings.Repeat("n", 101), []string{"king"})
	if list, ok := err.(fault.List); !ok || len(list) != 3 {
		t.Errorf("got %v", err)
	}
	p, err := people.NewPerson("org_1", " Ada@Example.TEST ", " Ada ", []string{"member"})
	if err != nil || p.Email != "ada@example.test" || p.Name != "Ada" || !p.Active {
		t.Errorf("got %+v, %v", p, err)
	}
}
