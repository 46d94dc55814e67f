package release

import (
	"slices"
	"strings"
)

// Changes is how one release differs from another, in words. Everything is sorted by key.
type Changes struct {
	From    Digest   `json:"from,omitempty"` // empty: from nothing
	To      Digest   `json:"to"`
	Added   []Named  `json:"added,omitempty"`
	Removed []Named  `json:"removed,omitempty"`
	Changed []Change `json:"changed,omitempty"`
}

// Named is one integration that came or went.
type Named struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// Change is one integration that is in both, with what differs.
type Change struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Lines []Line `json:"lines"`
}

// Line is one field that differs. Widens marks what lets agents do more, or with fewer questions: a reviewer starts there.
type Line struct {
	Field  string `json:"field"` // "tools.refund_issue.effect"
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Text   string `json:"text"` // the sentence
	Widens bool   `json:"widens,omitempty"`
}

// None reports whether nothing differs.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Widens reports whether any line lets agents do more.
func (c Changes) Widens() bool {
	return slices.ContainsFunc(c.Changed, func(ch Change) bool {
		return slices.ContainsFunc(ch.Lines, func(l Line) bool { return l.Widens })
	})
}

// Words is the whole difference as lines for a person.
func (c Changes) Words() []string {
	if c.None() {
		return []string{"Nothing differs."}
	}
	var out []string
	for _, n := range c.Added {
		out = append(out, "Added "+n.Name+" ("+n.Key+").")
	}
	for _, n := range c.Removed {
		out = append(out, "Removed "+n.Name+" ("+n.Key+"); its connections keep working with the release they were made from.")
	}
	for _, ch := range c.Changed {
		out = append(out, "Changed "+ch.Name+" ("+ch.Key+"):")
		for _, l := range ch.Lines {
			out = append(out, "  "+l.Text)
		}
	}
	return out
}

// Diff says how b differs from a.
func Diff(a, b Release) Changes {
	c := Changes{From: a.digest, To: b.digest}
	for _, m := range b.all().manifests {
		old, was := a.Manifest(m.Key)
		if !was {
			c.Added = append(c.Added, Named{m.Key, m.Name})
			continue
		}
		if lines := diffManifest(old, m); len(lines) > 0 {
			c.Changed = append(c.Changed, Change{m.Key, m.Name, lines})
		}
	}
	for _, m := range a.all().manifests {
		if _, is := b.Manifest(m.Key); !is {
			c.Removed = append(c.Removed, Named{m.Key, m.Name})
		}
	}
	named := func(x, y Named) int { return strings.Compare(x.Key, y.Key) }
	slices.SortFunc(c.Added, named)
	slices.SortFunc(c.Removed, named)
	slices.SortFunc(c.Changed, func(x, y Change) int { return strings.Compare(x.Key, y.Key) })
	return c
}
