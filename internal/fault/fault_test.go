package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"countersign/internal/fault"
)

func TestAnErrorNobodyExpectedShowsNothingOfItself(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.1: password=hunter2")
	f := fault.Of(fmt.Errorf("while asking: %w", secret))
	if f.Kind != fault.Internal || f.Code != fault.CodeInternal || !errors.Is(f, secret) {
		t.Errorf("got %+v", f)
	}
	if text := f.Error(); text != f.What+" "+f.Next {
		t.Errorf("it says more than its sentences: %q", text)
	}
}

func TestAFaultIsFoundInsideOtherErrors(t *testing.T) {
	inner := fault.Absent("action")
	for sentence, err := range map[string]error{
		"itself": inner, "wrapped": fmt.Errorf("x: %w", inner), "joined": errors.Join(errors.New("y"), inner), "first of a list": fault.List{inner, fault.Field("a", "b")},
	} {
		if got, ok := fault.As(err); !ok || got != inner || !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("%s: got %v", sentence, got)
		}
	}
	if fault.Is(nil, fault.CodeNotFound) || fault.Is(errors.New("x"), fault.CodeInternal) {
		t.Error("a fault is found where there is none")
	}
}

func TestWrappingKeepsTheOriginal(t *testing.T) {
	shared := fault.New(fault.Unavailable, fault.CodeUnavailable, "It does not answer.", "")
	cause := errors.New("x")
	wrapped := shared.Wrap(cause)
	if shared.Cause != nil || !errors.Is(wrapped, cause) || wrapped.What != shared.What {
		t.Errorf("got %+v and %+v", shared, wrapped)
	}
}

func TestAListIsNilWhenEmpty(t *testing.T) {
	if err := (fault.List{}).Err(); err != nil {
		t.Errorf("got %v", err)
	}
	if err := (fault.List{fault.Field("a", "One."), fault.Field("b", "Two.")}).Err(); err == nil || err.Error() != "One.\nTwo." {
		t.Errorf("got %v", err)
	}
}
