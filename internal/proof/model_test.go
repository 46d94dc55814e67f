package proof

import (
	"cmp"
	"slices"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/policy"
)

// model is the lifecycle on a page: the transition table and its guards, without a database. Each method is one operation; it answers the
// code of the refusal, empty when there is none, and moves what the operation moves. One connection, two tools, several runs.
type model struct {
	acts       []*modelAction
	runs       []*modelRun
	connection string // active, needs_consent, disconnected, retired
	mode       policy.Mode
	offered    [tools]int // what the upstream offers now, as the number of its definition
	pinned     [tools]int // what was granted; 0 is not at all
	profile    int        // 0 allows everything, 1 reads only, 2 is cut off the connection
	frozen     [2]bool    // the connection's and the profile's kill switch
	asks       asks       // of whoever decides on what is staged from now on
	daily      int        // consequential actions of the profile here in a day; 0 is no limit
}

type modelRun struct {
	ended  bool
	used   int
	mode   policy.Mode // how freely it may act, minted with it: a connection that acts more freely later does not make it
	minted [tools]int
}

// asks is whose signatures a profile wants: how many, and whether those of a group.
type asks struct {
	signatures int
	group      bool
}

type modelAction struct {
	state                   action.State
	version                 int
	run, tool, args         int
	definition              int
	key                     string
	held                    bool // counts in its run's budget
	dispatched              bool
	asks                    asks
	signed                  []person
	aged                    int  // days ago it was asked for
	late, leaseOver, settle bool // by the clock: past its expiry, past its lease, past its settle window
}

const (
	tools  = 2
	budget = 6 // of each run
)

func (a *modelAction) waits() bool {
	return a.state == action.StateStaged || a.state == action.StateApproved
}

// to moves an action; what was never sent gives its place in the budget back.
func (m *model) to(a *modelAction, s action.State, unsent bool) {
	a.state, a.version = s, a.version+1
	unsent = unsent || s == action.StateDenied || s == action.StateExpired || s == action.StateCancelled
	if unsent && a.held {
		a.held, m.runs[a.run].used = false, m.runs[a.run].used-1
	}
	if s == action.StateUncertain {
		a.settle = false
	}
}

// stop cancels what waits, or finds that its time has passed.
func (m *model) stop(a *modelAction) (expired bool) {
	if a.late {
		m.to(a, action.StateExpired, false)
		return true
	}
	m.to(a, action.StateCancelled, false)
	return false
}

// present is what a worker found out about the outside before it claims.
type present struct {
	unknown, changed, moved, outside bool
}

// freely is the mode of the connection for a run.
func (m *model) freely(r int) policy.Mode { return m.mode.Within(m.runs[r].mode) }

// fences are the seven, in their order.
func (m *model) fences(at action.Point, a *modelAction, conflict bool, p present) fault.Code {
	r := m.runs[a.run]
	switch {
	case at == action.AtStage && r.ended:
		return fault.TaskEnded
	case m.profile != 0:
		return fault.ProfileForbids
	case p.outside:
		return fault.OutsideResource
	case m.connection == "needs_consent":
		return fault.NeedsConsent
	case m.connection != "active":
		return fault.ConnectionUnavailable
	case m.freely(a.run) == policy.ReadOnly:
		return fault.ReadOnlyConnection
	case m.pinned[a.tool] == 0 || r.minted[a.tool] == 0 || m.freely(a.run).Access() != policy.AccessFull:
		return fault.ToolNotGranted
	case a.definition != m.pinned[a.tool] || a.definition != r.minted[a.tool] || p.changed || p.moved:
		return fault.DefinitionChanged
	case conflict:
		return fault.IdempotencyConflict
	case !a.held && (r.used >= budget || m.daily > 0 && m.today() >= m.daily):
		return fault.BudgetExceeded
	case slices.ContainsFunc(m.acts, func(o *modelAction) bool {
		return o != a && o.state == action.StateUncertain && o.tool == a.tool && o.args == a.args
	}):
		return fault.UncertainPending
	}
	return ""
}

func (m *model) stage(a modelAction, retryOf int) fault.Code {
	conflict := false
	for _, o := range m.acts {
		if o.run == a.run && o.key == a.key {
			if o.tool == a.tool && o.args == a.args {
				return "" // the same call again is the same action
			}
			conflict = true
		}
	}
	if m.stopped() {
		return fault.Frozen
	}
	ask := false
	if retryOf >= 0 {
		before := m.acts[retryOf]
		switch {
		case before.run != a.run:
			return fault.CodeNotFound
		case !before.state.Terminal() && !(before.waits() && before.late):
			return fault.CodeConflict
		}
		ask = before.state == action.StateClosedUnknown
	}
	if code := m.fences(action.AtStage, &a, conflict, present{}); code != "" {
		return code
	}
	a.state, a.version, a.held, a.asks = action.StateStaged, 1, true, m.asks
	if m.freely(a.run) == policy.Autonomous && !ask && m.asks == (asks{signatures: 1}) {
		a.state = action.StateApproved
	}
	m.runs[a.run].used++
	m.acts = append(m.acts, &a)
	return ""
}

// today counts what the day's limit counts: whatever holds a place and was asked for today.
func (m *model) today() (n int) {
	for _, a := range m.acts {
		if a.held && a.aged == 0 {
			n++
		}
	}
	return n
}

// seen is what a person's form carried; wrong means another digest or version than the row's.
type seen struct {
	who    person
	wrong  bool
	reason bool
}

// mayDecide: the role, the same organization, the group that is asked, and neither the person behind the run nor the owner of its token.
func mayDecide(p person, a *modelAction) fault.Code {
	switch {
	case p == stranger:
		return fault.CodeNotFound
	case p == admin, p == asker, p == owner, a.asks.group && p != approver2:
		return fault.CodeForbidden
	}
	return ""
}

// decide is a person's yes or no to what is staged.
func (m *model) decide(a *modelAction, s seen, yes bool) fault.Code {
	if !yes && !s.reason {
		return fault.CodeInvalid
	}
	if code := mayDecide(s.who, a); code != "" {
		return code
	}
	switch {
	case a.state != action.StateStaged:
		return fault.CodeStale
	case a.late:
		m.to(a, action.StateExpired, false)
		return fault.CodeStale
	case s.wrong:
		return fault.CodeStale
	case !yes:
		m.to(a, action.StateDenied, false)
		return ""
	case slices.Contains(a.signed, s.who):
		return fault.CodeConflict
	}
	if m.stopped() {
		return fault.Frozen
	}
	if code := m.fences(action.AtApproval, a, false, present{}); code != "" {
		return code
	}
	if a.signed = append(a.signed, s.who); len(a.signed) >= a.asks.signatures {
		m.to(a, action.StateApproved, false)
	}
	return ""
}

// together decides on all or on none, the oldest first.
func (m *model) together(list []int, s seen, yes bool) fault.Code {
	tried := m.clone()
	slices.SortFunc(list, func(i, j int) int { return cmp.Or(m.acts[j].aged-m.acts[i].aged, i-j) })
	switch {
	case !yes && !s.reason:
		return fault.CodeInvalid
	case s.who == stranger:
		return fault.CodeNotFound
	case slices.ContainsFunc(list, func(i int) bool { return m.acts[i].tool != m.acts[list[0]].tool }):
		return fault.CodeInvalid
	}
	for _, i := range list {
		if code := tried.decide(tried.acts[i], s, yes); code != "" {
			return code
		}
	}
	*m = *tried
	return ""
}

func (m *model) cancel(a *modelAction, s seen) fault.Code {
	switch {
	case s.who == stranger:
		return fault.CodeNotFound
	case s.who != admin && s.who != owner:
		return fault.CodeForbidden
	case !a.waits() || s.wrong || m.stop(a):
		return fault.CodeStale
	}
	return ""
}

func (m *model) takeBack(a *modelAction, another bool) fault.Code {
	switch {
	case another:
		return fault.CodeNotFound
	case a.state == action.StateCancelled:
		return ""
	case !a.waits() || m.stop(a):
		return fault.CodeStale
	}
	return ""
}

func (m *model) claim(a *modelAction, p present) fault.Code {
	switch {
	case a.state != action.StateApproved:
		return fault.CodeConflict
	case a.late:
		m.to(a, action.StateExpired, false)
		return fault.CodeConflict
	case m.stopped():
		return fault.Frozen
	case p.unknown:
		return fault.ConnectionUnavailable
	}
	code := m.fences(action.AtClaim, a, false, p)
	switch {
	case code == "":
		m.to(a, action.StateExecuting, false)
		a.dispatched = true
	case m.connection == "retired" || (code != fault.ConnectionUnavailable && code != fault.NeedsConsent):
		m.to(a, action.StateCancelled, false) // refused for good
	}
	return code
}

// complete is a worker's report. After the lease it is late evidence, and another worker's is nothing.
func (m *model) complete(a *modelAction, to action.State, unsent, anothers bool) fault.Code {
	if !a.dispatched || anothers {
		return fault.CodeConflict
	}
	if a.state == action.StateExecuting {
		if !a.leaseOver || to == action.StateUncertain {
			m.to(a, to, unsent)
			return ""
		}
		m.to(a, action.StateUncertain, false)
	}
	if a.state == action.StateUncertain && to != action.StateUncertain {
		m.to(a, to, unsent)
	}
	return ""
}

// answer ends an uncertain action: by a probe, or by a person.
func (m *model) answer(a *modelAction, to action.State, stale, forEver bool) fault.Code {
	switch {
	case a.state != action.StateUncertain || stale:
		return fault.CodeStale
	case to == action.StateFailed && !a.settle && !forEver:
		return fault.CodeConflict // it may still be applied
	}
	m.to(a, to, false)
	return ""
}

// stopUnless cancels every waiting action that keep does not keep.
func (m *model) stopUnless(keep func(*modelAction) bool) {
	for _, a := range m.acts {
		if a.waits() && !keep(a) {
			m.stop(a)
		}
	}
}

// stand is an admin's change of what the connection allows.
func (m *model) stand(mode policy.Mode, pinned [tools]int) fault.Code {
	if m.connection == "retired" {
		return fault.CodeConflict
	}
	m.mode, m.pinned = mode, pinned
	m.stopUnless(func(a *modelAction) bool { return a.definition == pinned[a.tool] && mode != policy.ReadOnly })
	return ""
}

func (m *model) end(to string) fault.Code {
	if m.connection == "retired" {
		return fault.CodeConflict
	}
	m.connection = to
	m.stopUnless(func(*modelAction) bool { return false })
	return ""
}

func (m *model) endRun(r int) {
	if m.runs[r].ended {
		return
	}
	m.runs[r].ended = true
	m.stopUnless(func(a *modelAction) bool { return a.run != r || a.state != action.StateStaged })
}

// sweep is what passing time does by itself.
func (m *model) sweep(leases bool) {
	for _, a := range m.acts {
		switch {
		case !leases && a.waits() && a.late:
			m.to(a, action.StateExpired, false)
		case leases && a.state == action.StateExecuting && a.leaseOver:
			m.to(a, action.StateUncertain, false)
		}
	}
}

// stopped reports whether a kill switch is on: then nothing is staged, approved or claimed.
func (m *model) stopped() bool { return m.frozen[0] || m.frozen[1] }

// pass lets a day and an hour go by: for one action alone, or under a freeze for all, with the clock of what waits standing still.
func (m *model) pass(one *modelAction) {
	for _, a := range m.acts {
		if a == one || m.stopped() {
			a.late, a.aged = a.late || !m.stopped(), a.aged+1
			a.leaseOver, a.settle = a.dispatched, a.state == action.StateUncertain
		}
	}
}

func (m *model) clone() *model {
	c := *m
	c.acts, c.runs = nil, nil
	for _, a := range m.acts {
		copied := *a
		copied.signed = slices.Clone(a.signed)
		c.acts = append(c.acts, &copied)
	}
	for _, r := range m.runs {
		copied := *r
		c.runs = append(c.runs, &copied)
	}
	return &c
}
