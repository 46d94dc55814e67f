package views

import (
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/run"
	"countersign/internal/wording"
	"countersign/views/ui"
)

// RunsView is every run: what is live, and what was.
type RunsView struct {
	Now   time.Time
	Live  []run.Run
	Past  []run.Run
	Names map[string]string // of the people runs work for, by their address
	Pager ui.Cursor
	Later bool // this is not the first page: what is live stands on that one
}

// RunView is one run: what it can do right now and why, and what it did.
type RunView struct {
	Run    run.Run
	Now    time.Time
	Behalf string
	Grants []RunGrant
	Story  []RunStep // newest first
	More   bool      // there is more than is shown

	MayEnd    bool
	MayAudit  bool
	StoryFail string
}

// RunGrant is one connection of a run.
type RunGrant struct {
	Key, Name string
	State     string // of the connection
	Mode      policy.Mode
	Note      string // what holds for the whole connection
	Beside    bool   // it works in the agent's image: no tool of it is known here
	Tools     []RunTool
}

// RunTool is one tool that was given to a run, and what happens to a call of it now.
type RunTool struct {
	Tool        string
	Effect      policy.Effect
	Destructive bool
	Verdict     policy.Verdict
	Why         string
}

// RunStep is one line of what a run did.
type RunStep struct {
	At       time.Time
	Event    audit.Event
	Tool     string
	Code     string // of a refusal
	By       string
	Action   *action.Action // set for what became an action, with its state now
	Sentence wording.Sentence
	Digest   string
}

func (v RunView) live() bool { return v.Run.Live(v.Now) }

// runHeadline says what the run can do in one sentence.
func runHeadline(v RunView) string {
	if !v.live() {
		if v.Run.EndedAt != nil {
			return "This run was ended. It can do nothing; what it asked for before stands below."
		}
		return "This run's time is over. It can ask for nothing new; what it asked for before stands below."
	}
	passes, stages, acts, refuses := runTally(v)
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{{passes, "tool only reads", "tools only read"}, {stages, "asks a person", "ask a person"}, {acts, "acts within the budget", "act within the budget"}, {refuses, "would be refused", "would be refused"}} {
		if p.n > 0 {
			parts = append(parts, ui.Count(p.n, p.one, p.many))
		}
	}
	if len(parts) == 0 {
		return "It was given no tool."
	}
	return "Right now: " + strings.Join(parts, ", ") + "."
}

func runTally(v RunView) (passes, stages, acts, refuses int) {
	for _, g := range v.Grants {
		for _, t := range g.Tools {
			switch t.Verdict.Do {
			case policy.Pass:
				passes++
			case policy.Stage:
				stages++
			case policy.Run:
				acts++
			default:
				refuses++
			}
		}
	}
	return passes, stages, acts, refuses
}

// verdictWords says what happens to a call.
func verdictWords(v policy.Verdict) string {
	switch v.Do {
	case policy.Pass:
		return "Goes through"
	case policy.Stage:
		return "Asks a person"
	case policy.Run:
		return "Acts"
	}
	return "Refused"
}

func verdictIcon(v policy.Verdict) (icon, class string) {
	switch v.Do {
	case policy.Pass:
		return "read", "dim"
	case policy.Stage:
		return "staged", "asks"
	case policy.Run:
		return "executing", "look"
	}
	return "denied", "dim"
}

func runModeWords(m policy.Mode) string {
	switch m {
	case policy.ReadOnly:
		return "Read only"
	case policy.AskUserOnWrite:
		return "Ask before writing"
	case policy.Autonomous:
		return "Act within budget"
	}
	return "No mode chosen"
}

func surfaceWords(r run.Run) string {
	if r.Surface == policy.Task {
		return "Task run"
	}
	return "Chat run"
}

func runEnd(r run.Run) time.Time {
	if r.EndedAt != nil {
		return *r.EndedAt
	}
	return r.ExpiresAt
}

func runName(r run.Run) string {
	if r.Task != "" {
		return r.Task
	}
	return "Chat"
}

func stepTag(s RunStep) string {
	switch s.Event {
	case audit.ToolRead:
		return "Read"
	case audit.BlockReported:
		return "Blocked"
	}
	return "Run"
}

// stepWords says what the step was, in words of ours.
func stepWords(s RunStep) string {
	switch s.Event {
	case audit.ToolRead:
		return "Read with a tool; nothing was changed."
	case audit.ToolRefused:
		return refusalWords(s.Code)
	case audit.ActionStaged:
		return "Asked for approval."
	case audit.ActionApproved:
		return "Approved by policy as it was asked for."
	case audit.BlockReported:
		return "The agent says it cannot go on."
	case audit.RunStarted, audit.RunEnded:
		return "By " + s.By + "."
	}
	return EventWords(s.Event) + "."
}

// refusals says why a call was refused; the code stands beside it.
var refusals = map[fault.Code]string{
	fault.ToolNotGranted:        "The run has no such tool.",
	fault.ProfileForbids:        "Its profile does not allow it.",
	fault.ReadOnlyConnection:    "The connection is read only.",
	fault.ConsequentialInChat:   "A chat run may not change anything.",
	fault.DefinitionChanged:     "The tool is held back until somebody reviews its change.",
	fault.ConnectionUnavailable: "The connection did not work.",
	fault.NeedsConsent:          "The connection needs a person's consent again.",
	fault.BudgetExceeded:        "The run's budget was used up.",
	fault.OutsideResource:       "The call left what the connection is limited to.",
	fault.UncertainPending:      "An equal action may already have happened; nobody knows yet.",
	fault.IdempotencyConflict:   "Its key was used for another call.",
	fault.InvalidArguments:      "The arguments do not fit the tool.",
	fault.TaskEnded:             "The task has ended.",
	fault.Frozen:                "Everything consequential is stopped.",
	fault.UpstreamError:         "The service answered with an error.",
	fault.UpstreamTimeout:       "The service did not answer in time.",
	fault.ResultTooLarge:        "The answer was too large.",
}

func refusalWords(code string) string {
	if words, ok := refusals[fault.Code(code)]; ok {
		return words
	}
	return "Refused."
}
