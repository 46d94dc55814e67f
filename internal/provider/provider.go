// Package provider owns the contract between the gateway and whatever does the work: a connection that is already authorised goes
// in; tools, results and outcomes come out. A read returns an error when it goes wrong; a write never does, it has an outcome.
// It knows no credential (the clients it is given carry it) and no database, decides no policy, and sends a write at most once.
package provider

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/action"
)

// Provider does the work of one kind of integration. One value serves every connection of its kind, concurrently; what it must
// remember about one connection it keeps in that Conn.
type Provider interface {
	// Tools lists every tool the upstream offers, in its order. A tool that cannot be used is listed with its Problem; it never
	// hides the others. The error is a fault.
	Tools(ctx context.Context, c *Conn) ([]Definition, error)
	// Read calls a tool that has no effect. It may be sent again when a connection breaks. The error is a fault with one of the
	// codes connection_unavailable, upstream_error, upstream_timeout, result_too_large, invalid_arguments; ErrUnauthorized is
	// among its causes where the upstream refused the credential.
	Read(ctx context.Context, c *Conn, call Call) (Result, error)
	// Execute calls a tool once and says what is known of it. The caller gives a context with a deadline that nobody else
	// cancels, and the send deadline by egress.SendBefore.
	Execute(ctx context.Context, c *Conn, call Call) action.Outcome
	// Test finds out whether the connection works, with the probe of the connection where it has one.
	Test(ctx context.Context, c *Conn) (Finding, error)
}

// Reconciler is implemented by providers that can look up, without an effect, what became of an uncertain write.
type Reconciler interface {
	Reconcile(ctx context.Context, c *Conn, call Call, e action.Evidence) (Sighting, error)
}

// OwnReconciler is implemented by providers whose own code can look, without a reviewed probe, for what became of some writes.
type OwnReconciler interface {
	Reconciler
	CanReconcile(call Call) bool
}

// Previewer is implemented by providers that can show, by a read made now, what some writes would meet and what they would make of it.
type Previewer interface {
	CanPreview(call Call) bool
	Preview(ctx context.Context, c *Conn, call Call) (Preview, error)
}

// Preview is what a write would do to the thing as it is now. It is for the eyes of the person who decides, and kept nowhere.
type Preview struct {
	Sentence string // what was found and what would become of it, for a person
	Before   string // the thing as it is; empty where there is none yet
	After    string // the thing as the write would leave it now; empty where there is none any more, or nobody can tell
	Computed bool   // After is meant
}

// Call is one call of a tool.
type Call struct {
	Tool      string          // the upstream's own name, byte for byte
	Arguments json.RawMessage // a canonical JSON object; these bytes are sent
	Action    string          // the action's id, for providers that can carry a marker or key; empty for reads
	// Definition is the raw tool object that was reviewed, where the caller has it: a newer MCP upstream may want some arguments
	// repeated in headers that the definition names.
	Definition json.RawMessage
	// Definite is the reviewed tool policy's knowledge of error texts that mean "nothing was applied"; nil knows none.
	Definite func(text string) bool
	// Probe is how a Reconciler may find out what became of the call; nil where nothing can.
	Probe *Probe
}

// Probe is a reviewed read that tells, without doubt, whether a write was applied.
type Probe struct {
	Call  Call
	Judge func(text string) Sight // of the read's text
}

// Result is what a read answers: an MCP tool result.
type Result struct {
	Raw     json.RawMessage // {"content":[…],"structuredContent":…,"isError":…}; bounded, without _meta and icons
	IsError bool            // the tool answered that it failed
	Bounded bool            // items were left out; Raw says so itself
	Size    int             // bytes of the upstream's own result
}

// Finding is what a test found. A connection that does not work is the error beside it.
type Finding struct {
	Server   string        // the upstream's own name and version, for display
	Protocol string        // the revision spoken, e.g. "MCP 2026-07-28"
	Tools    int           // how many tools are offered
	Broken   int           // how many of them are unusable
	Proven   bool          // a call that needs the credential succeeded; listing alone proves nothing with some vendors
	Took     time.Duration // of the whole test
	Kind     string        // what the credential turned out to be, where that can be told: "a classic token"
	Lacks    []string      // what it may not do and the connection is for, a sentence each
	Beyond   []string      // what the credential may do besides what this server uses it for, a sentence each
}

// Sight says what a reconciler saw.
type Sight string

// The sights.
const (
	Applied Sight = "applied" // the effect is there
	Absent  Sight = "absent"  // it is not; the settle window decides what that is worth
	Unseen  Sight = "unseen"  // the look-up could not tell
)

// Sighting is the answer of a Reconciler.
type Sighting struct {
	Sight    Sight
	Result   json.RawMessage // an MCP tool result, if Applied and known
	Sentence string          // what was looked at, for a person
	Final    bool            // Absent, and the write can no longer apply (it was conditional or keyed)
}
