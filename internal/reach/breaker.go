package reach

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"countersign/internal/fault"
	"countersign/internal/provider"
)

// A service that is away is not asked by every call: an agent that waits for a timeout each time holds a connection and a goroutine, and
// so do all the others. After so many failures of the connection in a row nobody asks for a moment; then one call finds out.
const (
	failuresInARow = 5
	restFor        = 10 * time.Second
)

// newBreaker watches reads of one line. What is being sent is never held up by it: a claim has been made, and it is sent once.
func newBreaker() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      restFor,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresInARow },
		IsSuccessful: func(err error) bool { return !away(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})
}

// away reports whether an error says something of the connection, and not only of the call.
func away(err error) bool {
	return fault.Is(err, fault.ConnectionUnavailable) || fault.Is(err, fault.UpstreamTimeout)
}

// resting is the answer while nobody asks.
var resting = fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The service did not answer the last calls, so it is left alone for a few seconds; nothing was sent.",
	"Go on without it, or call again in ten seconds.")

// Read calls a tool that has no effect.
func (l *Line) Read(ctx context.Context, call provider.Call) (r provider.Result, err error) {
	done, open := l.breaker.Allow()
	if open != nil {
		return provider.Result{}, resting
	}
	defer func() { done(cmp.Or(gaveUp(ctx), err)) }()
	return l.Provider.Read(ctx, l.Conn, call)
}

// gaveUp is a caller that went away, which says nothing of the service.
func gaveUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return nil
}
