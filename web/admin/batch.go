package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/answer"
)

// Batch is several actions of one tool on one connection that wait for the viewer, to be decided with one answer.
func (p *Actions) Batch(r *Request) error {
	return p.batch(r, http.StatusOK, r.QueryParam("connection"), r.QueryParam("tool"), views.BatchView{})
}

// ApproveBatch countersigns every ticked action or none, and asks for those that are approved to be sent soon.
func (p *Actions) ApproveBatch(r *Request) error {
	return p.together(r, p.Decider.ApproveAll, func(n, sent int) string {
		if sent < n {
			return "You signed " + ui.Count(n, "action", "actions") + "; " + ui.Grouped(n-sent) + " still wait for others. What is fully signed is sent once."
		}
		return "You approved " + ui.Count(n, "action", "actions") + ". Each is sent once, with the bytes you saw."
	})
}

// DenyBatch refuses every ticked action or none, with one reason that the agents read.
func (p *Actions) DenyBatch(r *Request) error {
	return p.together(r, p.Decider.DenyAll, func(n, _ int) string {
		return "You denied " + ui.Count(n, "action", "actions") + ". Nothing was sent."
	})
}

func (p *Actions) together(r *Request, decide func(context.Context, action.Batch) ([]action.Action, error), words func(n, sent int) string) error {
	b := action.Batch{Org: r.Org(), By: r.Person(), Members: members(r), Reason: r.Posted("reason")}
	all, err := decide(r.Ctx(), b)
	if err != nil {
		return p.batchRefused(r, err)
	}
	sent := 0
	for _, a := range all {
		if a.State == action.StateApproved {
			sent++
			p.wake(r, a)
		}
	}
	return r.Done(ui.OK, words(len(all), sent), "/actions")
}

// members are the ticks that were posted; one that no page makes names an action nobody has.
func members(r *Request) (out []action.Seen) {
	for _, m := range r.Values("member") {
		parts := strings.Split(m, " ")
		s := action.Seen{Action: action.ID(parts[0])}
		if len(parts) == 3 {
			s.Version, _ = strconv.Atoi(parts[1])
			s.ArgsDigest = parts[2]
		}
		out = append(out, s)
	}
	return out
}

// batchRefused shows the batch as it is now, what was typed, and which member stood in the way.
func (p *Actions) batchRefused(r *Request, err error) error {
	f, ok := fault.As(err)
	if !ok || (f.Kind != fault.Invalid && f.Kind != fault.Conflict && f.Kind != fault.Forbidden) {
		return err
	}
	v := views.BatchView{Form: views.DecisionForm{Reason: r.Posted("reason")}}
	if f.Field == "reason" {
		v.Form.Error = f.What + " Nothing was recorded."
	} else {
		v.Form.What, v.Form.Next = f.What, f.Next
	}
	var at *action.Stopped
	if errors.As(err, &at) {
		v.Stopped = at.Action
	}
	return p.batch(r, answer.Status(f), r.Posted("connection"), r.Posted("tool"), v)
}

func (p *Actions) batch(r *Request, status int, key, tool string, v views.BatchView) error {
	c, err := p.Connections.Connection(r.Ctx(), r.Org(), connector.Key(key))
	if err != nil {
		return err
	}
	staged, err := p.Reader.Actions(r.Ctx(), r.Org(), action.Filter{States: []action.State{action.StateStaged}, Connection: c.Key, Tool: tool, OldestDue: true, Limit: 200})
	if err != nil {
		return err
	}
	v.Connection, v.ConnectionName, v.Tool, v.Now, v.Viewer = key, c.Name, tool, time.Now(), r.Person().Display()
	w, ticked := p.words(r), members(r)
	for _, a := range staged {
		if action.MaySign(r.Person(), a) != nil {
			continue
		}
		if len(v.Members) == action.MostTogether {
			v.More++
			continue
		}
		m := views.BatchMember{Action: a, Behalf: w.name(a.OnBehalfOf, a.OnBehalfEmail)}
		m.Policy, _ = w.policy(a)
		if m.Arguments, m.Sentence = w.say(a); m.Arguments == nil {
			continue // what cannot be read in full is not decided on
		}
		if f, on := action.Covering(w.standing, a.Profile, a.Connection); on {
			m.Frozen = &f
		}
		m.Left = len(ticked) > 0 && !slices.ContainsFunc(ticked, func(s action.Seen) bool { return s.Action == a.ID })
		v.Members = append(v.Members, m)
	}
	return r.Show(status, views.BatchPage(r.Frame("Decide together", "inbox"), v))
}

// offers are the tools of which more than one call waits for the viewer.
func offers(lines []views.InboxLine) (out []views.BatchOffer) {
	for _, l := range lines {
		o := views.BatchOffer{Connection: l.Action.Connection.String(), ConnectionName: l.Action.ConnectionName, Tool: l.Action.Tool, Count: 1}
		i := slices.IndexFunc(out, func(x views.BatchOffer) bool { return x.Connection == o.Connection && x.Tool == o.Tool })
		if i < 0 {
			out = append(out, o)
			continue
		}
		out[i].Count++
	}
	return slices.DeleteFunc(out, func(o views.BatchOffer) bool { return o.Count < 2 })
}
