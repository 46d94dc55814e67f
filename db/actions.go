package db

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// Actions keeps durable actions. Every transition of an action goes through step, which locks in one order (connection, run, action),
// changes the row by one compare-and-set statement and writes its audit row. The triggers of migration 4 hold the same promises.
type Actions struct{ *DB }

var (
	_ action.Stager  = Actions{}
	_ action.Decider = Actions{}
	_ action.Claimer = Actions{}
	_ action.Settler = Actions{}
	_ action.Reader  = Actions{}
)

// step is one transaction that moves actions.
type step struct {
	tx  pgx.Tx
	q   *rows.Queries
	org string
}

func begun(tx pgx.Tx, org identity.OrgID) step { return step{tx, rows.New(tx), string(org)} }

// transition runs f in a transaction that is committed also when f refuses: an expired action met by a decision becomes expired, and
// one that a fence refuses for good becomes cancelled, while the caller hears the refusal.
func (s Actions) transition(ctx context.Context, org identity.OrgID, f func(t step) (rows.Action, *fault.Error, error)) (action.Action, error) {
	var out rows.Action
	var refused *fault.Error
	err := s.inOrg(ctx, org, func(tx pgx.Tx) (err error) {
		out, refused, err = f(begun(tx, org))
		return err
	})
	switch {
	case err != nil:
		return action.Action{}, err
	case refused != nil:
		return action.Action{}, refused
	}
	return actionOf(out), nil
}

// held is an action with the rows its fences depend on, all locked, and the switch held.
type held struct {
	standing   frozen
	connection rows.Connection
	run        rows.Run
	action     rows.Action
}

// hold takes the kill switch as it is, locks the connection against changes, then the run, then the action: the order of everybody who
// locks more than one of them.
func (t step) hold(ctx context.Context, id action.ID) (h held, err error) {
	if h.standing, err = t.standing(ctx); err != nil {
		return h, err
	}
	row, err := t.q.ActionHold(ctx, t.org, string(id))
	h.connection, h.run, h.action = row.Connection, row.Run, row.Action
	return h, orAbsent(err, "action")
}

// lock is hold for transitions that ask no fence.
func (t step) lock(ctx context.Context, id action.ID) (rows.Action, error) {
	a, err := t.q.ActionLock(ctx, t.org, string(id))
	return a, orAbsent(err, "action")
}

// lockOpen is lock for an action that may meet its expiry: with the switch held, no freeze begins while its clock is read.
func (t step) lockOpen(ctx context.Context, id action.ID) (rows.Action, error) {
	if _, err := t.standing(ctx); err != nil {
		return rows.Action{}, err
	}
	return t.lock(ctx, id)
}

// record writes the one audit row of a transition. reason is a person's words, kept as a fact of its own.
func (t step) record(ctx context.Context, from action.State, after rows.Action, by audit.Actor, why, reason string) error {
	e := action.Recorded(actionOf(after), from, action.State(after.State), by, why)
	if reason != "" {
		e.Facts = append(e.Facts, audit.Fact{Name: "reason", Value: reason})
	}
	return insertAudit(ctx, t.tx, e)
}

// expireIfDue makes a staged or approved action expired when its time has passed by the database's clock.
func (t step) expireIfDue(ctx context.Context, a rows.Action) (rows.Action, bool, error) {
	after, err := t.q.ActionExpire(ctx, a.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	if err != nil {
		return a, false, err
	}
	return after, true, t.record(ctx, action.State(a.State), after, audit.System("expiry"), "nobody acted in time", "")
}

// cancellation says why an action is cancelled: to the trail, and to the agent that waits for it.
type cancellation struct {
	by       audit.Actor
	reason   string // a person's words
	code     fault.Code
	sentence string
}

// cancel ends a locked action that was not claimed; one whose time has passed becomes expired instead.
func (t step) cancel(ctx context.Context, a rows.Action, c cancellation) (rows.Action, error) {
	if after, expired, err := t.expireIfDue(ctx, a); err != nil || expired {
		return after, err
	}
	after, err := t.q.ActionCancel(ctx, rows.ActionCancelParams{ID: a.ID, Version: a.Version, Reason: c.reason, ErrorCode: string(c.code), ErrorSentence: c.sentence})
	if err != nil {
		return a, orStale(err)
	}
	return after, t.record(ctx, action.State(a.State), after, c.by, c.sentence, c.reason)
}

// cancelOfConnection cancels the staged and approved actions of a connection, which the caller has locked, that keep does not keep.
func (t step) cancelOfConnection(ctx context.Context, connection string, keep func(rows.Action) bool, c cancellation) error {
	undecided, err := t.q.ActionUndecidedOfConnection(ctx, connection)
	if err != nil {
		return err
	}
	for _, u := range undecided { // every run before any row of the ledger, which somebody who holds a run may be waiting for
		if _, err := t.q.RunLock(ctx, t.org, u.RunID); err != nil {
			return err
		}
	}
	for _, u := range undecided {
		a, err := t.lock(ctx, action.ID(u.ID))
		if err != nil {
			return err
		}
		if !waits(a) || keep(a) {
			continue
		}
		if _, err := t.cancel(ctx, a, c); err != nil {
			return err
		}
	}
	return nil
}

// waits reports whether nothing was sent yet and something still may be.
func waits(a rows.Action) bool {
	return a.State == string(action.StateStaged) || a.State == string(action.StateApproved)
}

// orStale turns a compare-and-set that met nothing into the answer for it. The row is locked, so this is the last line, not the first.
func orStale(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Stale("This changed while you read. Nothing was sent.")
	}
	return err
}

func actionOf(r rows.Action) action.Action {
	a := action.Action{
		ID: action.ID(r.ID), Org: identity.OrgID(r.OrgID), Version: int(r.Version), State: action.State(r.State), Resolution: action.Resolution(text(r.Resolution)),
		Run: run.ID(r.RunID), Task: r.Task, Profile: r.Profile,
		OnBehalfOf: identity.PersonID(r.OnBehalfOf), OnBehalfEmail: r.OnBehalfEmail, TokenOwner: identity.PersonID(r.TokenOwner),
		Connection: connector.Key(r.ConnectionKey), ConnectionName: r.ConnectionName, Integration: r.Integration, Release: r.ReleaseDigest,
		Destination: r.Destination, Tool: r.Tool, Effect: policy.Effect(r.Effect), Destructive: r.Destructive, Definition: r.Definition,
		Arguments: r.Arguments, ArgsDigest: r.ArgsDigest, IdempotencyKey: r.IdempotencyKey, SnapshotVersion: int(r.SnapshotVersion),
		Justification: r.Justification, RetryOf: action.ID(text(r.RetryOf)), ApprovedByPolicy: r.ApprovedByPolicy,
		RequestedAt: r.RequestedAt, ExpiresAt: r.ExpiresAt, DecidedBy: identity.PersonID(text(r.DecidedBy)), DecidedByName: text(r.DecidedByName),
		DecidedAt: r.DecidedAt, Reason: r.Reason, ClaimedAt: r.ClaimedAt, LeaseUntil: r.LeaseUntil, FinishedAt: r.FinishedAt, SettlesAt: r.SettlesAt,
		Approvers: text(r.Approvers), Needed: int(r.SignaturesNeeded), Spends: spendsOf(r), Touched: touchedOf(r),
		Result: json.RawMessage(r.Result), ErrorCode: r.ErrorCode, ErrorSentence: r.ErrorSentence,
	}
	if r.Evidence != nil {
		var e action.Evidence
		if json.Unmarshal([]byte(*r.Evidence), &e) == nil {
			a.Evidence = &e
		}
	}
	return a
}

// shown is an action as a page shows it: past its expiry it is expired, whether or not the sweeper has been by.
func shown(a action.Action, now time.Time) action.Action {
	if (a.State == action.StateStaged || a.State == action.StateApproved) && !now.Before(a.ExpiresAt) {
		a.State = action.StateExpired
	}
	return a
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// optional stores an empty text as null.
func optional[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	p := string(s)
	return &p
}
