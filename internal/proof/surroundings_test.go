package proof

import (
	"context"
	"fmt"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
)

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
		mode = []policy.Mode{policy.AskUserOnWrite, policy.Autonomous, policy.AskUserOnWrite, policy.Autonomous, policy.AskUserOnWrite, policy.ReadOnly}[o.b%6]
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
		s.allow(m) // and the ledger of today forgets what is of yesterday now
	case "upstream changes":
		m.offered[o.b%tools]++
	case "profile":
		m.profile = []int{0, 0, 0, 0, 1, 2}[o.b%6]
		s.allow(m)
	case "asks":
		m.asks = []asks{{1, false}, {1, false}, {1, false}, {2, false}, {1, false}, {1, true}}[o.b%6]
		s.allow(m)
	case "limit":
		m.daily = []int{0, 0, 0, 3, 0, 5}[o.b%6]
		s.allow(m)
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
