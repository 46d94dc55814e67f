package db

import (
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/web/session"
)

func TestAnOrganizationIsMadeWithItsOwnerOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := People{w.DB}, t.Context()
	if any, err := p.AnyOrganization(ctx); err != nil || any {
		t.Fatalf("an empty database has organizations: %v, %v", any, err)
	}
	org, owner := w.newOrg(t, "acme")
	if any, err := p.AnyOrganization(ctx); err != nil || !any {
		t.Fatalf("got %v, %v", any, err)
	}
	a, err := p.AccountByEmail(ctx, owner.Email)
	must(t, err)
	if a.Org != org || a.Person.ID != owner.ID || a.PasswordHash != "hash" || !a.Person.Active || !slices.Equal(a.Person.Roles, owner.Roles) {
		t.Fatalf("got %+v", a)
	}
	if found, err := p.OrgBySlug(ctx, "acme"); err != nil || found != org {
		t.Fatalf("got %+v, %v", found, err)
	}
	if got := w.events(t, org.ID); !slices.Equal(got, []audit.Event{audit.OrgCreated}) {
		t.Fatalf("the trail says %v", got)
	}
	again := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: "acme", Name: "Again"}
	isField(t, p.CreateOrganization(ctx, again, newPerson(again, "x@acme.test", identity.Owner), ""), "slug")
	again.Slug = "Not A Slug"
	isField(t, p.CreateOrganization(ctx, again, newPerson(again, "x@acme.test", identity.Owner), ""), "slug")
	again.Slug = "again"
	isField(t, p.CreateOrganization(ctx, again, newPerson(again, owner.Email, identity.Owner), ""), "email")
	if n := w.count(t, "SELECT count(*) FROM orgs"); n != 1 {
		t.Fatalf("%d organizations: one that failed was left behind", n)
	}
	other, _ := w.newOrg(t, "other")
	all, err := p.Organizations(ctx)
	must(t, err)
	if len(all) != 2 || !slices.Contains(all, org) || !slices.Contains(all, other) {
		t.Fatalf("got %+v", all)
	}
}

func TestPeopleOfAnotherOrganizationDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := People{w.DB}, t.Context()
	mine, _ := w.newOrg(t, "acme")
	theirs, stranger := w.newOrg(t, "other")
	guest := w.addPerson(t, theirs, "guest@other.test", identity.Member)
	before := w.count(t, "SELECT count(*) FROM audit_entries")
	e := note(audit.PersonRoles, "person", string(guest.ID))
	_, err := p.Person(ctx, mine.ID, stranger.ID)
	isFault(t, err, fault.CodeNotFound)
	isFault(t, p.SetRoles(ctx, mine.ID, guest.ID, []identity.Role{identity.Owner}, e), fault.CodeNotFound)
	isFault(t, p.SetActive(ctx, mine.ID, guest.ID, false, e), fault.CodeNotFound)
	isFault(t, p.SetPassword(ctx, mine.ID, guest.ID, "stolen", nil, e), fault.CodeNotFound)
	_, hash := people.NewLink()
	isFault(t, p.SaveInvitation(ctx, mine.ID, guest.ID, hash, time.Hour, e), fault.CodeNotFound)
	list, err := p.People(ctx, mine.ID)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("my organization lists %d people", len(list))
	}
	if after := w.count(t, "SELECT count(*) FROM audit_entries"); after != before {
		t.Fatalf("refusals wrote %d entries", after-before)
	}
	a, err := p.AccountByEmail(ctx, guest.Email)
	must(t, err)
	if a.PasswordHash != "hash" || !slices.Equal(a.Person.Roles, guest.Roles) || !a.Person.Active {
		t.Fatalf("the stranger was changed: %+v", a)
	}
	if _, err := p.Person(ctx, mine.ID, "per_\x00'"); !fault.Is(err, fault.CodeNotFound) {
		t.Fatalf("a hostile id: %v", err)
	}
}

func TestTheLastActiveOwnerStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := People{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	w.newOrg(t, "other") // its owner is no help
	admin := w.addPerson(t, org, "admin@acme.test", identity.Admin)
	e := note(audit.PersonRoles, "person", string(owner.ID))
	isFault(t, p.SetRoles(ctx, org.ID, owner.ID, []identity.Role{identity.Admin}, e), fault.CodeConflict)
	isFault(t, p.SetActive(ctx, org.ID, owner.ID, false, e), fault.CodeConflict)
	must(t, p.SetRoles(ctx, org.ID, owner.ID, []identity.Role{identity.Owner, identity.Auditor}, e))
	must(t, p.SetRoles(ctx, org.ID, admin.ID, []identity.Role{identity.Owner}, e))
	must(t, p.SetActive(ctx, org.ID, admin.ID, false, e))
	isFault(t, p.SetActive(ctx, org.ID, owner.ID, false, e), fault.CodeConflict) // an owner who is not active does not count
	must(t, p.SetActive(ctx, org.ID, admin.ID, true, e))
	must(t, p.SetActive(ctx, org.ID, owner.ID, false, e))
	isFault(t, p.SetRoles(ctx, org.ID, admin.ID, []identity.Role{identity.Member}, e), fault.CodeConflict)
	isField(t, p.SetRoles(ctx, org.ID, owner.ID, nil, e), "role")
}

func TestTwoOwnersCannotRemoveEachOtherAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := People{w.DB}, t.Context()
	org, one := w.newOrg(t, "acme")
	two := w.addPerson(t, org, "two@acme.test", identity.Owner)
	e := note(audit.PersonRoles, "person", "both")
	for range 25 {
		var wg sync.WaitGroup
		var errs [2]error
		wg.Go(func() { errs[0] = p.SetRoles(ctx, org.ID, one.ID, []identity.Role{identity.Member}, e) })
		wg.Go(func() { errs[1] = p.SetActive(ctx, org.ID, two.ID, false, e) })
		wg.Wait()
		if left := w.count(t, "SELECT count(*) FROM people WHERE org_id = $1 AND active AND 'owner' = ANY (roles)", string(org.ID)); left != 1 {
			t.Fatalf("%d owners are left; the answers were %v", left, errs)
		}
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("the answers were %v", errs)
		}
		must(t, p.SetActive(ctx, org.ID, two.ID, true, e))
		must(t, p.SetRoles(ctx, org.ID, one.ID, []identity.Role{identity.Owner}, e))
	}
}

func TestANewPasswordEndsSessionsAndLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, s, ctx := People{w.DB}, Sessions{w.DB}, t.Context()
	org, owner := w.newOrg(t, "acme")
	w.signIn(t, owner, "kept")
	w.signIn(t, owner, "stolen")
	bystander := w.addPerson(t, org, "by@acme.test", identity.Member)
	w.signIn(t, bystander, "bystander")
	_, link := people.NewLink()
	must(t, p.SaveInvitation(ctx, org.ID, owner.ID, link, time.Hour, note(audit.PersonInvited, "person", "")))
	must(t, p.SetPassword(ctx, org.ID, owner.ID, "new", []byte("kept"), note(audit.PasswordSet, "person", "")))
	_, err := s.SessionByHash(ctx, []byte("stolen"))
	isFault(t, err, fault.CodeNotFound)
	_, err = s.SessionByHash(ctx, []byte("kept"))
	must(t, err)
	_, err = s.SessionByHash(ctx, []byte("bystander"))
	must(t, err)
	_, err = p.Invitee(ctx, link)
	isFault(t, err, fault.CodeNotFound)
	must(t, p.SetPassword(ctx, org.ID, owner.ID, "newer", nil, note(audit.PasswordSet, "person", "")))
	_, err = s.SessionByHash(ctx, []byte("kept"))
	isFault(t, err, fault.CodeNotFound)
	a, err := p.AccountByEmail(ctx, owner.Email)
	must(t, err)
	if a.PasswordHash != "newer" {
		t.Fatalf("the password is %q", a.PasswordHash)
	}
}

func TestAnInvitationWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := People{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	theirs, _ := w.newOrg(t, "other")
	guest := newPerson(org, "guest@acme.test", identity.Member)
	must(t, p.AddPerson(ctx, guest, "", note(audit.PersonAdded, "person", string(guest.ID))))
	_, older := people.NewLink()
	_, hash := people.NewLink()
	must(t, p.SaveInvitation(ctx, org.ID, guest.ID, older, time.Hour, note(audit.PersonInvited, "person", string(guest.ID))))
	must(t, p.SaveInvitation(ctx, org.ID, guest.ID, hash, time.Hour, note(audit.PersonInvited, "person", string(guest.ID))))
	_, err := p.Invitee(ctx, older)
	isFault(t, err, fault.CodeNotFound) // a newer link replaced it
	a, err := p.Invitee(ctx, hash)
	must(t, err)
	if a.Person.ID != guest.ID || a.Org != org || a.PasswordHash != "" {
		t.Fatalf("got %+v", a)
	}
	joined := note(audit.PersonJoined, "person", string(guest.ID))
	joined.Org = theirs.ID
	isFault(t, p.AcceptInvitation(ctx, hash, "", "stolen", joined), fault.CodeNotFound)
	joined.Org = org.ID
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = p.AcceptInvitation(ctx, hash, "The Guest", "password "+string(rune('a'+i)), joined) })
	}
	wg.Wait()
	used := -1
	for i, err := range errs {
		if err == nil && used < 0 {
			used = i
		} else {
			isFault(t, err, fault.CodeNotFound)
		}
	}
	a, err = p.AccountByEmail(ctx, guest.Email)
	must(t, err)
	if used < 0 || a.PasswordHash != "password "+string(rune('a'+used)) || a.Person.Name != "The Guest" {
		t.Fatalf("use %d won, the account is %+v", used, a)
	}
	if n := w.count(t, "SELECT count(*) FROM audit_entries WHERE event = $1", audit.PersonJoined); n != 1 {
		t.Fatalf("joined %d times", n)
	}
	_, err = p.Invitee(ctx, hash)
	isFault(t, err, fault.CodeNotFound)
}

func TestAnInvitationEndsWithItsTimeAndItsPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, ctx := People{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	guest := w.addPerson(t, org, "guest@acme.test", identity.Member)
	_, hash := people.NewLink()
	e := note(audit.PersonInvited, "person", string(guest.ID))
	e.Org = org.ID
	must(t, p.SaveInvitation(ctx, org.ID, guest.ID, hash, people.InvitationLife, e))
	w.asSuper(t, "UPDATE invitations SET expires_at = clock_timestamp()")
	_, err := p.Invitee(ctx, hash)
	isFault(t, err, fault.CodeNotFound)
	isFault(t, p.AcceptInvitation(ctx, hash, "", "x", e), fault.CodeNotFound)
	_, hash = people.NewLink()
	must(t, p.SaveInvitation(ctx, org.ID, guest.ID, hash, people.InvitationLife, e))
	must(t, p.SetActive(ctx, org.ID, guest.ID, false, e))
	isFault(t, p.AcceptInvitation(ctx, hash, "", "x", e), fault.CodeNotFound)
	isFault(t, p.SaveInvitation(ctx, org.ID, guest.ID, []byte("another"), people.InvitationLife, e), fault.CodeNotFound)
	must(t, p.SetActive(ctx, org.ID, guest.ID, true, e))
	_, err = p.Invitee(ctx, hash)
	isFault(t, err, fault.CodeNotFound) // coming back does not bring old links back
}

// signIn starts a session whose hash is the given text.
func (w world) signIn(t *testing.T, p identity.Person, hash string) {
	t.Helper()
	must(t, Sessions{w.DB}.StartSession(t.Context(), session.Session{Person: p}, []byte(hash), note(audit.SignedIn, "person", string(p.ID))))
}
