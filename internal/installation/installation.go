// Package installation owns a connection: an organization's use of one manifest. Its state, its health, what was observed upstream, the
// snapshot people granted, and its end. It tests itself through a Prober it declares, seals nothing itself, calls nobody, and never
// derives anything from the preferences document.
package installation

import (
	"time"

	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

// State is where a connection stands.
type State string

// The states. Retired is terminal: the credential is shredded and the key never used again.
const (
	Active       State = "active"
	Disconnected State = "disconnected"
	NeedsConsent State = "needs_consent"
	Retired      State = "retired"
)

// Connection is one connection of an organization.
type Connection struct {
	ID          string // "con_…"
	Org         identity.OrgID
	Key         connector.Key
	Integration string // manifest key
	Kind        registry.Kind
	Runtime     registry.Key
	Release     string // digest of the release it was installed from; it keeps it
	Name        string // display name, may change
	State       State
	Standing    policy.Standing   // mode "" until a person has chosen one: grants nothing
	Snapshot    int               // version of the snapshot, grows with each save
	Version     int               // grows with every change
	Destination string            // address fixed when it was connected
	Header      string            // the header of its credential where a person named one; remote connections only
	Confirmed   []Confirmation    // definitions that an admin confirmed as reads; remote connections only
	Contract    string            // id of the manifest's auth contract in use
	Settings    map[string]string // resource settings
	Granted     []string          // scopes as a person granted them; only where the contract is consent
	Refused     []string          // scopes the service asked for beyond them, by its own words
	Health      Health
	CreatedBy   string
	CreatedAt   time.Time
	RetiredAt   *time.Time
	// DurableReads asks that each read is committed to the trail before its answer leaves, instead of within a tenth of a second.
	DurableReads bool
}

// Confirmation says that an admin read this very definition and confirmed that it only reads.
type Confirmation struct{ Tool, Digest string }

// Health is the result of the last test.
type Health struct {
	TestedAt *time.Time // nil: never
	OK       bool
	Found    string // what an authenticated call found, in words
	What     string // what is wrong
	Next     string // and what to do
	Since    *time.Time
}

// Observed is one tool as the upstream lists it now.
type Observed struct {
	Tool        string
	Title       string
	Description string
	Digest      string
	Recipe      int
	Raw         []byte // the raw tool object, as sent
	Annotations policy.Annotations
	Problem     string // why it cannot be used; empty where it can
	FirstSeen   time.Time
	SeenAt      time.Time
}

// Finding is what a test found.
type Finding struct {
	OK    bool
	Found string // "Signed in; 11 tools, 12 contacts" in words
	What  string
	Next  string
	Tools []Observed // nil when the list could not be read
}

// Tool is one line of the connection page: what is listed now, what is pinned, and how the two differ.
type Tool struct {
	Observed
	Class     policy.Class
	Listed    bool             // upstream lists it now
	Pinned    *policy.Pinned   // nil: not granted
	PinnedRaw []byte           // the definition a person accepted
	Held      bool             // pinned and changed: hidden and refused until accepted
	New       bool             // appeared after the last save: available, not granted
	Sentence  string           // the manifest's reviewed sentence, may be empty
	Lacks     []manifest.Grant // what a person has to allow at the service before the tool can be chosen
}

// Candidate is the tool as policy.Select judges it.
func (t Tool) Candidate() policy.Candidate {
	problem := t.Problem
	switch {
	case !t.Listed:
		problem = "the service does not list it any more."
	case problem == "" && len(t.Lacks) > 0:
		problem = "it needs “" + t.Lacks[0].Title + "”, which nobody has allowed at the service yet."
	}
	return policy.Candidate{Tool: t.Tool, Digest: t.Digest, Recipe: t.Recipe, Class: t.Class, Held: t.Held, Problem: problem}
}
