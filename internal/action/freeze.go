package action

import (
	"context"
	"time"

	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Scope is how much a freeze stops.
type Scope string

// The scopes. The key of a profile is its name, that of a connection its connector key; the organization has none.
const (
	ScopeOrganization Scope = "organization"
	ScopeProfile      Scope = "profile"
	ScopeConnection   Scope = "connection"
)

// Switch names what can be frozen: one kill switch.
type Switch struct {
	Scope Scope
	Key   string
}

// FreezeID is a random freeze id, "frz_…".
type FreezeID string

// Freeze is one time the kill switch was on. While it stands, nothing it covers is staged, approved or claimed, and the clock of every
// open action it covers stands still. Reads go on, and so do denying and cancelling.
type Freeze struct {
	Switch
	ID       FreezeID
	Org      identity.OrgID
	Since    time.Time // by the database's clock
	By       string    // a person's name
	Reason   string
	LiftedAt *time.Time
	LiftedBy string
}

// Covers reports whether the freeze stops what a profile's runs ask for on a connection.
func (f Freeze) Covers(profile string, key connector.Key) bool {
	switch f.Scope {
	case ScopeOrganization:
		return true
	case ScopeProfile:
		return f.Key == profile
	case ScopeConnection:
		return f.Key == key.String()
	}
	return true // one this program does not know is meant to stop something
}

// Covering finds the oldest of the standing freezes that covers a profile's action on a connection: that is where its clock stands.
// A run sees a connection frozen with an empty profile only by the organization's or the connection's own switch.
func Covering(standing []Freeze, profile string, key connector.Key) (oldest Freeze, ok bool) {
	for _, f := range standing {
		if f.Covers(profile, key) && (!ok || f.Since.Before(oldest.Since)) {
			oldest, ok = f, true
		}
	}
	return oldest, ok
}

// On finds the standing freeze of one switch.
func (s Switch) On(standing []Freeze) (Freeze, bool) {
	for _, f := range standing {
		if f.Switch == s {
			return f, true
		}
	}
	return Freeze{}, false
}

// Refusal is what everybody hears who asks for something the freeze stops. It quotes no reason: that was written for colleagues.
func (f Freeze) Refusal() *fault.Error {
	what := map[Scope]string{
		ScopeOrganization: "The organization is frozen", ScopeProfile: "The profile " + f.Key + " is frozen", ScopeConnection: "The connection is frozen",
	}[f.Scope]
	if what == "" {
		what = "This is frozen"
	}
	return fault.New(fault.Conflict, fault.Frozen, what+" since "+f.Since.UTC().Format("15:04 UTC on 2 January 2006")+": nothing consequential is staged, approved or sent.",
		"Reads go on. Wait until an owner or admin has lifted the freeze; no deadline passes meanwhile.")
}

// MayFreeze says whether a person may press the kill switch of an organization, in either direction.
func MayFreeze(p identity.Person, org identity.OrgID) *fault.Error {
	if p.Org != org || !p.May(identity.Manage) {
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Your roles do not let you freeze or lift a freeze.", "An owner or admin can.")
	}
	return nil
}

// Press is a person's hand on a switch.
type Press struct {
	Org    identity.OrgID
	By     identity.Person
	Switch Switch   // to freeze
	Reason string   // to freeze; colleagues read it
	Freeze FreezeID // to lift: the one the person saw, so that nobody lifts another one that came after it
}

// Frozen is what a freeze found when it began.
type Frozen struct {
	Freeze
	New     bool // false: it was on already, and this is the freeze that stands
	Open    int  // staged and approved actions whose clock stands still now
	Sending int  // actions that were claimed before: they cannot be called back
}

// Lifted is what lifting a freeze gave back.
type Lifted struct {
	Freeze
	New      bool // false: somebody was quicker; LiftedAt and LiftedBy say who
	Extended int  // actions that got back the time that stood still
}

// Freezer is the kill switch. Pressing it twice is harmless, and each change has its audit row in the same transaction. Whoever moves an
// action holds the switch as it is until the commit, so that no claim commits after a freeze has.
type Freezer interface {
	Freeze(ctx context.Context, p Press) (Frozen, error)
	Lift(ctx context.Context, p Press) (Lifted, error)
	// Freezes lists the standing freezes of an organization, oldest first.
	Freezes(ctx context.Context, org identity.OrgID) ([]Freeze, error)
}
