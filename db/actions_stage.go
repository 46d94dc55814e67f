package db

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/run"
)

const maxKey = 255

// Stage implements action.Stager.
func (s Actions) Stage(ctx context.Context, p action.Proposal) (action.Action, bool, error) {
	if err := checkProposal(p); err != nil {
		return action.Action{}, false, err
	}
	created := false
	var seen time.Time // when an action that existed was looked at
	a, err := s.transition(ctx, p.Org, func(t step) (rows.Action, *fault.Error, error) {
		// A repeated call is the common case and takes no lock.
		known, now, found, err := t.known(ctx, p)
		if err != nil || (found && sameCall(known, p)) {
			seen = now
			return known, nil, err
		}
		after, isNew, refused, err := t.stage(ctx, p)
		created, seen = isNew, after.RequestedAt
		return after, refused, err
	})
	return shown(a, seen), created && err == nil, err
}

// stage is Stage after the first look: with the connection and the run locked nobody else can create an action of this key.
func (t step) stage(ctx context.Context, p action.Proposal) (after rows.Action, created bool, refused *fault.Error, err error) {
	standing, err := t.standing(ctx)
	if err != nil {
		return after, false, nil, err
	}
	c, r, err := t.holdFor(ctx, p)
	if err != nil {
		return after, false, nil, err
	}
	j, err := t.facts(ctx, r, c, subjectOfProposal(p), present{p.Definition, p.Destination, p.OutsideResource})
	if err != nil {
		return after, false, nil, err
	}
	if j.ofKey != "" { // made since the first look
		known, _, _, err := t.known(ctx, p)
		if err != nil || sameCall(known, p) {
			return known, false, nil, err
		}
		j.facts.KeyConflict = true
	}
	if policy.Surface(r.Surface) != policy.Task {
		return after, false, fault.New(fault.Forbidden, fault.ConsequentialInChat, "A chat run may not change anything in an outside service; nothing was staged.",
			"Ask for a task run: there this call can be staged for a person's approval."), nil
	}
	if refused := standing.refuse(r.Profile, c.Key); refused != nil {
		return after, false, refused, nil
	}
	again, refused, err := t.retried(ctx, p)
	if err != nil || refused != nil {
		return after, false, refused, err
	}
	if refused := action.Judge(action.AtStage, j.facts); refused != nil {
		return after, false, refused, nil
	}
	byPolicy := j.mode == policy.Autonomous && !p.AlwaysAsk && !again && !j.asked.people()
	after, err = t.insert(ctx, p, r, c, j, byPolicy)
	if refused := overdrawn(err, j.facts); refused != nil {
		return after, false, nil, refused // the statement failed, and with it the transaction: nothing was written
	}
	return after, err == nil, nil, err
}

// known finds the action of the proposal's key.
func (t step) known(ctx context.Context, p action.Proposal) (a rows.Action, now time.Time, found bool, err error) {
	row, err := t.q.ActionByKey(ctx, t.org, string(p.Run), p.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return rows.Action{}, time.Time{}, false, nil
	}
	return row.Action, row.Now, err == nil, err
}

// sameCall compares what was asked, not the digest: a definition that changed in between does not make a re-issued call another one.
func sameCall(a rows.Action, p action.Proposal) bool {
	return a.ConnectionKey == string(p.Connection) && a.Tool == p.Tool && bytes.Equal(a.Arguments, p.Arguments)
}

// holdFor locks the connection and the run of a proposal. What is not there looks like what was not granted.
func (t step) holdFor(ctx context.Context, p action.Proposal) (rows.Connection, rows.Run, error) {
	h, err := t.q.ProposalHold(ctx, t.org, string(p.Connection), string(p.Run))
	if !errors.Is(err, pgx.ErrNoRows) {
		return h.Connection, h.Run, err
	}
	if _, err := t.q.ConnectionByKey(ctx, t.org, string(p.Connection)); err == nil {
		return h.Connection, h.Run, fault.Absent("run")
	}
	return h.Connection, h.Run, notGranted
}

var notGranted = fault.New(fault.Forbidden, fault.ToolNotGranted, "The tool is not granted.", "List the tools: what is listed is what this run may use.")

// retried checks the action a proposal tries again: one of the same run that has ended. After closed_unknown a person decides, whatever
// the mode: the first attempt may have happened.
func (t step) retried(ctx context.Context, p action.Proposal) (alwaysAsk bool, refused *fault.Error, err error) {
	if p.RetryOf == "" {
		return false, nil, nil
	}
	row, err := t.q.ActionByID(ctx, t.org, string(p.RetryOf))
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && row.Action.RunID != string(p.Run)) {
		return false, fault.Absent("action"), nil
	}
	if err != nil {
		return false, nil, err
	}
	state := shown(actionOf(row.Action), row.Now).State
	if !state.Terminal() {
		return false, fault.New(fault.Conflict, fault.CodeConflict, "The action is "+string(state)+" and has not ended, so it cannot be tried again.", "Wait for its end."), nil
	}
	return state == action.StateClosedUnknown, nil, nil
}

func (t step) insert(ctx context.Context, p action.Proposal, r rows.Run, c rows.Connection, j judged, byPolicy bool) (rows.Action, error) {
	state, by := action.StateStaged, agent(r.ID, r.Profile)
	if byPolicy {
		state, by = action.StateApproved, audit.Actor{Kind: audit.ByPolicy, ID: c.Key, Name: "mode " + c.Mode}
	}
	after, err := t.q.ActionInsert(ctx, rows.ActionInsertParams{
		ID: identity.NewID("act_"), OrgID: string(p.Org), State: string(state), RunID: r.ID, Task: r.Task, Profile: r.Profile,
		OnBehalfOf: text(r.OnBehalfOf), OnBehalfEmail: r.OnBehalfEmail, TokenOwner: r.TokenOwner,
		ConnectionID: c.ID, ConnectionKey: c.Key, ConnectionName: c.Name, Integration: c.Integration, ReleaseDigest: c.ReleaseDigest, Destination: c.Destination,
		Tool: p.Tool, Effect: string(policy.Consequential), Destructive: j.destructive, Definition: p.Definition,
		Arguments: p.Arguments, ArgsDigest: p.ArgsDigest, IdempotencyKey: p.Key, ExplicitKey: p.ExplicitKey, SnapshotVersion: c.SnapshotVersion,
		Justification: storable(p.Justification), RetryOf: optional(p.RetryOf), Life: action.Life, ByPolicy: byPolicy,
		Approvers: optional(j.asked.approvers), SignaturesNeeded: int16(j.asked.signatures), Amount: unitsOf(p.Spends), Currency: optional(p.Spends.Currency),
		ResourceSetting: storable(p.Touched.Setting), ResourceValue: valueOf(p.Touched),
	})
	if err != nil {
		return after, err
	}
	e := action.Recorded(actionOf(after), "", state, by, "")
	e.Facts = append(e.Facts, audit.Fact{Name: "snapshot", Value: strconv.Itoa(int(c.SnapshotVersion))}, audit.Fact{Name: "argument_bytes", Value: strconv.Itoa(len(p.Arguments))})
	if p.RetryOf != "" {
		e.Facts = append(e.Facts, audit.Fact{Name: "retry_of", Value: string(p.RetryOf)})
	}
	return after, insertAudit(ctx, t.tx, e)
}

// agent is a run as an actor.
func agent(id, profile string) audit.Actor {
	return audit.Actor{Kind: audit.ByAgent, ID: id, Name: profile + " agent"}
}

// checkProposal refuses what could not be stored as the bytes they are, and a digest that is not of these bytes: a person approves
// what the digest covers.
func checkProposal(p action.Proposal) error {
	switch {
	case p.Key == "" || len(p.Key) > maxKey || storable(p.Key) != p.Key:
		return fault.New(fault.Invalid, fault.InvalidArguments, "An idempotency key is text of 1 to 255 bytes.", "Use a shorter key, or none.")
	case storable(p.Tool) != p.Tool || storable(string(p.Connection)) != string(p.Connection):
		return notGranted
	case p.Spends.Units < 0 || p.Spends.Units > manifest.MostUnits:
		return fault.New(fault.Invalid, fault.InvalidArguments, "The amount of the call cannot be counted; nothing was staged.", "Give the amount as a whole number, not negative.")
	case p.ArgsDigest != action.Digest(p.Connection, p.Tool, p.Definition, p.Destination, p.Arguments):
		return fault.New(fault.Internal, fault.CodeInternal, "The digest of the call is not that of its arguments; nothing was staged.", "")
	}
	return nil
}

// CancelByRun implements action.Stager. Cancelling twice is fine.
func (s Actions) CancelByRun(ctx context.Context, org identity.OrgID, r run.ID, id action.ID) (action.Action, error) {
	return s.transition(ctx, org, func(t step) (rows.Action, *fault.Error, error) {
		a, err := t.lockOpen(ctx, id)
		switch {
		case err != nil:
			return a, nil, err
		case a.RunID != string(r):
			return a, fault.Absent("action"), nil
		case a.State == string(action.StateCancelled):
			return a, nil, nil
		case !waits(a):
			return a, passedBy(a), nil
		}
		after, err := t.cancel(ctx, a, cancellation{by: agent(a.RunID, a.Profile), sentence: "The agent took it back; nothing was sent."})
		if err == nil && after.State == string(action.StateExpired) {
			return after, passedBy(after), nil
		}
		return after, nil, err
	})
}
