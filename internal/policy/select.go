package policy

import (
	"slices"
	"strings"

	"countersign/internal/fault"
)

// Candidate is a tool as the upstream lists it now, classified.
type Candidate struct {
	Tool    string
	Digest  string
	Recipe  int
	Class   Class
	Held    bool   // its definition differs from the pinned one and nobody has reviewed the difference
	Problem string // why it cannot be used at all (a schema we cannot read); empty where it can
}

// Eligible reports whether the candidate may be granted under an access.
func (c Candidate) Eligible(a Access) bool {
	return c.Problem == "" && !c.Held && a.Allows(c.Class.Effect)
}

// Choice is what a person asks for. With Listed, Tools is the exact list and wins, empty meaning none. Without it, Tools is what an
// unscripted browser posted beside the mode.
type Choice struct {
	Mode   Mode
	Listed bool
	Tools  []string
}

// Standing is what a connection has now.
type Standing struct {
	Mode     Mode
	Snapshot Snapshot
}

// Select turns a choice into the next standing. An explicit list wins; a mode-only change deliberately selects every tool that is
// eligible for the target mode now; an unchanged mode without a list changes nothing. It refuses a list that names a tool which is
// unknown, ineligible or held back, and asks back when ticks and "every tool" contradict each other.
func Select(now Standing, choice Choice, offered []Candidate) (Standing, error) {
	if choice.Listed {
		return selectListed(choice, offered)
	}
	if len(choice.Tools) > 0 && !sameTools(choice.Tools, now.Snapshot.Tools()) && !sameTools(choice.Tools, tickable(now.Snapshot, offered)) {
		return Standing{}, fault.New(fault.Conflict, fault.CodeConflict,
			"Not saved. You ticked single tools, but the choice says “every tool this mode allows”.",
			"Choose “only the ticked tools” to save your ticks, or untick nothing and save the mode alone.")
	}
	if choice.Mode == now.Mode {
		return now, nil
	}
	return selectEligible(choice.Mode, offered)
}

// tickable are the granted tools a form can post at all: one that is held back or unusable has no tick, and that is no question.
func tickable(s Snapshot, offered []Candidate) []string {
	return s.Only(func(p Pinned) bool {
		i := slices.IndexFunc(offered, func(c Candidate) bool { return c.Tool == p.Tool })
		return i >= 0 && !offered[i].Held && offered[i].Problem == ""
	}).Tools()
}

func selectListed(choice Choice, offered []Candidate) (Standing, error) {
	var pins []Pinned
	var faults fault.List
	for _, name := range choice.Tools {
		i := slices.IndexFunc(offered, func(c Candidate) bool { return c.Tool == name })
		if i < 0 {
			faults = append(faults, fault.Field("tools", "Not saved. The service has no tool “"+name+"” any more; save without it."))
			continue
		}
		if c := offered[i]; !c.Eligible(choice.Mode.Access()) {
			faults = append(faults, fault.Field("tools", ineligible(c)))
			continue
		}
		pins = append(pins, pin(offered[i]))
	}
	if err := faults.Err(); err != nil {
		return Standing{}, err
	}
	snapshot, err := NewSnapshot(pins)
	return Standing{Mode: choice.Mode, Snapshot: snapshot}, err
}

func selectEligible(mode Mode, offered []Candidate) (Standing, error) {
	var pins []Pinned
	for _, c := range offered {
		if c.Eligible(mode.Access()) {
			pins = append(pins, pin(c))
		}
	}
	snapshot, err := NewSnapshot(pins)
	return Standing{Mode: mode, Snapshot: snapshot}, err
}

func ineligible(c Candidate) string {
	switch {
	case c.Problem != "":
		return "Not saved. “" + c.Tool + "” cannot be used: " + c.Problem
	case c.Held:
		return "Not saved. “" + c.Tool + "” changed and is held back. Review the change, or save without it."
	}
	return "Not saved. “" + c.Tool + "” writes, and this mode only reads. Choose a mode that may write, or save without it."
}

func pin(c Candidate) Pinned {
	return Pinned{Tool: c.Tool, Digest: c.Digest, Recipe: c.Recipe, Effect: c.Class.Effect, Destructive: c.Class.Destructive}
}

func sameTools(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, strings.Compare)
	slices.SortFunc(b, strings.Compare)
	return slices.Equal(slices.Compact(a), b)
}

// Accept replaces the pinned definition of a tool that is granted already with the one a person has reviewed. It can neither grant a
// tool nor keep one whose new effect the mode does not allow.
func Accept(now Standing, reviewed Candidate) (Standing, error) {
	if _, ok := now.Snapshot.Find(reviewed.Tool); !ok {
		return Standing{}, fault.Stale("“" + reviewed.Tool + "” is not granted any more, so there is nothing to accept.")
	}
	reviewed.Held = false
	if !reviewed.Eligible(now.Mode.Access()) {
		return Standing{}, fault.New(fault.Conflict, fault.CodeConflict, "Not accepted. "+strings.TrimPrefix(ineligible(reviewed), "Not saved. "),
			"Choose a mode that allows it first, or save the tools without it.")
	}
	entries := slices.Collect(now.Snapshot.All())
	for i := range entries {
		if entries[i].Tool == reviewed.Tool {
			entries[i] = pin(reviewed)
		}
	}
	snapshot, err := NewSnapshot(entries)
	return Standing{Mode: now.Mode, Snapshot: snapshot}, err
}

// Reclassify is the standing after a person changed what definitions count as. A tool that is granted by that very definition takes its
// new effect, or is taken away where the mode does not allow that; nothing is granted by it.
func Reclassify(now Standing, offered []Candidate) (Standing, error) {
	var entries []Pinned
	for p := range now.Snapshot.All() {
		i := slices.IndexFunc(offered, func(c Candidate) bool { return c.Tool == p.Tool && c.Digest == p.Digest && c.Recipe == p.Recipe })
		if i >= 0 {
			p = pin(offered[i])
		}
		if now.Mode.Access().Allows(p.Effect) {
			entries = append(entries, p)
		}
	}
	snapshot, err := NewSnapshot(entries)
	return Standing{Mode: now.Mode, Snapshot: snapshot}, err
}
