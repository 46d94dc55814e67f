package action

import (
	"strconv"
	"time"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/policy"
)

// Point is when the fences are asked.
type Point string

// The points. All seven fences are asked at each.
const (
	AtStage    Point = "stage"
	AtApproval Point = "approval"
	AtClaim    Point = "claim"
)

// Facts is everything the fences judge, read in the transaction that acts on the answer.
type Facts struct {
	Now time.Time // database clock

	RunLive      bool // neither ended nor expired now
	BehalfActive bool // the person it is for is still active
	SameTask     bool // the run's task is the one the action was asked for

	ProfileAllows bool // the profile still uses the connection, the tool and a mode that may write

	OutsideResource string // why the call is outside the connection's resource settings; empty inside

	Granted          bool // the tool is in the snapshot now
	SameDefinition   bool // pinned digest, minted digest and live digest are equal
	SameDestination  bool
	Mode             policy.Mode
	ConnectionActive bool
	NeedsConsent     bool

	KeyConflict bool // the explicit key is taken by other arguments

	Reserved bool // this action holds its place in the budget already
	Budget   int  // of the run
	Used     int
	Day      Day             // of the profile on the connection
	Spends   manifest.Amount // what this action would spend

	UncertainEqual ID // an equal action whose outcome nobody knows
}

// Day is what a profile has taken of its limits on one connection on one day, UTC. A limit that is zero is none.
type Day struct {
	Date       time.Time // midnight UTC
	Actions    int
	Most       int
	Spent      int64 // in the currency of what is judged, as manifest.Amount counts
	MostAmount manifest.Amount
}

type fence struct {
	name  string
	judge func(Point, Facts) *fault.Error
}

// fences is the order of the design: what changed about the task first, what an unknown outcome forbids last. Idempotency stands
// before budget, so that a harmless re-call is never refused for money.
var fences = []fence{
	{"task", task},
	{"profile", profileFence},
	{"resource", resource},
	{"authorization", authorization},
	{"idempotency", idempotency},
	{"budget", budget},
	{"reconciliation", reconciliation},
}

// Judge asks all seven fences in order and returns the first refusal, or nil.
func Judge(at Point, f Facts) *fault.Error {
	for _, fence := range fences {
		if refusal := fence.judge(at, f); refusal != nil {
			return refusal
		}
	}
	return nil
}

func refuse(code fault.Code, what, next string) *fault.Error {
	return fault.New(fault.Forbidden, code, what, next)
}

func task(at Point, f Facts) *fault.Error {
	// A run that merely expired does not take back what it asked for while it was live.
	if !f.SameTask || (at == AtStage && !f.RunLive) {
		return refuse(fault.TaskEnded, "The task this was asked for has ended; nothing was sent.", "Start a new run for the task that needs it.")
	}
	if !f.BehalfActive {
		return refuse(fault.TaskEnded, "The person this was asked for is no longer active here; nothing was sent.", "Start a new run for somebody who is.")
	}
	return nil
}

func profileFence(_ Point, f Facts) *fault.Error {
	if !f.ProfileAllows {
		return refuse(fault.ProfileForbids, "The run's profile does not allow this tool on this connection.", "Use another tool, or ask an admin to change the profile.")
	}
	return nil
}

func resource(_ Point, f Facts) *fault.Error {
	if f.OutsideResource != "" {
		return refuse(fault.OutsideResource, f.OutsideResource, "Stay within what the connection was set up for, or ask an admin to widen it.")
	}
	return nil
}

func authorization(_ Point, f Facts) *fault.Error {
	switch {
	case f.NeedsConsent:
		return refuse(fault.NeedsConsent, "The connection needs a person's consent again.", "Ask an admin to reconnect it on the connection's page.")
	case !f.ConnectionActive:
		return refuse(fault.ConnectionUnavailable, "The connection is not active.", "Go on without it. An admin sees why on the connection's page.")
	case f.Mode == policy.ReadOnly:
		return refuse(fault.ReadOnlyConnection, "An admin has set this connection to read only.", "Use its read tools, or ask an admin to allow writing.")
	case !f.Granted || f.Mode.Access() != policy.AccessFull:
		return refuse(fault.ToolNotGranted, "The tool is not granted.", "List the tools: what is listed is what this run may use.")
	case !f.SameDefinition || !f.SameDestination:
		return refuse(fault.DefinitionChanged, "The tool's definition changed and is held back until a person has reviewed it.", "Ask an admin to review the change on the connection's page.")
	}
	return nil
}

func idempotency(_ Point, f Facts) *fault.Error {
	if f.KeyConflict {
		return fault.New(fault.Conflict, fault.IdempotencyConflict, "This idempotency key was used in this run for another call.", "Use a new key for a new call, or repeat the first call exactly.")
	}
	return nil
}

// budget is asked once: what is staged holds its place until it is sent or given up.
func budget(_ Point, f Facts) *fault.Error {
	switch limit := f.Day.MostAmount; {
	case f.Reserved:
		return nil
	case f.Used >= f.Budget:
		return refuse(fault.BudgetExceeded, "The run has used up its budget of consequential actions.", "Finish with what you have, or ask for a new run with a larger budget.")
	case f.Day.Most > 0 && f.Day.Actions >= f.Day.Most:
		return refuse(fault.BudgetExceeded, "The profile has used up its "+strconv.Itoa(f.Day.Most)+" consequential actions of the day on this connection; the count resets at 00:00 UTC.",
			"Go on with other work until 00:00 UTC, or ask an admin to raise the limit.")
	case limit.None() || f.Spends.None():
		return nil
	case limit.Currency != f.Spends.Currency:
		return refuse(fault.BudgetExceeded, "The profile's amount of a day on this connection is in "+limit.Currency+", and this call spends "+f.Spends.Currency+", which nobody has limited.",
			"Ask an admin to set the limit in "+f.Spends.Currency+".")
	case f.Spends.Units > limit.Units-f.Day.Spent:
		return refuse(fault.BudgetExceeded, "This would exceed the "+limit.Currency+" "+limit.String()+" that the profile may spend in a day on this connection; the amount resets at 00:00 UTC.",
			"Spend less, go on with other work until 00:00 UTC, or ask an admin to raise the limit.")
	}
	return nil
}

func reconciliation(_ Point, f Facts) *fault.Error {
	if f.UncertainEqual != "" {
		return fault.New(fault.Conflict, fault.UncertainPending,
			"An equal action ("+string(f.UncertainEqual)+") may already have happened; nobody knows yet.",
			"Wait until a person has settled it; sending it again could do it twice.")
	}
	return nil
}
