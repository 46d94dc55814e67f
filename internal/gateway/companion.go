package gateway

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/schema"
)

// companion is one of our own tools, by which an agent follows its actions.
type companion struct {
	name    string
	chat    bool // also for chat runs
	listing json.RawMessage
	schema  *schema.Schema
	answer  func(*Gateway, context.Context, capability.Live, companionArguments) (json.RawMessage, error)
}

// companionArguments are the arguments of every companion, as validated by its schema.
type companionArguments struct {
	ActionID       action.ID `json:"action_id"`
	TimeoutSeconds *int      `json:"timeout_seconds"`
	Justification  string    `json:"justification"`
	Reason         string    `json:"reason"`
	Before         action.ID `json:"before"`

	waiting *action.Action // as in Call
}

const actionID = `"action_id":{"type":"string","minLength":1,"maxLength":64,"description":"The id of an action of this run, as a staged call answered it"}`

// companionTable is the whole table, in the order in which they are listed.
var companionTable = sync.OnceValue(func() []companion {
	return []companion{
		define("actions_get", false, `{"readOnlyHint":true,"openWorldHint":false}`,
			"Reads one action of this run: its state, the decision and its reason, and its result once there is one.",
			`{"type":"object","properties":{`+actionID+`},"required":["action_id"],"additionalProperties":false}`, (*Gateway).actionsGet),
		define("actions_wait", false, `{"readOnlyHint":true,"openWorldHint":false}`,
			"Waits until an action of this run is decided and executed, at most 25 seconds, and answers it as it is then. Call it again to wait longer.",
			`{"type":"object","properties":{`+actionID+`,"timeout_seconds":{"type":"integer","minimum":0,"maximum":25,"default":25,"description":"How long to wait at most"}},"required":["action_id"],"additionalProperties":false}`,
			(*Gateway).actionsWait),
		define("actions_list", false, `{"readOnlyHint":true,"openWorldHint":false}`,
			"Lists the actions of this run, newest first, 50 at a time.",
			`{"type":"object","properties":{"before":{"type":"string","maxLength":64,"description":"The id of the last action of the page before"}},"additionalProperties":false}`, (*Gateway).actionsList),
		define("actions_cancel", false, `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
			"Takes back an action of this run that has not been sent yet.",
			`{"type":"object","properties":{`+actionID+`},"required":["action_id"],"additionalProperties":false}`, (*Gateway).actionsCancel),
		define("actions_retry", false, `{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":true}`,
			"Asks anew for an action of this run that has ended: a new action with the same call, which needs its own approval.",
			`{"type":"object","properties":{`+actionID+`,"justification":{"type":"string","minLength":1,"maxLength":2000,"description":"Why it should be done again; the approver reads it"}},"required":["action_id","justification"],"additionalProperties":false}`,
			(*Gateway).actionsRetry),
		define("report_block", true, `{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}`,
			"Tells the admins that a refusal was confusing or in the way of the task. It changes no permission; go on without what was refused.",
			`{"type":"object","properties":{"reason":{"type":"string","minLength":1,"maxLength":2000,"description":"What you tried, what was refused and why it is in the way; no secrets"}},"required":["reason"],"additionalProperties":false}`,
			(*Gateway).reportBlock),
	}
})

func define(name string, chat bool, annotations, description, input string, answer func(*Gateway, context.Context, capability.Live, companionArguments) (json.RawMessage, error)) companion {
	compiled, err := schema.Compile([]byte(input))
	if err != nil {
		panic("companion " + name + ": " + err.Error()) // a literal of this file is wrong
	}
	name = capability.Companion + name
	quoted, _ := json.Marshal(description) // a string always marshals
	listing := `{"name":"` + name + `","description":` + string(quoted) + `,"inputSchema":` + input + `,"annotations":` + annotations + `}`
	return companion{name: name, chat: chat, listing: json.RawMessage(listing), schema: compiled, answer: answer}
}

func companionNamed(name string) (companion, bool) {
	if !strings.HasPrefix(name, capability.Companion) {
		return companion{}, false
	}
	for _, c := range companionTable() {
		if c.name == name {
			return c, true
		}
	}
	return companion{}, false
}

func (c companion) open(s policy.Surface) bool { return c.chat || s == policy.Task }

func (g *Gateway) companion(ctx context.Context, l capability.Live, c companion, call Call) (json.RawMessage, error) {
	answer, err := g.answerOf(ctx, l, c, call)
	if err != nil {
		return g.refused(ctx, l, target{}, call, err)
	}
	return answer, nil
}

func (g *Gateway) answerOf(ctx context.Context, l capability.Live, c companion, call Call) (json.RawMessage, error) {
	if !c.open(l.Run.Surface) {
		return nil, notGranted
	}
	canonical, err := action.Arguments(call.Arguments)
	if err != nil {
		return nil, err
	}
	if err := c.schema.Check(canonical); err != nil {
		return nil, err
	}
	var args companionArguments
	if err := json.Unmarshal(canonical, &args); err != nil {
		return nil, fault.New(fault.Invalid, fault.InvalidArguments, "The arguments cannot be read.", "Send them as the tool's input schema describes.")
	}
	args.waiting = call.waiting
	return c.answer(g, ctx, l, args)
}

// ofRun finds an action of this run. Another run's looks like none.
func (g *Gateway) ofRun(ctx context.Context, l capability.Live, id action.ID) (action.Action, error) {
	none := fault.New(fault.NotFound, fault.CodeNotFound, "This run has no such action.", "List the run's actions with countersign__actions_list.")
	if !printable(string(id)) {
		return action.Action{}, none // a database refuses text with a NUL in it, which would look like a defect of ours
	}
	a, err := g.Actions.Action(ctx, l.Org.ID, id)
	if fault.Is(err, fault.CodeNotFound) || (err == nil && a.Run != l.Run.ID) {
		return action.Action{}, none
	}
	return a, err
}

func (g *Gateway) describe(ctx context.Context, a action.Action) (json.RawMessage, error) {
	a, timeline, err := g.Actions.Story(ctx, a.Org, a.ID)
	if err != nil {
		return nil, err
	}
	return sayDocument(sentenceOf(a), action.Describe(a, timeline, g.PublicURL))
}

// sayDocument puts the document into the text too, for clients that show the model only texts.
func sayDocument(words string, document any) (json.RawMessage, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return say(words+"\n"+string(raw), json.RawMessage(raw), false)
}

func sentenceOf(a action.Action) string {
	switch a.State {
	case action.StateStaged:
		return "NOT EXECUTED. The action waits for a person's approval."
	case action.StateApproved:
		return "NOT EXECUTED. The action is approved and will be sent shortly."
	case action.StateExecuting:
		return "NOT FINISHED. The action is being executed."
	case action.StateSucceeded:
		return "DONE. The action was executed."
	case action.StateUncertain:
		return "UNCERTAIN. Nobody knows yet whether the action was applied; do not do it in another way."
	case action.StateClosedUnknown:
		return "CLOSED. The action may have happened; nobody could find out."
	}
	return "NOT EXECUTED. The action is " + string(a.State) + "."
}

func (g *Gateway) actionsGet(ctx context.Context, l capability.Live, args companionArguments) (json.RawMessage, error) {
	a, err := g.ofRun(ctx, l, args.ActionID)
	if err != nil {
		return nil, err
	}
	return g.describe(ctx, a)
}

// The steps in which actions_wait looks again. Nothing of the database is held in between.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

func (g *Gateway) actionsWait(ctx context.Context, l capability.Live, args companionArguments) (json.RawMessage, error) {
	patience := g.Patience
	if args.TimeoutSeconds != nil {
		patience = min(patience, time.Duration(*args.TimeoutSeconds)*time.Second)
	}
	until := time.NewTimer(patience)
	defer until.Stop()
	for wait := firstLook; ; wait = min(wait*3/2, lastLook) {
		a, err := g.ofRun(ctx, l, args.ActionID)
		if err != nil {
			return nil, err
		}
		if a.State.Terminal() || a.State == action.StateUncertain {
			return g.describe(ctx, a)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-until.C:
			again.Stop()
			return g.describe(ctx, a)
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		}
	}
}

// page is one answer of actions_list.
type page struct {
	Actions []action.Document `json:"actions"`
	Before  action.ID         `json:"before,omitempty"` // of the next page
}

const pageSize = 50

func (g *Gateway) actionsList(ctx context.Context, l capability.Live, args companionArguments) (json.RawMessage, error) {
	if args.Before != "" {
		if _, err := g.ofRun(ctx, l, args.Before); err != nil {
			return nil, err
		}
	}
	list, err := g.Actions.Actions(ctx, l.Org.ID, action.Filter{Run: l.Run.ID, Before: args.Before, Limit: pageSize})
	if err != nil {
		return nil, err
	}
	p := page{Actions: make([]action.Document, 0, len(list))}
	for _, a := range list {
		a.Result = nil // of one action at a time, or a page could be 50 MB
		p.Actions = append(p.Actions, action.Describe(a, nil, g.PublicURL))
	}
	if len(list) == pageSize {
		p.Before = list[len(list)-1].ID
	}
	return sayDocument(strconv.Itoa(len(list))+" actions of this run, newest first.", p)
}

func (g *Gateway) actionsCancel(ctx context.Context, l capability.Live, args companionArguments) (json.RawMessage, error) {
	if _, err := g.ofRun(ctx, l, args.ActionID); err != nil {
		return nil, err
	}
	a, err := g.Actions.CancelByRun(ctx, l.Org.ID, l.Run.ID, args.ActionID)
	if err != nil {
		return nil, err
	}
	return g.describe(ctx, a)
}

// actionsRetry stages the call of an ended action anew. Its key follows from the old action, so that asking twice asks once.
func (g *Gateway) actionsRetry(ctx context.Context, l capability.Live, args companionArguments) (json.RawMessage, error) {
	old, err := g.ofRun(ctx, l, args.ActionID)
	if err != nil {
		return nil, err
	}
	if old.State == action.StateUncertain {
		return nil, fault.New(fault.Conflict, fault.UncertainPending, "Nobody knows yet whether this was applied.", "Wait until a person has settled it; sending it again could do it twice.")
	}
	if !old.State.Terminal() {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "The action is "+string(old.State)+" and has not ended.", "Ask countersign__actions_wait about it.")
	}
	grant, ok := l.Find(old.Connection)
	if !ok {
		return nil, notGranted
	}
	minted, ok := grant.Minted.Find(old.Tool)
	if !ok {
		return nil, notGranted
	}
	v, err := g.verify(ctx, l, targetOf(grant, minted), old.Arguments)
	if err != nil {
		return nil, err
	}
	if v.reads() {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "The tool only reads now, so there is nothing to approve.", "Call the tool itself.")
	}
	return g.propose(ctx, l, v, Call{Name: old.Tool, Arguments: old.Arguments, waiting: args.waiting}, action.Proposal{
		Key: "retry:" + string(old.ID), ExplicitKey: true, Justification: args.Justification, RetryOf: old.ID, AlwaysAsk: old.State == action.StateClosedUnknown,
	})
}

const maxReport = 500 // characters kept of a report

// reportBlock leaves the agent's words where an admin reads them. They are the agent's own, kept short and on one line.
func (g *Gateway) reportBlock(ctx context.Context, l capability.Live, args companionArguments) (json.RawMessage, error) {
	reason := strings.Join(strings.Fields(args.Reason), " ")
	if utf8.RuneCountInString(reason) > maxReport {
		reason = string([]rune(reason)[:maxReport]) + "…"
	}
	err := g.Recorder.Record(context.WithoutCancel(ctx), audit.Entry{
		Org: l.Org.ID, Actor: agent(l.Run), Event: audit.BlockReported, Object: audit.Object{Kind: "run", ID: string(l.Run.ID)},
		Facts: []audit.Fact{{Name: "reason", Value: visible(reason)}},
	})
	if err != nil {
		return nil, err
	}
	return say("Noted. The admins will see it; no permission changed. Go on without what was refused.", map[string]string{"status": "noted"}, false)
}
