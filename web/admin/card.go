package admin

import (
	"bytes"
	"net/http"
	"slices"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/release"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// Show is the action card.
func (p *Actions) Show(r *Request) error {
	return p.show(r, http.StatusOK, views.DecisionForm{})
}

func (p *Actions) show(r *Request, status int, form views.DecisionForm) error {
	a, timeline, err := p.Reader.Story(r.Ctx(), r.Org(), action.ID(r.Param("id")))
	if err != nil {
		return err
	}
	v, err := p.card(r, a, timeline)
	if err != nil {
		return err
	}
	v.Form = form
	if r.Swaps() {
		return r.Show(status, views.ActionCard(v))
	}
	return r.Show(status, views.ActionPage(r.Frame(v.Sentence.String(), "inbox"), v))
}

// card collects what the page shows. What an action is decided on must be there or the page fails; what only helps may be missing.
func (p *Actions) card(r *Request, a action.Action, timeline []action.Event) (views.ActionView, error) {
	w := p.words(r)
	v := views.ActionView{Action: a, Timeline: timeline, Viewer: r.Person().Display(), MayCancel: r.Person().May(identity.Manage), Behalf: w.name(a.OnBehalfOf, a.OnBehalfEmail)}
	v.Policy, v.Reviewed = w.policy(a)
	v.Arguments, v.Sentence = w.say(a)
	if v.Arguments == nil {
		return v, fault.New(fault.Internal, fault.CodeInternal, "The arguments of this action cannot be read; nobody should decide on it.", "The operator finds the cause in the server log.")
	}
	live, err := p.Runs.Run(r.Ctx(), r.Org(), a.Run)
	if err != nil {
		return v, err
	}
	v.Run, v.Now = live.Run, live.Now
	if refused := action.MayDecide(r.Person(), a); refused != nil {
		v.Refused, v.Deciders = refused.What, w.deciders(a)
	} else if mine, ok := a.SignedBy(r.Person().ID); ok {
		v.Mine, v.Deciders = &mine, w.deciders(a)
	}
	for _, more := range []func(*Request, *views.ActionView) error{p.taken, p.earlier, p.reads, p.definition, p.looked, p.frozen, p.push, p.preview} {
		if err := more(r, &v); err != nil {
			answer.Log(r.Ctx(), answer.Of(err), r.Response().Header().Get("X-Request-Id"))
		}
	}
	return v, nil
}

// policy is the reviewed policy of an action's tool, from the release its connection was installed from.
func (w *words) policy(a action.Action) (manifest.ToolPolicy, bool) {
	known, ok := w.known[a.Release]
	if !ok {
		var err error
		if known, err = w.releases.ByDigest(w.request.Ctx(), release.Digest(a.Release)); err != nil {
			answer.Log(w.request.Ctx(), answer.Of(err), w.request.Response().Header().Get("X-Request-Id"))
		}
		w.known[a.Release] = known
	}
	m, ok := known.Manifest(a.Integration)
	if !ok {
		return manifest.ToolPolicy{}, false
	}
	return m.Policy(a.Tool)
}

// deciders names who may decide on an action.
func (w *words) deciders(a action.Action) (names []string) {
	for _, l := range w.people {
		if action.MaySign(l.Person, a) == nil {
			names = append(names, l.Display())
		}
	}
	return names
}

// taken is what the day holds already.
func (p *Actions) taken(r *Request, v *views.ActionView) (err error) {
	v.Day, err = p.Reader.Day(r.Ctx(), r.Org(), v.Action.ID)
	return err
}

// lookBack is how many actions of the connection are compared with this one.
const lookBack = 200

func (p *Actions) earlier(r *Request, v *views.ActionView) error {
	found, err := p.Reader.Actions(r.Ctx(), r.Org(), action.Filter{Connection: v.Action.Connection, Before: v.Action.ID, Limit: lookBack})
	v.Earlier.Of = len(found)
	for _, e := range found {
		switch {
		case e.Tool != v.Action.Tool:
		case e.ArgsDigest == v.Action.ArgsDigest || bytes.Equal(e.Arguments, v.Action.Arguments):
			v.Earlier.Equal = append(v.Earlier.Equal, e)
		default:
			v.Earlier.Same++
		}
	}
	return err
}

// showReads is how many of the run's last reads stand in the story.
const showReads = 6

func (p *Actions) reads(r *Request, v *views.ActionView) error {
	found, err := p.Trail.Entries(r.Ctx(), r.Org(), audit.Filter{Actor: string(v.Action.Run), Event: string(audit.ToolRead), Until: v.Action.RequestedAt, Limit: showReads})
	for _, e := range found {
		v.Reads = append(v.Reads, views.RunRead{At: e.At, Tool: factOf(e, "tool")})
	}
	slices.Reverse(v.Reads)
	return err
}

func factOf(e audit.Recorded, name string) string {
	for _, f := range e.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// definition finds the bytes an admin accepted, as long as they are still the ones the action was asked under.
func (p *Actions) definition(r *Request, v *views.ActionView) error {
	v.Definition.Effects = "Nobody has reviewed this tool for the catalog, so it counts as consequential."
	if v.Reviewed {
		v.Definition.Effects = "Reviewed on " + v.Policy.Reviewed + ": " + v.Policy.Why
	}
	v.Definition.Why = "It cannot be read just now."
	c, err := p.Connections.Connection(r.Ctx(), r.Org(), v.Action.Connection)
	if err != nil {
		return err
	}
	if pinned, ok := c.Standing.Snapshot.Find(v.Action.Tool); !ok || pinned.Digest != v.Action.Definition {
		v.Definition.Why = "The connection has another definition pinned by now, or none; an action under the old one is not sent."
		return nil
	}
	raws, err := p.Connections.PinnedDefinitions(r.Ctx(), r.Org(), v.Action.Connection)
	v.Definition.Raw = views.Indented(raws[v.Action.Tool])
	return err
}

// done is what the next page says after a decision.
func (p *Actions) done(r *Request, a action.Action, words string) error {
	return r.Done(ui.OK, words, "/actions/"+string(a.ID))
}
