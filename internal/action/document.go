package action

import (
	"encoding/json"
	"time"

	"countersign/internal/fault"
)

// Document is an action as programs and agents read it. The names are part of the interface.
type Document struct {
	ID          ID              `json:"id"`
	Run         string          `json:"run"`
	Task        string          `json:"task"`
	Profile     string          `json:"profile"`
	OnBehalfOf  string          `json:"on_behalf_of"`
	Connection  string          `json:"connection"`
	Tool        string          `json:"tool"`
	Effect      string          `json:"effect"`
	Arguments   json.RawMessage `json:"arguments"`
	ArgsDigest  string          `json:"args_digest"`
	State       State           `json:"state"`
	Resolution  Resolution      `json:"resolution,omitempty"`
	RetryOf     ID              `json:"retry_of,omitempty"`
	RequestedAt time.Time       `json:"requested_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	DecidedBy   string          `json:"decided_by,omitempty"` // a person's name, or "policy"
	DecidedAt   *time.Time      `json:"decided_at,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Error       *DocumentError  `json:"error,omitempty"`
	ApprovalURL string          `json:"approval_url"`
	Signatures  *DocumentSigned `json:"signatures,omitempty"` // where more than one is asked for
	Timeline    []DocumentEvent `json:"timeline"`
}

// DocumentSigned says how many people are asked to sign, and who has.
type DocumentSigned struct {
	Needed int      `json:"needed"`
	By     []string `json:"by"`
}

// DocumentError says why nothing came of an action, or why nobody knows.
type DocumentError struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// DocumentEvent is one line of the timeline.
type DocumentEvent struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	By    string    `json:"by"`
}

// Describe makes the document of an action. publicURL is the origin people reach this server at.
func Describe(a Action, timeline []Event, publicURL string) Document {
	d := Document{
		ID: a.ID, Run: string(a.Run), Task: a.Task, Profile: a.Profile, OnBehalfOf: a.OnBehalfEmail, Connection: a.Connection.String(), Tool: a.Tool,
		Effect: string(a.Effect), Arguments: a.Arguments, ArgsDigest: a.ArgsDigest, State: a.State, Resolution: a.Resolution, RetryOf: a.RetryOf,
		RequestedAt: a.RequestedAt.UTC(), ExpiresAt: a.ExpiresAt.UTC(), DecidedBy: a.DecidedByName, Reason: a.Reason, Result: a.Result,
		ApprovalURL: ApprovalURL(publicURL, a.ID), Timeline: make([]DocumentEvent, len(timeline)),
	}
	if a.ApprovedByPolicy {
		d.DecidedBy = "policy"
	}
	if a.DecidedAt != nil {
		at := a.DecidedAt.UTC()
		d.DecidedAt = &at
	}
	if a.ErrorSentence != "" {
		d.Error = &DocumentError{Code: fault.Code(a.ErrorCode), Message: a.ErrorSentence}
	}
	if a.Needed > 1 {
		d.Signatures = &DocumentSigned{Needed: a.Needed, By: make([]string, len(a.Signatures))}
		for i, s := range a.Signatures {
			d.Signatures.By[i] = s.Name
		}
	}
	for i, e := range timeline {
		d.Timeline[i] = DocumentEvent{At: e.At.UTC(), Event: e.Event, By: e.By}
	}
	return d
}

// ApprovalURL is the page where a person decides on an action.
func ApprovalURL(publicURL string, id ID) string { return publicURL + "/actions/" + string(id) }
