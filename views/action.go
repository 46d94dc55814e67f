package views

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"

	"countersign/internal/action"
	"countersign/internal/manifest"
	"countersign/internal/run"
	"countersign/internal/wording"
	"countersign/views/ui"
)

// ActionView is everything the action card shows. It is told who may do what; it decides nothing.
type ActionView struct {
	Action    action.Action
	Sentence  wording.Sentence
	Arguments []wording.Argument
	Policy    manifest.ToolPolicy // the zero value where nobody has reviewed the tool
	Reviewed  bool
	Now       time.Time // the database's clock
	Run       run.Run
	Behalf    string // name of the person the run works for; their address where none is known

	Viewer    string            // who is looking
	Refused   string            // why the viewer may not decide; empty where they may
	Deciders  []string          // who may, and has not signed yet
	Mine      *action.Signature // the viewer's own, where others are still asked
	Day       action.Day        // of the profile on the connection
	MayCancel bool

	Earlier    Earlier
	Timeline   []action.Event
	Reads      []RunRead // what the run read before it asked, oldest first
	Definition PinnedDefinition
	Frozen     *action.Freeze  // what stops an open action
	LookUps    []action.LookUp // newest first
	Probe      *action.Probe   // where the automatic ones stand; nil when there was none
	Push       *PushView       // where the action is a push
	Preview    *PreviewView    // what a waiting action would meet; nil where nothing can show it
	Form       DecisionForm
}

// Earlier is what happened before with the same tool on the same connection, as far back as was looked.
type Earlier struct {
	Equal []action.Action // the very same arguments, newest first
	Same  int             // other calls of the tool
	Of    int             // how many actions of the connection were looked at
}

// RunRead is one read of a run.
type RunRead struct {
	At   time.Time
	Tool string // connection/tool
}

// PinnedDefinition is the definition the action was asked under.
type PinnedDefinition struct {
	Raw     string // empty where it was replaced since
	Why     string // why there is none to show
	Effects string // why the tool has its effect
}

// DecisionForm is a form that came back.
type DecisionForm struct {
	Reason string
	Error  string // beside the reason
	What   string // on top: what stands in the way
	Next   string
}

// moving reports whether the page follows the action by itself.
func (v ActionView) moving() bool {
	return v.Action.State == action.StateApproved || v.Action.State == action.StateExecuting
}

func (v ActionView) decides() bool {
	return v.Action.State == action.StateStaged && v.Refused == ""
}

func (v ActionView) settles() bool {
	return v.Action.State == action.StateUncertain && v.Refused == ""
}

func (v ActionView) unknown() bool {
	return v.Action.State == action.StateUncertain || v.Action.State == action.StateClosedUnknown
}

func (v ActionView) sent() bool { return v.Action.ClaimedAt != nil }

// tooEarly reports whether "it did not happen" is not an answer yet.
func (v ActionView) tooEarly() bool {
	return v.Action.SettlesAt != nil && v.Now.Before(*v.Action.SettlesAt)
}

// host is where the bytes go.
func (v ActionView) host() string {
	u, err := url.Parse(v.Action.Destination)
	if err != nil || u.Host == "" {
		return v.Action.Destination
	}
	return u.Host
}

// agentName is who signed first: the profile, as a name.
func agentName(profile string) string {
	if profile == "" {
		return "Agent"
	}
	r := []rune(profile)
	return string(unicode.ToUpper(r[0])) + string(r[1:]) + " agent"
}

func cardPath(id action.ID, verb string) string {
	p := "/actions/" + url.PathEscape(string(id))
	if verb != "" {
		p += "/" + verb
	}
	return p
}

// foldedArgument is a text of which a part stands folded.
type foldedArgument struct {
	id    string
	lines int
}

// closely sums up what the arguments hold that does not show by itself, for the words beside the buttons.
func (v ActionView) closely() (marked []foldedArgument, folded []foldedArgument, lines int) {
	for i, a := range v.Arguments {
		var m ui.Marks
		if !a.Short() {
			m = ui.Scan(a.Shown())
		}
		if m.Any() || ui.Scan(a.Name).Any() {
			marked = append(marked, foldedArgument{id: argumentID(i)})
		}
		if m.Folded > 0 {
			folded = append(folded, foldedArgument{argumentID(i), m.Folded})
			lines += m.Folded
		}
	}
	return marked, folded, lines
}

func argumentID(i int) string { return "arg-" + ui.Grouped(i+1) }

// argumentWords says what kind of value a framed argument is, and how much of it there is.
func argumentWords(a wording.Argument) string {
	m := ui.Scan(a.Shown())
	switch a.Kind {
	case wording.Text:
		if a.Text == "" {
			return "Text, empty"
		}
		return "Text, " + ui.Count(m.Characters, "character", "characters") + ", " + ui.Count(m.Lines, "line", "lines")
	case wording.Structure:
		return "Structure, drawn on " + ui.Count(m.Lines, "line", "lines") + "; sent without the blanks"
	}
	return "Number, " + ui.Count(len(a.Raw), "digit", "digits") + ", sent exactly as written"
}

// approveLabel is the verb and its object.
func approveLabel(v ActionView) string {
	if v.Action.Missing() > 1 {
		return "Sign, as the " + ordinal(len(v.Action.Signatures)+1) + " of " + ui.Grouped(v.Action.Needed)
	}
	if verb := v.Sentence.Verb(); verb != "" {
		return "Approve and " + verb
	}
	return "Approve and send once"
}

// budgetWords says what this action takes of its run's budget.
func budgetWords(v ActionView) string {
	of := " of " + ui.Grouped(v.Run.Budget)
	switch v.Action.State {
	case action.StateDenied, action.StateExpired, action.StateCancelled:
		return ui.Grouped(v.Run.Used) + of + " taken; this one was given back"
	case action.StateStaged:
		return ui.Grouped(v.Run.Used) + of + " taken or asked for, this one among them"
	}
	return ui.Grouped(v.Run.Used) + of + " taken"
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "1st"
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return ui.Grouped(n) + "th"
}

// dayWords says what of the day's actions is taken, this one among them while it holds its place.
func dayWords(v ActionView) string {
	return ui.Grouped(v.Day.Actions) + " of " + ui.Grouped(v.Day.Most) + " taken; resets at 00:00 UTC"
}

// amountWords says what of the day's money is taken.
func amountWords(v ActionView) string {
	spent := manifest.Amount{Currency: v.Day.MostAmount.Currency, Units: v.Day.Spent}
	return spent.Currency + " " + spent.String() + " of " + v.Day.MostAmount.String() + " taken; resets at 00:00 UTC"
}

// amountMeter is the day's money in hundredths of the limit: used before this one, this one.
func amountMeter(v ActionView) (used, this int) {
	if v.Day.MostAmount.Units == 0 {
		return 0, 0
	}
	of := func(units int64) int { return int(min(100, units/max(1, v.Day.MostAmount.Units/100))) }
	if thisInBudget(v) > 0 {
		this = of(v.Action.Spends.Units)
	}
	return max(0, of(v.Day.Spent)-this), this
}

// thisInBudget is how many cells of the meter are this action's.
func thisInBudget(v ActionView) int {
	switch v.Action.State {
	case action.StateDenied, action.StateExpired, action.StateCancelled, action.StateFailed:
		return 0
	}
	return min(1, v.Run.Used)
}

func orList(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// settledWhen is when an action came to what it is.
func settledWhen(a action.Action) time.Time {
	switch {
	case a.FinishedAt != nil:
		return *a.FinishedAt
	case a.ClaimedAt != nil:
		return *a.ClaimedAt
	case a.DecidedAt != nil:
		return *a.DecidedAt
	}
	return a.RequestedAt
}

func sendingWords(v ActionView) string {
	switch {
	case v.sent():
		return "What was sent"
	case v.Action.State.Terminal():
		return "What would have been sent"
	}
	return "What will be sent"
}

func argumentsWords(v ActionView) string {
	switch n := len(v.Arguments); n {
	case 0:
		return "No arguments: the tool is called with an empty object."
	case 1:
		return "The one argument, with the bytes the provider gets."
	default:
		return "All " + ui.Grouped(n) + " arguments, in the order and with the bytes the provider gets."
	}
}

// Indented is a JSON text on lines of its own; one that cannot be read stays as it is.
func Indented(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// lookUpArguments is the call that a person would make, with the action's own values in it.
func lookUpArguments(c manifest.Call, arguments []wording.Argument) string {
	text := string(c.ArgumentsJSON())
	for _, a := range arguments {
		text = strings.ReplaceAll(text, `"{`+a.Name+`}"`, a.Raw)
	}
	return text
}

// answerTexts is what an MCP result says in text; where it says nothing so, the result itself. Pictures and structures stay in the bytes.
func answerTexts(result []byte) []string {
	var answer struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	var out []string
	if json.Unmarshal(result, &answer) == nil {
		for _, c := range answer.Content {
			if c.Type == "text" && c.Text != "" {
				out = append(out, c.Text)
			}
		}
	}
	if len(out) == 0 {
		return []string{Indented(result)}
	}
	return out
}
