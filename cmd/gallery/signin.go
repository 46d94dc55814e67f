package main

import (
	"countersign/views"
)

func signIn() []Entry {
	const page, invite = "Sign in", "Invitation"
	return []Entry{
		{page, "empty", views.SignIn(views.SignInView{})},
		{page, "failed", views.SignIn(views.SignInView{
			Email: "tomas@harborpine.test", To: "/actions/act_7kq2mv9xte",
			Error: "Email and password do not match.", Next: "Check both and try again. After 5 more tries this address waits 15 minutes.",
		})},
		{page, "no organization", views.SignIn(views.SignInView{NoOrg: true})},
		{page, "hostile", views.SignIn(views.SignInView{Email: `"><script>alert(1)</script>@harborpine.test`, Error: "Email and password do not match.", Next: "Check both and try again."})},
		{invite, "empty", views.Invitation(views.InvitationView{
			Action: "/invitations/x", Email: "maya@harborpine.test", OrgName: "Harbor & Pine", Roles: "approver and auditor", InvitedBy: "Ines Duarte",
		})},
		{invite, "failed", views.Invitation(views.InvitationView{
			Action: "/invitations/x", Email: "maya@harborpine.test", OrgName: "Harbor & Pine", Roles: "approver", InvitedBy: "Ines Duarte",
			Name: "Maya Okafor", PasswordError: "This password has 8 characters; at least 12 are needed. Nothing was saved.",
		})},
		{invite, "hostile", views.Invitation(views.InvitationView{
			Action: "javascript:alert(1)", Email: "a-very-long-address-that-never-ends-and-has-no-place-to-break@subdomain.of.a.subdomain.harborpine.test",
			OrgName: "Harbor\u202e eniP & enoN", Roles: "member", InvitedBy: "In\u200bes <b>Duarte</b>",
		})},
		{invite, "gone", views.Invitation(views.InvitationView{Gone: true})},
	}
}

func errorPages() []Entry {
	const page = "Error"
	absent := views.ErrorView{
		Title: "Not found", What: "There is no such action.", Code: "not_found", Trace: "req_b7k2q4",
		Next: "Check the address; it may have been removed, or belong to another organization.", Back: "/actions", Label: "Go to the inbox",
	}
	down := views.ErrorView{
		Title: "The database does not answer", What: "Nothing can be read or changed right now, and nothing is sent.", Code: "unavailable", Trace: "req_x1m9c0",
		Next: "Wait a moment and load the page again. The operator sees the cause in the log.", Label: "Try again",
	}
	hostile := absent
	hostile.What = "There is no such connection: \u202egro.live\u202c\u200b<script>alert(1)</script>" + "averyveryverylongkeywithoutanyplacetobreakitaveryveryverylongkeywithoutanyplacetobreakit"
	return []Entry{
		{page, "not found", views.ErrorPage(frame("Not found", ""), absent)},
		{page, "forbidden", views.ErrorPage(frameAs("member", "Not yours to open", ""), views.ErrorView{
			Title: "Not yours to open", What: "Reading the audit trail needs the owner or the auditor role.", Next: "Ask an owner of Harbor & Pine.", Code: "forbidden",
		})},
		{page, "hostile", views.ErrorPage(frame("Not found", ""), hostile)},
		{page, "signed out", views.ErrorDoor("", down)},
	}
}
