package installation

import (
	"fmt"
	"strings"

	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/policy"
)

// rawOf keeps the accepted bytes of a tool that stays pinned as it was; a newly pinned one takes the bytes listed now.
func rawOf(t Tool, p policy.Pinned) []byte {
	if t.Pinned != nil && t.Pinned.Digest == p.Digest {
		return t.PinnedRaw
	}
	return t.Raw
}

func newlyHeld(c Connection, before, now []Observed) []Observed {
	known := map[string]string{}
	for _, o := range before {
		known[o.Tool] = o.Digest
	}
	var held []Observed
	for _, o := range now {
		p, granted := c.Standing.Snapshot.Find(o.Tool)
		if granted && p.Digest != o.Digest && known[o.Tool] != o.Digest {
			held = append(held, o)
		}
	}
	return held
}

func sameList(a, b []Observed) bool {
	if len(a) != len(b) {
		return false
	}
	known := map[string]string{}
	for _, o := range a {
		known[o.Tool] = o.Digest + o.Problem
	}
	for _, o := range b {
		if d, ok := known[o.Tool]; !ok || d != o.Digest+o.Problem {
			return false
		}
	}
	return true
}

func difference(before, after policy.Snapshot) (added, removed string) {
	var plus, minus []string
	for p := range after.All() {
		if q, ok := before.Find(p.Tool); !ok || q != p {
			plus = append(plus, p.Tool)
		}
	}
	for p := range before.All() {
		if _, ok := after.Find(p.Tool); !ok {
			minus = append(minus, p.Tool)
		}
	}
	return brief(plus), brief(minus)
}

// brief keeps an audit fact readable when a mode change moves hundreds of tools.
func brief(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func nextVersion(now []credential.Record) int64 {
	if len(now) == 0 {
		return 1
	}
	return now[0].Version + 1
}

func collect(faults fault.List, err error) fault.List {
	switch e := err.(type) {
	case nil:
	case fault.List:
		faults = append(faults, e...)
	default:
		faults = append(faults, fault.Of(err))
	}
	return faults
}
