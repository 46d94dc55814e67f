package db

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// approve puts a person's signature under an action that is held, after every fence was asked again; with the last signature that was
// asked for, the action is approved. signed are the signatures under it afterwards.
func (t step) approve(ctx context.Context, h held, d action.Decision, reason string) (after rows.Action, signed []action.Signature, refused *fault.Error, err error) {
	a, refused, err := t.decidable(ctx, d, h.action)
	if refused != nil || err != nil {
		return h.action, nil, refused, err
	}
	if refused := action.MaySign(d.By, a); refused != nil {
		return h.action, nil, refused, nil
	}
	if refused := h.standing.refuse(h.action.Profile, h.action.ConnectionKey); refused != nil {
		return h.action, nil, refused, nil
	}
	j, err := t.facts(ctx, h.run, h.connection, subjectOf(h.action), present{})
	if err != nil {
		return h.action, nil, nil, err
	}
	if refused := action.Judge(action.AtApproval, j.facts); refused != nil {
		return h.action, nil, refused, nil
	}
	at, err := t.q.SignatureInsert(ctx, rows.SignatureInsertParams{
		ActionID: h.action.ID, PersonID: string(d.By.ID), PersonName: storable(d.By.Display()), ArgsDigest: d.ArgsDigest, Version: int32(d.Version), Reason: storable(reason),
	})
	if err != nil {
		return h.action, nil, nil, orStale(err)
	}
	a.Signatures = append(a.Signatures, action.Signature{By: d.By.ID, Name: d.By.Display(), At: at, Reason: reason})
	if a.Missing() > 0 {
		return h.action, a.Signatures, nil, t.signed(ctx, a, d.By, reason)
	}
	after, err = t.q.ActionApprove(ctx, rows.ActionApproveParams{
		ID: h.action.ID, Version: int32(d.Version), ArgsDigest: d.ArgsDigest,
		DecidedBy: optional(d.By.ID), DecidedByName: optional(storable(namesOf(a.Signatures))), Reason: storable(reason),
	})
	if err != nil {
		return h.action, nil, nil, orStale(err)
	}
	return after, a.Signatures, nil, t.record(ctx, action.StateStaged, after, audit.Person(d.By), "", reason)
}

// signed records a signature that is not the last.
func (t step) signed(ctx context.Context, a action.Action, by identity.Person, reason string) error {
	e := audit.Entry{
		Org: a.Org, Actor: audit.Person(by), Event: audit.SignatureGiven, Object: audit.Object{Kind: "action", ID: string(a.ID)}, Digest: a.ArgsDigest,
		Facts: []audit.Fact{{Name: "signed", Value: strconv.Itoa(len(a.Signatures)) + " of " + strconv.Itoa(a.Needed)}, {Name: "tool", Value: a.Connection.String() + "/" + a.Tool}, {Name: "run", Value: string(a.Run)}},
	}
	if reason != "" {
		e.Facts = append(e.Facts, audit.Fact{Name: "reason", Value: reason})
	}
	return insertAudit(ctx, t.tx, e)
}

// deny ends a locked action for one person; nobody else's signature is waited for.
func (t step) deny(ctx context.Context, a rows.Action, d action.Decision, reason string) (rows.Action, *fault.Error, error) {
	if _, refused, err := t.decidable(ctx, d, a); refused != nil || err != nil {
		return a, refused, err
	}
	after, err := t.q.ActionDeny(ctx, rows.ActionDenyParams{
		ID: a.ID, Version: int32(d.Version), ArgsDigest: d.ArgsDigest,
		DecidedBy: optional(d.By.ID), DecidedByName: optional(storable(d.By.Display())), Reason: storable(reason),
	})
	if err != nil {
		return a, nil, orStale(err)
	}
	return after, nil, t.record(ctx, action.StateStaged, after, audit.Person(d.By), "", reason)
}

// mayDecide asks whether a person may decide on a locked action. What the session knew of the person may be a request old: roles and
// standing are read again, and a demotion that comes now waits until this decision is made.
func (t step) mayDecide(ctx context.Context, by identity.Person, row rows.Action) (action.Action, *fault.Error, error) {
	a := actionOf(row)
	if err := signers(ctx, t.q, a.Org, &a); err != nil {
		return a, nil, err
	}
	if refused := action.MayDecide(by, a); refused != nil {
		return a, refused, nil
	}
	now, err := t.q.PersonDeciding(ctx, t.org, string(by.ID))
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return a, nil, err
	}
	by.Active, by.Roles = now.Active, nil // no row: nobody, who may do nothing
	for _, r := range now.Roles {
		by.Roles = append(by.Roles, identity.Role(r))
	}
	return a, action.MayDecide(by, a), nil
}

// namesOf names everybody who signed, in the order of signing.
func namesOf(signed []action.Signature) string {
	names := make([]string, len(signed))
	for i, s := range signed {
		names[i] = s.Name
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
