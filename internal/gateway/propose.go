package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/fault"
)

// propose turns a consequential call into its action, or finds the one it already is, and answers with the action as it stands. The
// store asks the seven fences and decides by the connection's mode at that moment whether a person or the policy approves.
func (g *Gateway) propose(ctx context.Context, l capability.Live, v verified, c Call, p action.Proposal) (json.RawMessage, error) {
	a, err := g.stage(ctx, l, v, p)
	if err != nil {
		return g.refused(ctx, l, v.target, c, err)
	}
	if a.ApprovedByPolicy && a.State == action.StateApproved {
		return g.send(ctx, a, c)
	}
	return g.present(a, c)
}

// stage fills a proposal from what was verified, and makes its action or finds the one that is there.
func (g *Gateway) stage(ctx context.Context, l capability.Live, v verified, p action.Proposal) (action.Action, error) {
	p.Org, p.Run, p.Connection, p.Tool = l.Org.ID, l.Run.ID, v.key(), v.tool
	p.Definition, p.Destination, p.OutsideResource = v.definition.Digest, v.grant.Connection.Destination, v.outside
	p.Arguments, p.ArgsDigest = v.arguments, v.digest
	p.Touched = v.line.Manifest.Touches(v.tool, v.arguments)
	if reviewed, ok := v.line.Manifest.Policy(v.tool); ok && reviewed.Money != nil {
		var err error
		if p.Spends, err = reviewed.Money.In(v.arguments); err != nil {
			return action.Action{}, err
		}
	}
	a, _, err := g.Actions.Stage(ctx, p)
	return a, err
}

// present answers with an action as it stands, or tells a caller that follows tasks which one to follow.
func (g *Gateway) present(a action.Action, c Call) (json.RawMessage, error) {
	if c.waiting != nil && waits(a.State) {
		*c.waiting = a
		return nil, nil
	}
	return g.standing(a)
}

// send hands an action approved by policy to dispatch and waits for it, but not long. The agent's hanging up changes nothing.
func (g *Gateway) send(ctx context.Context, a action.Action, c Call) (json.RawMessage, error) {
	now, refusal, err := g.deliver(ctx, a, g.Patience)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return g.ended(now, refusal.Code, refusal.What, refusal.Next)
	}
	return g.present(now, c)
}

// deliver is send for whoever answers in another form: the action as it stands after so long, and why a fence refused it at the claim.
func (g *Gateway) deliver(ctx context.Context, a action.Action, patience time.Duration) (action.Action, *fault.Error, error) {
	type sent struct {
		a   action.Action
		err error
	}
	done := make(chan sent, 1)
	detached := context.WithoutCancel(ctx)
	g.sending.Add(1)
	go func() {
		defer g.sending.Done()
		bounded, cancel := context.WithTimeout(detached, action.Lease)
		defer cancel()
		after, err := g.Dispatch.Dispatch(bounded, a.Org, a.ID)
		done <- sent{after, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var refusal *fault.Error
	select {
	case s := <-done:
		if s.err == nil {
			return s.a, nil, nil
		}
		refusal = fault.Of(s.err)
		if refusal.Kind == fault.Internal {
			g.Log.WarnContext(ctx, "not sent yet", "action", a.ID, "error", s.err)
		}
	case <-timer.C:
	case <-ctx.Done():
		return a, nil, ctx.Err()
	}
	now, err := g.Actions.Action(ctx, a.Org, a.ID)
	if err != nil {
		return a, nil, err
	}
	if refusal != nil && now.State == action.StateCancelled && !ours(refusal) && refusal.Code != fault.CodeConflict {
		return now, refusal, nil // a fence refused at the claim: its reason says more
	}
	return now, nil, nil
}

// standing answers with an action as it is: its result once there is one, else where it stands and what to do.
func (g *Gateway) standing(a action.Action) (json.RawMessage, error) {
	switch a.State {
	case action.StateStaged:
		return say("NOT EXECUTED. This call waits for a person's approval as action "+string(a.ID)+", at "+g.approvalURL(a)+" until "+stamp(a.ExpiresAt)+
			". Do not call it again to hurry it: the same call answers this same action. Ask countersign__actions_wait or countersign__actions_get about it, or go on with other work.",
			g.stateOf(a, "awaiting_approval", pollStaged, nil), false)
	case action.StateApproved:
		return say("NOT EXECUTED. Action "+string(a.ID)+" is approved and will be sent shortly. Ask countersign__actions_wait about it.", g.stateOf(a, "approved", pollSoon, nil), false)
	case action.StateExecuting:
		return say("NOT FINISHED. Action "+string(a.ID)+" is being executed. Ask countersign__actions_wait about it; calling the tool again answers this same action.",
			g.stateOf(a, "executing", pollSoon, nil), false)
	case action.StateSucceeded:
		if len(a.Result) > 0 {
			return a.Result, nil
		}
		return say("DONE. Action "+string(a.ID)+" was executed; the service's answer is not known.", g.stateOf(a, "succeeded", 0, nil), false)
	case action.StateFailed:
		return g.ended(a, fault.Code(a.ErrorCode), a.ErrorSentence, nothingApplied)
	case action.StateUncertain:
		return g.ended(a, fault.UncertainPending, join("Nobody knows yet whether this was applied.", a.ErrorSentence),
			"Do not do it again in another way: a person settles it. Ask countersign__actions_wait about it, or go on with other work.")
	case action.StateDenied:
		return g.ended(a, "denied", join("A person denied this; nothing was sent.", a.Reason), "Read the reason. Change your plan, or ask again in another way that answers it.")
	case action.StateExpired:
		return g.ended(a, "expired", "Nobody decided in time; nothing was sent.", "If it is still needed, ask again with countersign__actions_retry.")
	case action.StateCancelled:
		return g.ended(a, "cancelled", join("This was cancelled; nothing was sent.", first(a.ErrorSentence, a.Reason)), "If it is still needed, ask again with countersign__actions_retry.")
	case action.StateClosedUnknown:
		return g.ended(a, "closed_unknown", join("This may have happened; nobody could find out.", a.Reason), "Look at the present state of things first. countersign__actions_retry asks a person again.")
	}
	return nil, fault.New(fault.Internal, fault.CodeInternal, "The action is in a state that this program does not know.", "")
}

// ended answers for an action that has no success to show.
func (g *Gateway) ended(a action.Action, code fault.Code, what, next string) (json.RawMessage, error) {
	if code == "" {
		code = fault.UpstreamError
	}
	return say(strings.ToUpper(string(a.State))+" ("+string(code)+"). "+what+" "+next, g.stateOf(a, string(a.State), 0, &refused{code, what, next}), true)
}

const nothingApplied = "Nothing was applied. Correct the call, or try again with countersign__actions_retry."

// How long an agent should wait before it asks again.
const (
	pollStaged = 5000
	pollSoon   = 1000
)

func (g *Gateway) stateOf(a action.Action, status string, poll int, e *refused) state {
	s := state{Status: status, ActionID: a.ID, ArgsDigest: a.ArgsDigest, ApprovalURL: g.approvalURL(a), PollAfterMS: poll, Error: e}
	if a.State == action.StateStaged || a.State == action.StateApproved {
		s.ExpiresAt = stamp(a.ExpiresAt)
	}
	return s
}

func (g *Gateway) approvalURL(a action.Action) string { return action.ApprovalURL(g.PublicURL, a.ID) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func join(ours, theirs string) string {
	if theirs == "" {
		return ours
	}
	return ours + " " + theirs
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
