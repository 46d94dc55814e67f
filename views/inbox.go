package views

import (
	"time"

	"countersign/internal/action"
	"countersign/internal/wording"
	"countersign/views/ui"
)

// InboxView is every open action, by who has to do something about it. A part that could not be read says so and hides no other.
type InboxView struct {
	Now       time.Time
	MayDecide bool
	Yours     []InboxLine // soonest expiry first
	Others    []InboxLine
	Uncertain []InboxLine
	Moving    []InboxLine
	Batches   []BatchOffer // of what waits for the viewer, the tools of which more than one call does
	More      int          // staged ones that are not listed: only the soonest are
	Failed    map[string]string
}

// InboxLine is one action of a list.
type InboxLine struct {
	Action   action.Action
	Sentence wording.Sentence
	Behalf   string // who the run works for
	Why      string // why somebody else decides
	Frozen   *action.Freeze
}

// HistoryView is a page of the actions that are closed, newest first.
type HistoryView struct {
	Now   time.Time
	Lines []InboxLine
	Pager ui.Cursor
	End   string       // the state that is shown alone; empty for all
	Today action.Ended // since midnight, UTC
}

// Href is the list of one end; empty for all of them.
func (v HistoryView) Href(end string) string {
	if end == "" {
		return "/actions?tab=closed"
	}
	return "/actions?tab=closed&end=" + end
}

// historyEnds are the ends that the list can be narrowed to, with their counts of today. What nobody decided on stands apart from what
// somebody denied: the first is a queue that nobody looked at, the second an answer.
func historyEnds(v HistoryView) []ui.Tab {
	tab := func(label string, end action.State, n int) ui.Tab {
		return ui.Tab{Label: label, Href: v.Href(string(end)), Current: v.End == string(end), Count: n, CountWords: "today"}
	}
	return []ui.Tab{
		tab("All", "", -1), tab("Done", action.StateSucceeded, v.Today.Succeeded), tab("Not done", action.StateFailed, v.Today.Failed),
		tab("Denied", action.StateDenied, v.Today.Denied), tab("Expired undecided", action.StateExpired, v.Today.ExpiredUndecided),
		tab("Cancelled", action.StateCancelled, v.Today.Cancelled), tab("May have happened", action.StateClosedUnknown, v.Today.ClosedUnknown),
	}
}

func (v InboxView) open() int {
	return len(v.Yours) + len(v.Others) + len(v.Uncertain) + len(v.Moving) + v.More
}

func inboxTabs(closed bool, open int) []ui.Tab {
	return []ui.Tab{
		{Label: "Open", Href: "/actions", Current: !closed, Count: open, CountWords: "open"},
		{Label: "Closed", Href: "/actions?tab=closed", Current: closed, Count: -1},
	}
}

// inboxEmpty says why nothing waits for the viewer.
func inboxEmpty(v InboxView) string {
	switch {
	case !v.MayDecide:
		return "Your roles do not decide on actions. What waits for somebody who may is listed below."
	case len(v.Others) > 0:
		return "Nothing waits for you. What is listed below is for somebody else, with the reason."
	}
	return "Nothing waits for you. An action appears here when an agent asks for something consequential on a connection that asks before writing."
}

// lineMeta is what happened to an action that was sent, or is to be.
func lineMeta(l InboxLine) string {
	a := l.Action
	who := "Approved by " + a.DecidedByName + "."
	if a.ApprovedByPolicy {
		who = "Approved by policy."
	}
	switch a.State {
	case action.StateApproved:
		return who + " It is sent within a few seconds."
	case action.StateExecuting:
		return who + " It was handed to the provider, once."
	case action.StateUncertain, action.StateClosedUnknown:
		return who + " " + a.ErrorSentence + evidenceWords(a)
	case action.StateSucceeded:
		return who + " " + resolvedWords(a)
	case action.StateFailed:
		return who + " " + a.ErrorSentence
	case action.StateDenied:
		return "Denied by " + a.DecidedByName + ": " + a.Reason
	case action.StateExpired:
		if a.DecidedAt != nil {
			return who + " It expired before it could be sent. Nothing was sent."
		}
		return "Nobody decided in time" + signedWords(a) + ". Nothing was sent."
	case action.StateCancelled:
		return "Nothing was sent. " + a.ErrorSentence
	}
	return ""
}

// evidenceWords sums up what was observed while it was sent.
func evidenceWords(a action.Action) string {
	if a.Evidence == nil {
		return " Nothing was observed while it was sent."
	}
	words := " " + ui.Count(int(a.Evidence.BytesWritten), "byte", "bytes") + " left"
	if a.Evidence.Status != 0 {
		return words + ", and an answer began" + statusWords(a.Evidence.Status) + "."
	}
	return words + ", and no answer began."
}
