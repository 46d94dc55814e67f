package admin

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// wakeWithin bounds the wake-up after an approval: the decision is made, and the sweep finds what was not woken.
const wakeWithin = 2 * time.Second

// decision is what the form posted. A version that is no number is none, which no row has.
func decision(r *Request) action.Decision {
	version, _ := strconv.Atoi(r.Posted("version"))
	return action.Decision{Org: r.Org(), Action: action.ID(r.Param("id")), By: r.Person(), ArgsDigest: r.Posted("args_digest"), Version: version, Reason: r.Posted("reason")}
}

// Approve countersigns, and asks for the action to be sent soon.
func (p *Actions) Approve(r *Request) error {
	a, err := p.Decider.Approve(r.Ctx(), decision(r))
	if err != nil {
		return p.refused(r, err)
	}
	if a.State == action.StateStaged {
		return p.done(r, a, "You signed this. It waits for "+ui.Count(a.Missing(), "more signature", "more signatures")+"; nothing was sent.")
	}
	p.wake(r, a)
	return p.done(r, a, "You approved this. It is sent once, with the bytes below.")
}

// wake never fails the approval it follows, and outlives the request: the person may have gone on already.
func (p *Actions) wake(r *Request, a action.Action) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Ctx()), wakeWithin)
	defer cancel()
	if err := p.Waker.Wake(ctx, a.Org, a.ID); err != nil {
		slog.WarnContext(ctx, "not woken; the sweep finds it", "action", a.ID, "error", err)
	}
}

// Deny refuses with a reason that the agent reads.
func (p *Actions) Deny(r *Request) error {
	a, err := p.Decider.Deny(r.Ctx(), decision(r))
	if err != nil {
		return p.refused(r, err)
	}
	return p.done(r, a, "You denied this. Nothing was sent.")
}

// Cancel takes back what was not sent.
func (p *Actions) Cancel(r *Request) error {
	a, err := p.Decider.Cancel(r.Ctx(), decision(r))
	if err != nil {
		return p.refused(r, err)
	}
	return p.done(r, a, "You cancelled this. Nothing was sent.")
}

// Settle records what became of an action whose answer was lost.
func (p *Actions) Settle(r *Request) error {
	a, err := p.Decider.Settle(r.Ctx(), action.Settlement{Decision: decision(r), Answer: action.Answer(r.Posted("answer"))})
	if err != nil {
		return p.refused(r, err)
	}
	words := map[action.State]string{
		action.StateSucceeded: "Recorded: it happened.", action.StateFailed: "Recorded: it did not happen.", action.StateClosedUnknown: "Recorded: nobody can tell.",
	}[a.State]
	return p.done(r, a, words)
}

// refused shows the card as it is now, with what stands in the way and what was typed. Two of the same press end here: the second finds
// the action decided, and reads by whom and when.
func (p *Actions) refused(r *Request, err error) error {
	f, ok := fault.As(err)
	if !ok || (f.Kind != fault.Invalid && f.Kind != fault.Conflict && f.Kind != fault.Forbidden) {
		return err
	}
	form := views.DecisionForm{Reason: r.Posted("reason")}
	if f.Field == "reason" {
		form.Error = f.What + " Nothing was recorded."
	} else {
		form.What, form.Next = f.What, f.Next
	}
	return p.show(r, answer.Status(f), form)
}
