package action

import (
	"slices"
	"strings"
	"unicode/utf8"

	"countersign/internal/fault"
	"countersign/internal/identity"
)

const maxReason = 2000

// MayDecide says whether a person may decide on an action: the role, the same organization, of the group that was asked if one was, and
// neither the person it is for nor the owner of the service token that started its run. Nobody countersigns their own signature.
func MayDecide(p identity.Person, a Action) *fault.Error {
	switch {
	case p.Org != a.Org:
		return fault.Absent("action")
	case !p.May(identity.Decide):
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Your roles do not let you decide on actions.", "An approver or owner can.")
	case p.ID == a.OnBehalfOf:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "This was asked for on your behalf, so somebody else decides.", "Another approver or owner can.")
	case a.Approvers != "" && !slices.Contains(a.Members, p.ID):
		return fault.New(fault.Forbidden, fault.CodeForbidden, "The group “"+a.Approvers+"” decides on this, and you are not in it.", "Somebody of that group can.")
	case p.ID == a.TokenOwner:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Your service token started this run, so somebody else decides.", "Another approver or owner can.")
	}
	return nil
}

// MaySign says whether a person may put a signature under an action: whoever may decide, and has not signed it yet.
func MaySign(p identity.Person, a Action) *fault.Error {
	if refused := MayDecide(p, a); refused != nil {
		return refused
	}
	if s, ok := a.SignedBy(p.ID); ok {
		return fault.New(fault.Conflict, fault.CodeConflict, "You signed this at "+s.At.UTC().Format("15:04:05 UTC on 2 January 2006")+"; a person signs once.",
			"Somebody else has to sign it too; you may still deny it.")
	}
	return nil
}

// CheckBatch refuses a batch that no page makes.
func CheckBatch(b Batch) error {
	switch {
	case len(b.Members) == 0:
		return fault.New(fault.Invalid, fault.CodeInvalid, "No action was chosen; nothing was decided.", "Choose at least one.")
	case len(b.Members) > MostTogether:
		return fault.New(fault.Invalid, fault.CodeInvalid, "At most 50 actions are decided on together; nothing was decided.", "Choose fewer.")
	}
	for i, m := range b.Members {
		if slices.ContainsFunc(b.Members[:i], func(n Seen) bool { return n.Action == m.Action }) {
			return fault.New(fault.Invalid, fault.CodeInvalid, "An action was chosen twice; nothing was decided.", "Load the page again.")
		}
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
