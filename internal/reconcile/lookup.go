package reconcile

import (
	"context"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/provider/mcpclient"
)

// LookUp makes the nth reviewed look-up of an uncertain action for a person who may decide on it, and keeps what was seen. It answers a
// fault and keeps nothing when nothing was seen.
func (r *Reconciler) LookUp(ctx context.Context, org identity.OrgID, id action.ID, n int, by identity.Person) (action.LookUp, error) {
	a, err := r.Actions.Action(ctx, org, id)
	if err != nil {
		return action.LookUp{}, err
	}
	if refused := action.MayDecide(by, a); refused != nil {
		return action.LookUp{}, refused
	}
	if a.State != action.StateUncertain {
		return action.LookUp{}, fault.Stale("The outcome of this action is known by now.")
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, line, err := r.open(ctx, a)
	if err != nil {
		return action.LookUp{}, err
	}
	call, err := chosen(line.Manifest, a, n)
	if err != nil {
		return action.LookUp{}, err
	}
	d, err := granted(ctx, c, line, call.Tool)
	if err != nil {
		return action.LookUp{}, err
	}
	call.Definition = d.Raw
	result, err := line.Read(ctx, call)
	if err != nil {
		return action.LookUp{}, err
	}
	seen := mcpclient.TextOf(result.Raw)
	if seen == "" {
		seen = string(result.Raw)
	}
	return r.Actions.KeepLookUp(ctx, org, by, action.LookUp{Action: id, Tool: call.Tool, Arguments: call.Arguments, Seen: seen, IsError: result.IsError})
}

// chosen is one look-up of the tool's reviewed policy, with the action's values in it.
func chosen(m manifest.Manifest, a action.Action, n int) (provider.Call, error) {
	reviewed, ok := m.Policy(a.Tool)
	if !ok || n < 0 || n >= len(reviewed.LookUps) {
		return provider.Call{}, fault.Absent("look-up")
	}
	l := reviewed.LookUps[n]
	arguments, err := l.Filled(a.Arguments)
	if err != nil {
		return provider.Call{}, fault.New(fault.Conflict, fault.CodeConflict, "This action lacks a value the look-up needs.", "Look at the provider's own pages.").Wrap(err)
	}
	return provider.Call{Tool: l.Tool, Arguments: arguments}, nil
}
