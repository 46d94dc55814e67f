package policy

import (
	"iter"
	"slices"
	"strings"

	"countersign/internal/fault"
)

// Pinned is one entry of a snapshot: a tool exactly as a person granted it.
type Pinned struct {
	Tool        string // the upstream's name, byte for byte
	Digest      string // hex SHA-256 of the canonical raw definition
	Recipe      int    // version of the digest recipe
	Effect      Effect
	Destructive bool
}

// Snapshot is the materialized authorization of a connection. It is made whole by a person's save and can afterwards only be
// narrowed: it has no way to add. The zero value grants nothing.
type Snapshot struct {
	entries []Pinned // sorted by tool, unique
}

// NewSnapshot builds a snapshot from entries that a person chose. Two entries for one tool are an error.
func NewSnapshot(entries []Pinned) (Snapshot, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Pinned) int { return strings.Compare(a.Tool, b.Tool) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Tool == sorted[i-1].Tool {
			return Snapshot{}, fault.Field("tools", "The tool “"+sorted[i].Tool+"” is listed twice.")
		}
	}
	return Snapshot{entries: sorted}, nil
}

// Find returns the entry of a tool, by byte-equal name.
func (s Snapshot) Find(tool string) (Pinned, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, tool, func(p Pinned, t string) int { return strings.Compare(p.Tool, t) })
	if !ok {
		return Pinned{}, false
	}
	return s.entries[i], true
}

// Len is the number of granted tools.
func (s Snapshot) Len() int { return len(s.entries) }

// All yields the entries in the order of their names.
func (s Snapshot) All() iter.Seq[Pinned] { return slices.Values(s.entries) }

// Tools lists the names in order.
func (s Snapshot) Tools() []string {
	names := make([]string, len(s.entries))
	for i, p := range s.entries {
		names[i] = p.Tool
	}
	return names
}

// Only narrows the snapshot to the entries that keep accepts.
func (s Snapshot) Only(keep func(Pinned) bool) Snapshot {
	var kept []Pinned
	for _, p := range s.entries {
		if keep(p) {
			kept = append(kept, p)
		}
	}
	return Snapshot{entries: kept}
}

// Equal reports whether both grant exactly the same definitions with the same effects.
func (s Snapshot) Equal(other Snapshot) bool { return slices.Equal(s.entries, other.entries) }
