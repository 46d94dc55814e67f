package admin

import (
	"context"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/provider"
	"countersign/views"
)

// Foreseer shows what a waiting action would meet; reconcile.Reconciler implements it.
type Foreseer interface {
	Preview(ctx context.Context, org identity.OrgID, id action.ID, by identity.Person) (p provider.Preview, able bool, err error)
}

// previewWithin bounds how long the page waits: a service that is slow must not keep a person from denying.
const previewWithin = 3 * time.Second

// preview reads for those alone who decide, and only while there is something to decide: others see no more of the service than before.
func (p *Actions) preview(r *Request, v *views.ActionView) error {
	if p.Foreseer == nil || v.Action.State != action.StateStaged || v.Refused != "" || v.Mine != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Ctx(), previewWithin)
	defer cancel()
	found, able, err := p.Foreseer.Preview(ctx, r.Org(), v.Action.ID, r.Person())
	if f, ok := fault.As(err); ok && f.Kind != fault.Internal {
		if able {
			v.Preview = &views.PreviewView{Problem: f.What, Next: "It can be decided on without; what will be sent stands below."}
		}
		return nil
	}
	if err == nil && able {
		v.Preview = &views.PreviewView{Sentence: found.Sentence, Before: found.Before, After: found.After}
	}
	return err
}
