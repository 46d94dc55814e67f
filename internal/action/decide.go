package action

import (
	"strings"
	"unicode/utf8"

	"countersign/internal/fault"
	"countersign/internal/identity"
)

const maxReason = 2000

// MayDecide says whether a person may decide on an action: the role, the same organization, and neither the person it is for nor the
// owner of the service token that started its run. Nobody countersigns their own signature.
func MayDecide(p identity.Person, a Action) *fault.Error {
	switch {
	case p.Org != a.Org:
		return fault.Absent("action")
	case !p.May(identity.Decide):
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Your roles do not let you decide on actions.", "An approver or owner can.")
	case p.ID == a.OnBehalfOf:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "This was asked for on your behalf, so somebody else decides.", "Another approver or owner can.")
	case p.ID == a.TokenOwner:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Your service token started this run, so somebody else decides.", "Another approver or owner can.")
	}
	return nil
}

// CheckReason refuses a missing reason where one is needed, and one that is too long or not text.
func CheckReason(reason string, needed bool) (string, error) {
	reason = strings.TrimSpace(reason)
	switch {
	case needed && reason == "":
		return "", fault.Field("reason", "Say why: the agent reads it, and it is kept in the audit trail.")
	case !utf8.ValidString(reason) || utf8.RuneCountInString(reason) > maxReason:
		return "", fault.Field("reason", "A reason is text of at most 2000 characters.")
	}
	return reason, nil
}

// SawThis compares what the form carried with the row: a person approves bytes, not a name.
func (d Decision) SawThis(a Action) *fault.Error {
	if d.ArgsDigest != a.ArgsDigest || d.Version != a.Version {
		return fault.Stale("This changed while you read. Nothing was sent.")
	}
	return nil
}
