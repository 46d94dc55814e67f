// Package dispatch owns the one place that sends an approved action. It makes everything ready first (address, credential, the live
// definition), then claims, then sends once, then reports what became of it. It never sends without a committed claim, never sends
// again, and does not decide whether an action may be sent: the claim asks the fences.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/provider"
	"countersign/internal/reach"
)

// Actions is what dispatch needs of the store.
type Actions interface {
	Action(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, error)
	Claim(ctx context.Context, org identity.OrgID, id action.ID, r action.Ready) (action.Dispatch, error)
	Complete(ctx context.Context, d action.Dispatch, o action.Outcome) (action.Action, error)
}

// Connections reads a connection as it is now.
type Connections interface {
	Connection(ctx context.Context, org identity.OrgID, key connector.Key) (installation.Connection, error)
}

// Dispatcher sends approved actions.
type Dispatcher struct {
	Actions     Actions
	Connections Connections
	Lines       *reach.Lines
	Log         *slog.Logger
}

// Dispatch sends one approved action, and answers it as it is afterwards. The caller's context bounds only the preparation: once
// claimed, nobody's hanging up stops the sending or the report. An error before the claim leaves the action approved; it is tried
// again until it expires. action.NotClaimable means that there is nothing to send.
func (d *Dispatcher) Dispatch(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, error) {
	a, err := d.Actions.Action(ctx, org, id)
	if err != nil {
		return action.Action{}, err
	}
	if a.State != action.StateApproved {
		return a, action.NotClaimable
	}
	ready, err := d.prepare(ctx, a)
	if err != nil {
		return a, err
	}
	began := time.Now() // before the claim's transaction, so that our deadline is never later than the database's
	claimed, err := d.Actions.Claim(ctx, org, id, ready.found)
	if err != nil {
		return a, err
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), action.Lease)
	defer cancel()
	outcome := d.send(egress.SendBefore(detached, began.Add(action.SendWindow)), ready, claimed)
	return d.report(detached, claimed, outcome)
}

// prepared is everything that can fail without harm, done before the claim.
type prepared struct {
	line  *reach.Line
	call  provider.Call
	found action.Ready
}

func (d *Dispatcher) prepare(ctx context.Context, a action.Action) (prepared, error) {
	c, err := d.Connections.Connection(ctx, a.Org, a.Connection)
	if err != nil {
		return prepared{}, err
	}
	p := prepared{found: action.Ready{Destination: c.Destination}}
	if c.State != installation.Active {
		return p, nil // the claim refuses, and says why on the action
	}
	if p.line, err = d.Lines.Open(ctx, c); err != nil {
		return prepared{}, err
	}
	definition, ok, err := p.line.Live(ctx, a.Tool, 0)
	if err != nil {
		return prepared{}, err
	}
	if ok {
		p.found.Definition = definition.Digest
	}
	p.found.OutsideResource = installation.Outside(p.line.Manifest, c, nil, a.Tool, a.Arguments) // what the profile allows is asked by the claim itself
	p.call = provider.Call{Tool: a.Tool, Arguments: a.Arguments, Action: string(a.ID), Definition: definition.Raw}
	if t, ok := p.line.Manifest.Policy(a.Tool); ok {
		p.call.Definite = t.DefinitelyNotApplied
		p.found.Settle = time.Duration(t.SettleSeconds) * time.Second
	}
	return p, nil
}

// send never panics and never answers an error: what goes wrong after the claim is an outcome that nobody knows.
func (d *Dispatcher) send(ctx context.Context, p prepared, claimed action.Dispatch) (o action.Outcome) {
	defer func() {
		if r := recover(); r != nil {
			d.Log.ErrorContext(ctx, "dispatch panicked", "action", claimed.Action.ID, "panic", fmt.Sprintf("%T", r))
			o = action.Uncertain(fault.CodeInternal, "Our own program failed while sending; nobody knows whether it was applied.", action.Evidence{})
		}
	}()
	call := p.call
	call.Arguments = claimed.Action.Arguments // the bytes that were approved, as the claim read them
	return p.line.Provider.Execute(ctx, p.line.Conn, call)
}

// report tries to record the outcome until the lease ends. Repeating it is harmless, since only the fence's holder can and only once;
// if it never succeeds, the sweeper calls the action uncertain.
func (d *Dispatcher) report(ctx context.Context, claimed action.Dispatch, o action.Outcome) (action.Action, error) {
	wait := 50 * time.Millisecond
	for {
		a, err := d.Actions.Complete(ctx, claimed, o)
		if err == nil || answered(err) {
			return a, err
		}
		d.Log.WarnContext(ctx, "outcome not recorded yet", "action", claimed.Action.ID, "error", err)
		select {
		case <-ctx.Done():
			return claimed.Action, errors.Join(err, ctx.Err())
		case <-time.After(wait):
			wait = min(2*wait, 5*time.Second)
		}
	}
}

// answered reports whether the store has said no. A database that is away or full has not: what became of the call is known here alone,
// and giving up would make an uncertain action of a certain one.
func answered(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Kind != fault.Unavailable
}
