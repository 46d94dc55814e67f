// Package audit owns the trail: what an entry is, which events exist, how entries are chained under a keyed MAC, and how a chain is
// verified. An entry is written in the transaction of the change it records; sealing it into the chain follows within a second, so
// that writers of one organization do not wait for each other. It never holds an argument, a credential or an upstream answer:
// arguments appear as digest, keys and sizes.
package audit

import (
	"context"
	"time"

	"countersign/internal/identity"
)

// ActorKind says what sort of somebody acted.
type ActorKind string

// The kinds of actors.
const (
	ByPerson   ActorKind = "person"
	ByAgent    ActorKind = "agent"    // a run, through the gateway
	ByService  ActorKind = "service"  // a service token, through the API
	ByPolicy   ActorKind = "policy"   // mode autonomous
	BySystem   ActorKind = "system"   // sweeper, reconciler, worker
	ByOperator ActorKind = "operator" // a shell command
)

// Actor is who did it. ID is a person, run or token id; Name is how people know it.
type Actor struct {
	Kind ActorKind
	ID   string
	Name string
}

// Person is a signed-in person as an actor.
func Person(p identity.Person) Actor {
	return Actor{Kind: ByPerson, ID: string(p.ID), Name: p.Display()}
}

// System is one of our own background parts as an actor, e.g. "sweeper".
func System(part string) Actor { return Actor{Kind: BySystem, ID: part, Name: part} }

// Operator is the person at the shell.
var Operator = Actor{Kind: ByOperator, ID: "shell", Name: "operator"}

// Object is what it was done to, e.g. {"connection", "sandbox-crm-k4x7qa"}.
type Object struct {
	Kind string
	ID   string
}

// Fact is one detail, safe to show to an auditor. Values are names, numbers and digests, never content.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Entry is one line of the trail before it is stored.
type Entry struct {
	Org    identity.OrgID
	Actor  Actor
	Event  Event
	Object Object
	Digest string // args_digest where the entry concerns an action, else empty
	Facts  []Fact
}

// Recorded is a stored entry. Seq, Prev and MAC are zero until it is sealed into the chain.
type Recorded struct {
	Entry
	ID  int64
	At  time.Time // database clock, UTC
	Seq int64     // 1, 2, 3 … without gaps, per organization
	MAC []byte
}

// Filter narrows a listing. Zero fields do not filter. Before is a key-set cursor: the ID of the last entry of the previous page.
type Filter struct {
	Actor  string // part of the actor's name or its id
	Event  string // an event, or a prefix ending in "."
	Object string // object id
	From   time.Time
	Until  time.Time
	Before int64
	Limit  int // 1…500; 0 means 50
}

// Reader lists entries, newest first.
type Reader interface {
	Entries(ctx context.Context, org identity.OrgID, f Filter) ([]Recorded, error)
}
