package main

import (
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	modes "countersign/internal/policy"
	runs "countersign/internal/run"
	"countersign/views"
	"countersign/views/ui"
)

func runOf(id, task string, began, left time.Duration, used int) runs.Run {
	r := runs.Run{
		ID: runs.ID("run_" + id), Surface: modes.Task, Profile: "support", Task: task, OnBehalfEmail: "maya@harborpine.test", TokenID: "tok_ci",
		Budget: 10, Used: used, StartedAt: earlier(began), ExpiresAt: now.Add(left),
	}
	if task == "" {
		r.Surface, r.OnBehalfEmail = modes.Chat, ""
	}
	return r
}

func runPages() []Entry {
	names := map[string]string{"maya@harborpine.test": "Maya Okafor"}
	over := runOf("c", "SUP-470", 26*time.Hour, -25*time.Hour, 10)
	stopped := runOf("d", "SUP-468 \u202e<b>odd</b>", 3*time.Hour, time.Hour, 1)
	stopped.EndedAt = ago(2 * time.Hour)
	full := views.RunsView{
		Now: now, Names: names, Live: []runs.Run{runOf("a", "SUP-481", 29*time.Minute, 31*time.Minute, 4), runOf("b", "", 5*time.Minute, 55*time.Minute, 0)},
		Past: []runs.Run{stopped, over}, Pager: ui.Cursor{Next: "/runs?before=run_c"},
	}
	dead := views.RunView{Run: stopped, Now: now, Behalf: "Maya Okafor", MayAudit: true}
	return []Entry{
		{"Runs", "full", views.RunsPage(frame("Runs", "runs"), full)},
		{"Runs", "empty", views.RunsPage(frame("Runs", "runs"), views.RunsView{Now: now})},
		{"Run", "full", views.RunPage(frame("SUP-481", "runs"), liveRun())},
		{"Run", "hostile", views.RunPage(frameAs("auditor", "SUP-468", "runs"), dead)},
		{"Run", "failed", views.RunPage(frameAs("member", "Chat", "runs"), views.RunView{Run: runOf("b", "", 5*time.Minute, 55*time.Minute, 0), Now: now, StoryFail: "The database does not answer. Wait a moment and load the page again."})},
	}
}

func liveRun() views.RunView {
	verdict := func(effect modes.Effect, mode modes.Mode, pin, granted bool) modes.Verdict {
		return modes.Decide(modes.Call{Surface: modes.Task, Minted: true, Granted: granted, SamePin: pin, Effect: effect, Mode: mode, Reachable: true})
	}
	tool := func(name string, effect modes.Effect, destructive bool, v modes.Verdict) views.RunTool {
		return views.RunTool{Tool: name, Effect: effect, Destructive: destructive, Verdict: v, Why: v.Reason}
	}
	taken := tool("contacts_delete", modes.Consequential, true, verdict(modes.Consequential, modes.AskUserOnWrite, true, false))
	taken.Why = "The profile leaves this tool out."
	step := func(before time.Duration, e audit.Event, tool, code string) views.RunStep {
		return views.RunStep{At: earlier(before), Event: e, Tool: crmKey + "/" + tool, Code: code}
	}
	acted := func(before time.Duration, a action.Action) views.RunStep {
		l := lineOf(a, "")
		return views.RunStep{At: earlier(before), Event: audit.ActionStaged, Action: &a, Sentence: l.Sentence, Digest: a.ArgsDigest}
	}
	return views.RunView{
		Run: runOf("a", "SUP-481", 29*time.Minute, 31*time.Minute, 4), Now: now, Behalf: "Maya Okafor", MayEnd: true, MayAudit: true, More: true,
		Grants: []views.RunGrant{
			{Key: crmKey, Name: "Sandbox CRM", State: "active", Mode: modes.AskUserOnWrite, Tools: []views.RunTool{
				tool("contacts_get", modes.Read, false, verdict(modes.Read, modes.AskUserOnWrite, true, true)),
				taken,
				tool("deals_move", modes.Consequential, false, verdict(modes.Consequential, modes.AskUserOnWrite, false, true)),
				tool("refund_issue", modes.Consequential, true, verdict(modes.Consequential, modes.AskUserOnWrite, true, true)),
			}},
			{Key: "structured-questions-p3k7tz", Name: "Structured questions", State: "active", Beside: true},
			{Key: "deepwiki-b2m7tz", Name: "DeepWiki", State: "active", Mode: modes.ReadOnly, Note: "The profile narrows the connection's own mode.", Tools: []views.RunTool{
				tool("ask_question", modes.Read, false, verdict(modes.Read, modes.ReadOnly, true, true)),
			}},
			{Key: "desk-q7w2ld", Name: "Desk", State: "active", Mode: modes.Autonomous, Tools: []views.RunTool{
				tool("tickets_tag", modes.Consequential, false, verdict(modes.Consequential, modes.Autonomous, true, true)),
			}},
		},
		Story: []views.RunStep{
			acted(2*time.Minute, refunded()), step(3*time.Minute, audit.ToolRefused, "deals_move", string(fault.DefinitionChanged)),
			step(4*time.Minute, audit.ToolRead, "contacts_get", ""), acted(9*time.Minute, concluded(refunded(), action.StateSucceeded, action.Direct)),
			{At: earlier(29 * time.Minute), Event: audit.RunStarted, By: "ci"},
		},
	}
}
