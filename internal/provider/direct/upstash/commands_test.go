package upstash

import (
	"slices"
	"testing"
)

// The schema of a tool refuses what is not on its list; so does the code behind it, on its own.
func TestTheListsAreTheFence(t *testing.T) {
	for _, refused := range []string{"EVAL", "FLUSHALL", "CONFIG", "KEYS", "GET ", "get", ""} {
		for name, list := range map[string][]string{"reading": reading, "writing": writing} {
			if wire, err := (command{Command: refused, Key: "k"}).wire(list); err == nil {
				t.Errorf("%q by the list of %s: %v", refused, name, wire)
			}
		}
	}
	for _, c := range reading {
		if slices.Contains(writing, c) {
			t.Errorf("%s is on both lists", c)
		}
	}
	if !slices.IsSorted(reading) || !slices.IsSorted(writing) {
		t.Error("the lists are not in order, so that a reviewer could overlook something")
	}
	wire, err := command{Command: "BITOP AND", Key: "to", Arguments: []string{"a"}}.wire(writing)
	if err != nil || !slices.Equal(wire, []string{"BITOP", "AND", "to", "a"}) {
		t.Errorf("%v %v", wire, err)
	}
}
