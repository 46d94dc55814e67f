package main

import (
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/installation"
	policies "countersign/internal/policy" // policy and run are other things in this command
	"countersign/internal/profile"
	"countersign/internal/release"
	runs "countersign/internal/run"
	"countersign/views"
	"countersign/views/ui"
)

func recorded(id int64, before time.Duration, by audit.Actor, event audit.Event, kind, object, args string, facts ...audit.Fact) audit.Recorded {
	return audit.Recorded{Entry: audit.Entry{Actor: by, Event: event, Object: audit.Object{Kind: kind, ID: object}, Digest: args, Facts: facts}, ID: id, Seq: id, At: now.Add(-before)}
}

func trail() []audit.Recorded {
	ines, tomas := audit.Actor{Kind: audit.ByPerson, ID: "per_ines", Name: "Ines Duarte"}, audit.Actor{Kind: audit.ByPerson, ID: "per_tomas", Name: "Tomas Lindqvist"}
	agent := audit.Actor{Kind: audit.ByAgent, ID: "run_7kq2", Name: "support run for Maya Okafor"}
	fresh := recorded(41208, 300*time.Millisecond, agent, audit.ToolRead, "connection", "sandbox-crm-k4x7qa", "", audit.Fact{Name: "tool", Value: "contacts_get"})
	fresh.Seq = 0
	return []audit.Recorded{
		fresh,
		recorded(41207, 2*time.Minute, tomas, audit.ActionApproved, "action", "act_7kq2mv9xte", digest, audit.Fact{Name: "from", Value: "staged"}, audit.Fact{Name: "to", Value: "approved"}, audit.Fact{Name: "tool", Value: "sandbox-crm-k4x7qa/refund_issue"}),
		recorded(41206, 18*time.Minute, agent, audit.ActionStaged, "action", "act_7kq2mv9xte", digest, audit.Fact{Name: "tool", Value: "sandbox-crm-k4x7qa/refund_issue"}),
		recorded(41205, 19*time.Minute, agent, audit.ToolRefused, "connection", "sandbox-crm-k4x7qa", "", audit.Fact{Name: "tool", Value: "deals_move"}, audit.Fact{Name: "code", Value: "definition_changed"}),
		recorded(41204, 31*time.Minute, audit.Actor{Kind: audit.ByService, ID: "tok_x", Name: "support-runtime"}, audit.RunStarted, "run", "run_7kq2", "", audit.Fact{Name: "task", Value: "SUP-481"}, audit.Fact{Name: "profile", Value: "support"}),
		recorded(41203, 104*time.Minute, audit.System("watcher"), audit.DefinitionHeld, "connection", "sandbox-crm-k4x7qa", "", audit.Fact{Name: "tool", Value: "deals_move"}),
		recorded(41202, 15*time.Hour, ines, audit.AccessSaved, "connection", "sandbox-crm-k4x7qa", "", audit.Fact{Name: "mode", Value: "ask_user_on_write"}, audit.Fact{Name: "tools", Value: "8"}),
		recorded(41201, 15*time.Hour+time.Minute, audit.System("sign-in"), audit.SignInRefused, "person", "per_ines", "", audit.Fact{Name: "address", Value: "203.0.113.9"}),
		recorded(41200, 39*time.Hour, audit.Operator, audit.ReleasePublished, "release", "sha256:"+digest, ""),
	}
}

func auditPages() []Entry {
	const page = "Audit"
	f := frameAs("auditor", "Audit", "audit")
	sound := &views.ChainCheck{At: now.Add(-4 * time.Minute), Sealed: 41207, Pending: 1}
	broken := &views.ChainCheck{At: now, Break: &audit.Break{Seq: 8101, EntryID: 8113, What: "the entry or its seal was edited."}}
	full := views.AuditView{Entries: trail(), Check: sound, Pager: ui.Cursor{Next: "/audit?before=41200", Words: "9 entries"}, Export: "/audit/export"}
	wrong := full
	wrong.Check, wrong.Entries, wrong.Filter = broken, nil, views.AuditFilter{Actor: "Ines", From: "yesterday", Errors: map[string]string{"from": "“yesterday” is not a day. Write it as 2026-11-30."}}
	nasty := full
	nasty.Entries = []audit.Recorded{recorded(7, time.Hour, audit.Actor{Kind: audit.ByAgent, ID: "x", Name: lure}, "tool.invented", "connection", "x\u202e/../y<script>", "", audit.Fact{Name: "tool", Value: hostileText})}
	nasty.Filter = views.AuditFilter{Actor: `"><script>alert(1)</script>`, Object: lure}
	return []Entry{
		{page, "full", views.AuditPage(f, full)},
		{page, "empty", views.AuditPage(f, views.AuditView{Export: "/audit/export"})},
		{page, "failed", views.AuditPage(f, wrong)},
		{page, "hostile", views.AuditPage(f, nasty)},
	}
}

func releasePages() []Entry {
	const page, one = "Releases", "Release"
	f := frame("Releases", "releases")
	newest := release.Summary{Digest: "sha256:" + digest, PublishedAt: now.Add(-39 * time.Hour), Files: 8, Current: true}
	older := release.Summary{Digest: "sha256:9c1185a5c5e9fc54612808977ee8f548b2258d31f0c1b8a5c2f4e9d7a6b3c001", PublishedAt: now.Add(-27 * 24 * time.Hour), Files: 7}
	holds := []release.Entry{
		{Key: "context7", Name: "Context7", Kind: "hosted", Auth: "none|token", Category: "Code", Runtime: "context7.v1"},
		{Key: "sandbox-crm", Name: "Sandbox CRM", Kind: "hosted", Auth: "token", Category: "Customers", Runtime: "sandbox_crm.v1"},
	}
	changes := release.Changes{
		From: older.Digest, To: newest.Digest, Added: []release.Named{{Key: "exa", Name: "Exa"}}, Removed: []release.Named{{Key: "old-desk", Name: "Old Desk"}},
		Changed: []release.Change{{Key: "sandbox-crm", Name: "Sandbox CRM", Lines: []release.Line{
			{Field: "tools.report_export.effect", Text: "The tool report_export was consequential and is a read now.", Widens: true}, {Field: "summary", Text: "The summary is another."},
		}}},
	}
	nasty := changes
	nasty.Changed = []release.Change{{Key: "sandbox-crm", Name: "Sandbox CRM", Lines: []release.Line{{Field: "summary", Text: hostileText, Widens: true}}}}
	unread := []release.Unavailable{{Key: "future-thing", Why: fault.List{fault.Field("", "future-thing.toml:3: There is no kind “quantum”.")}}}
	return []Entry{
		{page, "full", views.ReleasesPage(f, views.ReleasesView{Releases: []release.Summary{newest, older}})},
		{page, "empty", views.ReleasesPage(f, views.ReleasesView{})},
		{one, "full", views.ReleasePage(f, views.ReleaseView{Summary: newest, Before: &older, Changes: changes, Entries: holds})},
		{one, "empty", views.ReleasePage(f, views.ReleaseView{Summary: older, Entries: holds})},
		{one, "failed", views.ReleasePage(f, views.ReleaseView{Summary: newest, Before: &older, Entries: holds, Unavailable: unread})},
		{one, "hostile", views.ReleasePage(f, views.ReleaseView{Summary: newest, Before: &older, Changes: nasty, Entries: holds})},
	}
}

func crm(name string, state installation.State) installation.Connection {
	snapshot, _ := policies.NewSnapshot([]policies.Pinned{
		{Tool: "contacts_search", Digest: "a", Effect: policies.Read},
		{Tool: "contacts_get", Digest: "a", Effect: policies.Read},
		{Tool: "contacts_update", Digest: "a", Effect: policies.Consequential},
		{Tool: "refund_issue", Digest: "a", Effect: policies.Consequential, Destructive: true},
		{Tool: "notes_add", Digest: "a", Effect: policies.Consequential},
	})
	return installation.Connection{Key: "sandbox-crm-k4x7qa", Name: name, State: state, Standing: policies.Standing{Mode: policies.AskUserOnWrite, Snapshot: snapshot}}
}

func docs() installation.Connection {
	snapshot, _ := policies.NewSnapshot([]policies.Pinned{{Tool: "search", Digest: "a", Effect: policies.Read}})
	return installation.Connection{Key: "context7-q2w5ab", Name: "Context7", State: installation.Active, Standing: policies.Standing{Mode: policies.ReadOnly, Snapshot: snapshot}}
}

func profilePages() []Entry {
	const page, one = "Profiles", "Profile"
	f, member := frame("Profiles", "profiles"), frameAs("member", "Profiles", "profiles")
	names := map[string]string{"sandbox-crm-k4x7qa": "Sandbox CRM", "context7-q2w5ab": "Context7"}
	all := []profile.Profile{
		{Name: "engineering", Department: "Engineering", Budget: 50, Uses: []profile.Use{{Connection: "context7-q2w5ab"}, {Connection: "sandbox-crm-k4x7qa", Mode: policies.ReadOnly}}},
		{Name: "night-watch", Budget: 0},
		{Name: "support", Department: "Support", Budget: 10, Uses: []profile.Use{{Connection: "sandbox-crm-k4x7qa", Tools: []string{"contacts_get", "refund_issue"}}}},
	}
	offers := []views.ProfileOffer{{Connection: docs()}, {Connection: crm("Sandbox CRM", installation.Active), Used: true, Mode: policies.AskUserOnWrite, Listed: true, Ticked: []string{"contacts_get", "refund_issue", "deals_archive"}}}
	wrong := views.ProfileView{New: true, Name: "Support Team", Budget: "many", Offers: offers, MayManage: true, Errors: map[string]string{
		"name": "A profile's name is 1 to 40 lower-case letters, digits and hyphens, starting with a letter.", "budget": "The budget is a whole number, 0 to 10000.",
		"uses": "You ticked tools of “Sandbox CRM”, but left “every tool” chosen. Choose “only the ones ticked here”, or untick them.",
	}}
	nasty := []views.ProfileOffer{{Connection: crm(lure, installation.Disconnected), Used: true, Listed: true, Ticked: []string{"x\u202ey<script>", "a_tool_with_a_name_that_goes_on_and_on_without_any_place_to_break_it_at_all"}}}
	stale := views.ProfileView{Name: "support", Version: 3, Department: "Support", Budget: "20", Offers: offers, MayManage: true, Error: "Not saved. Somebody else changed this profile while you read.", Next: "This is how it stands now; make your change again."}
	return []Entry{
		{page, "full", views.ProfilesPage(f, views.ProfilesView{Profiles: all, Names: names, MayManage: true})},
		{page, "empty", views.ProfilesPage(f, views.ProfilesView{MayManage: true})},
		{page, "hostile", views.ProfilesPage(member, views.ProfilesView{Profiles: all, Names: map[string]string{"sandbox-crm-k4x7qa": lure}})},
		{one, "full", views.ProfilePage(f, views.ProfileView{Name: "support", Version: 3, Department: "Support", Budget: "10", Offers: offers, MayManage: true})},
		{one, "empty", views.ProfilePage(f, views.ProfileView{New: true, Budget: "50", MayManage: true})},
		{one, "failed", views.ProfilePage(f, wrong)},
		{one, "stale", views.ProfilePage(f, stale)},
		{one, "read only", views.ProfilePage(member, views.ProfileView{Name: "support", Version: 3, Department: "Support", Budget: "10", Offers: offers})},
		{one, "hostile", views.ProfilePage(f, views.ProfileView{Name: "support", Version: 3, Department: lure, Budget: "-1", Offers: nasty, MayManage: true})},
	}
}

func overviewAction(id, tool string, state action.State, destructive bool, args string) action.Action {
	claimed, done := now.Add(-14*time.Minute), now.Add(-40*time.Minute)
	a := action.Action{
		ID: action.ID("act_" + id), Tool: tool, ConnectionName: "Sandbox CRM", Effect: policies.Consequential, Destructive: destructive, State: state, Profile: "support", Task: "SUP-481",
		OnBehalfEmail: "maya@harborpine.test", ArgsDigest: args, RequestedAt: now.Add(-16 * time.Minute), ExpiresAt: now.Add(38 * time.Minute),
	}
	if state != action.StateStaged {
		a.ClaimedAt = &claimed
	}
	if state.Terminal() {
		a.FinishedAt, a.DecidedByName = &done, "Tomas Lindqvist"
	}
	return a
}

func overviewPages() []Entry {
	const page = "Overview"
	other := "9c1185a5c5e9fc54612808977ee8f548b2258d31f0c1b8a5c2f4e9d7a6b3c001"
	ill := docs()
	ill.Health = installation.Health{TestedAt: ago(time.Minute), What: "Context7 refused the key at 13:20 (401).", Next: "Replace the key.", Since: ago(34 * time.Minute)}
	full := views.OverviewView{
		Now: now, MayDecide: true, MayManage: true, Counts: action.Counts{Waiting: 5, Uncertain: 1, Executing: 1},
		Waiting:   []action.Action{overviewAction("a", "refund_issue", action.StateStaged, true, digest), overviewAction("b", "notes_add", action.StateStaged, false, other)},
		Uncertain: []action.Action{overviewAction("c", "refund_issue", action.StateUncertain, true, other)},
		Held:      []views.HeldBack{{Connection: crm("Sandbox CRM", installation.Active), Tools: []string{"deals_move"}}},
		Ailing:    []installation.Connection{ill},
		Runs: []runs.Run{
			{ID: "run_1", Surface: policies.Task, Profile: "support", Task: "SUP-481", OnBehalfEmail: "maya@harborpine.test", Budget: 10, Used: 3, ExpiresAt: now.Add(44 * time.Minute)},
			{ID: "run_2", Surface: policies.Chat, Profile: "engineering", Budget: 50, ExpiresAt: now.Add(9 * time.Minute)},
		},
		Today: []action.Action{overviewAction("d", "contacts_update", action.StateSucceeded, false, digest), overviewAction("e", "deals_move", action.StateDenied, false, other), overviewAction("f", "contacts_delete", action.StateFailed, true, digest)},
	}
	failed := views.OverviewView{Now: now, Failed: map[string]string{"runs": "The database does not answer. Try again in a moment; the operator finds the cause in the server log."}}
	nasty := full
	nasty.Waiting = []action.Action{overviewAction("g", "x\u202ey<script>alert(1)</script>", action.StateStaged, true, digest)}
	nasty.Waiting[0].Task, nasty.Waiting[0].ConnectionName = hostileText, lure
	nasty.Held = []views.HeldBack{{Connection: crm(lure, installation.Active), Tools: []string{"a\u200bb", "a_tool_with_a_name_that_goes_on_and_on_without_any_place_to_break_it_at_all"}}}
	return []Entry{
		{page, "full", views.OverviewPage(frame("Overview", "overview"), full)},
		{page, "empty", views.OverviewPage(frameAs("member", "Overview", "overview"), views.OverviewView{Now: now})},
		{page, "failed", views.OverviewPage(frameAs("auditor", "Overview", "overview"), failed)},
		{page, "hostile", views.OverviewPage(frame("Overview", "overview"), nasty)},
	}
}
