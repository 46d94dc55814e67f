package action

import (
	"encoding/json"
	"time"

	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// Bounds of an action.
const (
	Life         = 24 * time.Hour   // from asking to expiry, by the database's clock
	Lease        = 3 * time.Minute  // how long a worker owns an executing action
	SendWindow   = 30 * time.Second // after the claim, within which the first byte must leave; well inside the lease
	SettleWindow = 5 * time.Minute  // how long a lost call may still be applied, where the tool policy says nothing
)

// ID is a random action id, "act_…".
type ID string

// Action is one action as stored.
type Action struct {
	ID            ID
	Org           identity.OrgID
	Version       int // grows with every transition
	State         State
	Resolution    Resolution
	Run           run.ID
	Task          string
	Profile       string
	OnBehalfOf    identity.PersonID
	OnBehalfEmail string
	TokenOwner    identity.PersonID

	Connection       connector.Key
	ConnectionName   string
	Integration      string
	Release          string // digest of the release whose tool policy words the card
	Destination      string // where the bytes go, fixed when the connection was made: its Destination
	Tool             string
	Effect           policy.Effect
	Destructive      bool
	Definition       string // digest of the pinned definition
	Arguments        []byte // canonical JSON: bytes shown = bytes hashed = bytes sent
	ArgsDigest       string // see Digest
	IdempotencyKey   string
	SnapshotVersion  int
	Justification    string // the agent's own words, untrusted
	RetryOf          ID
	ApprovedByPolicy bool
	Spends           manifest.Amount  // what the arguments spend, counted when it was staged; none where no policy names money
	Touched          manifest.Touched // what the call names of the thing a setting bounds

	// Who was asked, as it was fixed when the action was staged; later edits of the profile change nothing here.
	Approvers  string              // the group that decides; empty: anybody who may
	Members    []identity.PersonID // of the group, now; a group without members can decide nothing
	Needed     int                 // how many people must sign
	Signatures []Signature         // of people, oldest first

	RequestedAt   time.Time
	ExpiresAt     time.Time
	DecidedBy     identity.PersonID
	DecidedByName string
	DecidedAt     *time.Time
	Reason        string // of the decision
	ClaimedAt     *time.Time
	LeaseUntil    *time.Time
	FinishedAt    *time.Time
	SettlesAt     *time.Time // of an uncertain one: when "it did not happen" becomes an answer
	Result        json.RawMessage
	ErrorCode     string
	ErrorSentence string
	Evidence      *Evidence
}

// Signature is one person's, under one action.
type Signature struct {
	By     identity.PersonID
	Name   string
	At     time.Time
	Reason string
}

// SignedBy returns the signature of a person.
func (a Action) SignedBy(id identity.PersonID) (Signature, bool) {
	for _, s := range a.Signatures {
		if s.By == id {
			return s, true
		}
	}
	return Signature{}, false
}

// Missing is how many people have yet to sign.
func (a Action) Missing() int {
	if a.State != StateStaged {
		return 0
	}
	return max(0, max(1, a.Needed)-len(a.Signatures))
}

// Proposal is an effect an agent asks for. The store turns it into a staged action, or an approved one where the connection's mode is
// autonomous at that very moment.
type Proposal struct {
	Org             identity.OrgID
	Run             run.ID
	Connection      connector.Key
	Tool            string
	Definition      string // digest the live definition has, which must be the pinned one
	Arguments       []byte // canonical
	ArgsDigest      string
	Destination     string // byte for byte installation.Connection.Destination
	Key             string // idempotency key: the caller's, or derived by Key
	ExplicitKey     bool
	Justification   string
	RetryOf         ID
	AlwaysAsk       bool   // never approve by policy: after closed_unknown
	OutsideResource string // why the call is outside the connection's resource; empty inside
	Spends          manifest.Amount
	Touched         manifest.Touched
}

// Decision is a person's answer as the form posted it.
type Decision struct {
	Org        identity.OrgID
	Action     ID
	By         identity.Person
	ArgsDigest string // what the person saw
	Version    int    // of the row the person saw
	Reason     string
}

// MostTogether is how many actions one person decides on at once.
const MostTogether = 50

// Batch is one answer to several actions of one tool on one connection. Either all are decided or none is.
type Batch struct {
	Org     identity.OrgID
	By      identity.Person
	Members []Seen
	Reason  string
}

// Seen is an action as the person saw it.
type Seen struct {
	Action     ID
	ArgsDigest string
	Version    int
}

// Answer settles an uncertain action.
type Answer string

// The three answers.
const (
	Applied    Answer = "applied"
	NotApplied Answer = "not_applied"
	Unknown    Answer = "unknown"
)

// Settlement is a person's answer about an uncertain action.
type Settlement struct {
	Decision
	Answer Answer
}

// Dispatch is a claimed action: the right to send it once.
type Dispatch struct {
	Action      Action
	Fence       int64     // grows with every claim of the database; only its holder may report
	ProviderKey string    // sent to providers that know idempotency keys
	SendBefore  time.Time // local clock: no first byte after this
}

// Filter narrows a listing of actions. Zero fields do not filter. Before is a key-set cursor: the id of the last one of a page.
type Filter struct {
	States     []State
	Run        run.ID
	Connection connector.Key
	Tool       string
	Digest     string // equal calls
	Undecided  bool   // of expired ones, those that nobody decided on
	Before     ID
	Limit      int  // 1…200; 0 means 50
	OldestDue  bool // soonest expiry first instead of newest first, of what is staged or approved
}

// Counts is what the navigation and the overview show.
type Counts struct {
	Waiting   int // staged and not expired
	Uncertain int
	Executing int
}

// Ended counts what came to an end since a moment. What nobody decided on is counted apart from what somebody denied.
type Ended struct {
	Succeeded, Failed, Denied, ExpiredUndecided, ExpiredApproved, Cancelled, ClosedUnknown int
}

// Event is one line of an action's timeline, read from the audit trail.
type Event struct {
	At     time.Time
	Event  string
	By     string
	To     State  // of a transition
	Why    string // a sentence of ours
	Reason string // a person's words
	Tool   string // of a look-up
}
