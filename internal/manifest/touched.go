package manifest

import (
	"encoding/json"
	"slices"
)

// Touched is what a call names of the thing that its tool policy bounds by a resource setting. The zero value is a call that no
// setting bounds.
type Touched struct {
	Setting string // the resource setting that bounds it; empty where none does
	Value   string // what the call names: a text as it is, a number as written
	Named   bool   // the call names something at all
}

// Touches reads what a call's canonical arguments name. A structure, true, false and null name nothing.
func (m Manifest) Touches(tool string, arguments []byte) Touched {
	p, ok := m.Policy(tool)
	if !ok || p.Resource == nil || p.Resource.Setting == "" {
		return Touched{}
	}
	t := Touched{Setting: p.Resource.Setting}
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil {
		return t
	}
	raw := members[p.Resource.Argument]
	if len(raw) == 0 {
		return t
	}
	switch raw[0] {
	case '"':
		t.Named = json.Unmarshal(raw, &t.Value) == nil
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		t.Value, t.Named = string(raw), true
	}
	return t
}

// Outside says why a call leaves its bounds; empty when it stays inside. bound is the value of the connection's setting, empty where the
// connection was made without one. allowed are the values a profile leaves of it: nil is all of them, an empty list is none. What names
// nothing is outside any bound: fail closed.
func (t Touched) Outside(bound string, allowed []string) string {
	switch {
	case t.Setting == "" || (bound == "" && allowed == nil):
		return ""
	case !t.Named:
		return "The call names no " + t.Setting + ", and it must stay within one."
	case bound != "" && t.Value != bound:
		return "This connection is limited to one " + t.Setting + ", and the call names another."
	case allowed != nil && !slices.Contains(allowed, t.Value):
		return "The run's profile does not allow this " + t.Setting + " on this connection."
	}
	return ""
}
