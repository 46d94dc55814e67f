package scene

import (
	"time"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/identity"
	"countersign/internal/installation"
)

// Proposal is a call of a granted tool as the gateway stages it.
func (s *Scene) Proposal(l capability.Live, c installation.Connection, tool, arguments string) action.Proposal {
	s.T.Helper()
	canonical, err := action.Arguments([]byte(arguments))
	s.Must(err)
	pin, granted := c.Standing.Snapshot.Find(tool)
	if !granted {
		s.T.Fatalf("%s is not granted on %s", tool, c.Key)
	}
	return action.Proposal{
		Org: c.Org, Run: l.Run.ID, Connection: c.Key, Tool: tool, Definition: pin.Digest, Arguments: canonical, Destination: c.Destination,
		ArgsDigest: action.Digest(c.Key, tool, pin.Digest, c.Destination, canonical), Key: action.DerivedKey(l.Run.ID, c.Key, tool, canonical),
	}
}

// Stage asks for what nobody asked for before.
func (s *Scene) Stage(p action.Proposal) action.Action {
	s.T.Helper()
	a, created, err := s.Actions.Stage(s.T.Context(), p)
	if err != nil || !created {
		s.T.Fatalf("not staged: created %t, %v", created, err)
	}
	return a
}

// Action reads an action of Org.
func (s *Scene) Action(id action.ID) action.Action {
	s.T.Helper()
	a, err := s.Actions.Action(s.T.Context(), s.Org.ID, id)
	s.Must(err)
	return a
}

// Decision is what a person's press posts who saw the action like this.
func Decision(by identity.Person, a action.Action, reason string) action.Decision {
	return action.Decision{Org: by.Org, Action: a.ID, By: by, ArgsDigest: a.ArgsDigest, Version: a.Version, Reason: reason}
}

// Approve lets the approver approve an action as it is now.
func (s *Scene) Approve(id action.ID) action.Action {
	s.T.Helper()
	a, err := s.Actions.Approve(s.T.Context(), Decision(s.People[identity.Approver], s.Action(id), ""))
	s.Must(err)
	return a
}

// Later lets time pass for one action, past the triggers that hold its row still.
func (s *Scene) Later(id action.ID, by time.Duration) {
	s.T.Helper()
	s.SQLAsSuper(`UPDATE actions SET requested_at = requested_at - $2::interval, expires_at = expires_at - $2::interval, decided_at = decided_at - $2::interval,
		claimed_at = claimed_at - $2::interval, lease_until = lease_until - $2::interval, settles_at = settles_at - $2::interval, finished_at = finished_at - $2::interval
		WHERE id = $1`, id, by)
}
