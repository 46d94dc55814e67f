package providertest

import (
	"slices"
	"strings"
	"testing"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
)

func written(t *testing.T, w *World) {
	before := w.Applied(t)
	o := w.Provider.Execute(t.Context(), w.Connect(t, provider.Settings{}), w.Write)
	if o.Kind() != action.OutcomeSucceeded {
		t.Fatalf("%s: %s", o.Kind(), o.Sentence())
	}
	if n := w.Applied(t) - before; n != 1 {
		t.Errorf("applied %d times", n)
	}
	checkResult(t, w, o.Result())
	e := o.Evidence()
	if e.BytesWritten == 0 || e.Status/100 != 2 && !w.Statusless || !e.Complete || e.StartedAt.IsZero() || e.FirstByteAt.Before(e.StartedAt) || e.EndedAt.Before(e.FirstByteAt) {
		t.Errorf("evidence %+v", e)
	}
}

// verdict is what a fault must come to: the kind of outcome, and how often the effect is there.
type verdict struct {
	mode    Fault
	kind    action.OutcomeKind
	applied int
}

func brokenWrite(t *testing.T, w *World) {
	truncated := w.Truncated
	if truncated == "" {
		truncated = action.OutcomeUncertain
	}
	for _, v := range []verdict{
		{ApplyThenHang, action.OutcomeUncertain, 1},
		{ApplyThenReset, action.OutcomeUncertain, 1},
		{ApplyThen500, action.OutcomeUncertain, 1},
		{ApplyThenTruncate, truncated, 1},
		{Hang, action.OutcomeUncertain, 0},
		{Reset, action.OutcomeUncertain, 0},
		{Slow, action.OutcomeSucceeded, 1},
	} {
		if slices.Contains(w.Faults, v.mode) {
			t.Run(string(v.mode), func(t *testing.T) { v.check(t, w) })
		}
	}
}

func (v verdict) check(t *testing.T, w *World) {
	s := provider.Settings{Timeout: patience}
	if v.mode == Slow {
		s.Timeout = 0
	}
	c := w.Connect(t, s)
	if _, err := w.Provider.Read(t.Context(), c, w.Read); err != nil { // warm: a kept connection must not be used, nor a retry
		t.Fatal(err)
	}
	before := w.Applied(t)
	w.Break(t, w.Write.Tool, v.mode)
	o := w.Provider.Execute(t.Context(), c, w.Write)
	if o.Kind() != v.kind {
		t.Errorf("outcome %s, want %s: %s", o.Kind(), v.kind, o.Sentence())
	}
	if n := w.Applied(t) - before; n != v.applied {
		t.Errorf("applied %d times, want %d", n, v.applied)
	}
	if o.Evidence().BytesWritten == 0 {
		t.Error("the evidence does not show that something was sent")
	}
	if o.Kind() == action.OutcomeUncertain && (o.Sentence() == "" || o.Code() == "") {
		t.Error("an uncertain outcome needs a sentence and a code")
	}
	if strings.Contains(o.Sentence(), w.Secret) && w.Secret != "" {
		t.Error("the sentence holds the credential")
	}
}

func rejected(t *testing.T, w *World) {
	if !slices.Contains(w.Faults, Reject) {
		t.Skip("the upstream cannot reject")
	}
	c := w.Connect(t, provider.Settings{})
	before := w.Applied(t)
	call := w.Write
	if w.Definite != nil {
		w.Break(t, call.Tool, Reject)
		if o := w.Provider.Execute(t.Context(), c, call); o.Kind() != action.OutcomeUncertain {
			t.Errorf("an error that nobody knows to be definite is %s", o.Kind())
		}
		call.Definite = w.Definite
	}
	w.Break(t, call.Tool, Reject)
	if o := w.Provider.Execute(t.Context(), c, call); o.Kind() != action.OutcomeFailed {
		t.Errorf("a definite rejection is %s: %s", o.Kind(), o.Sentence())
	}
	if n := w.Applied(t) - before; n != 0 {
		t.Errorf("applied %d times", n)
	}
}

// limited is a 429: nothing was applied.
func limited(t *testing.T, w *World) {
	if !slices.Contains(w.Faults, Limit) {
		t.Skip("the upstream has no rate limit that it says so")
	}
	c := w.Connect(t, provider.Settings{})
	before := w.Applied(t)
	w.Break(t, w.Write.Tool, Limit)
	o := w.Provider.Execute(t.Context(), c, w.Write)
	if o.Kind() != action.OutcomeFailed || o.Evidence().Status != 429 || !strings.Contains(o.Sentence(), "rate limit") {
		t.Errorf("it is %s: %s %+v", o.Kind(), o.Sentence(), o.Evidence())
	}
	if n := w.Applied(t) - before; n != 0 {
		t.Errorf("applied %d times", n)
	}
}

func dead(t *testing.T, w *World) {
	c := w.Dead(t)
	if _, err := w.Provider.Read(t.Context(), c, w.Read); !fault.Is(err, fault.ConnectionUnavailable) {
		t.Errorf("a read answers %v", err)
	}
	if _, err := w.Provider.Tools(t.Context(), c); err == nil && w.Spoil != nil {
		t.Error("tools are listed")
	}
	o := w.Provider.Execute(t.Context(), c, w.effect())
	if o.Kind() != action.OutcomeFailed || o.Evidence().BytesWritten != 0 {
		t.Errorf("a write is %s: %s %+v", o.Kind(), o.Sentence(), o.Evidence())
	}
}

func revoked(t *testing.T, w *World) {
	if w.Revoked == nil {
		t.Skip("the service is open")
	}
	before := w.applied(t)
	c := w.Revoked(t)
	_, err := w.Provider.Read(t.Context(), c, w.Read)
	if !provider.IsUnauthorized(err) {
		t.Errorf("a read answers %v", err)
	}
	if o := w.Provider.Execute(t.Context(), c, w.effect()); o.Kind() != action.OutcomeFailed {
		t.Errorf("a write is %s: %s", o.Kind(), o.Sentence())
	}
	if n := w.applied(t) - before; n != 0 {
		t.Errorf("applied %d times", n)
	}
}

// effect is the write, or the read of a provider that has none.
func (w *World) effect() provider.Call {
	if w.Write.Tool == "" {
		return w.Read
	}
	return w.Write
}

func (w *World) applied(t *testing.T) int {
	if w.Applied == nil {
		return 0
	}
	return w.Applied(t)
}
