package main

import (
	"time"

	"countersign/internal/action"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	policies "countersign/internal/policy"
	"countersign/views"
)

func euros(whole int64) manifest.Amount {
	return manifest.Amount{Currency: "EUR", Units: whole * 10_000}
}

// asksTwo is a refund that the group finance has to sign twice.
func asksTwo() action.Action {
	a := refunded()
	a.Approvers, a.Needed, a.Members, a.Spends = "finance", 2, []identity.PersonID{"per_ines", "per_tomas"}, euros(240)
	return a
}

func signature(name string, ago time.Duration) action.Signature {
	return action.Signature{By: identity.PersonID("per_" + dashed(name)), Name: name, At: earlier(ago)}
}

// approvalPages are what is asked of several people, counted by the day, or decided together.
func approvalPages() []Entry {
	first, second := cardOf(asksTwo()), cardOf(asksTwo())
	day := action.Day{Date: now.Truncate(24 * time.Hour), Actions: 7, Most: 12, Spent: 4_100_000, MostAmount: euros(1000)}
	first.Day, second.Day = day, day
	second.Action.Signatures = []action.Signature{signature("Ines Duarte", 9*time.Minute)}
	mine := cardOf(asksTwo())
	mine.Action.Signatures = []action.Signature{signature("Tomas Lindqvist", 2*time.Minute)}
	mine.Mine, mine.Deciders = &mine.Action.Signatures[0], []string{"Ines Duarte"}
	both := cardOf(signed(asksTwo(), action.StateApproved))
	both.Action.Signatures = []action.Signature{signature("Ines Duarte", 9*time.Minute), signature("Tomas Lindqvist", 4*time.Minute)}
	outside := cardOf(asksTwo())
	outside.Refused, outside.Deciders = "The group “finance” decides on this, and you are not in it.", []string{"Ines Duarte", "Tomas Lindqvist"}
	late := cardOf(second.Action)
	late.Action.State, late.Action.FinishedAt, late.Action.ExpiresAt = action.StateExpired, ago(time.Minute), earlier(time.Minute)
	f := frameAs("approver", "Decide together", "inbox")
	return append([]Entry{
		card("1st of 2 signatures", first), card("2nd of 2 signatures", second), card("signed by you", mine), card("signed by both", both), card("for a group", outside), card("expired half signed", late),
		{"Batch", "full", views.BatchPage(f, batch())},
		{"Batch", "empty", views.BatchPage(f, views.BatchView{Tool: "refund_issue", ConnectionName: "Sandbox CRM", Now: now})},
		{"Batch", "stopped", views.BatchPage(f, stoppedBatch())},
		{"Batch", "frozen", views.BatchPage(f, frozenBatch(3))},
		{"Batch", "partly frozen", views.BatchPage(f, frozenBatch(1))},
		{"Batch", "hostile", views.BatchPage(f, hostileBatch())},
	}, append(groupPages(), limitPages()...)...)
}

func batch() views.BatchView {
	v := views.BatchView{Connection: crmKey, ConnectionName: "Sandbox CRM", Tool: "refund_issue", Now: now, Viewer: "Tomas Lindqvist", More: 3}
	for i, contact := range []string{"c_1042", "c_0311", "c_0877"} {
		a := asked("refund_issue", map[string]any{"amount_cents": 24000 + 1250*i, "contact_id": contact, "reason": "Parcel lost; the carrier confirms it."})
		a.ID = action.ID("act_" + contact)
		c := cardOf(a)
		v.Members = append(v.Members, views.BatchMember{Action: c.Action, Sentence: c.Sentence, Arguments: c.Arguments, Policy: c.Policy, Behalf: c.Behalf})
	}
	return v
}

func stoppedBatch() views.BatchView {
	v := batch()
	v.More, v.Stopped, v.Members[2].Left = 0, v.Members[1].Action.ID, true
	v.Form = views.DecisionForm{Reason: "All from Friday's carrier list.", What: "Nothing was decided, because of act_c_0311: This changed while you read. Nothing was sent.", Next: "Read the page as it is now and decide again."}
	return v
}

// frozenBatch has some of its members stopped by a freeze of their profile.
func frozenBatch(n int) views.BatchView {
	v := batch()
	over := frozenFor(action.Switch{Scope: action.ScopeProfile, Key: "support"}, "Maya Okafor", "Two refunds to the same contact within a minute.")
	for i := range n {
		v.Members[i].Frozen = &over
	}
	return v
}

func hostileBatch() views.BatchView {
	v := batch()
	c := cardOf(asked("refund_issue", map[string]any{"amount_cents": 24000, "contact_id": "<b>c</b>\u202e", "reason": carried(hostileText)}))
	c.Action.Justification = lure
	v.ConnectionName, v.Members = lure, []views.BatchMember{{Action: c.Action, Sentence: c.Sentence, Arguments: c.Arguments, Policy: c.Policy, Behalf: lure}}
	v.Form = views.DecisionForm{Error: "Say why: the agent reads it, and it is kept in the audit trail. Nothing was recorded."}
	return v
}

func groupPages() []Entry {
	const page = "Groups"
	f := frame("Groups of approvers", "people")
	people := staff()
	finance := views.GroupForm{Name: "finance", Version: 4, Members: []string{string(people[0].ID), string(people[4].ID)}}
	night := views.GroupForm{Name: "night-watch", Version: 5, Members: []string{string(people[3].ID)}}
	full := views.GroupsView{Groups: []views.GroupForm{finance, night}, Offered: people, Asked: map[string][]string{"finance": {"support", "engineering"}}}
	wrong := full
	wrong.New = views.GroupForm{Name: "Night Watch", Errors: map[string]string{"name": "A group's name is 1 to 40 lower-case letters, digits and hyphens, starting with a letter.", "members": "A group has 1 to 100 members."}}
	kept := full
	kept.Error, kept.Next = "A profile asks the group “finance”, so it stays.", "Let the profile ask another group first."
	nasty := views.GroupsView{Offered: append(staff(), listed("ines2@harborpine.test", lure, nil, identity.Approver)), New: views.GroupForm{Name: lure}}
	return []Entry{
		{page, "full", views.GroupsPage(f, full)},
		{page, "empty", views.GroupsPage(f, views.GroupsView{Offered: people})},
		{page, "failed", views.GroupsPage(f, wrong)},
		{page, "in use", views.GroupsPage(f, kept)},
		{page, "hostile", views.GroupsPage(f, nasty)},
	}
}

func limitPages() []Entry {
	limits := views.ProfileLimits{
		Actions: "25", Amount: "1000", Currency: "EUR", Approvers: "finance", Signatures: 1, Quorum: map[string]int{"refund_issue": 2},
		Settings: []views.ProfileSetting{{Name: "project", Label: "Projects", Allowed: "alpha\nbeta"}, {Name: "region", Label: "Regions", Bound: "eu"}},
	}
	offers := []views.ProfileOffer{{Connection: docs()}, {Connection: crm("Sandbox CRM", installation.Active), Used: true, Mode: policies.AskUserOnWrite, Limits: limits}}
	v := views.ProfileView{Name: "support", Version: 3, Department: "Support", Budget: "10", Offers: offers, Groups: []string{"finance", "night-watch"}, MayManage: true}
	return []Entry{{"Profile", "limits", views.ProfilePage(frame("Profiles", "profiles"), v)}}
}
