package policy

import (
	"slices"

	"countersign/internal/fault"
)

// Effect is what a tool does to the outside world.
type Effect string

// The two effects. There is no third: what is not known to be a read is consequential.
const (
	Read          Effect = "read"
	Consequential Effect = "consequential"
)

// Mode is how freely agents may use a connection. It is stored exactly.
type Mode string

// The permission modes.
const (
	ReadOnly       Mode = "read_only"
	AskUserOnWrite Mode = "ask_user_on_write"
	Autonomous     Mode = "autonomous"
)

// Modes lists the modes from narrowest to widest.
var Modes = []Mode{ReadOnly, AskUserOnWrite, Autonomous}

// ParseMode accepts exactly the three mode names.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains(Modes, m) {
		return m, nil
	}
	return "", fault.Field("mode", "There is no mode “"+s+"”; choose read_only, ask_user_on_write or autonomous.")
}

// Within is the narrower of two modes. No mode is the narrowest.
func (m Mode) Within(limit Mode) Mode {
	if slices.Index(Modes, limit) < slices.Index(Modes, m) {
		return limit
	}
	return m
}

// Access is the legacy derived access. It exists only to decide which tools are eligible.
type Access string

// The two accesses.
const (
	AccessReadOnly Access = "read_only"
	AccessFull     Access = "full"
)

// Access derives the legacy access: read_only maps to read_only, both write-capable modes to full.
func (m Mode) Access() Access {
	if m == AskUserOnWrite || m == Autonomous {
		return AccessFull
	}
	return AccessReadOnly
}

// Allows reports whether a tool of this effect is eligible under the access.
func (a Access) Allows(e Effect) bool {
	return e == Read || (e == Consequential && a == AccessFull)
}

// Surface is where a run talks from.
type Surface string

// The surfaces.
const (
	Chat Surface = "chat"
	Task Surface = "task"
)

// ParseSurface accepts exactly chat and task.
func ParseSurface(s string) (Surface, error) {
	if s == string(Chat) || s == string(Task) {
		return Surface(s), nil
	}
	return "", fault.Field("surface", "There is no surface “"+s+"”; choose chat or task.")
}
