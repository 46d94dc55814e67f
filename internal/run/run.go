// Package run owns an agent's run: where it talks from, for whom, on which task, how long and how much. It knows nothing of the
// tools a run may use (that is its capability) and never holds the run's bearer token, only its hash.
package run

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
)

// ID is a random run id, "run_…".
type ID string

// Bounds of a run.
const (
	DefaultTTL    = time.Hour
	MaxTTL        = 24 * time.Hour
	MinTTL        = time.Minute
	DefaultBudget = 50
	MaxBudget     = 10_000
	maxTaskLength = 200
)

// Run is one run. A run is live while it has neither ended nor expired.
type Run struct {
	ID            ID
	Org           identity.OrgID
	Surface       policy.Surface
	Profile       string // name of the profile
	Task          string // empty on a chat run
	OnBehalfOf    identity.PersonID
	OnBehalfEmail string
	TokenID       string            // the service token that started it
	TokenOwner    identity.PersonID // who may not decide on its actions, besides OnBehalfOf
	Budget        int               // consequential actions it may ask for
	Used          int               // of them, reserved or spent
	StartedAt     time.Time
	ExpiresAt     time.Time
	EndedAt       *time.Time
}

// Live reports whether the run may still call, at a time of the database's clock.
func (r Run) Live(now time.Time) bool { return r.EndedAt == nil && now.Before(r.ExpiresAt) }

// Request is what a runtime asks for when it starts a run, as decoded from JSON.
type Request struct {
	Surface     string          `json:"surface"`
	Profile     string          `json:"profile"`
	Task        string          `json:"task,omitempty"`
	OnBehalfOf  string          `json:"on_behalf_of,omitempty"`
	Connections []string        `json:"connections,omitempty"`
	Budget      *RequestedLimit `json:"budget,omitempty"`
	TTLSeconds  *int            `json:"ttl_seconds,omitempty"`
}

// RequestedLimit narrows the budget of one run.
type RequestedLimit struct {
	Consequential *int `json:"consequential,omitempty"`
}

// Order is a valid request.
type Order struct {
	Surface     policy.Surface
	Profile     string
	Task        string
	OnBehalfOf  string          // normalized email; empty on a chat run that names nobody
	Connections []connector.Key // nil means every connection of the profile
	Budget      int             // 0 means the profile's
	TTL         time.Duration
}

// Check turns a request into an order, or says everything that is wrong with it.
func (q Request) Check() (Order, error) {
	var faults fault.List
	note := func(err error) {
		if e, ok := fault.As(err); ok {
			faults = append(faults, e)
		}
	}
	o := Order{Profile: q.Profile, Task: q.Task, TTL: DefaultTTL}
	var err error
	if o.Surface, err = policy.ParseSurface(q.Surface); err != nil {
		note(err)
	}
	if q.Profile == "" {
		note(fault.Field("profile", "Name the profile the run works under."))
	}
	if len(q.Task) > maxTaskLength || strings.ContainsFunc(q.Task, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		note(fault.Field("task", "A task reference is at most 200 characters on one line."))
	}
	if o.Surface == policy.Task && strings.TrimSpace(q.Task) == "" {
		note(fault.Field("task", "A task run needs a task reference, e.g. “ENG-12”."))
	}
	if q.OnBehalfOf != "" {
		if o.OnBehalfOf, err = identity.NormalizeEmail(q.OnBehalfOf); err != nil {
			note(fault.Field("on_behalf_of", "“on_behalf_of” is the email address of an active person of this organization."))
		}
	} else if o.Surface == policy.Task {
		note(fault.Field("on_behalf_of", "A task run needs “on_behalf_of”: the email address of the active person it works for."))
	}
	o.Connections, err = parseKeys(q.Connections)
	note(err)
	if q.Budget != nil && q.Budget.Consequential != nil {
		if o.Budget = *q.Budget.Consequential; o.Budget < 1 || o.Budget > MaxBudget {
			note(fault.Field("budget", "A run's budget is 1 to 10000 consequential actions."))
		}
	}
	if q.TTLSeconds != nil {
		if o.TTL = time.Duration(*q.TTLSeconds) * time.Second; o.TTL < MinTTL || o.TTL > MaxTTL {
			note(fault.Field("ttl_seconds", "A run lasts 60 to 86400 seconds."))
		}
	}
	return o, faults.Err()
}

func parseKeys(names []string) ([]connector.Key, error) {
	if names == nil {
		return nil, nil
	}
	keys := make([]connector.Key, 0, len(names))
	for _, n := range names {
		k, err := connector.Parse(n)
		if err != nil {
			return nil, fault.Field("connections", "“"+n+"” is not a connection key.")
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// TokenPrefix marks a run token, so that scanners can find a leaked one.
const TokenPrefix = "csr_"

// NewToken returns a run token with 256 random bits, and the hash to store.
func NewToken() (token string, hash []byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return token, HashToken(token)
}

// HashToken is how a bearer token is looked up: SHA-256 is enough for 256 random bits.
func HashToken(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}
