package crm

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"countersign/internal/fault"
)

// entry is one applied effect. Headers are names only: a value may be a credential.
type entry struct {
	Seq       int             `json:"seq"`
	At        time.Time       `json:"at"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Headers   []string        `json:"headers"`
}

// call is one tool call as it arrived.
type call struct {
	def     definition
	args    json.RawMessage
	headers []string
	epoch   int
}

// book is the state of the CRM. One lock covers records and journal, so that the order of the journal is the order of the effects.
type book struct {
	mu      sync.Mutex
	epoch   int           // counts resets: what an earlier epoch left behind must not touch this one
	cleared chan struct{} // closed at the end of the epoch
	records *records
	defs    []definition
	armed   []arming
	journal []entry
}

func newBook() *book {
	b := &book{}
	b.restore()
	return b
}

// restore puts back the seed: records, definitions, no journal, no faults. Calls that hang are let go, delayed effects are dropped.
func (b *book) restore() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cleared != nil {
		close(b.cleared)
	}
	b.epoch++
	b.cleared = make(chan struct{})
	b.records, b.defs = seeded(), builtinDefinitions()
	b.armed, b.journal = nil, []entry{}
}

// list returns the raw definitions in order.
func (b *book) list() []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]json.RawMessage, len(b.defs))
	for i, d := range b.defs {
		out[i] = d.raw
	}
	return out
}

// entries returns the journal; entries never change once written.
func (b *book) entries() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.journal)
}

// patch changes, adds or takes away a definition and returns it as it is now.
func (b *book) patch(name string, patch any) (json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defs, raw, err := patched(b.defs, name, patch)
	if err != nil {
		return nil, err
	}
	b.defs = defs
	return raw, nil
}

// arm queues a fault behind those already waiting. It reports whether there is such a tool.
func (b *book) arm(a arming) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.ContainsFunc(b.defs, func(d definition) bool { return d.name == a.tool }) {
		return false
	}
	b.armed = append(b.armed, a)
	return true
}

// begin looks up the tool of a call and uses up one time of the fault that waits for it, if any. Cleared is closed by a reset.
func (b *book) begin(tool string) (def definition, a *arming, epoch int, cleared <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.defs, func(d definition) bool { return d.name == tool })
	if at < 0 {
		return definition{}, nil, 0, nil, false
	}
	return b.defs[at], b.take(tool), b.epoch, b.cleared, true
}

func (b *book) take(tool string) *arming {
	i := slices.IndexFunc(b.armed, func(a arming) bool { return a.tool == tool })
	if i < 0 {
		return nil
	}
	a := b.armed[i]
	if b.armed[i].times--; b.armed[i].times == 0 {
		b.armed = slices.Delete(b.armed, i, i+1)
	}
	return &a
}

// apply does what the call asks and journals it if it is an effect. A tool that a test added has no operation of its own: it
// echoes its arguments and counts as an effect unless its definition claims to be a read.
func (b *book) apply(c call) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.epoch != b.epoch {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "The sandbox was reset while this call was under way; nothing was applied.", "")
	}
	now := time.Now().UTC()
	op, known := operations[c.def.name]
	if !known {
		if !c.def.readOnly() {
			b.write(c, now)
		}
		return map[string]any{"arguments": c.args}, nil
	}
	out, err := op.run(b.records, c.args, now)
	if err != nil {
		return nil, err
	}
	// Marshalled under the lock: the answer may hold slices of the records.
	raw, err := encodeAny(out)
	if err != nil {
		return nil, err
	}
	if op.effect {
		b.write(c, now)
	}
	return raw, nil
}

func (b *book) write(c call, now time.Time) {
	b.journal = append(b.journal, entry{Seq: len(b.journal) + 1, At: now, Tool: c.def.name, Arguments: c.args, Headers: c.headers})
}
