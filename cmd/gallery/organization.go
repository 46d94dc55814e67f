package main

import (
	"time"

	"countersign/internal/consent"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/servicetoken"
	"countersign/views"
)

// lure is a name somebody gave themselves.
const lure = "Ines\u200b Duarte\u202e renwo <img src=x onerror=alert(1)>"

func ago(d time.Duration) *time.Time {
	t := now.Add(-d)
	return &t
}

func listed(email, name string, signedIn *time.Time, roles ...identity.Role) people.Listed {
	p := identity.Person{ID: identity.PersonID("per_" + dashed(email)), Email: email, Name: name, Roles: roles, Active: true}
	return people.Listed{Person: p, LastSignedIn: signedIn}
}

func staff() []people.Listed {
	gone := listed("rui@harborpine.test", "Rui Prado", ago(40*24*time.Hour), identity.Approver)
	gone.Active = false
	fresh := listed("maya@harborpine.test", "", nil, identity.Approver, identity.Auditor)
	fresh.Invited = true
	return []people.Listed{
		listed("ines@harborpine.test", "Ines Duarte", ago(2*time.Minute), identity.Owner),
		fresh,
		listed("oren@harborpine.test", "Oren Katz", ago(3*time.Hour), identity.Admin),
		gone,
		listed("tomas@harborpine.test", "Tomas Lindqvist", ago(16*time.Minute), identity.Approver),
		listed("wen@harborpine.test", "Wen Li", ago(26*time.Hour), identity.Member),
	}
}

func peoplePages() []Entry {
	const page, one = "People", "Person"
	alone := []people.Listed{listed("ines@harborpine.test", "Ines Duarte", ago(time.Minute), identity.Owner)}
	wrong := views.NewPersonForm{Email: "maya@harborpine", Name: "Maya Okafor", WithPassword: true, Errors: map[string]string{
		"email": "“maya@harborpine” is not an email address.", "role": "Choose at least one role.", "password": "A password has 12 to 200 characters.",
	}}
	member := views.NewPersonForm{Roles: []string{"member"}}
	handed := views.HandedLink{URL: "http://127.0.0.1:8080/join/3J9xq0vS7Qm2u5Yw8Rk1Zt4Nc6Pb0Hd2Lf5Ga8Jx1Ve", Person: "maya@harborpine.test", Until: now.Add(people.InvitationLife)}
	nasty := append(staff(), listed("a-very-long-address-that-never-ends-and-has-no-place-to-break@subdomain.harborpine.test", lure, nil, identity.AllRoles...))
	f := frame("People", "people")
	show := func(v views.PersonView) Entry {
		v.Now = now
		if v.Roles == nil {
			for _, r := range v.Person.Roles {
				v.Roles = append(v.Roles, string(r))
			}
		}
		return Entry{one, "", views.PersonPage(frame("Person", "people"), v)}
	}
	named := func(state string, e Entry) Entry { e.State = state; return e }
	return []Entry{
		{page, "full", views.PeoplePage(f, views.PeopleView{People: staff(), Now: now, MayOwner: true, Form: member})},
		{page, "empty", views.PeoplePage(f, views.PeopleView{People: alone, Now: now, MayOwner: true, Form: member})},
		{page, "failed", views.PeoplePage(f, views.PeopleView{People: staff(), Now: now, Form: wrong})},
		{page, "hostile", views.PeoplePage(f, views.PeopleView{People: nasty, Now: now, MayOwner: true, Form: views.NewPersonForm{Email: `"><script>alert(1)</script>`, Name: lure}})},
		{page, "link", views.PeoplePage(f, views.PeopleView{People: staff(), Now: now, MayOwner: true, Form: member, Handed: &handed})},
		named("full", show(views.PersonView{Person: staff()[4], MayOwner: true})),
		named("failed", show(views.PersonView{Person: staff()[0], Error: "This is the last active owner.", Next: "Make another owner first.", MayOwner: true, Roles: []string{}, RoleError: "Choose at least one role."})),
		named("empty", show(views.PersonView{Person: staff()[1]})),
		named("deactivated", show(views.PersonView{Person: staff()[3], MayOwner: true})),
		named("deactivated, consents stay", show(views.PersonView{Person: staff()[3], MayOwner: true, Consents: []consent.Consent{*given()}})),
		named("yourself", show(views.PersonView{Person: staff()[0], Fixed: "You cannot change your own roles or standing. Ask another owner or admin."})),
		named("hostile", show(views.PersonView{Person: nasty[6], MayOwner: true})),
	}
}

func serviceToken(name string, used *time.Time, ends time.Duration, scopes ...servicetoken.Scope) servicetoken.Token {
	return servicetoken.Token{ID: "tok_" + dashed(name), Name: name, Scopes: scopes, OwnerName: "Oren Katz", CreatedAt: now.Add(-20 * 24 * time.Hour), ExpiresAt: now.Add(ends), LastUsedAt: used, LastFour: "7wQe"}
}

func tokenPages() []Entry {
	const page = "Tokens"
	revoked := serviceToken("old runtime", ago(9*24*time.Hour), 60*24*time.Hour, servicetoken.RunsWrite)
	revoked.RevokedAt = ago(8 * 24 * time.Hour)
	all := []servicetoken.Token{
		serviceToken("support-runtime, production", ago(time.Minute), 70*24*time.Hour, servicetoken.RunsWrite, servicetoken.ActionsRead),
		serviceToken("nightly report", ago(9*time.Hour), 4*24*time.Hour, servicetoken.AuditRead, servicetoken.ActionsRead),
		serviceToken("try-out", nil, -2*24*time.Hour, servicetoken.RunsWrite),
		revoked,
	}
	blank := views.NewTokenForm{ID: "tok_x", Scopes: []string{"runs:write"}, Days: "90"}
	wrong := views.NewTokenForm{ID: "tok_x", Name: "", Days: "soon", Errors: map[string]string{"name": "A token needs a name of at most 80 characters.", "days": "A token ends after 1 to 366 days.", "scopes": "Choose at least one scope."}}
	f := frame("Tokens", "tokens")
	return []Entry{
		{page, "full", views.TokensPage(f, views.TokensView{Tokens: all, Now: now, Form: blank})},
		{page, "empty", views.TokensPage(f, views.TokensView{Now: now, Form: blank})},
		{page, "failed", views.TokensPage(f, views.TokensView{Tokens: all, Now: now, Form: wrong})},
		{page, "made", views.TokensPage(f, views.TokensView{Tokens: all, Now: now, Form: blank, Made: &all[0], Clear: "cst_3J9xq0vS7Qm2u5Yw8Rk1Zt4Nc6Pb0Hd2Lf5Ga8J7wQe"})},
		{page, "hostile", views.TokensPage(f, views.TokensView{Tokens: []servicetoken.Token{serviceToken(lure, nil, 24*time.Hour, servicetoken.Scopes...)}, Now: now, Form: views.NewTokenForm{Name: lure, Days: "-1"}})},
	}
}

func settingsPages() []Entry {
	const page = "Settings"
	v := views.SettingsView{
		Person: staff()[4].Person, Org: identity.Org{Slug: "harborpine", Name: "Harbor & Pine"}, PublicURL: "https://countersign.harborpine.test",
		Release: "sha256:" + digest, Holders: views.Holders(staff()),
	}
	empty := v
	empty.Release, empty.Holders = "", views.Holders(staff()[:1])
	failed := v
	failed.Errors = map[string]string{"current": "This is not your current password. It stays as it was."}
	nasty := v
	nasty.Person.Name, nasty.Org.Name, nasty.Holders = lure, lure, map[identity.Role][]string{identity.Owner: {lure, lure, lure}}
	f := frameAs("approver", "Settings", "settings")
	return []Entry{
		{page, "full", views.SettingsPage(f, v)}, {page, "empty", views.SettingsPage(f, empty)}, {page, "failed", views.SettingsPage(f, failed)}, {page, "hostile", views.SettingsPage(f, nasty)},
	}
}
