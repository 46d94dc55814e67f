package main

import (
	"time"

	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	modes "countersign/internal/policy"
	"countersign/views"
)

// deskManifest is a service with two grants, one of which may be left out.
func deskManifest() manifest.Manifest {
	m := oneOf("sandbox-crm")
	m.Name = "Harbor desk"
	m.Auth = []manifest.Auth{{Contract: manifest.OAuth2, OAuth: manifest.OAuth{Manage: "https://desk.example.com/settings/apps"}}}
	m.Setup.Fields = nil
	m.Grants = []manifest.Grant{
		{ID: "read", Title: "Read contacts, invoices and notes", Why: "Agents look a customer up before they answer.", Scopes: []string{"contacts:read", "invoices:read"}},
		{ID: "write", Title: "Change contacts and write notes", Why: "Agents correct what customers tell them, after approval.", Scopes: []string{"contacts:write"}, Optional: true},
		{ID: "site", Title: "One site of the desk", Why: "The desk asks on its own page which site the connection is for."},
	}
	for i, t := range m.Tools {
		if t.Name == "contacts_update" || t.Name == "contacts_create" {
			m.Tools[i].Needs = []string{"write"}
		}
	}
	return m
}

func deskConnection() installation.Connection {
	c := crmConnection()
	c.Name, c.Key, c.Contract, c.Granted = "Harbor desk", "harbor-desk-m3q7ra", string(manifest.OAuth2), []string{"contacts:read", "invoices:read"}
	return c
}

func given() *consent.Consent {
	return &consent.Consent{
		Place:  credential.Place{Org: "org_1", Connection: "harbor-desk-m3q7ra"},
		Server: consent.Server{Issuer: "https://login.desk.example.com", Authorize: "https://login.desk.example.com/authorize", Token: "https://login.desk.example.com/token"},
		Client: consent.Client{Identity: consent.Dynamic}, Granted: []string{"contacts:read", "invoices:read"}, ByName: "Ines Duarte", At: now.Add(-12 * 24 * time.Hour), Renews: true,
	}
}

func ask(before *consent.Consent, chosen string) consent.Ask {
	a := consent.Ask{Connection: deskConnection(), Manifest: deskManifest(), Before: before, Callback: "https://countersign.harborpine.test/oauth/callback"}
	a.Auth = a.Manifest.Auth[0]
	for _, g := range a.Manifest.Grants {
		has := before != nil && len(g.Scopes) > 0 && before.Holds(g.Scopes)
		a.Grants = append(a.Grants, consent.Wanted{Grant: g, Given: has, Chosen: !g.Optional || has || g.ID == chosen})
	}
	return a
}

// deskView is a connection that is made by consent.
func deskView() views.ConnectionView {
	v := crmView()
	v.Connection, v.Manifest, v.Credential = deskConnection(), deskManifest(), nil
	v.Tools = tools(&v.Connection, []string{"contacts_get", "contacts_list", "contacts_search"})
	for i, t := range v.Tools {
		v.Tools[i].Lacks = installation.Lacks(v.Connection, v.Manifest, t.Tool)
	}
	a := ask(given(), "")
	v.Ask = &a
	return v
}

func consentPages() []Entry {
	const page, leaving, coming = "Consent", "Leaving for a service", "Coming back"
	f := frame("Consent", "connections")
	none := consent.Ask{Connection: deskConnection(), Manifest: deskManifest()}
	none.Auth = none.Manifest.Auth[0]
	withClient := ask(nil, "")
	withClient.Auth.Client = manifest.RegisteredClient
	withClient.Auth.ClientSteps = []string{"Open Settings → Apps at https://desk.example.com/settings/apps and choose New app.", "Enter {redirect_uri} under Redirect addresses.", "Copy Client id and Client secret."}
	nasty := ask(given(), "write")
	nasty.Before.ByName, nasty.Before.Granted = lure, []string{"contacts:read", "admin\u202eetirw", "<script>alert(1)</script>"}
	departure := func(was string) consent.Departure {
		return consent.Departure{URL: "https://login.desk.example.com/authorize?x=y", Origin: "https://login.desk.example.com", Was: was, Asked: []string{"contacts:read", "invoices:read", "offline_access"}}
	}
	return []Entry{
		{page, "first", views.ConsentPage(f, views.ConsentView{Ask: ask(nil, ""), Now: now})},
		{page, "addition", views.ConsentPage(f, views.ConsentView{Ask: ask(given(), "write"), Now: now})},
		{page, "empty", views.ConsentPage(f, views.ConsentView{Ask: none, Now: now})},
		{page, "client", views.ConsentPage(f, views.ConsentView{Ask: withClient, Now: now, ClientID: "desk-4711", Errors: map[string]string{"client_secret": "This vendor's clients have a secret; enter it with the id."}})},
		{page, "failed", views.ConsentPage(f, views.ConsentView{Ask: ask(nil, ""), Now: now, Error: "The service or its authorization server cannot be reached.", Next: "Nothing was changed. Try again later."})},
		{page, "hostile", views.ConsentPage(f, views.ConsentView{Ask: nasty, Now: now})},
		{leaving, "first", views.LeavePage(f, views.LeaveView{Ask: ask(nil, ""), Departure: departure("")})},
		{leaving, "moved", views.LeavePage(f, views.LeaveView{Ask: ask(given(), ""), Departure: departure("https://old-login.desk.example.com")})},
		{leaving, "empty", views.LeavePage(f, views.LeaveView{Ask: none, Departure: consent.Departure{URL: "https://login.desk.example.com/authorize", Origin: "https://login.desk.example.com"}})},
		{coming, "declined", views.ReturnPage(f, views.ReturnView{Key: "harbor-desk-m3q7ra", What: consent.ErrDenied.What, Next: consent.ErrDenied.Next})},
		{coming, "unknown", views.ReturnPage(f, views.ReturnView{What: consent.ErrNotStarted.What, Next: consent.ErrNotStarted.Next})},
		{coming, "other person", views.ReturnPage(f, views.ReturnView{What: consent.ErrOtherPerson.What, Next: consent.ErrOtherPerson.Next})},
		{coming, "other server", views.ReturnPage(f, views.ReturnView{Key: "harbor-desk-m3q7ra", What: consent.ErrIssuer.What, Next: consent.ErrIssuer.Next})},
	}
}

// consentStates are the connection page as consents come and go.
func consentStates() []Entry {
	const page = "Connection by consent"
	draw := func(state string, change func(*views.ConnectionView)) Entry {
		v := deskView()
		change(&v)
		return Entry{page, state, views.ConnectionPage(frame(v.Connection.Name, "connections"), v)}
	}
	since := now.Add(-31 * time.Minute)
	over := func(t consent.Trouble) func(*views.ConnectionView) {
		return func(v *views.ConnectionView) {
			v.Connection.State = installation.NeedsConsent
			v.Connection.Health = installation.Health{TestedAt: &since, What: t.What, Next: t.Next, Since: &since}
			v.Ask.Before.Lost = t.Word
		}
	}
	return []Entry{
		draw("full", func(*views.ConnectionView) {}),
		draw("new", func(v *views.ConnectionView) {
			v.Connection.State, v.Connection.Health, v.Connection.Granted, v.Connection.Standing = installation.NeedsConsent, installation.Health{}, nil, modes.Standing{}
			v.Tools, v.UsedBy, v.Waiting, v.History = nil, nil, 0, nil
			a := ask(nil, "")
			v.Ask = &a
		}),
		draw("expired", over(consent.Expired)),
		draw("revoked", over(consent.Revoked)),
		draw("client unknown", over(consent.Unknown)),
		draw("moved", over(consent.Moved)),
		draw("scope refused", func(v *views.ConnectionView) { v.Connection.Refused = []string{"contacts:write"} }),
		draw("giver gone", func(v *views.ConnectionView) { v.GiverGone = true }),
		draw("disconnected", func(v *views.ConnectionView) {
			v.Connection.State = installation.Disconnected
			a := ask(nil, "")
			v.Ask = &a
		}),
	}
}
