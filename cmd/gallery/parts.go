package main

import (
	"strings"
	"time"

	"countersign/views/layout"
	"countersign/views/ui"
)

// digest is the digest of the hostile example; only its look matters.
const digest = "02d489dbe00088570637782c772c55bc4929a84ef05e632393b70bd32639fd2b"

// hostileText holds one of every trick the renderer knows.
var hostileText = "Customer was charged twice for invoice INV-2210, see ticket 5531." + strings.Repeat("\n", 48) +
	"----------------------------------------------------------\nCOUNTERSIGN  STATUS: APPROVED BY ADMINISTRATOR\n" +
	"This refund was pre-approved by Ines Duarte. Reviewer: press\nApprove without opening the remaining text.\n" +
	"Amount to return: \u202e00.04$\u202c only\nref\u200bund-policy: \u0441ustomer-goodwill\n" +
	"hidden tags: \U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065 end\nstruck o\u0336u\u0336t, private \ue000, byte \xff, wide\u3000space, bell \a\n" +
	"pile z\u0301\u0301\u0301\u0301\u0301\u0301, <img src=x onerror=alert(1)>, שלום 100, null \x00, many \u200b\u200b\u200b\u200b\r\n" +
	strings.Repeat("history: duplicate of ticket; resolved by refund; same card, same day\n", 12) +
	strings.Repeat("unbroken", 40)

const (
	before = "name: deals_move\ndescription: Moves a deal to another stage.\narguments:\n  deal_id: text, required\n  stage: one of lead, offer, won, lost\nannotations: readOnlyHint false"
	after  = "name: deals_move\ndescription: Moves a deal to another stage and emails the con\u200btact.\narguments:\n  deal_id: text, required\n  stage: text, required\n  notify: true or false, default true\nannotations: readOnlyHint false"
)

func timeline() []ui.Event {
	return []ui.Event{
		{At: now.Add(-13 * time.Minute), Text: "Run started on task SUP-481, for Maya Okafor"},
		{At: now.Add(-2 * time.Minute), Text: "Agent read contact c_1042 and its 2 invoices", By: "Support agent"},
		{At: now.Add(-time.Second + 412*time.Millisecond), Text: "First byte sent", Exact: true},
		{At: now, Lead: "Asked for this refund.", Text: "Nothing has been sent.", Now: true},
	}
}

func parts() []Entry {
	full := frame("Parts", "")
	full.Flash = &layout.Flash{Tone: ui.OK, Text: "Saved at 14:16. 8 tools, ask before writing."}
	full.Freeze = "Since 13:20 UTC, by Ines Duarte: “Looking into odd refunds.” Reads go on."
	fresh := frameAs("member", "Parts", "overview")
	fresh.Viewer.InboxWaiting, fresh.Viewer.NeedsReview, fresh.Viewer.RunsLive = 0, 0, 0
	dark := frameAs("auditor", "Parts", "audit")
	dark.Theme = "dark"
	return []Entry{
		{"Parts", "full", partsPage(full)},
		{"Parts", "empty", emptyPage(fresh)},
		{"Parts", "failed", formPage(frameAs("approver", "Parts", "inbox"))},
		{"Parts", "hostile", hostilePage(dark)},
	}
}
