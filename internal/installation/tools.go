package installation

import (
	"slices"
	"strings"
	"time"

	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

// Merge lays what is listed now over what is pinned and says what each tool is. raws holds the accepted definition of each pinned tool.
func Merge(c Connection, observed []Observed, raws map[string][]byte, m manifest.Manifest) []Tool {
	began := firstListing(observed)
	tools := make([]Tool, 0, len(observed))
	for _, o := range observed {
		t := Tool{Observed: o, Listed: true, Class: classify(c, m, o), PinnedRaw: raws[o.Tool]}
		if p, ok := c.Standing.Snapshot.Find(o.Tool); ok {
			t.Pinned = &p
			t.Held = changed(p, o)
		}
		t.New = t.Pinned == nil && o.FirstSeen.After(began)
		t.Sentence = sentence(m, o.Tool)
		t.Lacks = Lacks(c, m, o.Tool)
		tools = append(tools, t)
	}
	for p := range c.Standing.Snapshot.All() {
		if !slices.ContainsFunc(observed, func(o Observed) bool { return o.Tool == p.Tool }) {
			tools = append(tools, Tool{
				Observed: Observed{Tool: p.Tool, Digest: p.Digest, Recipe: p.Recipe}, Pinned: &p, PinnedRaw: raws[p.Tool],
				Class: policy.Class{Effect: p.Effect, Destructive: p.Destructive}, Sentence: sentence(m, p.Tool),
			})
		}
	}
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Tool, b.Tool) })
	return tools
}

// Lacks are the grants without which the service refuses a tool, and which nobody has allowed this connection.
func Lacks(c Connection, m manifest.Manifest, tool string) []manifest.Grant {
	if c.Contract != string(manifest.OAuth2) {
		return nil
	}
	return m.Lacks(tool, c.Granted)
}

// classify judges an observed definition: the manifest's review first, then its annotations as far as their origin is trusted.
func classify(c Connection, m manifest.Manifest, o Observed) policy.Class {
	e := policy.Evidence{Annotations: o.Annotations, Origin: policy.CatalogVendor}
	if c.Kind == registry.Remote {
		e.Origin, e.ConfirmedRead = policy.CustomRemote, slices.Contains(c.Confirmed, Confirmation{o.Tool, o.Digest})
	}
	if p, ok := m.Policy(o.Tool); ok {
		e.Review = &policy.Review{Effect: p.Effect, Destructive: p.Destructive}
	}
	return policy.Classify(e)
}

func sentence(m manifest.Manifest, tool string) string {
	p, _ := m.Policy(tool)
	return p.Sentence
}

func firstListing(observed []Observed) time.Time {
	var first time.Time
	for _, o := range observed {
		if first.IsZero() || o.FirstSeen.Before(first) {
			first = o.FirstSeen
		}
	}
	return first
}

// Candidates are the tools as policy.Select judges them.
func Candidates(tools []Tool) []policy.Candidate {
	out := make([]policy.Candidate, len(tools))
	for i, t := range tools {
		out[i] = t.Candidate()
	}
	return out
}

// Selects says which tools a mode alone would select, for the sentence beside each mode.
func Selects(tools []Tool, mode policy.Mode) []string {
	var names []string
	for _, t := range tools {
		if t.Candidate().Eligible(mode.Access()) {
			names = append(names, t.Tool)
		}
	}
	return names
}

// changed reports whether what is listed is no longer what a person granted.
func changed(p policy.Pinned, o Observed) bool { return p.Digest != o.Digest || p.Recipe != o.Recipe }

// HeldBack lists the tools that wait for a person's review.
func HeldBack(tools []Tool) []Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return !t.Held })
}

// HeldNames names the tools HeldBack would list, from the listing alone.
func HeldNames(c Connection, observed []Observed) (names []string) {
	for _, o := range observed {
		if p, ok := c.Standing.Snapshot.Find(o.Tool); ok && changed(p, o) {
			names = append(names, o.Tool)
		}
	}
	return names
}
