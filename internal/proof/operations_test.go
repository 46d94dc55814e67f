package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// operation is one thing that somebody does. The numbers choose among what is there, counted from the newest, so that any sequence means
// something whatever was left out of it.
type operation struct {
	do         string
	a, b, c, d int
	trouble    string // "", twice: two do it at the same moment, full: the disk is
}

func (o operation) String() string {
	return fmt.Sprintf("%s(%d, %d, %d, %d) %s", o.do, o.a, o.b, o.c, o.d, o.trouble)
}

// weights is how often an operation is chosen; those in the middle of a life more often than those that end everything.
var weights = []struct {
	do     string
	weight int
}{
	{"stage", 20},
	{"retry", 3},
	{"approve", 16},
	{"deny", 4},
	{"cancel", 3},
	{"take back", 3},
	{"claim", 16},
	{"complete", 18},
	{"reconcile", 6},
	{"settle", 6},
	{"time passes", 5},
	{"expiry sweep", 2},
	{"lease sweep", 3},
	{"mode", 1},
	{"grant", 1},
	{"upstream changes", 1},
	{"accept", 2},
	{"disconnect", 1},
	{"retire", 1},
	{"consent", 1},
	{"reconnect", 5},
	{"profile", 1},
	{"freeze", 1},
	{"lift", 4},
	{"end run", 1},
	{"run", 4},
}

func randomOperations(r *rand.Rand, n int) []operation {
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	out := make([]operation, n)
	for i := range out {
		at := r.IntN(total)
		for _, w := range weights {
			if at -= w.weight; at < 0 {
				out[i].do = w.do
				break
			}
		}
		if out[i].do == "retire" && i < n/2 {
			out[i].do = "run" // what can never be undone comes late
		}
		out[i].a, out[i].b, out[i].c, out[i].d = r.IntN(8)*r.IntN(2), r.IntN(24), r.IntN(24), r.IntN(24)
		if i > 0 && r.IntN(3) == 0 {
			out[i].a = 0 // the newest, which most often is at the point where it matters
		}
		switch r.IntN(10) {
		case 0:
			out[i].trouble = "full"
		case 1, 2:
			out[i].trouble = "twice"
		}
	}
	return out
}

// step is an operation made concrete: what the model says, and what the stores do.
type step struct {
	predict func(*model) fault.Code
	perform func() error
	alone   bool // two who do it at once are not foreseen
	always  bool // it writes a row of the trail also where nothing of the model moves
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

// matters names the states in which an operation has something to do.
var matters = map[string][]action.State{
	"approve": {action.StateStaged}, "deny": {action.StateStaged}, "cancel": {action.StateStaged, action.StateApproved}, "take back": {action.StateStaged, action.StateApproved},
	"claim": {action.StateApproved}, "complete": {action.StateExecuting, action.StateUncertain}, "reconcile": {action.StateUncertain}, "settle": {action.StateUncertain},
}

// aim chooses the action of an operation: most of the time one it matters to, else any. Fits says whether there is one it matters to.
func (m *model) aim(o operation) (i int, fits bool) {
	var fit []int
	for i, a := range m.acts {
		if slices.Contains(matters[o.do], a.state) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 || o.d%5 == 0 {
		return len(m.acts) - 1 - o.a%len(m.acts), len(fit) > 0
	}
	return fit[len(fit)-1-o.a%len(fit)], true
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
	who := approver // most of the time somebody who may
	if o.b < 2*int(people) {
		who = person(o.b % int(people))
	}
	form := seen{who: who, wrong: o.c < 3, reason: o.d != 0}
	d := func() (action.Decision, error) {
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
	read, readErr := d()
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
			if code := mayDecide(who); code != "" {
				return code
			}
			return m.answer(m.acts[i], to, form.wrong, false)
		}, perform: did(settle)}, true
	}
	return step{}, false
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
		d, err := s.actions.Claim(context.Background(), home, id, definition, destination, outside)
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
		_, err := s.actions.Complete(context.Background(), d, outcome, action.SettleRule{})
		return err
	}}
}

func (s *stores) runOf(id action.ID) (r run.ID) {
	must(s.t, s.owner.QueryRow(context.Background(), `SELECT run_id FROM actions WHERE id = $1`, id).Scan(&r))
	return r
}

// settings are the operations that are about no one action.
func (s *stores) settings(m *model, o operation) (step, bool) {
	ok := func(f func(*model)) func(*model) fault.Code { return func(m *model) fault.Code { f(m); return "" } }
	sweep := func(f func(context.Context) (int, error)) func() error {
		return func() error { _, err := f(context.Background()); return err }
	}
	pinned, mode := m.pinned, m.mode
	switch o.do {
	case "expiry sweep":
		return step{predict: ok(func(m *model) { m.sweep(false) }), perform: sweep(s.actions.ExpireDue)}, true
	case "lease sweep":
		return step{predict: ok(func(m *model) { m.sweep(true) }), perform: sweep(s.actions.LeasesEnded)}, true
	case "mode":
		mode = []policy.Mode{policy.AskUserOnWrite, policy.AskUserOnWrite, policy.Autonomous, policy.ReadOnly}[o.b%4]
	case "grant":
		pinned = [tools][tools]int{{m.offered[0], 0}, {m.offered[0], m.offered[1]}}[o.b%2]
	case "accept":
		pinned = m.offered
	case "freeze", "lift":
		return s.pressing(o), true
	case "disconnect", "retire":
		state := map[string]installation.State{"disconnect": installation.Disconnected, "retire": installation.Retired}[o.do]
		return step{alone: true, always: true, predict: func(m *model) fault.Code { return m.end(string(state)) }, perform: func() error { return s.end(state) }}, true
	case "reconnect":
		return step{alone: true, always: true, predict: func(m *model) fault.Code {
			if m.connection == "retired" {
				return fault.CodeConflict
			}
			m.connection = "active"
			return ""
		}, perform: s.reconnect}, true
	case "end run":
		r := len(m.runs) - 1 - o.a%len(m.runs)
		return step{predict: ok(func(m *model) { m.endRun(r) }), perform: func() error { return s.endRun(r) }}, true
	default:
		return step{}, false
	}
	return step{alone: true, always: true, predict: func(m *model) fault.Code { return m.stand(mode, pinned) }, perform: func() error { return s.stand(mode, pinned) }}, true
}

// pressing is a hand on one of the two kill switches. Pressing one that is on already changes nothing.
func (s *stores) pressing(o operation) step {
	at, on := o.c%2, o.do == "freeze"
	who := admin
	if o.b < int(people) {
		who = person(o.b)
	}
	sw := []action.Switch{{Scope: action.ScopeConnection, Key: s.key.String()}, {Scope: action.ScopeProfile, Key: s.profile}}[at]
	return step{alone: true, predict: func(m *model) fault.Code {
		switch {
		case who != admin && who != owner:
			return fault.CodeForbidden
		case !on && !m.frozen[at], on && at == 0 && m.connection == "retired":
			return fault.CodeNotFound
		}
		m.frozen[at] = on
		return ""
	}, perform: func() error {
		p := action.Press{Org: home, By: s.people[who], Switch: sw, Reason: "stop"}
		if on {
			_, err := s.actions.Freeze(context.Background(), p)
			return err
		}
		standing, err := s.actions.Freezes(context.Background(), home)
		if err != nil {
			return err
		}
		f, _ := sw.On(standing)
		p.Freeze = f.ID
		_, err = s.actions.Lift(context.Background(), p)
		return err
	}}
}

// surroundings are operations only change the surroundings; they always succeed.
func (s *stores) surroundings(m *model, o operation) bool {
	switch o.do {
	case "time passes":
		if len(m.acts) == 0 {
			return true
		}
		i := len(m.acts) - 1 - o.a%len(m.acts)
		if m.stopped() {
			s.ages(s.ids...)
		} else {
			s.ages(s.ids[i])
		}
		m.pass(m.acts[i])
	case "upstream changes":
		m.offered[o.b%tools]++
	case "profile":
		m.profile = []int{0, 0, 0, 0, 1, 2}[o.b%6]
		s.allow(m.profile)
	case "consent":
		s.sql(s.t, `UPDATE connections SET state = 'needs_consent', version = version + 1 WHERE org_id = $1 AND key = $2 AND state = 'active'`, home, s.key)
		if m.connection == "active" {
			m.connection = "needs_consent"
		}
	case "run":
		s.startRun(m)
	default:
		return false
	}
	return true
}

// startRun starts a run; what is minted into it is no part of an action's life and is taken from the database.
func (s *stores) startRun(m *model) {
	l, err := s.mint()
	must(s.t, err)
	s.live = append(s.live, l)
	r := &modelRun{}
	_ = s.owner.QueryRow(context.Background(), `SELECT mode FROM run_connections WHERE run_id = $1`, l.Run.ID).Scan(&r.mode) // none where the profile left it out
	for tool := range tools {
		var digest string
		if s.owner.QueryRow(context.Background(), `SELECT digest FROM run_grants WHERE run_id = $1 AND tool = $2`, l.Run.ID, toolName(tool)).Scan(&digest) == nil {
			_, _ = fmt.Sscanf(digest, "definition-%d", &r.minted[tool])
		}
	}
	m.runs = append(m.runs, r)
}
