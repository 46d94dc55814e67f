package action

import "slices"

// State is where an action stands.
type State string

// The states.
const (
	StateStaged        State = "staged"
	StateApproved      State = "approved"
	StateExecuting     State = "executing"
	StateSucceeded     State = "succeeded"
	StateFailed        State = "failed"
	StateUncertain     State = "uncertain"
	StateDenied        State = "denied"
	StateExpired       State = "expired"
	StateCancelled     State = "cancelled"
	StateClosedUnknown State = "closed_unknown"
)

// States lists every state, in the order of a life.
var States = []State{StateStaged, StateApproved, StateExecuting, StateSucceeded, StateFailed, StateUncertain, StateDenied, StateExpired, StateCancelled, StateClosedUnknown}

// transitions is the whole table. The database holds the same one in a trigger; a test compares them.
var transitions = map[State][]State{
	"":             {StateStaged, StateApproved},
	StateStaged:    {StateApproved, StateDenied, StateExpired, StateCancelled},
	StateApproved:  {StateExecuting, StateExpired, StateCancelled},
	StateExecuting: {StateSucceeded, StateFailed, StateUncertain},
	StateUncertain: {StateSucceeded, StateFailed, StateClosedUnknown},
}

// May reports whether the table has an edge.
func (s State) May(to State) bool { return slices.Contains(transitions[s], to) }

// Terminal reports whether nothing can follow.
func (s State) Terminal() bool { return s != "" && len(transitions[s]) == 0 }

// Resolution says how an executed action reached its end.
type Resolution string

// The resolutions.
const (
	Direct       Resolution = "direct"        // the provider's own answer to the dispatch
	LateEvidence Resolution = "late_evidence" // its answer, after the lease had ended
	Reconciler   Resolution = "reconciler"    // a probe found out
	ByPerson     Resolution = "person"        // somebody decided on the evidence
)
