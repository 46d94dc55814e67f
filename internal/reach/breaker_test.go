package reach

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
)

// service answers with err, and counts how often it is asked.
type service struct {
	err   error
	asked int
}

func (s *service) Tools(context.Context, *provider.Conn) ([]provider.Definition, error) {
	s.asked++
	return nil, s.err
}

func (s *service) Read(context.Context, *provider.Conn, provider.Call) (provider.Result, error) {
	s.asked++
	return provider.Result{}, s.err
}

func (s *service) Execute(context.Context, *provider.Conn, provider.Call) action.Outcome {
	return action.Uncertain(fault.UpstreamTimeout, "No answer.", action.Evidence{})
}

func (s *service) Test(context.Context, *provider.Conn) (provider.Finding, error) {
	return provider.Finding{}, s.err
}

var (
	gone    = fault.New(fault.Unavailable, fault.ConnectionUnavailable, "It is away.", "")
	refuses = fault.New(fault.Invalid, fault.UpstreamError, "It says no.", "")
)

func TestAServiceThatIsAwayIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{err: gone}
		l := &Line{Provider: s, breaker: newBreaker()}
		read := func() error { _, err := l.Read(t.Context(), provider.Call{}); return err }
		for range failuresInARow + 20 {
			if err := read(); !fault.Is(err, fault.ConnectionUnavailable) {
				t.Fatal(err)
			}
		}
		if s.asked != failuresInARow {
			t.Errorf("asked %d times", s.asked)
		}
		if _, err := l.Tools(t.Context(), FreshFor); !errors.Is(err, resting) || s.asked != failuresInARow {
			t.Errorf("a list for a call asks it: %v", err)
		}
		if _, err := l.Tools(t.Context(), 0); errors.Is(err, resting) {
			t.Error("a claim, or a person's test, is not told how it is now")
		}
		time.Sleep(restFor + time.Second) // by the clock of the bubble: it takes no time
		asked := s.asked
		if err := read(); errors.Is(err, resting) || s.asked != asked+1 {
			t.Errorf("after its rest nobody finds out: %v", err)
		}
		if err := read(); !errors.Is(err, resting) {
			t.Errorf("one that is still away is asked by everybody: %v", err)
		}
		time.Sleep(restFor + time.Second) // by the clock of the bubble: it takes no time
		s.err = nil
		for range 3 {
			if err := read(); err != nil {
				t.Errorf("it is back: %v", err)
			}
		}
	})
}

func TestWhatSaysNothingOfTheServiceDoesNotRestIt(t *testing.T) {
	s := &service{err: refuses}
	l := &Line{Provider: s, breaker: newBreaker()}
	for range 3 * failuresInARow {
		_, _ = l.Read(t.Context(), provider.Call{})
	}
	s.err = gone
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 3 * failuresInARow {
		_, _ = l.Read(left, provider.Call{})
	}
	s.err = nil
	if _, err := l.Read(t.Context(), provider.Call{}); err != nil {
		t.Errorf("refusals, and callers who went away, rest the service: %v", err)
	}
}
