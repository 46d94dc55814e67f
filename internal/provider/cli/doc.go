// Package cli owns what vendors' commands share: a closed grammar from which each tool's schema and each argument vector are made, the pin
// that a program must equal before it is started, and the relay through which it asks its service. A program never gets the credential, is
// never given a caller's string as anything but one value in one place, and reaches nothing the invocation does not need. This package knows
// no vendor; each has a folder below that declares its program and its invocations.
package cli

import (
	"countersign/internal/policy"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Role is the endpoint that every command's runtime has: the vendor's API.
const Role = registry.API

// Command is everything a folder below says of its vendor's program.
type Command struct {
	Name    string // for display: "sentry-cli"
	Service string // whom it asks: "Sentry"
	Program Program
	Env     []string // all of its environment besides its home; Ticket, sandbox.Relay and sandbox.Home are filled in
	Ahead   []string // flags before every subcommand
	Closed  bool     // it reads "--" as the end of flags
	Probe   string   // the invocation that proves a credential, one without required arguments; empty: the catalog's
	Tools   []Invocation
}

// Ticket stands in the environment for what a run shows to the relay in place of a credential. It is worth nothing anywhere else.
const Ticket = "{ticket}"

// Invocation is one allowed family of subcommands: one tool.
type Invocation struct {
	Tool        string
	Title       string
	Description string
	Words       []string // the subcommand
	Fixed       []string // flags that are always there
	Flags       []Flag
	Operands    []Flag // positional; Name is empty
	Effect      policy.Effect
	Destructive bool
	Resource    string   // the argument that names what is acted upon
	Asks        []string // the requests it may make: "GET /projects/{project}/*"; "{argument}" is one segment with that value, "*" any one; a query is the whole query
	// Gone names the read with the same arguments that the service answers with 404 once this was applied, and never before. Empty: only a
	// person finds out what became of a lost call.
	Gone string
}

// Flag is one argument of a tool and the place it has in the argument vector.
type Flag struct {
	Argument string
	Name     string // "--project"; written as --project=value, so that no value can begin a flag of its own
	Value    Value
	Required bool
}

// Value is what may stand in one place. It is made by the functions of grammar.go alone.
type Value struct {
	field   direct.Field
	several bool // each of its words is an operand of its own
}
