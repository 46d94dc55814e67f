package admin

import (
	"context"
	"net/http"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/run"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// Runs are the pages of what agents work with: which runs there are, what each can do right now and why, and what it did.
type Runs struct {
	Store    RunStore
	Actions  *Actions // words its actions as the inbox does
	Observed ObservedReader
}

// RunStore lists, reads and ends runs; capability.Store implements it.
type RunStore interface {
	RunReader
	RunList
	End(ctx context.Context, org identity.OrgID, id run.ID, e audit.Entry) (run.Run, error)
}

// ObservedReader finds what a connection's service lists now; installation.Reader implements it.
type ObservedReader interface {
	ObservedTools(ctx context.Context, org identity.OrgID, key connector.Key) ([]installation.Observed, error)
}

// How many runs and steps a page shows.
const (
	showLive  = 200
	showPast  = 50
	showSteps = 200
)

// List shows what is live, and a page of what was.
func (p *Runs) List(r *Request) error {
	before := run.ID(r.QueryParam("before"))
	v := views.RunsView{Now: time.Now(), Later: before != "", Names: map[string]string{}}
	var err error
	if v.Live, err = p.Store.Runs(r.Ctx(), r.Org(), true, "", showLive); err != nil {
		return err
	}
	all, err := p.Store.Runs(r.Ctx(), r.Org(), false, before, showPast+1)
	if err != nil {
		return err
	}
	if len(all) > showPast {
		all = all[:showPast]
		v.Pager.Next = "/runs?before=" + string(all[showPast-1].ID)
	}
	if v.Later {
		v.Pager.First = "/runs"
	}
	for _, one := range all {
		if !one.Live(v.Now) {
			v.Past = append(v.Past, one)
		}
	}
	for _, l := range p.Actions.words(r).people {
		v.Names[l.Email] = l.Display()
	}
	return r.Show(http.StatusOK, views.RunsPage(r.Frame("Runs", "runs"), v))
}

// Show is one run.
func (p *Runs) Show(r *Request) error {
	live, err := p.Store.Run(r.Ctx(), r.Org(), run.ID(r.Param("id")))
	if err != nil {
		return err
	}
	w := p.Actions.words(r)
	v := views.RunView{Run: live.Run, Now: live.Now, MayEnd: r.Person().May(identity.Manage), MayAudit: r.Person().May(identity.ReadAudit)}
	v.Behalf = w.name(live.Run.OnBehalfOf, live.Run.OnBehalfEmail)
	for _, g := range live.Grants {
		grant, err := p.grant(r, live, g)
		if err != nil {
			return err
		}
		v.Grants = append(v.Grants, grant)
	}
	if err := p.story(r, w, &v); err != nil {
		f := answer.Of(err)
		answer.Log(r.Ctx(), f, r.Response().Header().Get("X-Request-Id"))
		v.StoryFail = f.Error()
	}
	title := live.Run.Task
	if title == "" {
		title = "Chat run"
	}
	return r.Show(http.StatusOK, views.RunPage(r.Frame(title, "runs"), v))
}

// End stops a run and cancels what nobody has decided. Ending twice is fine.
func (p *Runs) End(r *Request) error {
	id := run.ID(r.Param("id"))
	if _, err := p.Store.End(r.Ctx(), r.Org(), id, r.Entry(audit.RunEnded, "run", string(id))); err != nil {
		return err
	}
	return r.Done(ui.OK, "This run is ended. What it asked for and nobody had decided is cancelled.", "/runs/"+string(id))
}

// grant asks policy about each tool of one connection.
func (p *Runs) grant(r *Request, live capability.Live, g capability.Grant) (views.RunGrant, error) {
	c := g.Connection
	out := views.RunGrant{Key: c.Key.String(), Name: c.Name, State: string(c.State), Mode: g.Now.Mode, Beside: c.Kind == registry.Stdio}
	switch {
	case !g.InProfile:
		out.Note, out.Mode = "The profile does not use this connection any more.", c.Standing.Mode
	case c.State != installation.Active:
		out.Note = "The connection is " + stateWords(c.State) + "."
	case g.Now.Mode != c.Standing.Mode:
		out.Note = "The profile narrows the connection's own mode."
	}
	observed, err := p.Observed.ObservedTools(r.Ctx(), r.Org(), c.Key)
	if err != nil {
		return out, err
	}
	for pin := range g.Minted.All() {
		out.Tools = append(out.Tools, verdict(live, g, pin, observed))
	}
	return out, nil
}

func stateWords(s installation.State) string {
	switch s {
	case installation.NeedsConsent:
		return "waiting for a person's consent"
	case installation.Disconnected:
		return "disconnected"
	case installation.Retired:
		return "retired for good"
	}
	return string(s)
}

// verdict is what policy says about a call of one tool now, by what is known without asking the service.
func verdict(live capability.Live, g capability.Grant, pin policy.Pinned, observed []installation.Observed) views.RunTool {
	now, kept := g.Now.Snapshot.Find(pin.Tool)
	same := kept && now.Digest == pin.Digest && now.Recipe == pin.Recipe
	for _, o := range observed {
		if o.Tool == pin.Tool && (o.Digest != pin.Digest || o.Problem != "") {
			same = false
		}
	}
	out := views.RunTool{Tool: pin.Tool, Effect: pin.Effect, Destructive: pin.Destructive}
	out.Verdict = policy.Decide(policy.Call{
		Surface: live.Run.Surface, Minted: true, Granted: kept && g.InProfile, SamePin: same, Effect: pin.Effect, Mode: g.Now.Mode,
		Reachable: g.Connection.State == installation.Active,
	})
	out.Why = because(g, pin, kept, out.Verdict)
	if ending := over(live, out.Verdict); ending != "" {
		out.Verdict.Do, out.Why = policy.Refuse, ending
	}
	return out
}

// over is what the run itself no longer allows, whatever policy says about the tool.
func over(live capability.Live, v policy.Verdict) string {
	switch {
	case v.Do == policy.Refuse:
		return ""
	case !live.Run.Live(live.Now):
		return "The run is over."
	case v.Do != policy.Pass && live.Run.Used >= live.Run.Budget:
		return "The run's budget of consequential actions is used up."
	}
	return ""
}

// because names who or what decided: what people took away or narrowed first, then the verdict's own reason.
func because(g capability.Grant, pin policy.Pinned, kept bool, v policy.Verdict) string {
	_, granted := g.Connection.Standing.Snapshot.Find(pin.Tool)
	switch {
	case v.Do == policy.Refuse && !kept && granted:
		return "The profile leaves this tool out."
	case v.Do == policy.Refuse && !kept:
		return "The connection does not grant it any more."
	case v.Do == policy.Refuse && g.Now.Mode == policy.ReadOnly && g.Connection.Standing.Mode != policy.ReadOnly && pin.Effect != policy.Read:
		return "The profile makes this connection read only."
	}
	return v.Reason
}

// story lays what became of each action over what the run did.
func (p *Runs) story(r *Request, w *words, v *views.RunView) error {
	entries, err := p.Actions.Trail.Entries(r.Ctx(), r.Org(), audit.Filter{Actor: string(v.Run.ID), Limit: showSteps + 1})
	if err != nil {
		return err
	}
	about, err := p.Actions.Trail.Entries(r.Ctx(), r.Org(), audit.Filter{Object: string(v.Run.ID), Event: "run.", Limit: showSteps})
	if err != nil {
		return err
	}
	asked, err := p.Actions.Reader.Actions(r.Ctx(), r.Org(), action.Filter{Run: v.Run.ID, Limit: showSteps})
	if err != nil {
		return err
	}
	if v.More = len(entries) > showSteps; v.More {
		entries = entries[:showSteps]
	}
	v.Story = steps(w, asked, entries, about)
	return nil
}
