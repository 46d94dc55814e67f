package proof

import (
	"context"
	"fmt"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/run"
)

// step is an operation made concrete: what the model says, and what the stores do.
type step struct {
	predict func(*model) fault.Code
	perform func() error
	alone   bool // two who do it at once are not foreseen
	always  bool // it writes a row of the trail also where nothing of the model moves
	tries   bool // it may write what it takes back when it refuses
}

// step makes an operation concrete, unless there is nothing to do it to.
func (s *stores) step(m *model, o operation) (step, bool) {
	if st, ok := s.settings(m, o); ok {
		return st, true
	}
	if o.do == "stage" || o.do == "retry" {
		return s.staging(m, o)
	}
	if len(m.acts) == 0 {
		return step{}, false
	}
	i, fits := m.aim(o)
	if !fits && o.d%5 != 0 {
		return s.staging(m, operation{do: "stage", a: o.a, b: o.b, c: o.c, d: o.d}) // nothing to do it to: then there is something soon
	}
	if st, ok := s.decisions(i, o); ok {
		return st, true
	}
	return s.sending(i, o)
}

func (s *stores) staging(m *model, o operation) (step, bool) {
	retryOf := -1
	if o.do == "retry" {
		if len(m.acts) == 0 {
			return step{}, false
		}
		retryOf = len(m.acts) - 1 - o.a%len(m.acts)
	}
	a := modelAction{run: len(m.runs) - 1 - (o.a/2)%len(m.runs), tool: o.b % tools, args: o.c % 3}
	a.definition = m.offered[a.tool]
	l := s.live[a.run]
	p := action.Proposal{
		Org: home, Run: l.Run.ID, Connection: s.key, Tool: toolName(a.tool), Definition: digestOf(a.definition), Arguments: fmt.Appendf(nil, `{"name":"%d"}`, a.args),
		Destination: address, Justification: "because",
	}
	p.Key = action.DerivedKey(p.Run, p.Connection, p.Tool, p.Arguments)
	if o.d < 6 || retryOf >= 0 {
		p.Key, p.ExplicitKey = fmt.Sprintf("key-%d", o.d%3), true
	}
	if retryOf >= 0 {
		p.RetryOf, p.Key = s.ids[retryOf], fmt.Sprintf("again-%d", o.d)
	}
	p.ArgsDigest, a.key = action.Digest(p.Connection, p.Tool, p.Definition, p.Destination, p.Arguments), p.Key
	return step{
		predict: func(m *model) fault.Code { return m.stage(a, retryOf) },
		perform: func() error {
			got, created, err := s.actions.Stage(context.Background(), p)
			if created {
				s.mu.Lock()
				s.ids = append(s.ids, got.ID)
				s.mu.Unlock()
			}
			return err
		},
	}, true
}

func (s *stores) decisions(i int, o operation) (step, bool) {
	id := s.ids[i]
	who := person(o.c / 2 % 2) // most of the time one of the two who may
	if o.b < 2*int(people) {
		who = person(o.b % int(people))
	}
	form := seen{who: who, wrong: o.c < 3, reason: o.d != 0}
	d := func(id action.ID) (action.Decision, error) {
		a, err := s.actions.Action(context.Background(), home, id)
		d := action.Decision{Org: s.people[who].Org, Action: id, By: s.people[who], ArgsDigest: a.ArgsDigest, Version: a.Version}
		if form.reason {
			d.Reason = "seen"
		}
		if form.wrong {
			d.Version += o.c%2*2 - 1
			if o.c == 2 {
				d.Version, d.ArgsDigest = a.Version, action.Digest(s.key, "another", "", "", nil)
			}
		}
		return d, err
	}
	// The form is read before anybody acts, so that two who act at once have both seen the same.
	read, readErr := d(id)
	did := func(f func(context.Context, action.Decision) (action.Action, error)) func() error {
		return func() error {
			if readErr != nil {
				return readErr
			}
			_, err := f(context.Background(), read)
			return err
		}
	}
	switch o.do {
	case "approve":
		return step{predict: func(m *model) fault.Code { return m.decide(m.acts[i], form, true) }, perform: did(s.actions.Approve)}, true
	case "together":
		return s.together(i, form, o, d)
	case "deny":
		return step{predict: func(m *model) fault.Code { return m.decide(m.acts[i], form, false) }, perform: did(s.actions.Deny)}, true
	case "cancel":
		return step{predict: func(m *model) fault.Code { return m.cancel(m.acts[i], form) }, perform: did(s.actions.Cancel)}, true
	case "settle":
		answer := []action.Answer{action.Applied, action.NotApplied, action.Unknown}[o.c/4%3]
		to := map[action.Answer]action.State{action.Applied: action.StateSucceeded, action.NotApplied: action.StateFailed, action.Unknown: action.StateClosedUnknown}[answer]
		settle := func(ctx context.Context, d action.Decision) (action.Action, error) {
			return s.actions.Settle(ctx, action.Settlement{Decision: d, Answer: answer})
		}
		return step{predict: func(m *model) fault.Code {
			if !form.reason {
				return fault.CodeInvalid
			}
			if code := mayDecide(who, m.acts[i]); code != "" {
				return code
			}
			return m.answer(m.acts[i], to, form.wrong, false)
		}, perform: did(settle)}, true
	}
	return step{}, false
}

// together is one answer about two actions.
func (s *stores) together(i int, form seen, o operation, read func(action.ID) (action.Decision, error)) (step, bool) {
	if len(s.ids) < 2 {
		return step{}, false
	}
	list, yes := []int{i, (i + 1 + o.b%(len(s.ids)-1)) % len(s.ids)}, o.d%3 != 0
	var b action.Batch
	for _, i := range list {
		d, err := read(s.ids[i])
		must(s.t, err)
		b.Org, b.By, b.Reason = d.Org, d.By, d.Reason
		b.Members = append(b.Members, action.Seen{Action: d.Action, ArgsDigest: d.ArgsDigest, Version: d.Version})
	}
	return step{tries: true, predict: func(m *model) fault.Code { return m.together(list, form, yes) }, perform: func() (err error) {
		if yes {
			_, err = s.actions.ApproveAll(context.Background(), b)
		} else {
			_, err = s.actions.DenyAll(context.Background(), b)
		}
		return err
	}}, true
}

func (s *stores) sending(i int, o operation) (step, bool) {
	id, ctx := s.ids[i], context.Background()
	switch o.do {
	case "take back":
		r := s.runOf(id)
		another := o.b == 0
		if another {
			r = "run_another"
		}
		return step{predict: func(m *model) fault.Code { return m.takeBack(m.acts[i], another) }, perform: func() error {
			_, err := s.actions.CancelByRun(ctx, home, r, id)
			return err
		}}, true
	case "claim":
		return s.claiming(i, o), true
	case "complete":
		return s.completing(i, o), true
	case "reconcile":
		found, stale, forEver := o.b%2 == 0, o.c < 3, o.d < 6
		to := action.StateFailed
		if found {
			to = action.StateSucceeded
		}
		a, err := s.actions.Action(ctx, home, id)
		version := a.Version
		if stale {
			version--
		}
		return step{predict: func(m *model) fault.Code { return m.answer(m.acts[i], to, stale, forEver) }, perform: func() error {
			if err != nil {
				return err
			}
			_, err := s.actions.Reconcile(ctx, home, id, version, action.Probed{Found: found, Conclusive: forEver, Sentence: "Looked."})
			return err
		}}, true
	}
	return step{}, false
}

func (s *stores) claiming(i int, o operation) step {
	id := s.ids[i]
	p := present{unknown: o.b == 0, changed: o.b == 1, moved: o.b == 2, outside: o.b == 3}
	a, readErr := s.actions.Action(context.Background(), home, id)
	definition, destination, outside := a.Definition, address, ""
	switch {
	case p.unknown:
		definition = ""
	case p.changed:
		definition = "changed"
	case p.moved:
		destination = "https://elsewhere.example.com/mcp"
	case p.outside:
		outside = "It is outside."
	}
	return step{predict: func(m *model) fault.Code { return m.claim(m.acts[i], p) }, perform: func() error {
		if readErr != nil {
			return readErr
		}
		d, err := s.actions.Claim(context.Background(), home, id, action.Ready{Definition: definition, Destination: destination, OutsideResource: outside})
		if err == nil {
			s.mu.Lock()
			s.claims[id] = d
			s.mu.Unlock()
		}
		return err
	}}
}

func (s *stores) completing(i int, o operation) step {
	id, anothers := s.ids[i], o.b < 4
	d := s.claims[id]
	d.Action.ID, d.Action.Org = id, home
	if anothers {
		d.Fence += 1000
	}
	to, outcome := action.StateUncertain, action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{BytesWritten: 9})
	unsent := false
	switch o.c % 5 {
	case 0, 1:
		to, outcome = action.StateSucceeded, action.Succeeded([]byte(`{"content":[]}`), action.Evidence{BytesWritten: 9, Status: 200, Complete: true})
	case 2:
		unsent = o.d%2 == 0
		e := action.Evidence{}
		if !unsent {
			e = action.Evidence{BytesWritten: 9, Status: 422}
		}
		to, outcome = action.StateFailed, action.Failed(fault.UpstreamError, "Refused.", e)
	}
	return step{predict: func(m *model) fault.Code { return m.complete(m.acts[i], to, unsent, anothers) }, perform: func() error {
		_, err := s.actions.Complete(context.Background(), d, outcome)
		return err
	}}
}

func (s *stores) runOf(id action.ID) (r run.ID) {
	must(s.t, s.owner.QueryRow(context.Background(), `SELECT run_id FROM actions WHERE id = $1`, id).Scan(&r))
	return r
}
