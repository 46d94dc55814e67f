package action

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"countersign/internal/egress"
	"countersign/internal/fault"
)

// OutcomeKind is what became of one dispatch.
type OutcomeKind string

// The three outcomes. There is no fourth, and none of them is an error.
const (
	OutcomeSucceeded OutcomeKind = "succeeded" // the effect was applied, once
	OutcomeFailed    OutcomeKind = "failed"    // the effect was definitely not applied
	OutcomeUncertain OutcomeKind = "uncertain" // nobody knows yet
)

// Evidence is what was observed while one write was sent. It is shown to the person who settles an uncertain action; it holds no
// argument, no answer and no credential. Times are of this process: they order events of one dispatch, never states.
type Evidence struct {
	StartedAt    time.Time `json:"started_at,omitzero"`
	FirstByteAt  time.Time `json:"first_byte_at,omitzero"` // of the answer
	EndedAt      time.Time `json:"ended_at,omitzero"`
	BytesWritten int64     `json:"bytes_written"` // of the request, handed to the connection
	BytesRead    int64     `json:"bytes_read"`    // of the answer's body
	Status       int       `json:"status,omitempty"`
	Complete     bool      `json:"complete"`                // the answer's body arrived whole
	Transport    string    `json:"transport,omitempty"`     // the kind of transport error, if one
	ProviderCode string    `json:"provider_code,omitempty"` // the provider's own error code, if it gave one
	Before       string    `json:"before,omitempty"`        // what the provider's code noted of the thing before the write, for its own look afterwards
}

// Outcome is what a provider answers to Execute. It can only be made by Succeeded, Failed and Uncertain; the zero value is
// uncertain, so that forgetting to decide never claims that nothing happened.
type Outcome struct {
	kind     OutcomeKind
	result   json.RawMessage
	code     fault.Code
	sentence string
	evidence Evidence
}

// Succeeded is a complete answer that says the effect was applied. Result is an MCP tool result.
func Succeeded(result json.RawMessage, e Evidence) Outcome {
	return Outcome{kind: OutcomeSucceeded, result: result, evidence: e}
}

// Failed is proof that the effect was not applied. Sentence says why, for a person.
func Failed(code fault.Code, sentence string, e Evidence) Outcome {
	return Outcome{kind: OutcomeFailed, code: code, sentence: sentence, evidence: e}
}

// Uncertain is everything else. Sentence says what was and was not seen.
func Uncertain(code fault.Code, sentence string, e Evidence) Outcome {
	return Outcome{kind: OutcomeUncertain, code: code, sentence: sentence, evidence: e}
}

// WithAnswer keeps the provider's own error answer (an MCP tool result) with a failed or uncertain outcome. A succeeded one
// already has its result and keeps it.
func (o Outcome) WithAnswer(result json.RawMessage) Outcome {
	if o.kind != OutcomeSucceeded {
		o.result = result
	}
	return o
}

// WithProviderCode keeps the provider's own error code among the evidence.
func (o Outcome) WithProviderCode(code string) Outcome {
	o.evidence.ProviderCode = code
	return o
}

// WithBefore keeps what was noted before the write among the evidence.
func (o Outcome) WithBefore(note string) Outcome {
	o.evidence.Before = note
	return o
}

// Kind is succeeded, failed or uncertain.
func (o Outcome) Kind() OutcomeKind {
	if o.kind == "" {
		return OutcomeUncertain
	}
	return o.kind
}

// Result is the provider's answer as an MCP tool result; nil where there was none.
func (o Outcome) Result() json.RawMessage { return o.result }

// Code is empty for a success.
func (o Outcome) Code() fault.Code {
	if o.kind == "" {
		return fault.UpstreamError
	}
	return o.code
}

// Sentence is empty for a success.
func (o Outcome) Sentence() string {
	if o.kind == "" {
		return "The provider did not say what became of the call."
	}
	return o.sentence
}

// Evidence is what was observed.
func (o Outcome) Evidence() Evidence { return o.evidence }

// Observed turns a transport record into evidence.
func Observed(r egress.Record) Evidence {
	return Evidence{
		StartedAt: r.StartedAt, FirstByteAt: r.FirstByteAt, EndedAt: r.EndedAt, BytesWritten: r.BytesWritten,
		BytesRead: r.BytesRead, Status: r.Status, Complete: r.Complete, Transport: string(r.Failure),
	}
}

// refusals are the statuses by which HTTP servers say that they did not do it. 408, 409, 425, 499 and 5xx are not among them:
// servers send those after having done the work, too.
var refusals = map[int]string{
	http.StatusBadRequest:            "The provider refused the request as malformed",
	http.StatusUnauthorized:          "The provider refused the credential",
	http.StatusForbidden:             "The provider does not allow this",
	http.StatusNotFound:              "The provider knows no such thing",
	http.StatusMethodNotAllowed:      "The provider does not accept this method",
	http.StatusRequestEntityTooLarge: "The provider refused the request as too large",
	http.StatusUnsupportedMediaType:  "The provider refused the form of the request",
	http.StatusUnprocessableEntity:   "The provider refused the content of the request",
	http.StatusTooManyRequests:       "The provider refused the request because of its rate limit",
	http.StatusTemporaryRedirect:     "The provider redirected the request, which is never followed",
	http.StatusPermanentRedirect:     "The provider redirected the request, which is never followed",
}

// Classify judges a write by its transport alone. Settled is false only where the transport proves that a 2xx answer (but 202)
// began: then the provider judges the body. Everything that proves neither that nothing was done nor that an answer came is
// uncertain, and so is a record that nobody kept.
func Classify(r egress.Record) (o Outcome, settled bool) {
	e := Observed(r)
	switch {
	case !r.Watched:
		return Uncertain(fault.UpstreamError, "What was sent was not recorded, so nobody knows whether it was applied.", e), true
	case r.Status == 0:
		return unanswered(r, e), true
	case refusals[r.Status] != "":
		return Failed(fault.UpstreamError, refusals[r.Status]+" (HTTP "+strconv.Itoa(r.Status)+"); nothing was applied.", e), true
	case r.Status == http.StatusAccepted:
		return Uncertain(fault.UpstreamError, "The provider accepted the request but has not said that it is done.", e), true
	case r.Status >= 200 && r.Status < 300:
		return Outcome{}, false
	default:
		return Uncertain(fault.UpstreamError, "The provider answered with an error that does not say whether it was applied (HTTP "+strconv.Itoa(r.Status)+").", e), true
	}
}

// unanswered judges a request without a status. Only a request of which not one byte reached the connection is certainly unsent.
func unanswered(r egress.Record, e Evidence) Outcome {
	if r.BytesWritten == 0 && r.Failure != "" {
		return Failed(unsentCode(r.Failure), "The provider could not be reached ("+r.Failure.Sentence()+"); nothing was sent.", e)
	}
	if r.Failure == egress.TimedOut {
		return Uncertain(fault.UpstreamTimeout, "The request was sent and no answer came in time.", e)
	}
	return Uncertain(fault.UpstreamError, "The request was sent and the connection ended before an answer came.", e)
}

func unsentCode(f egress.Failure) fault.Code {
	if f == egress.TimedOut {
		return fault.UpstreamTimeout
	}
	return fault.ConnectionUnavailable
}
