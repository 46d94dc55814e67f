package admin

import (
	"cmp"
	"slices"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/views"
)

// steps makes one story, newest first: the run's own entries with those about it. An action stands once, where it was asked for, with
// what has become of it.
func steps(w *words, asked []action.Action, entries, about []audit.Recorded) []views.RunStep {
	known := map[string]action.Action{}
	for _, a := range asked {
		known[string(a.ID)] = a
	}
	seen := map[int64]bool{}
	told := map[string]bool{}
	all := slices.Concat(entries, about)
	for _, a := range asked { // approved by policy: the mode is the actor, not the run
		if a.ApprovedByPolicy {
			all = append(all, audit.Recorded{ID: -int64(len(all)) - 1, At: a.RequestedAt, Entry: audit.Entry{Event: audit.ActionApproved, Object: audit.Object{Kind: "action", ID: string(a.ID)}, Digest: a.ArgsDigest}})
		}
	}
	slices.SortStableFunc(all, func(a, b audit.Recorded) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	var out []views.RunStep
	for _, e := range all {
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		s := views.RunStep{At: e.At, Event: e.Event, Tool: factOf(e, "tool"), Code: factOf(e, "code"), By: e.Actor.Name, Digest: e.Digest}
		if e.Object.Kind == "action" {
			a, ok := known[e.Object.ID]
			if !ok || told[e.Object.ID] {
				continue
			}
			told[e.Object.ID] = true
			s.Action, s.Digest = &a, a.ArgsDigest
			_, s.Sentence = w.say(a)
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	return out
}
