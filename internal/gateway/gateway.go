// Package gateway owns one tool call of an agent, from the run it was made in to its answer: verify, decide, then read, stage, run or
// refuse. It lists exactly what a run may use and nothing that is held back, and answers our own companion tools. Every call is judged
// anew from the capability as it is at that moment, so that narrowing acts on the next call. It knows neither HTTP nor JSON-RPC nor SQL,
// sees no credential, sends no effect itself (dispatch does, after the claim), and never records an argument's value.
package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/profile"
	"countersign/internal/reach"
	"countersign/internal/run"
)

// AnswerWithin is how long a call may be held: an effect approved by policy, or actions_wait. Past it the agent gets the action's id.
const AnswerWithin = 25 * time.Second

// listWithin is how long one upstream may keep the list of the others waiting. The look-up goes on for the next caller.
const listWithin = 5 * time.Second

// Actions is what the gateway needs of the actions.
type Actions interface {
	Stage(ctx context.Context, p action.Proposal) (a action.Action, created bool, err error)
	CancelByRun(ctx context.Context, org identity.OrgID, r run.ID, id action.ID) (action.Action, error)
	Action(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, error)
	Actions(ctx context.Context, org identity.OrgID, f action.Filter) ([]action.Action, error)
	Story(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, []action.Event, error)
}

// Dispatcher sends an approved action once. *dispatch.Dispatcher is one.
type Dispatcher interface {
	Dispatch(ctx context.Context, org identity.OrgID, id action.ID) (action.Action, error)
}

// Recorder writes lines of the audit trail. *db.Recorder is one.
type Recorder interface {
	// Ready is nil while lines can be written: nothing is read from an upstream otherwise.
	Ready() error
	// Record keeps a line. The answer it is about is withheld when it could not be kept.
	Record(ctx context.Context, e audit.Entry) error
}

// Trail writes a line durably before it returns. db.Audit is one.
type Trail interface {
	Record(ctx context.Context, e audit.Entry) error
}

// Observer is told the list an upstream offers where it differs from what people granted. *installation.Connections is one.
type Observer interface {
	Observe(ctx context.Context, c installation.Connection, tools []installation.Observed) error
}

// Room is what limits a run besides its capability, as the database has it at this moment.
type Room interface {
	Run(ctx context.Context, org identity.OrgID, id run.ID) (capability.Live, error)
	Profile(ctx context.Context, org identity.OrgID, name string) (profile.Profile, error)
	Days(ctx context.Context, org identity.OrgID, profile string) (map[connector.Key]action.Day, error)
	Freezes(ctx context.Context, org identity.OrgID) ([]action.Freeze, error)
}

// Config is what a gateway works with.
type Config struct {
	Lines     *reach.Lines
	Actions   Actions
	Dispatch  Dispatcher
	Recorder  Recorder
	Trail     Trail // for connections that ask for durable reads
	Observer  Observer
	Room      Room          // nil: no preflight
	Git       Git           // zero: no repositories
	PublicURL string        // origin of the pages, for approval links
	Patience  time.Duration // how long a call may be held; 0 and more than AnswerWithin mean AnswerWithin
	Log       *slog.Logger  // nil: silent
}

// Gateway answers the calls of every run. One value serves the whole process.
type Gateway struct {
	Config
	served  served
	kept    sync.Map // shelfKey → *keptShelf
	drift   sync.Map // connection id → *provider.Definition, the first of the list last reported
	sending sync.WaitGroup
}

// New makes a gateway.
func New(c Config) *Gateway {
	if c.Patience <= 0 || c.Patience > AnswerWithin {
		c.Patience = AnswerWithin
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Gateway{Config: c}
}

// Drain waits until no effect is being sent any more, or ctx ends. What is cut off then becomes uncertain at the end of its lease.
func (g *Gateway) Drain(ctx context.Context) {
	done := make(chan struct{})
	go func() { g.sending.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Call is one tool call as the agent sent it.
type Call struct {
	Name          string          // as listed on the endpoint
	Arguments     json.RawMessage // nil where there are none
	Key           string          // the caller's own idempotency key; empty where there is none
	Justification string          // the agent's words for the approver, may be empty

	waiting *action.Action // of a caller that follows tasks: set in place of a result that is still to come
}

// Call answers one tool call with an MCP tool result, without a resultType. Only is the connection of the endpoint, empty on the one
// for all. A refusal is a result; the error is for what is no answer to this call: our own defect, or a database that does not answer.
func (g *Gateway) Call(ctx context.Context, l capability.Live, only connector.Key, c Call) (json.RawMessage, error) {
	if companion, ok := companionNamed(c.Name); ok {
		return g.companion(ctx, l, companion, c)
	}
	t, err := g.target(l, only, c.Name)
	if err != nil {
		return g.refused(ctx, l, target{}, c, err)
	}
	if t.byGit() { // what an agent could write into such a call, a person would be shown as the content of a push
		return g.refused(ctx, l, t, c, usedByGit)
	}
	v, err := g.verify(ctx, l, t, c.Arguments)
	if err != nil {
		return g.refused(ctx, l, t, c, err)
	}
	if v.reads() {
		return g.read(ctx, l, v)
	}
	key, explicit := action.DerivedKey(l.Run.ID, v.key(), v.tool, v.arguments), false
	if c.Key != "" {
		if key, explicit, err = ownKey(c.Key); err != nil {
			return g.refused(ctx, l, t, c, err)
		}
	}
	return g.propose(ctx, l, v, c, action.Proposal{Key: key, ExplicitKey: explicit, Justification: c.Justification})
}

// ownKey keeps a caller's key apart from the ones made here.
func ownKey(key string) (string, bool, error) {
	const most = 200
	if len(key) > most || !printable(key) {
		return "", false, fault.New(fault.Invalid, fault.InvalidArguments, "An idempotency key is one line of 1 to 200 bytes.", "Use a shorter key, or none.")
	}
	return "key:" + key, true, nil
}

func agent(r run.Run) audit.Actor {
	return audit.Actor{Kind: audit.ByAgent, ID: string(r.ID), Name: r.Profile + " agent"}
}
