package provider

import (
	"context"
	"errors"
	"net"

	"countersign/internal/egress"
	"countersign/internal/fault"
)

// ErrUnauthorized is a cause of the fault that a provider returns when the upstream refused the credential; whoever knows the auth
// contract says what to do about it (enter a new key, consent again).
var ErrUnauthorized = egress.ErrUnauthorized

// ErrScope is a cause where the upstream says that the credential is valid but not enough.
var ErrScope = errors.New("the credential lacks a permission the upstream asks for")

// Unauthorized is the fault for a refused credential.
func Unauthorized() *fault.Error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The service refused the credential of this connection.",
		"An admin can renew it on the connection's page.").Wrap(ErrUnauthorized)
}

// LacksScope begins the provider's code of an outcome that failed for want of scopes; those the upstream named follow.
const LacksScope = "insufficient_scope"

// ScopeError is ErrScope with the scopes the upstream named; it may name none.
type ScopeError struct{ Scopes []string }

// Error implements error.
func (e *ScopeError) Error() string { return ErrScope.Error() }

// Is makes it an ErrScope.
func (e *ScopeError) Is(target error) bool { return target == ErrScope }

// OutOfScope is the fault for a credential that is valid but not enough.
func OutOfScope(scopes []string) *fault.Error {
	return fault.New(fault.Unavailable, fault.NeedsConsent, "The service asks for a permission that the credential of this connection lacks.",
		"An admin can grant it on the connection's page.").Wrap(&ScopeError{scopes})
}

// EnterAnother is what to do about a credential that is no use, whatever the service would say of it.
const EnterAnother = "An admin can enter another on its page."

// Unreachable is the fault for an upstream that cannot be talked to. What is a sentence.
func Unreachable(what string, cause error) *fault.Error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, what, "Try again later; an admin can test the connection on its page.").Wrap(cause)
}

// TimedOut is the fault for an upstream that did not answer in time.
func TimedOut(cause error) *fault.Error {
	return fault.New(fault.Unavailable, fault.UpstreamTimeout, "The service did not answer in time.", "Ask for less at once, or try again later.").Wrap(cause)
}

// TooLarge is the fault for an answer over the bound.
func TooLarge(cause error) *fault.Error {
	return fault.New(fault.TooLarge, fault.ResultTooLarge, "The service's answer is larger than allowed.", "Ask for less at once: a filter, a smaller page, fewer fields.").Wrap(cause)
}

// Upstream is the fault for an error answer. What is a sentence that quotes nothing of the answer.
func Upstream(what string, cause error) *fault.Error {
	return fault.New(fault.Unavailable, fault.UpstreamError, what, "Check the arguments; if they are right, the service has a problem.").Wrap(cause)
}

// Broken is the fault for an exchange that came to no answer.
func Broken(err error) error {
	if f, ok := fault.As(err); ok && !errors.Is(err, egress.ErrTooLarge) {
		return f
	}
	var n net.Error
	switch {
	case errors.Is(err, egress.ErrTooLarge):
		return TooLarge(err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return TimedOut(err)
	case errors.Is(err, context.Canceled):
		return Unreachable("The call was given up before the service answered.", err)
	}
	return Unreachable("The service cannot be reached, or broke the connection.", err)
}

// IsUnauthorized reports whether err says that the upstream refused the credential.
func IsUnauthorized(err error) bool { return errors.Is(err, ErrUnauthorized) }
