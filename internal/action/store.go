package action

import (
	"context"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/run"
)

// Stager turns proposals into actions.
type Stager interface {
	// Stage answers the action of the proposal's key: a new one, made and audited in one transaction after all fences were asked
	// (created true), or the one that exists. The same explicit key with other arguments is an idempotency_conflict. A created action
	// that is approved already waits for a claim: the caller wakes the worker after Stage has returned.
	Stage(ctx context.Context, p Proposal) (a Action, created bool, err error)
	// CancelByRun cancels a staged or approved action for the run that asked for it.
	CancelByRun(ctx context.Context, org identity.OrgID, r run.ID, id ID) (Action, error)
}

// Decider makes a person's decisions. Each is one compare-and-set on state and version, after MayDecide and SawThis, with its audit row.
type Decider interface {
	// Approve asks all fences again, then staged → approved. A staged action met after its expiry becomes expired, and says so. The
	// caller wakes the worker after it has returned.
	Approve(ctx context.Context, d Decision) (Action, error)
	// Where several people are asked, Approve puts one signature under the action; with the last it becomes approved. One who has signed
	// may still deny: that ends it.
	Deny(ctx context.Context, d Decision) (Action, error)
	// Cancel is an admin's: staged or approved → cancelled. Needs identity.Manage, not Decide.
	Cancel(ctx context.Context, d Decision) (Action, error)
	// Settle ends an uncertain action. NotApplied before SettlesAt is refused, naming the time.
	Settle(ctx context.Context, s Settlement) (Action, error)
}

// Together decides on several actions with one answer, in one transaction: every fence and every comparison of a single decision holds
// for each, and one that does not pass leaves all as they were. The fault says which it was; errors.As finds a *Stopped.
type Together interface {
	ApproveAll(ctx context.Context, b Batch) ([]Action, error)
	DenyAll(ctx context.Context, b Batch) ([]Action, error)
}

// Stopped is the member that a batch was stopped by.
type Stopped struct {
	Action ID
	Why    *fault.Error
}

// Error is the sentence for a person.
func (s *Stopped) Error() string { return s.Why.Error() }

// Unwrap makes a Stopped the fault it is about.
func (s *Stopped) Unwrap() error { return s.Why }

// Claimer is the worker's side.
type Claimer interface {
	// Claim asks all fences again and makes approved → executing with the one dispatch row, committed before it returns. It answers a
	// conflict fault when the action is not claimable (taken, cancelled, expired), and the refusal, having cancelled the action, when a
	// fence refuses for good; when the connection is unavailable or needs consent, the action stays approved.
	Claim(ctx context.Context, org identity.OrgID, id ID, r Ready) (Dispatch, error)
	// Complete reports what became of a dispatch. Only the holder of the fence can; after the lease the action is uncertain, and the
	// report counts as late evidence for it and changes nothing else.
	Complete(ctx context.Context, d Dispatch, o Outcome) (Action, error)
	ExpireDue(ctx context.Context) (int, error)
	// LeasesEnded turns executing actions whose lease ended into uncertain ones.
	LeasesEnded(ctx context.Context) (int, error)
	// Approved lists actions that wait for a claim, oldest first, across organizations: what a wake-up that got lost left behind.
	Approved(ctx context.Context, limit int) ([]Waiting, error)
}

// Settler settles uncertain actions by what a probe of the provider found.
type Settler interface {
	// Uncertain lists uncertain actions, soonest settling first, across organizations.
	Uncertain(ctx context.Context, limit int) ([]Waiting, error)
	// Reconcile ends an uncertain action of this version: found → succeeded, absent → failed. Absent before SettlesAt is refused, naming
	// the time, unless the write was conditional or keyed so that it can no longer apply. A version that passed by is a stale fault.
	Reconcile(ctx context.Context, org identity.OrgID, id ID, version int, p Probed) (Action, error)
}

// Probed is what a read-only look at the provider found out about an uncertain action.
type Probed struct {
	Found      bool
	Conclusive bool   // absent now means absent for ever
	Sentence   string // what was looked at and what was there, in words of ours
}

// Waiting names an approved or uncertain action.
type Waiting struct {
	Org identity.OrgID
	ID  ID
}

// Ready is what was found out just before a claim.
type Ready struct {
	Definition      string        // digest of the definition just fetched; empty when the tool is gone
	Destination     string        // the one the connection resolves to now, in the bytes of installation.Connection.Destination
	OutsideResource string        // why the call is outside what the connection is bounded to; empty: it is inside
	Settle          time.Duration // how long the call may still be applied if its answer is lost; 0 means SettleWindow
}

// Reader reads actions. A staged or approved one past its expiry is shown as expired and not changed by looking.
type Reader interface {
	Action(ctx context.Context, org identity.OrgID, id ID) (Action, error)
	Actions(ctx context.Context, org identity.OrgID, f Filter) ([]Action, error)
	// Story is an action and what led to it, at one moment.
	Story(ctx context.Context, org identity.OrgID, id ID) (Action, []Event, error)
	Counts(ctx context.Context, org identity.OrgID) (Counts, error)
}

// Ledger reads what is taken of limits and what came to an end.
type Ledger interface {
	// Day is what the action's profile has taken of the limits on the action's connection, on the day the action counts on.
	Day(ctx context.Context, org identity.OrgID, id ID) (Day, error)
	// Days is what a profile has taken today, of each connection where it has a limit of the day.
	Days(ctx context.Context, org identity.OrgID, profile string) (map[connector.Key]Day, error)
	Ended(ctx context.Context, org identity.OrgID, since time.Time) (Ended, error)
	// LastEnded lists what came to an end since a moment, the last end first.
	LastEnded(ctx context.Context, org identity.OrgID, since time.Time, limit int) ([]Action, error)
}

// events maps a state to the audit event of entering it.
var events = map[State]audit.Event{
	StateStaged: audit.ActionStaged, StateApproved: audit.ActionApproved, StateDenied: audit.ActionDenied, StateExpired: audit.ActionExpired,
	StateCancelled: audit.ActionCancelled, StateExecuting: audit.ActionExecuting, StateSucceeded: audit.ActionSucceeded,
	StateFailed: audit.ActionFailed, StateUncertain: audit.ActionUncertain, StateClosedUnknown: audit.ActionResolved,
}

// Recorded is the one audit row of a transition. why is a short sentence of ours, never content.
func Recorded(a Action, from, to State, by audit.Actor, why string) audit.Entry {
	event := events[to]
	if from == StateUncertain {
		event = audit.ActionResolved
	}
	e := audit.Entry{
		Org: a.Org, Actor: by, Event: event, Object: audit.Object{Kind: "action", ID: string(a.ID)}, Digest: a.ArgsDigest,
		Facts: []audit.Fact{{Name: "from", Value: string(from)}, {Name: "to", Value: string(to)}, {Name: "tool", Value: a.Connection.String() + "/" + a.Tool}, {Name: "run", Value: string(a.Run)}},
	}
	if why != "" {
		e.Facts = append(e.Facts, audit.Fact{Name: "why", Value: why})
	}
	return e
}

// NotClaimable is what a worker learns when an action is not there to be sent: taken, decided otherwise, or over.
var NotClaimable = fault.New(fault.Conflict, fault.CodeConflict, "This action is not waiting to be sent.", "")
