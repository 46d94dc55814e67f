package reconcile

import (
	"context"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/provider"
)

// Preview shows a person who may decide on a waiting action what it would meet and make of it, by a read made now with the connection's
// own credential; false where its provider shows nothing of such calls. Nothing of it is kept: what is approved are the bytes, and the
// thing may have changed by the time they arrive.
func (r *Reconciler) Preview(ctx context.Context, org identity.OrgID, id action.ID, by identity.Person) (provider.Preview, bool, error) {
	a, err := r.Actions.Action(ctx, org, id)
	if err != nil {
		return provider.Preview{}, false, err
	}
	if refused := action.MayDecide(by, a); refused != nil {
		return provider.Preview{}, false, refused
	}
	if a.State != action.StateStaged {
		return provider.Preview{}, false, fault.Stale("This action waits for nobody any more.")
	}
	_, line, err := r.open(ctx, a)
	if err != nil {
		return provider.Preview{}, false, err
	}
	call := provider.Call{Tool: a.Tool, Arguments: a.Arguments, Action: string(a.ID)}
	able, ok := line.Provider.(provider.Previewer)
	if !ok || !able.CanPreview(call) {
		return provider.Preview{}, false, nil
	}
	v, err := able.Preview(ctx, line.Conn, call)
	return v, true, err
}
