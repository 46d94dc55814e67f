package main

import (
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/manifest"
	"countersign/views"
	"countersign/views/layout"
)

var organization = action.Switch{Scope: action.ScopeOrganization}

func frozenFor(s action.Switch, by, reason string) action.Freeze {
	return action.Freeze{Switch: s, ID: "frz_6b2c9d", Since: earlier(3 * time.Hour), By: by, Reason: reason}
}

func frozenFrame(role, title, current string, standing ...action.Freeze) layout.Frame {
	f := frameAs(role, title, current)
	f.Viewer.Freezes = standing
	if over, on := organization.On(standing); on {
		f.Freeze = "Frozen since 10:54 UTC on 30 November 2026 by " + over.By + ": " + over.Reason
	}
	return f
}

// freezePages are the kill switch off, on, refused and in hostile words, the cards it stops, and what was found out about a lost call.
func freezePages() []Entry {
	const reason = "Two refunds to the same contact within a minute. Nothing goes out until we know why."
	whole := frozenFor(organization, "Ines Duarte", reason)
	crm := frozenFor(action.Switch{Scope: action.ScopeConnection, Key: "sandbox-crm-k4x7qa"}, "Maya Okafor", "The vendor announced an incident.")
	profile := frozenFor(action.Switch{Scope: action.ScopeProfile, Key: "support"}, hostileName, strings.Repeat("<script>x</script> ", 30))
	page := func(role string, v views.SwitchView, standing ...action.Freeze) views.SwitchView {
		v.Standing, v.Now, v.MayPress = standing, now, role == "admin"
		return v
	}
	stopped := cardOf(refunded())
	stopped.Frozen = &whole
	approved := cardOf(signed(refunded(), action.StateApproved))
	approved.Frozen = &crm
	looked := cardOf(lost())
	looked.Policy.LookUps = []manifest.Call{{Tool: "contacts_get", Arguments: map[string]any{"contact_id": "{contact_id}"}}}
	looked.Probe = &action.Probe{Attempts: 3, LastAt: earlier(time.Minute), NextAt: now.Add(3 * time.Minute), Sentence: "contacts_get gave an answer that does not tell."}
	looked.LookUps = []action.LookUp{
		{By: "Tomas Lindqvist", At: earlier(40 * time.Second), Tool: "contacts_get", Arguments: []byte(`{"contact_id":"c_0311"}`), Seen: `{"contact":{"id":"c_0311","name":"Ada"},"refunds":[]}`},
		{By: "Ines Duarte", At: earlier(2 * time.Minute), Tool: "contacts_get", Arguments: []byte(`{"contact_id":"c_0311"}`), Seen: "Everything is fine.\u202e Press “It happened”.\n<b>Really</b>", Left: 120_000, IsError: true},
	}
	return []Entry{
		{"Freeze", "off", views.SwitchPage(frame("Freeze", "settings"), page("admin", views.SwitchView{Switch: organization}))},
		{"Freeze", "on", views.SwitchPage(frozenFrame("admin", "Freeze", "settings", whole), page("admin", views.SwitchView{Switch: organization}, whole))},
		{"Freeze", "on, for who may not lift", views.SwitchPage(frozenFrame("approver", "Freeze", "settings", whole), page("approver", views.SwitchView{Switch: organization}, whole))},
		{"Freeze", "refused", views.SwitchPage(frame("Freeze", "connections"), page("admin", views.SwitchView{Switch: crm.Switch, Name: "Sandbox CRM", Error: "Say why: everybody who is stopped by it reads this, and it is kept in the audit trail. Nothing was frozen."}))},
		{"Freeze", "hostile", views.SwitchPage(frozenFrame("admin", "Freeze", "profiles", profile), page("admin", views.SwitchView{Switch: profile.Switch, Name: "support"}, profile))},
		card("frozen", stopped), card("approved and frozen", approved), card("looked up", looked),
	}
}

const hostileName = "Ines\u200b Duarte <b>owner</b>"
