package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/run"
	"countersign/views"
	"countersign/web/answer"
)

// Overview is the first page: what waits, what runs, what happened today.
type Overview struct {
	Actions     ActionReader
	Runs        RunList
	Connections ConnectionList
	Listings    ListingReader
}

// ActionReader lists actions; action.Reader implements it.
type ActionReader interface {
	Actions(ctx context.Context, org identity.OrgID, f action.Filter) ([]action.Action, error)
	Counts(ctx context.Context, org identity.OrgID) (action.Counts, error)
	Ended(ctx context.Context, org identity.OrgID, since time.Time) (action.Ended, error)
	LastEnded(ctx context.Context, org identity.OrgID, since time.Time, limit int) ([]action.Action, error)
}

// RunList lists runs; capability.Store implements it.
type RunList interface {
	Runs(ctx context.Context, org identity.OrgID, liveOnly bool, before run.ID, limit int) ([]run.Run, error)
}

// ListingReader reads what is listed now on every connection; installation.Reader has it.
type ListingReader interface {
	Listings(ctx context.Context, org identity.OrgID) (map[connector.Key][]installation.Observed, error)
}

// How many lines each part shows.
const (
	showWaiting = 8
	showRuns    = 20
	showToday   = 12
)

// Show is the page. Its parts are read side by side, each into fields of its own; one that cannot be read says so in its place, and the
// rest is shown.
func (o *Overview) Show(r *Request) error {
	v := views.OverviewView{Now: time.Now(), MayDecide: r.Person().May(identity.Decide), MayManage: r.Person().May(identity.Manage), Failed: map[string]string{}}
	parts := []struct {
		name string
		read func(*Request, *views.OverviewView) error
	}{{"waits", o.waiting}, {"waits", o.ailing}, {"runs", o.running}, {"today", o.today}}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() { errs[i] = p.read(r, &v) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			f := answer.Of(err)
			answer.Log(r.Ctx(), f, r.Response().Header().Get("X-Request-Id"))
			v.Failed[parts[i].name] = f.Error()
		}
	}
	return r.Show(http.StatusOK, views.OverviewPage(r.Frame("Overview", "overview"), v))
}

func (o *Overview) waiting(r *Request, v *views.OverviewView) (err error) {
	if v.Counts, err = o.Actions.Counts(r.Ctx(), r.Org()); err != nil {
		return err
	}
	staged := action.Filter{States: []action.State{action.StateStaged}, OldestDue: true, Limit: showWaiting}
	if v.Waiting, err = o.Actions.Actions(r.Ctx(), r.Org(), staged); err != nil {
		return err
	}
	uncertain := action.Filter{States: []action.State{action.StateUncertain}, Limit: showWaiting}
	v.Uncertain, err = o.Actions.Actions(r.Ctx(), r.Org(), uncertain)
	return err
}

// ailing finds connections that do not work, and those with something held back.
func (o *Overview) ailing(r *Request, v *views.OverviewView) error {
	all, err := o.Connections.Connections(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	listed, err := o.Listings.Listings(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.State == installation.Retired {
			continue
		}
		if c.State != installation.Active || (c.Health.TestedAt != nil && !c.Health.OK) {
			v.Ailing = append(v.Ailing, c)
			continue
		}
		if held := installation.HeldNames(c, listed[c.Key]); len(held) > 0 {
			v.Held = append(v.Held, views.HeldBack{Connection: c, Tools: held})
		}
	}
	return nil
}

func (o *Overview) running(r *Request, v *views.OverviewView) (err error) {
	v.Runs, err = o.Runs.Runs(r.Ctx(), r.Org(), true, "", showRuns)
	return err
}

// today lists what came to an end since midnight UTC.
func (o *Overview) today(r *Request, v *views.OverviewView) (err error) {
	midnight := v.Now.UTC().Truncate(day)
	if v.Ended, err = o.Actions.Ended(r.Ctx(), r.Org(), midnight); err != nil {
		return err
	}
	if v.Today, err = o.Actions.LastEnded(r.Ctx(), r.Org(), midnight, showToday+1); err != nil {
		return err
	}
	if v.TodayMore = len(v.Today) > showToday; v.TodayMore {
		v.Today = v.Today[:showToday]
	}
	return nil
}
