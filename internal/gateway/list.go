package gateway

import (
	"context"
	"encoding/json"
	"sync"

	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/reach"
)

// Tools lists what a run may use now, on the endpoint of one connection or, with only empty, of all: raw definitions under their names,
// in the order of connections and tools, then our own, as one JSON array. A tool that is held back or cannot be used is left out alone,
// and so is a connection whose upstream does not answer; the error is for when none of them does, since an empty list would claim that
// there is nothing to use.
func (g *Gateway) Tools(ctx context.Context, l capability.Live, only connector.Key) (json.RawMessage, error) {
	grants := l.Grants
	if only != "" {
		grant, ok := l.Find(only)
		if !ok {
			return nil, notGranted
		}
		grants = []capability.Grant{grant}
	}
	shelves, failures := g.shelves(ctx, l, grants, only != "")
	var dead error
	var alone *stocked
	asked, answered, size := 0, 0, 4<<10 // of our own
	for i := range grants {
		switch {
		case failures[i] != nil:
			asked++
			dead = failures[i]
		case shelves[i] != nil:
			asked++
			answered++
			size += len(shelves[i].listings) + 1
			alone = shelves[i]
		}
	}
	if asked > 0 && answered == 0 {
		return nil, dead
	}
	if answered == 1 {
		return alone.list(l.Run.Surface), nil
	}
	return assemble(make([]byte, 0, size), shelves, l.Run.Surface), nil
}

// stocked is what one connection lists: its tools, separated by commas, and the whole list of a run that has no other connection. That
// one is made once; it is many times as large as the answer to a call.
type stocked struct {
	listings []byte
	once     sync.Once
	alone    json.RawMessage
}

// list is the list with nothing but this and our own tools. A shelf is of one surface, always the same.
func (s *stocked) list(surface policy.Surface) json.RawMessage {
	s.once.Do(func() { s.alone = assemble(make([]byte, 0, len(s.listings)+4<<10), []*stocked{s}, surface) })
	return s.alone
}

func assemble(out []byte, shelves []*stocked, s policy.Surface) json.RawMessage {
	out = append(out, '[')
	add := func(listings []byte) {
		if len(listings) == 0 {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, listings...)
	}
	for _, shelf := range shelves {
		if shelf != nil {
			add(shelf.listings)
		}
	}
	for _, c := range companionTable() {
		if c.open(s) {
			add(c.listing)
		}
	}
	return append(out, ']')
}

// shelves asks the upstreams at once. A nil shelf without a failure was not asked: nothing of it is granted.
func (g *Gateway) shelves(ctx context.Context, l capability.Live, grants []capability.Grant, single bool) ([]*stocked, []error) {
	shelves, failures := make([]*stocked, len(grants)), make([]error, len(grants))
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

// shelf is what one connection lists.
func (g *Gateway) shelf(ctx context.Context, l capability.Live, grant capability.Grant, single bool) (*stocked, error) {
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
	key := shelfKey{c.ID, l.Run.Surface, single}
	if kept, ok := g.kept.Load(key); ok && kept.(*keptShelf).holds(tools, grant) {
		return kept.(*keptShelf).stocked, nil
	}
	listings, drifted := g.stock(l, grant, tools, single)
	out := &stocked{listings: listings}
	if drifted {
		g.observe(ctx, c, tools)
	} else {
		g.kept.Store(key, &keptShelf{tools: tools, minted: grant.Minted, now: grant.Now, stocked: out})
	}
	return out, nil
}

// stock picks from a live list what the run may use, and says whether anything granted is not as it was granted.
func (g *Gateway) stock(l capability.Live, grant capability.Grant, tools []provider.Definition, single bool) (listings []byte, drifted bool) {
	key := grant.Connection.Key
	live := make(map[string]*provider.Definition, len(tools))
	for i := range tools {
		live[tools[i].Name] = &tools[i]
	}
	names := map[string]int{}
	for pin := range grant.Minted.All() {
		names[capability.ShortName(key, pin.Tool)]++
	}
	listings = []byte{} // asked and answered, even where it is empty
	for pin := range grant.Minted.All() {
		t := targetOf(grant, pin)
		d, ok := live[pin.Tool]
		same := ok && matches(*d, pin)
		drifted = drifted || (t.kept && !same)
		if !same || t.byGit() || t.decide(l, true, true) != nil {
			continue
		}
		e := g.served.entry(key, *d)
		if e.problem != "" || names[e.short] > 1 { // a call of a name that two tools shorten to could mean either
			continue
		}
		if len(listings) > 0 {
			listings = append(listings, ',')
		}
		if single {
			listings = append(listings, e.single...)
		} else {
			listings = append(listings, e.all...)
		}
	}
	return listings, drifted
}

// shelfKey names a shelf: what runs of one surface see of a connection on one sort of endpoint.
type shelfKey struct {
	connection string
	surface    policy.Surface
	single     bool
}

// keptShelf is the shelf as it was last stocked, with everything that it followed from.
type keptShelf struct {
	tools   []provider.Definition
	minted  policy.Snapshot
	now     policy.Standing
	stocked *stocked
}

// holds reports whether the shelf would be stocked the same again. A list that was fetched anew counts as another one.
func (k *keptShelf) holds(tools []provider.Definition, grant capability.Grant) bool {
	same := len(tools) == len(k.tools) && (len(tools) == 0 || &tools[0] == &k.tools[0])
	return same && grant.InProfile && grant.Now.Mode == k.now.Mode && grant.Now.Snapshot.Equal(k.now.Snapshot) && grant.Minted.Equal(k.minted)
}
