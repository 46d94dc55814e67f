package gateway

import (
	"context"
	"encoding/json"
	"sync"

	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/reach"
)

// Tools lists what a run may use now, on the endpoint of one connection or, with only empty, of all: raw definitions under their names,
// in the order of connections and tools, then our own. A tool that is held back or cannot be used is left out alone, and so is a
// connection whose upstream does not answer; the error is for when none of them does, since an empty list would claim that there is
// nothing to use.
func (g *Gateway) Tools(ctx context.Context, l capability.Live, only connector.Key) ([]json.RawMessage, error) {
	grants := l.Grants
	if only != "" {
		grant, ok := l.Find(only)
		if !ok {
			return nil, notGranted
		}
		grants = []capability.Grant{grant}
	}
	shelves, failures := g.shelves(ctx, l, grants, only != "")
	var out []json.RawMessage
	var dead error
	asked, answered := 0, 0
	for i := range grants {
		out = append(out, shelves[i]...)
		switch {
		case failures[i] != nil:
			asked++
			dead = failures[i]
		case shelves[i] != nil:
			asked++
			answered++
		}
	}
	if asked > 0 && answered == 0 {
		return nil, dead
	}
	for _, c := range companionTable() {
		if c.open(l.Run.Surface) {
			out = append(out, c.listing)
		}
	}
	return out, nil
}

// shelves asks the upstreams at once. A nil shelf without a failure was not asked: nothing of it is granted.
func (g *Gateway) shelves(ctx context.Context, l capability.Live, grants []capability.Grant, single bool) ([][]json.RawMessage, []error) {
	shelves, failures := make([][]json.RawMessage, len(grants)), make([]error, len(grants))
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	var all sync.WaitGroup
	for i, grant := range grants {
		if !offers(l.Run.Surface, grant) {
			continue
		}
		all.Go(func() { shelves[i], failures[i] = g.shelf(ctx, l, grant, single) })
	}
	all.Wait()
	return shelves, failures
}

// offers says whether a connection could list anything, so that one with nothing granted is not asked.
func offers(s policy.Surface, grant capability.Grant) bool {
	if !grant.InProfile || grant.Connection.State == installation.Retired {
		return false
	}
	for p := range grant.Minted.All() {
		if _, ok := grant.Now.Snapshot.Find(p.Tool); ok && (s == policy.Task || p.Effect == policy.Read) {
			return true
		}
	}
	return false
}

func (g *Gateway) shelf(ctx context.Context, l capability.Live, grant capability.Grant, single bool) ([]json.RawMessage, error) {
	c := grant.Connection
	if c.State == installation.NeedsConsent {
		return nil, g.needsConsent(c)
	}
	line, err := g.Lines.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	tools, err := line.Tools(ctx, reach.FreshFor)
	if err != nil {
		return nil, err
	}
	live := make(map[string]*provider.Definition, len(tools))
	for i := range tools {
		live[tools[i].Name] = &tools[i]
	}
	shelf, names := []json.RawMessage{}, map[string]int{}
	var shorts []string
	drifted := false
	for pin := range grant.Minted.All() {
		names[capability.ShortName(c.Key, pin.Tool)]++
		t := targetOf(grant, pin)
		d, ok := live[pin.Tool]
		same := ok && matches(*d, pin)
		drifted = drifted || (t.kept && !same)
		if !same || t.decide(l, true, true) != nil {
			continue
		}
		e := g.served.entry(c.Key, *d)
		if e.problem != "" {
			continue
		}
		listing := e.all
		if single {
			listing = e.single
		}
		shelf, shorts = append(shelf, listing), append(shorts, e.short)
	}
	if drifted {
		g.observe(ctx, c, tools)
	}
	return unambiguous(shelf, shorts, names), nil
}

// unambiguous leaves out tools whose shortened names are one: a call could mean either.
func unambiguous(shelf []json.RawMessage, shorts []string, names map[string]int) []json.RawMessage {
	kept := shelf[:0]
	for i, listing := range shelf {
		if names[shorts[i]] == 1 {
			kept = append(kept, listing)
		}
	}
	return kept
}

// Unavailable reports whether an error says that nothing can be answered now, as opposed to our own defect.
func Unavailable(err error) bool { return fault.Of(err).Kind == fault.Unavailable }
