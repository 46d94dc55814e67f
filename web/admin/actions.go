package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/release"
	"countersign/internal/run"
	"countersign/internal/wording"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// Actions are the inbox and the action card: where people countersign.
type Actions struct {
	Reader      ActionLedger
	Decider     ActionDecider
	Runs        RunReader
	Connections PinnedReader
	Releases    ReleaseReader
	Directory   PeopleList
	Trail       audit.Reader
	Waker       Waker

	Freezer      FreezeReader
	Investigator action.Investigator
	Looker       Looker
	Foreseer     Foreseer   // nil: the card shows none
	Diffs        DiffReader // nil: no pushes
}

// ActionLedger reads actions and what they take of limits; db.Actions implements it.
type ActionLedger interface {
	action.Reader
	action.Ledger
}

// ActionDecider makes decisions, one by one and together; db.Actions implements it.
type ActionDecider interface {
	action.Decider
	action.Together
}

// Waker asks for an approved action to be sent soon. db/wake.Queue implements it.
type Waker interface {
	Wake(ctx context.Context, org identity.OrgID, id action.ID) error
}

// RunReader reads one run with what it may use; capability.Store implements it.
type RunReader interface {
	Run(ctx context.Context, org identity.OrgID, id run.ID) (capability.Live, error)
}

// PinnedReader finds a connection and the definitions an admin accepted; installation.Reader implements it.
type PinnedReader interface {
	Connection(ctx context.Context, org identity.OrgID, key connector.Key) (installation.Connection, error)
	PinnedDefinitions(ctx context.Context, org identity.OrgID, key connector.Key) (map[string][]byte, error)
}

// ReleaseReader finds the release whose tool policy words an action; release.Store implements it.
type ReleaseReader interface {
	ByDigest(ctx context.Context, d release.Digest) (release.Release, error)
}

// PeopleList lists the people of an organization; people.Directory implements it.
type PeopleList interface {
	People(ctx context.Context, org identity.OrgID) ([]people.Listed, error)
}

// How many lines each part of the inbox shows.
const (
	showOpen   = 100
	showClosed = 50
)

var closed = []action.State{action.StateSucceeded, action.StateFailed, action.StateDenied, action.StateExpired, action.StateCancelled, action.StateClosedUnknown}

// Inbox lists what is open by who has to do something about it, or with tab=closed what has come to its end.
func (p *Actions) Inbox(r *Request) error {
	if r.QueryParam("tab") == "closed" {
		return p.history(r)
	}
	v := views.InboxView{Now: time.Now(), MayDecide: r.Person().May(identity.Decide), Failed: map[string]string{}}
	w := p.words(r)
	note := func(part string, err error) {
		if err != nil {
			f := answer.Of(err)
			answer.Log(r.Ctx(), f, r.Response().Header().Get("X-Request-Id"))
			v.Failed[part] = f.Error()
		}
	}
	note("waiting", p.waiting(r, w, &v))
	var err error
	v.Uncertain, err = p.lines(r, w, action.StateUncertain)
	note("uncertain", err)
	v.Moving, err = p.lines(r, w, action.StateApproved, action.StateExecuting)
	note("moving", err)
	if r.Swaps() {
		return r.Show(http.StatusOK, views.InboxList(v))
	}
	return r.Show(http.StatusOK, views.InboxPage(r.Frame("Inbox", "inbox"), v))
}

func (p *Actions) waiting(r *Request, w *words, v *views.InboxView) error {
	staged, err := p.Reader.Actions(r.Ctx(), r.Org(), action.Filter{States: []action.State{action.StateStaged}, OldestDue: true, Limit: showOpen})
	if err != nil {
		return err
	}
	for _, a := range staged {
		if l := w.line(a); l.Why == "" {
			v.Yours = append(v.Yours, l)
		} else {
			v.Others = append(v.Others, l)
		}
	}
	v.Batches = offers(v.Yours)
	if len(staged) == showOpen {
		counts, err := p.Reader.Counts(r.Ctx(), r.Org())
		v.More = max(0, counts.Waiting-len(staged))
		return err
	}
	return nil
}

func (p *Actions) lines(r *Request, w *words, states ...action.State) ([]views.InboxLine, error) {
	found, err := p.Reader.Actions(r.Ctx(), r.Org(), action.Filter{States: states, Limit: showOpen})
	return w.lines(found), err
}

func (p *Actions) history(r *Request) error {
	before, end := action.ID(r.QueryParam("before")), r.QueryParam("end")
	filter := action.Filter{States: closed, Before: before, Limit: showClosed + 1}
	if s := action.State(end); slices.Contains(closed, s) {
		filter.States, filter.Undecided = []action.State{s}, s == action.StateExpired
	} else {
		end = ""
	}
	found, err := p.Reader.Actions(r.Ctx(), r.Org(), filter)
	if err != nil {
		return err
	}
	v := views.HistoryView{Now: time.Now(), End: end}
	if v.Today, err = p.Reader.Ended(r.Ctx(), r.Org(), v.Now.UTC().Truncate(day)); err != nil {
		return err
	}
	if len(found) > showClosed {
		found = found[:showClosed]
		v.Pager.Next = v.Href(end) + "&before=" + string(found[showClosed-1].ID)
	}
	if before != "" {
		v.Pager.First = v.Href(end)
	}
	v.Lines = p.words(r).lines(found)
	v.Pager.Words = ui.Count(len(found), "action", "actions")
	return r.Show(http.StatusOK, views.HistoryPage(r.Frame("Closed actions", "inbox"), v))
}

// words makes the sentences of one request. Releases and names are read once each; what cannot be read costs an action its sentence,
// never the page: the tool's name stands instead.
type words struct {
	request  *Request
	releases ReleaseReader
	known    map[string]release.Release
	people   []people.Listed
	standing []action.Freeze
}

func (p *Actions) words(r *Request) *words {
	all, err := p.Directory.People(r.Ctx(), r.Org())
	if err != nil {
		answer.Log(r.Ctx(), answer.Of(err), r.Response().Header().Get("X-Request-Id"))
	}
	standing, err := p.Freezer.Freezes(r.Ctx(), r.Org())
	if err != nil {
		answer.Log(r.Ctx(), answer.Of(err), r.Response().Header().Get("X-Request-Id"))
	}
	return &words{request: r, releases: p.Releases, known: map[string]release.Release{}, people: all, standing: standing}
}

func (w *words) lines(found []action.Action) []views.InboxLine {
	out := make([]views.InboxLine, len(found))
	for i, a := range found {
		out[i] = w.line(a)
	}
	return out
}

func (w *words) line(a action.Action) views.InboxLine {
	l := views.InboxLine{Action: a, Behalf: w.name(a.OnBehalfOf, a.OnBehalfEmail)}
	_, l.Sentence = w.say(a)
	if f, on := action.Covering(w.standing, a.Profile, a.Connection); on && (a.State == action.StateStaged || a.State == action.StateApproved) {
		l.Frozen = &f
	}
	if refused := action.MayDecide(w.request.Person(), a); refused != nil {
		l.Why = refused.What
	} else if _, signed := a.SignedBy(w.request.Person().ID); signed && a.Missing() > 0 {
		l.Why = "You signed this. It waits for " + ui.Count(a.Missing(), "more signature", "more signatures") + "."
	}
	return l
}

// say takes the arguments apart and makes the sentence.
func (w *words) say(a action.Action) ([]wording.Argument, wording.Sentence) {
	arguments, err := wording.Arguments(a.Arguments)
	if err != nil {
		answer.Log(w.request.Ctx(), answer.Of(err), w.request.Response().Header().Get("X-Request-Id"))
	}
	reviewed, _ := w.policy(a)
	return arguments, wording.Say(reviewed, arguments, a.Tool, a.ConnectionName)
}

// name is a person's name, or their address where none is known.
func (w *words) name(id identity.PersonID, email string) string {
	for _, l := range w.people {
		if l.ID == id {
			return l.Display()
		}
	}
	return email
}
