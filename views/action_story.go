package views

import (
	"strconv"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/egress"
	"countersign/views/ui"
)

// cardSteps are the transitions of an action as its timeline tells them: what the step means, then what it does not.
var cardSteps = map[audit.Event][2]string{
	audit.ActionStaged:    {"Asked for.", "Nothing was sent."},
	audit.ActionApproved:  {"Approved.", ""},
	audit.SignatureGiven:  {"Signed.", "Others are still asked, and nothing was sent."},
	audit.ActionDenied:    {"Denied.", "Nothing was sent."},
	audit.ActionExpired:   {"Expired.", "Nobody decided in time, and nothing was sent."},
	audit.ActionCancelled: {"Cancelled.", "Nothing was sent."},
	audit.ActionExecuting: {"Claimed to be sent once.", "Nobody else can send it now."},
	audit.ActionSucceeded: {"Done.", ""},
	audit.ActionFailed:    {"Not done.", "Nothing was applied."},
	audit.ActionUncertain: {"Outcome unknown.", "It will not be sent again."},
	audit.ActionResolved:  {"Outcome settled.", ""},
	audit.LookedUp:        {"Looked up at the provider.", "What was seen is kept above."},
}

// cardStory is what led here: the run, what it read, and each step of the action.
func cardStory(v ActionView) []ui.Event {
	var out []ui.Event
	if !v.Run.StartedAt.IsZero() {
		out = append(out, ui.Event{At: v.Run.StartedAt, Text: "Run started on task " + v.Action.Task + ", for " + v.Behalf})
	}
	for _, r := range v.Reads {
		out = append(out, ui.Event{At: r.At, Text: "Agent read with " + r.Tool})
	}
	for i, e := range v.Timeline {
		step := ui.Event{At: e.At, Text: e.Event, By: e.By, Now: i == len(v.Timeline)-1}
		if words, ok := cardSteps[audit.Event(e.Event)]; ok {
			step.Lead, step.Text = words[0], words[1]
		}
		if audit.Event(e.Event) == audit.ActionResolved {
			step.Lead, step.Text = settledWords(e), settledHow(e)
		}
		out = append(out, step)
	}
	return out
}

// cardEvidence is what was observed while it was sent, to the millisecond.
func cardEvidence(v ActionView) []ui.Event {
	a := v.Action
	out := []ui.Event{{At: a.RequestedAt, Text: "Asked for, with the bytes shown below", Exact: true}}
	if a.DecidedAt != nil {
		who := "Countersigned by " + a.DecidedByName
		if a.ApprovedByPolicy {
			who = "Approved by policy: the connection acts within its budget"
		}
		out = append(out, ui.Event{At: *a.DecidedAt, Text: who, Exact: true})
	}
	if a.ClaimedAt != nil {
		out = append(out, ui.Event{At: *a.ClaimedAt, Text: "Claimed: the one intent to send was written down", Exact: true})
	}
	out = append(out, cardObserved(v)...)
	return append(out, cardStandsNow(a)...)
}

func cardObserved(v ActionView) []ui.Event {
	e := v.Action.Evidence
	if e == nil {
		return nil
	}
	var out []ui.Event
	if !e.StartedAt.IsZero() {
		words := "Sent once: " + ui.Count(int(e.BytesWritten), "byte", "bytes") + " written to " + v.host()
		if e.BytesWritten == 0 {
			words = "Tried once to reach " + v.host() + ": not one byte was written"
		}
		out = append(out, ui.Event{At: e.StartedAt, Text: words, Exact: true})
	}
	if !e.FirstByteAt.IsZero() {
		out = append(out, ui.Event{At: e.FirstByteAt, Text: "An answer began" + statusWords(e.Status), Exact: true})
	}
	if !e.EndedAt.IsZero() {
		out = append(out, ui.Event{At: e.EndedAt, Text: endWords(*e), Exact: true})
	}
	return out
}

func statusWords(status int) string {
	if status == 0 {
		return ""
	}
	return ": HTTP " + strconv.Itoa(status)
}

func endWords(e action.Evidence) string {
	words := "The answer ended"
	switch {
	case e.Transport != "":
		words = "It ended early: " + egress.Failure(e.Transport).Sentence()
	case e.Complete:
		words = "The answer was complete"
	case e.Status == 0:
		words = "The connection ended"
	}
	if e.Status == 0 {
		words += "; no status, no body"
	} else {
		words += "; " + ui.Count(int(e.BytesRead), "byte", "bytes") + " of it were read"
	}
	if e.ProviderCode != "" {
		words += "; the provider's own code: " + e.ProviderCode
	}
	return words + "."
}

// cardStandsNow is the last line of the evidence.
func cardStandsNow(a action.Action) []ui.Event {
	at := settledWhen(a)
	switch {
	case a.State == action.StateUncertain && a.Evidence != nil && !a.Evidence.EndedAt.IsZero():
		at = a.Evidence.EndedAt
	case a.State == action.StateUncertain && a.LeaseUntil != nil:
		at = *a.LeaseUntil
	}
	lead := map[action.State]string{
		action.StateSucceeded: "Done.", action.StateFailed: "Not done.", action.StateUncertain: "Outcome unknown.", action.StateClosedUnknown: "Closed: it may have happened.",
	}[a.State]
	if lead == "" {
		return nil
	}
	text := a.ErrorSentence
	if a.State == action.StateSucceeded {
		text = resolvedWords(a)
	}
	return []ui.Event{{At: at, Lead: lead, Text: text, Now: true, Exact: true}}
}

// resolvedWords says how an end was reached.
func resolvedWords(a action.Action) string {
	switch a.Resolution {
	case action.Direct:
		return "The provider's own answer says so."
	case action.LateEvidence:
		return "The provider's answer came late, and says so."
	case action.Reconciler:
		return "Countersign looked it up at the provider."
	case action.ByPerson:
		return "A person looked it up and recorded it."
	}
	return ""
}

// settledWords says what an outcome was settled as.
func settledWords(e action.Event) string {
	switch e.To {
	case action.StateSucceeded:
		return "Outcome settled: it happened."
	case action.StateFailed:
		return "Outcome settled: it did not happen."
	case action.StateClosedUnknown:
		return "Outcome settled: nobody can tell."
	}
	return "Outcome settled."
}

// settledHow says by which of the three ways: an answer that came late, a probe, or a person.
func settledHow(e action.Event) string {
	switch e.By {
	case "worker":
		return "Late evidence: " + e.Why + "."
	case "reconciler":
		return "Looked up by Countersign: " + e.Why
	}
	if e.Reason == "" {
		return "Recorded by a person."
	}
	return "Recorded by a person: " + e.Reason
}
