package admin

import (
	"context"
	"sync"
	"time"

	"countersign/internal/action"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/views/layout"
	"countersign/web/answer"
	"countersign/web/session"
)

// Navigation counts what stands beside the entries of the navigation. What cannot be counted is left out: a page must not fail for its
// margin.
type Navigation struct {
	Actions     ActionReader
	Runs        RunList
	Connections ConnectionList
	Listings    ListingReader
	Freezer     FreezeReader

	mu      sync.Mutex
	reviews map[identity.OrgID]counted
}

type counted struct {
	n  int
	at time.Time
}

// countMost is where counting what waits for somebody stops: more than fits a badge.
const countMost = 99

// reviewsFor is how old the count of held-back tools may be; it reads a row a tool.
const reviewsFor = 5 * time.Second

// Viewer is who is signed in and what waits for them.
func (n *Navigation) Viewer(ctx context.Context, s session.Session) layout.Viewer {
	p := s.Person
	v := layout.Viewer{
		Name: p.Name, Email: p.Email, OrgName: s.Org.Name, Roles: RoleWords(p.Roles),
		MayManage: p.May(identity.Manage), MayAudit: p.May(identity.ReadAudit), MayDecide: p.May(identity.Decide),
	}
	note := func(err error) {
		if err != nil {
			answer.Log(ctx, answer.Of(err), "navigation")
		}
	}
	if v.MayDecide {
		waiting, err := n.Actions.Actions(ctx, s.Org.ID, action.Filter{States: []action.State{action.StateStaged}, OldestDue: true, Limit: countMost})
		note(err)
		for _, a := range waiting {
			if action.MaySign(p, a) == nil {
				v.InboxWaiting++
			}
		}
	}
	var err error
	v.Freezes, err = n.Freezer.Freezes(ctx, s.Org.ID)
	note(err)
	runs, err := n.Runs.Runs(ctx, s.Org.ID, true, "", countMost)
	note(err)
	v.RunsLive = len(runs)
	if v.MayManage {
		v.NeedsReview, err = n.needReview(ctx, s.Org.ID)
		note(err)
	}
	return v
}

// needReview counts the connections with something held back.
func (n *Navigation) needReview(ctx context.Context, org identity.OrgID) (int, error) {
	n.mu.Lock()
	c, ok := n.reviews[org]
	n.mu.Unlock()
	if ok && time.Since(c.at) < reviewsFor {
		return c.n, nil
	}
	all, err := n.Connections.Connections(ctx, org)
	if err != nil {
		return 0, err
	}
	listed, err := n.Listings.Listings(ctx, org)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, one := range all {
		if one.State != installation.Active {
			continue
		}
		if len(installation.HeldNames(one, listed[one.Key])) > 0 {
			total++
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reviews == nil {
		n.reviews = map[identity.OrgID]counted{}
	}
	n.reviews[org] = counted{total, time.Now()}
	return total, nil
}
