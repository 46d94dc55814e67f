package admin

import (
	"context"
	"strconv"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// Looker makes a reviewed look-up for a person; reconcile.Reconciler implements it.
type Looker interface {
	LookUp(ctx context.Context, org identity.OrgID, id action.ID, n int, by identity.Person) (action.LookUp, error)
}

// LookUp makes one of the reviewed look-ups and keeps what it showed. It changes nothing at the provider and settles nothing.
func (p *Actions) LookUp(r *Request) error {
	n, err := strconv.Atoi(r.Posted("look_up"))
	if err != nil {
		return fault.Absent("look-up")
	}
	l, err := p.Looker.LookUp(r.Ctx(), r.Org(), action.ID(r.Param("id")), n, r.Person())
	if f, ok := fault.As(err); ok && f.Kind != fault.NotFound && f.Kind != fault.Internal {
		return p.show(r, answer.Status(f), views.DecisionForm{What: f.What + " Nothing was seen.", Next: f.Next})
	}
	if err != nil {
		return err
	}
	return r.Done(ui.OK, l.Tool+" answered. What it showed is kept below.", "/actions/"+r.Param("id")+"#h-seen")
}

// looked finds what was found out about an uncertain action, and what stands in the way of an open one.
func (p *Actions) looked(r *Request, v *views.ActionView) (err error) {
	if v.LookUps, err = p.Investigator.LookUps(r.Ctx(), r.Org(), v.Action.ID); err != nil || v.Action.State != action.StateUncertain {
		return err
	}
	probe, there, err := p.Investigator.Probed(r.Ctx(), r.Org(), v.Action.ID)
	if there {
		v.Probe = &probe
	}
	return err
}

func (p *Actions) frozen(r *Request, v *views.ActionView) error {
	if v.Action.State != action.StateStaged && v.Action.State != action.StateApproved {
		return nil
	}
	standing, err := p.Freezer.Freezes(r.Ctx(), r.Org())
	if f, on := action.Covering(standing, v.Action.Profile, v.Action.Connection); on {
		v.Frozen = &f
	}
	return err
}
