package admin

import (
	"context"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// Freezes are the kill switches: of the organization, a profile, a connection.
type Freezes struct {
	Freezer action.Freezer
}

// FreezeReader lists the standing freezes; action.Freezer implements it.
type FreezeReader interface {
	Freezes(ctx context.Context, org identity.OrgID) ([]action.Freeze, error)
}

// Freeze presses a switch. Pressed twice, the second finds it on.
func (p *Freezes) Freeze(r *Request) error {
	s := action.Switch{Scope: action.Scope(r.Posted("scope")), Key: r.Posted("key")}
	f, err := p.Freezer.Freeze(r.Ctx(), action.Press{Org: r.Org(), By: r.Person(), Switch: s, Reason: r.Posted("reason")})
	if found, ok := fault.As(err); ok && found.Field == "reason" {
		v := views.SwitchView{Switch: s, Name: s.Key, Now: time.Now(), MayPress: true, Reason: r.Posted("reason"), Error: found.What + " Nothing was frozen."}
		return r.Show(answer.Status(found), views.SwitchPage(r.Frame("Freeze", "settings"), v))
	}
	if err != nil {
		return err
	}
	if !f.New {
		return r.Done(ui.Plain, f.By+" had frozen it already, "+f.Since.UTC().Format("at 15:04 UTC on 2 January")+".", views.SwitchPath(s))
	}
	words := "Frozen. The clock of " + ui.Count(f.Open, "open action", "open actions") + " stands still."
	if f.Sending > 0 {
		words += " " + ui.Count(f.Sending, "action was", "actions were") + " handed to a provider already and cannot be called back."
	}
	return r.Done(ui.OK, words, views.SwitchPath(s))
}

// Lift lifts the freeze the person saw, and no other.
func (p *Freezes) Lift(r *Request) error {
	l, err := p.Freezer.Lift(r.Ctx(), action.Press{Org: r.Org(), By: r.Person(), Freeze: action.FreezeID(r.Param("id"))})
	if err != nil {
		return err
	}
	if !l.New {
		return r.Done(ui.Plain, l.LiftedBy+" had lifted it already, "+l.LiftedAt.UTC().Format("at 15:04 UTC on 2 January")+".", views.SwitchPath(l.Switch))
	}
	return r.Done(ui.OK, "The freeze is lifted. "+ui.Count(l.Extended, "open action got", "open actions got")+" back the time that stood still.", views.SwitchPath(l.Switch))
}

// frozenWords is the notice that stands on every page while the organization is frozen.
func frozenWords(standing []action.Freeze) string {
	f, on := action.Switch{Scope: action.ScopeOrganization}.On(standing)
	if !on {
		return ""
	}
	return "Frozen since " + f.Since.UTC().Format("15:04 UTC on 2 January 2006") + " by " + ui.Flat(f.By) + ": " + ui.Flat(f.Reason)
}
