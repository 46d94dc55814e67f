package action

import (
	"context"
	"time"

	"countersign/internal/identity"
)

// Bounds of what is kept about an uncertain action.
const (
	MaxSeen    = 64 << 10 // bytes of the text of one answer that are kept
	MaxLookUps = 50       // look-ups of one action
)

// LookUp is one read a person made to find out what became of an uncertain action, with what the provider answered. Seen is the
// provider's text and as untrusted as any of it.
type LookUp struct {
	ID        string
	Action    ID
	At        time.Time // by the database's clock
	By        string    // a person's name
	Tool      string
	Arguments []byte // canonical JSON
	Seen      string
	Left      int  // bytes of the text that are not kept
	IsError   bool // the tool answered that it failed
}

// Probe is where the automatic look-ups of an uncertain action stand.
type Probe struct {
	Attempts int
	LastAt   time.Time
	NextAt   time.Time
	Sentence string // what the last one saw, in words of ours
}

// Investigator keeps what was seen about uncertain actions. It settles nothing.
type Investigator interface {
	// KeepLookUp stores a look-up with its audit row. An action that is no longer uncertain, or has MaxLookUps already, refuses it.
	KeepLookUp(ctx context.Context, org identity.OrgID, by identity.Person, l LookUp) (LookUp, error)
	// LookUps lists them, newest first.
	LookUps(ctx context.Context, org identity.OrgID, id ID) ([]LookUp, error)
	// Probed is where the automatic look-ups stand; false when there was none yet.
	Probed(ctx context.Context, org identity.OrgID, id ID) (Probe, bool, error)
}

// Probes is the reconciler's work list. Two reconcilers on one database never probe the same action at the same time.
type Probes interface {
	// ProbesDue lists uncertain actions whose next probe is due, across organizations.
	ProbesDue(ctx context.Context, limit int) ([]Waiting, error)
	// TakeProbe takes the turn and sets the time of the next one, later each time. False when somebody else has it, or it is not due.
	TakeProbe(ctx context.Context, org identity.OrgID, id ID) (bool, error)
	// KeepSighting notes what the turn saw. After an absence the next turn is no later than the end of the settle window; where nothing
	// can be probed it is a day away.
	KeepSighting(ctx context.Context, org identity.OrgID, id ID, sentence string, next NextProbe) error
}

// NextProbe says what follows from a probe that settled nothing.
type NextProbe string

// What follows.
const (
	ProbeAgain    NextProbe = "again"   // with growing pauses
	ProbeSettling NextProbe = "settle"  // not there yet: no later than when the settle window ends
	ProbeHopeless NextProbe = "nothing" // this kind of call cannot be probed
)
