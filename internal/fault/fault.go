// Package fault owns the few kinds of error a caller can act on. Every fault is one sentence for a person that says what is
// wrong and why, one that says what to do next, and a stable code for a program. It knows nothing of HTTP, MCP or SQL: web/errors.go
// maps kinds to answers, in one place. A fault never carries a credential, an argument value or an upstream body.
package fault

import (
	"errors"
	"strings"
)

// Kind says what sort of answer a fault deserves.
type Kind uint8

// The kinds, from the caller's fault to ours.
const (
	Invalid         Kind = iota + 1 // the input is wrong and can be corrected
	Unauthenticated                 // we do not know who asks
	Forbidden                       // we know, and the answer is no
	NotFound                        // absent, or another organization's: the two look the same
	Conflict                        // the world changed since the caller looked
	Limited                         // too often; later is fine
	TooLarge                        // over a stated bound
	Unavailable                     // a thing we depend on does not answer
	Internal                        // our own defect
)

// Code is the stable, machine-readable name of a fault.
type Code string

// Refusal codes of the agent gateway. They are part of the interface: agents branch on them.
const (
	ToolNotGranted        Code = "tool_not_granted"
	ConsequentialInChat   Code = "consequential_in_chat"
	ReadOnlyConnection    Code = "read_only_connection"
	DefinitionChanged     Code = "definition_changed"
	ProfileForbids        Code = "profile_forbids"
	TaskEnded             Code = "task_ended"
	ConnectionUnavailable Code = "connection_unavailable"
	NeedsConsent          Code = "needs_consent"
	BudgetExceeded        Code = "budget_exceeded"
	OutsideResource       Code = "outside_resource"
	IdempotencyConflict   Code = "idempotency_conflict"
	UncertainPending      Code = "uncertain_pending"
	Frozen                Code = "frozen"
	RunEnded              Code = "run_ended"
	InvalidArguments      Code = "invalid_arguments"
	UpstreamError         Code = "upstream_error"
	UpstreamTimeout       Code = "upstream_timeout"
	ResultTooLarge        Code = "result_too_large"
)

// Codes shared by the pages, the service API and the commands.
const (
	CodeInvalid         Code = "invalid"
	CodeUnauthenticated Code = "unauthenticated"
	CodeForbidden       Code = "forbidden"
	CodeNotFound        Code = "not_found"
	CodeConflict        Code = "conflict"
	CodeStale           Code = "stale"
	CodeLimited         Code = "rate_limited"
	CodeTooLarge        Code = "too_large"
	CodeUnavailable     Code = "unavailable"
	CodeInternal        Code = "internal"
)

// Error is a fault. What and Next are full sentences for a person; Field names the input that is wrong, if one is.
type Error struct {
	Kind  Kind
	Code  Code
	What  string
	Next  string
	Field string
	Cause error // for our log only; never shown
}

// New makes a fault of a kind with its code, what is wrong, and what to do next (may be empty).
func New(kind Kind, code Code, what, next string) *Error {
	return &Error{Kind: kind, Code: code, What: what, Next: next}
}

// Field makes an Invalid fault about one named input.
func Field(name, what string) *Error {
	return &Error{Kind: Invalid, Code: CodeInvalid, What: what, Field: name}
}

// Absent is the one NotFound answer, for what does not exist and for what belongs to somebody else.
func Absent(noun string) *Error {
	return New(NotFound, CodeNotFound, "There is no such "+noun+".", "Check the address; it may have been removed, or belong to another organization.")
}

// Stale says that the thing changed while the caller looked at it.
func Stale(what string) *Error {
	return New(Conflict, CodeStale, what, "Read the page as it is now and decide again.")
}

// Wrap keeps cause for the log and returns the fault.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Error is What and Next as one line.
func (e *Error) Error() string {
	if e.Next == "" {
		return e.What
	}
	return e.What + " " + e.Next
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// As finds the fault in err, if it holds one.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// Is reports whether err holds a fault of this code.
func Is(err error, code Code) bool {
	e, ok := As(err)
	return ok && e.Code == code
}

// Of returns the fault in err, or the one Internal fault with err as its cause: what a stranger may see of an unexpected error.
func Of(err error) *Error {
	if e, ok := As(err); ok {
		return e
	}
	return New(Internal, CodeInternal, "Something went wrong on our side; nothing was changed.", "Try again; if it persists, the operator finds the cause in the server log.").Wrap(err)
}

// List is several faults about one input, in the order found.
type List []*Error

// Error joins the sentences, one a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Err is the list as an error: nil when empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Unwrap lets errors.As find the first fault.
func (l List) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}
