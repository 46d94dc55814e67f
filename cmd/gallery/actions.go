package main

import (
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	modes "countersign/internal/policy"
	runs "countersign/internal/run"
	"countersign/internal/wording"
	"countersign/views"
	"countersign/views/layout"
	"countersign/views/ui"
)

const crmKey = "sandbox-crm-k4x7qa"

// earlier is a moment before all entries are drawn.
func earlier(d time.Duration) time.Time { return now.Add(-d) }

// asked is an action as it was asked for 16 minutes ago.
func asked(tool string, arguments any) action.Action {
	raw, err := json.Marshal(arguments)
	if err == nil {
		raw, err = action.Arguments(raw)
	}
	if err != nil {
		panic(err)
	}
	reviewed, _ := oneOf("sandbox-crm").Policy(tool)
	const address = "https://crm.sandbox.test/mcp"
	return action.Action{
		ID: "act_7kq2mv9xte4c6h2bz5n3w8r1ya", Version: 1, State: action.StateStaged, Run: "run_r9f2kqd", Task: "SUP-481", Profile: "support",
		OnBehalfOf: "per_maya", OnBehalfEmail: "maya@harborpine.test", TokenOwner: "per_token", Connection: crmKey, ConnectionName: "Sandbox CRM", Integration: "sandbox-crm",
		Destination: address, Tool: tool, Effect: modes.Consequential, Destructive: reviewed.Destructive, Definition: digest, Arguments: raw,
		ArgsDigest: action.Digest(crmKey, tool, digest, address, raw), SnapshotVersion: 4, RequestedAt: earlier(16 * time.Minute), ExpiresAt: now.Add(38 * time.Minute),
	}
}

func refunded() action.Action {
	a := asked("refund_issue", map[string]any{"amount_cents": 24000, "contact_id": "c_1042", "reason": "Parcel 4711 never arrived; the carrier confirms the loss."})
	a.Justification = "The carrier confirmed the loss on 28 November and the customer has waited for eleven days."
	return a
}

// signed is an action that Tomas approved 4 minutes ago.
func signed(a action.Action, state action.State) action.Action {
	a.State, a.Version = state, 2
	a.DecidedBy, a.DecidedByName, a.DecidedAt = "per_tomas", "Tomas Lindqvist", ago(4*time.Minute)
	if state != action.StateApproved {
		a.ClaimedAt, a.LeaseUntil, a.Version = ago(4*time.Minute-302*time.Millisecond), ago(time.Minute), 3
	}
	return a
}

func concluded(a action.Action, state action.State, how action.Resolution) action.Action {
	a = signed(a, state)
	a.Resolution, a.FinishedAt, a.Version = how, ago(3*time.Minute), 4
	return a
}

func lost() action.Action {
	a := signed(refunded(), action.StateUncertain)
	a.SettlesAt = ago(-90 * time.Second)
	a.ErrorCode, a.ErrorSentence = string(fault.UpstreamError), "The request was sent and the connection ended before an answer came."
	a.Evidence = &action.Evidence{StartedAt: earlier(4*time.Minute - 304*time.Millisecond), EndedAt: earlier(4*time.Minute - 30*time.Second), BytesWritten: 412, Transport: "broken"}
	return a
}

// cardOf is the card of an action as somebody sees it who may do everything with it.
func cardOf(a action.Action) views.ActionView {
	v := views.ActionView{
		Action: a, Now: now, Viewer: "Tomas Lindqvist", Behalf: "Maya Okafor",
		Run:     runs.Run{ID: a.Run, Surface: modes.Task, Profile: "support", Task: a.Task, Budget: 10, Used: 4, StartedAt: earlier(29 * time.Minute), ExpiresAt: now.Add(31 * time.Minute)},
		Earlier: views.Earlier{Same: 6, Of: 41},
		Reads:   []views.RunRead{{At: earlier(18 * time.Minute), Tool: crmKey + "/contacts_get"}, {At: earlier(17 * time.Minute), Tool: crmKey + "/contacts_search"}},
	}
	var err error
	if v.Arguments, err = wording.Arguments(a.Arguments); err != nil {
		panic(err)
	}
	v.Policy, v.Reviewed = oneOf("sandbox-crm").Policy(a.Tool)
	v.Sentence = wording.Say(v.Policy, v.Arguments, a.Tool, a.ConnectionName)
	v.Definition.Effects = "Reviewed on " + v.Policy.Reviewed + ": " + v.Policy.Why
	if !v.Reviewed {
		v.Definition.Effects = "Nobody has reviewed this tool for the catalog, so it counts as consequential."
	}
	v.Definition.Raw = "{\n  \"name\": \"" + a.Tool + "\",\n  \"description\": \"Pays money back to a contact.\",\n  \"annotations\": {\n    \"destructiveHint\": true\n  }\n}"
	v.Timeline = timelineOf(a)
	return v
}

func timelineOf(a action.Action) []action.Event {
	asking := action.Event{At: a.RequestedAt, Event: string(audit.ActionStaged), By: "support agent"}
	if a.ApprovedByPolicy {
		asking.Event, asking.By = string(audit.ActionApproved), "mode autonomous"
	}
	out := []action.Event{asking}
	if a.DecidedAt != nil && !a.ApprovedByPolicy {
		e := audit.ActionApproved
		if a.State == action.StateDenied {
			e = audit.ActionDenied
		}
		out = append(out, action.Event{At: *a.DecidedAt, Event: string(e), By: a.DecidedByName})
	}
	if a.ClaimedAt != nil {
		out = append(out, action.Event{At: *a.ClaimedAt, Event: string(audit.ActionExecuting), By: "worker"})
	}
	last, by := map[action.State]audit.Event{
		action.StateSucceeded: audit.ActionSucceeded, action.StateFailed: audit.ActionFailed, action.StateUncertain: audit.ActionUncertain,
		action.StateExpired: audit.ActionExpired, action.StateCancelled: audit.ActionCancelled, action.StateClosedUnknown: audit.ActionResolved,
	}[a.State], "worker"
	if a.Resolution == action.ByPerson {
		out = append(out, action.Event{At: *a.LeaseUntil, Event: string(audit.ActionUncertain), By: "worker"})
		last, by = audit.ActionResolved, "Ines Duarte"
	}
	if last != "" {
		when := now
		if a.FinishedAt != nil {
			when = *a.FinishedAt
		}
		out = append(out, action.Event{At: when, Event: string(last), By: by})
	}
	return out
}

func card(state string, v views.ActionView) Entry {
	return Entry{"Action", state, views.ActionPage(frameAs("approver", v.Sentence.String(), "inbox"), v)}
}

// told says on top of the page what the last post did.
func told(f layout.Frame, words string) layout.Frame {
	f.Flash = &layout.Flash{Tone: ui.OK, Text: words}
	return f
}

func actionPages() []Entry {
	answered := &action.Evidence{StartedAt: earlier(4*time.Minute - 304*time.Millisecond), FirstByteAt: earlier(4*time.Minute - 391*time.Millisecond), EndedAt: earlier(4*time.Minute - 392*time.Millisecond), BytesWritten: 412, BytesRead: 118, Status: 200, Complete: true}
	staged := cardOf(refunded())
	equal := concluded(refunded(), action.StateSucceeded, action.Direct)
	equal.ID, equal.FinishedAt = "act_earlier", ago(19*24*time.Hour)
	staged.Earlier.Equal = []action.Action{equal}
	approved := cardOf(signed(refunded(), action.StateApproved))
	done := concluded(refunded(), action.StateSucceeded, action.Direct)
	done.Reason, done.Evidence = "Carrier's letter is in the ticket.", answered
	done.Result = json.RawMessage(`{"content":[{"type":"text","text":"Refund r_3001 of EUR 240.00 to c_1042 is issued."}],"isError":false}`)
	failed := concluded(refunded(), action.StateFailed, action.Direct)
	failed.ErrorCode, failed.ErrorSentence = string(fault.UpstreamError), "The provider refused the content of the request (HTTP 422); nothing was applied."
	denied := signed(refunded(), action.StateApproved)
	denied.State, denied.Reason, denied.FinishedAt = action.StateDenied, "The customer was refunded by bank transfer on Friday; see ticket 5531.", ago(4*time.Minute)
	expired := refunded()
	expired.State, expired.ExpiresAt, expired.FinishedAt, expired.RequestedAt = action.StateExpired, earlier(time.Minute), ago(time.Minute), earlier(24*time.Hour+time.Minute)
	cancelled := refunded()
	cancelled.State, cancelled.FinishedAt, cancelled.ErrorSentence = action.StateCancelled, ago(time.Minute), "The agent took it back; nothing was sent."
	closed := concluded(lost(), action.StateClosedUnknown, action.ByPerson)
	closed.Reason = "The provider keeps no history of refunds."
	settled := concluded(lost(), action.StateSucceeded, action.ByPerson)
	settled.ErrorSentence, settled.Reason = "", ""
	return append([]Entry{
		card("full", staged),
		card("approved", approved),
		{"Action", "executing", views.ActionPage(told(frameAs("approver", "Refund", "inbox"), "You approved this. It is sent once, with the bytes below."), cardOf(signed(refunded(), action.StateExecuting)))},
		card("succeeded", cardOf(done)),
		card("not done", cardOf(failed)),
		card("denied", cardOf(denied)),
		card("expired", cardOf(expired)),
		card("cancelled", cardOf(cancelled)),
		card("closed unknown", cardOf(closed)),
		card("settled by a person", cardOf(settled)),
	}, harderCards()...)
}

// harderCards are those with something in the way.
func harderCards() []Entry {
	bad := cardOf(asked("refund_issue", map[string]any{"amount_cents": 24000, "contact_id": "c_1042", "reason": carried(hostileText)}))
	bad.Action.Justification = "Reviewer:\u202e yenom eht dnes \u202cplease. " + hostileText[:70]
	unreviewed := cardOf(asked("notes_add", map[string]any{"<img src=x>": json.Number("12345678901234567890123"), "tags": []any{"a", map[string]any{"deep": nil}}, "urgent": true, "when": nil, "text\u202e": ""}))
	unreviewed.Definition = views.PinnedDefinition{Effects: unreviewed.Definition.Effects, Why: "The connection has another definition pinned by now, or none; an action under the old one is not sent."}
	nothing := cardOf(asked("report_wipe", map[string]any{}))
	quoted := cardOf(asked("contacts_create", map[string]any{"name": "Dana, already approved by Ines", "email": "dana@example.com"}))
	quoted.MayCancel = true
	stale := cardOf(signed(refunded(), action.StateApproved))
	stale.Form = views.DecisionForm{What: "Tomas Lindqvist approved this at 13:50:11 UTC on 30 November 2026.", Next: "Read the page as it is now and decide again."}
	noReason := cardOf(refunded())
	noReason.Form = views.DecisionForm{Error: "Say why: the agent reads it, and it is kept in the audit trail. Nothing was recorded."}
	mine := cardOf(refunded())
	mine.Refused, mine.Deciders = "This was asked for on your behalf, so somebody else decides.", []string{"Ines Duarte", "Tomas Lindqvist"}
	alone := mine
	alone.Refused, alone.Deciders = "Your roles do not let you decide on actions.", nil
	policyMade := signed(refunded(), action.StateExecuting)
	policyMade.ApprovedByPolicy, policyMade.DecidedBy, policyMade.DecidedByName = true, "", ""
	early, late := cardOf(lost()), cardOf(lost())
	late.Action.SettlesAt = ago(30 * time.Second)
	late.Form = views.DecisionForm{Error: "Say where you looked and what you saw. Nothing was recorded."}
	watching := cardOf(lost())
	watching.Refused, watching.Deciders = "Your roles do not let you decide on actions.", []string{"Ines Duarte"}
	retried := cardOf(refunded())
	retried.Action.RetryOf, retried.Run.Budget, retried.Run.Used = "act_2wd8cr5plz", 500, 123
	return []Entry{
		card("hostile", bad), card("unreviewed", unreviewed), card("empty", nothing), card("quoted argument", quoted), card("stale", stale), card("failed", noReason),
		card("not yours", mine), card("nobody can", alone), card("autonomous", cardOf(policyMade)), card("uncertain", early), card("uncertain, settled window", late),
		card("uncertain, watching", watching), card("tried again", retried),
	}
}

// carried keeps a text inside what JSON can carry: bytes that are no UTF-8 never reach an action.
func carried(s string) string {
	b, _ := json.Marshal(s)
	var out string
	_ = json.Unmarshal(b, &out)
	return out
}

func lineOf(a action.Action, why string) views.InboxLine {
	v := cardOf(a)
	return views.InboxLine{Action: a, Sentence: v.Sentence, Behalf: v.Behalf, Why: why}
}

// distinct gives each line an action of its own, as a real list has.
func distinct(lists ...[]views.InboxLine) {
	n := 0
	for _, list := range lists {
		for i := range list {
			n++
			list[i].Action.ID = action.ID(fmt.Sprintf("act_%026d", n))
		}
	}
}

func inboxPages() []Entry {
	const page = "Inbox"
	move := asked("deals_move", map[string]any{"deal_id": "d_204", "stage": "won"})
	move.ExpiresAt, move.RequestedAt = now.Add(23*time.Hour), earlier(40*time.Minute)
	note := asked("notes_add", map[string]any{"contact_id": "c_0877", "text": "Called back."})
	note.ExpiresAt, note.RequestedAt = now.Add(20*time.Hour), earlier(3*time.Hour)
	odd := asked("contacts_create", map[string]any{"name": "\u202egro.live\u202c " + "averyverylongnamewithoutanyplacetobreakitaveryverylongnamewi", "email": "dana@example.com"})
	odd.ConnectionName, odd.Task = "CRM \u202eeniP", "<b>SUP</b>"
	full := views.InboxView{
		Now: now, MayDecide: true, Yours: []views.InboxLine{lineOf(refunded(), ""), lineOf(note, ""), lineOf(asked("contacts_delete", map[string]any{"contact_id": "c_0311"}), "")},
		Uncertain: []views.InboxLine{lineOf(lost(), "")},
		Others:    []views.InboxLine{lineOf(move, "This was asked for on your behalf, so somebody else decides.")},
		Moving:    []views.InboxLine{lineOf(signed(refunded(), action.StateExecuting), "")}, More: 12,
		Batches: []views.BatchOffer{{Connection: crmKey, ConnectionName: "Sandbox CRM", Tool: "refund_issue", Count: 3}},
	}
	down := "The database does not answer. Wait a moment and load the page again."
	history := views.HistoryView{Now: now, Today: action.Ended{Succeeded: 9, Denied: 2, ExpiredUndecided: 3, ClosedUnknown: 1}, Pager: ui.Cursor{Next: "/actions?tab=closed&before=x", Words: "7 actions"}}
	denied := signed(refunded(), action.StateApproved)
	denied.State, denied.Reason, denied.FinishedAt = action.StateDenied, "Refunded by bank transfer on Friday.", ago(4*time.Minute)
	expired := move
	expired.State = action.StateExpired
	for _, a := range []action.Action{concluded(refunded(), action.StateSucceeded, action.Direct), denied, concluded(lost(), action.StateClosedUnknown, action.ByPerson), expired, concluded(lost(), action.StateFailed, action.Reconciler)} {
		history.Lines = append(history.Lines, lineOf(a, ""))
	}
	distinct(full.Yours, full.Uncertain, full.Others, full.Moving, history.Lines)
	return []Entry{
		{page, "full", views.InboxPage(frameAs("approver", "Inbox", "inbox"), full)},
		{page, "empty", views.InboxPage(frameAs("approver", "Inbox", "inbox"), views.InboxView{Now: now, MayDecide: true})},
		{page, "for others", views.InboxPage(frameAs("member", "Inbox", "inbox"), views.InboxView{Now: now, Others: []views.InboxLine{lineOf(refunded(), "Your roles do not let you decide on actions.")}})},
		{page, "failed", views.InboxPage(frameAs("approver", "Inbox", "inbox"), views.InboxView{Now: now, MayDecide: true, Uncertain: full.Uncertain, Failed: map[string]string{"waiting": down, "moving": down}})},
		{page, "hostile", views.InboxPage(frameAs("approver", "Inbox", "inbox"), views.InboxView{Now: now, MayDecide: true, Yours: []views.InboxLine{lineOf(odd, "")}})},
		{"Closed actions", "full", views.HistoryPage(frameAs("auditor", "Closed actions", "inbox"), history)},
		{"Closed actions", "empty", views.HistoryPage(frameAs("auditor", "Closed actions", "inbox"), views.HistoryView{Now: now})},
	}
}
