// Package reconcile owns finding out, without an effect, what became of actions whose outcome nobody knows: by itself where a reviewed
// probe or a direct provider's own code leaves no doubt, and for a person who presses a look-up. It only reads: with tools that are
// granted as reads and still have the definition somebody accepted, or with the look that is part of the write's own code. By that code it
// also shows what a waiting action would meet. It never sends an action again, and never says that nothing happened before the settle window has passed.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/reach"
)

// within bounds one look at the provider, with the list of tools before it.
const within = 45 * time.Second

// Store is what a reconciler needs of the actions.
type Store interface {
	action.Probes
	Action(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, error)
	Reconcile(ctx context.Context, org identity.OrgID, id action.ID, version int, p action.Probed) (action.Action, error)
	KeepLookUp(ctx context.Context, org identity.OrgID, by identity.Person, l action.LookUp) (action.LookUp, error)
}

// Connections reads a connection as it is now.
type Connections interface {
	Connection(ctx context.Context, org identity.OrgID, key connector.Key) (installation.Connection, error)
}

// Reconciler finds out about uncertain actions.
type Reconciler struct {
	Actions     Store
	Connections Connections
	Lines       *reach.Lines
	Log         *slog.Logger
}

// Due lists the actions whose next probe is due.
func (r *Reconciler) Due(ctx context.Context, limit int) ([]action.Waiting, error) {
	return r.Actions.ProbesDue(ctx, limit)
}

// Probe takes the turn of one uncertain action, looks once, and settles it if that leaves no doubt. What could not be seen now is tried
// again later, less and less often. Running it twice is harmless: the turn is taken once, and the action is settled by compare-and-set.
func (r *Reconciler) Probe(ctx context.Context, org identity.OrgID, id action.ID) error {
	taken, err := r.Actions.TakeProbe(ctx, org, id)
	if err != nil || !taken {
		return err
	}
	a, err := r.Actions.Action(ctx, org, id)
	if err != nil || a.State != action.StateUncertain {
		return err
	}
	looking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, next, err := r.look(looking, a)
	if err != nil {
		f := fault.Of(err)
		r.Log.InfoContext(ctx, "probe saw nothing", "action", id, "code", f.Code)
		return r.Actions.KeepSighting(ctx, org, id, f.What, action.ProbeAgain)
	}
	return r.settle(ctx, a, s, next)
}

// look asks the provider. A fault is what stood in the way.
func (r *Reconciler) look(ctx context.Context, a action.Action) (s provider.Sighting, next action.NextProbe, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.ErrorContext(ctx, "probe panicked", "action", a.ID, "panic", fmt.Sprintf("%T", p))
			err = fault.New(fault.Internal, fault.CodeInternal, "Our own program failed while looking.", "")
		}
	}()
	c, line, err := r.open(ctx, a)
	if err != nil {
		return s, "", err
	}
	able, ok := line.Provider.(provider.Reconciler)
	call := provider.Call{Tool: a.Tool, Arguments: a.Arguments, Action: string(a.ID)}
	if reviewed, known := line.Manifest.Policy(a.Tool); ok && known && reviewed.Probe != nil {
		if call.Probe, err = r.question(ctx, c, line, *reviewed.Probe, a.Arguments); err != nil {
			return s, "", err
		}
	}
	if !ok || call.Probe == nil && !looksItself(line.Provider, call) {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "No read of this service tells without doubt what became of the call, so a person decides."}, action.ProbeHopeless, nil
	}
	evidence := action.Evidence{}
	if a.Evidence != nil {
		evidence = *a.Evidence
	}
	s, err = able.Reconcile(ctx, line.Conn, call, evidence)
	return s, action.ProbeAgain, err
}

// looksItself reports whether the provider's own code can look for what became of the call.
func looksItself(p provider.Provider, call provider.Call) bool {
	own, ok := p.(provider.OwnReconciler)
	return ok && own.CanReconcile(call)
}

// question turns a reviewed probe into the read that is sent; nil where the action's values do not fit it.
func (r *Reconciler) question(ctx context.Context, c installation.Connection, line *reach.Line, p manifest.ToolProbe, arguments []byte) (*provider.Probe, error) {
	q, err := p.For(arguments)
	if err != nil {
		return nil, nil //nolint:nilerr // an action without the value is one a person decides on
	}
	d, err := granted(ctx, c, line, q.Tool)
	if err != nil {
		return nil, err
	}
	return &provider.Probe{Call: provider.Call{Tool: q.Tool, Arguments: q.Arguments, Definition: d.Raw}, Judge: func(text string) provider.Sight {
		switch applied, absent := q.Sees(text); {
		case applied:
			return provider.Applied
		case absent:
			return provider.Absent
		}
		return provider.Unseen
	}}, nil
}

// settle ends the action, or notes what was seen.
func (r *Reconciler) settle(ctx context.Context, a action.Action, s provider.Sighting, next action.NextProbe) error {
	if s.Sight == provider.Unseen {
		return r.Actions.KeepSighting(ctx, a.Org, a.ID, s.Sentence, next)
	}
	_, err := r.Actions.Reconcile(ctx, a.Org, a.ID, a.Version, action.Probed{Found: s.Sight == provider.Applied, Conclusive: s.Final, Sentence: s.Sentence})
	switch {
	case err == nil:
		return r.Actions.KeepSighting(ctx, a.Org, a.ID, s.Sentence, action.ProbeAgain)
	case s.Sight == provider.Absent && fault.Is(err, fault.CodeConflict):
		return r.Actions.KeepSighting(ctx, a.Org, a.ID, s.Sentence+" The lost call may still be applied, so this is asked again.", action.ProbeSettling)
	case fault.Is(err, fault.CodeStale):
		return nil // somebody was quicker
	}
	return err
}

// open finds the way to the provider of an action.
func (r *Reconciler) open(ctx context.Context, a action.Action) (installation.Connection, *reach.Line, error) {
	c, err := r.Connections.Connection(ctx, a.Org, a.Connection)
	if err != nil {
		return c, nil, err
	}
	if c.Destination != a.Destination {
		return c, nil, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The connection leads elsewhere now than when this was sent.", "Look at the provider's own pages.")
	}
	line, err := r.Lines.Open(ctx, c)
	return c, line, err
}

// granted finds the live definition of a tool that is granted as a read and unchanged since somebody accepted it: a read that became
// something else must not be called to find out about an effect.
func granted(ctx context.Context, c installation.Connection, line *reach.Line, tool string) (provider.Definition, error) {
	pinned, ok := c.Standing.Snapshot.Find(tool)
	if !ok || pinned.Effect != policy.Read {
		return provider.Definition{}, fault.New(fault.Forbidden, fault.ToolNotGranted, "“"+tool+"” is not granted as a read on this connection, so it is not called.",
			"Look at the provider's own pages, or grant the tool on the connection's page.")
	}
	d, ok, err := line.Live(ctx, tool, reach.FreshFor)
	switch {
	case err != nil:
		return d, err
	case !ok || d.Digest != pinned.Digest:
		return d, fault.New(fault.Forbidden, fault.DefinitionChanged, "“"+tool+"” is not offered any more as somebody accepted it, so it is not called.",
			"Look at the provider's own pages, or review the change on the connection's page.")
	}
	return d, nil
}
