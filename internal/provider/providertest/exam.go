// Package providertest owns the exam that every provider passes before it may be trusted with effects. It knows a provider only
// through the contract and judges it by the ground truth of an upstream whose journal can be read; it never looks inside.
package providertest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
)

// Fault is a way in which an upstream can treat one call.
type Fault string

// The faults, named as the Sandbox CRM names them.
const (
	ApplyThenHang     Fault = "apply_then_hang"
	ApplyThenReset    Fault = "apply_then_reset"
	ApplyThen500      Fault = "apply_then_500"
	ApplyThenTruncate Fault = "apply_then_truncate"
	Reject            Fault = "reject"
	Hang              Fault = "hang"
	Reset             Fault = "reset"
	Slow              Fault = "slow"
	Limit             Fault = "limit" // 429, which only some can say
)

// World is an upstream with a ground truth, and the calls that make sense there. Every function is safe to call in any order.
type World struct {
	Provider provider.Provider
	Connect  func(t *testing.T, s provider.Settings) *provider.Conn // a new connection with a working credential
	Dead     func(t *testing.T) *provider.Conn                      // a connection to where nothing listens
	Revoked  func(t *testing.T) *provider.Conn                      // a connection whose credential is refused; nil where the service is open

	Secret string        // the credential: it must never come back
	Read   provider.Call // a read that works
	Write  provider.Call // a write that works, each time with one effect; no Tool: the provider has reads only
	Large  provider.Call // a read whose result is larger than 16 KiB; no Tool: there is none

	Requests func() int                                  // requests the upstream has received
	Applied  func(t *testing.T) int                      // effects of Write.Tool, from the journal
	Break    func(t *testing.T, tool string, mode Fault) // arms one fault for the next call of a tool
	Spoil    func(t *testing.T) (tool string)            // makes one tool's definition unusable; nil where tools are fixed
	Restore  func(t *testing.T)                          // undoes Spoil and faults

	Faults    []Fault            // those the upstream can play
	Truncated action.OutcomeKind // what a truncated good answer to a write proves; empty means uncertain
	// Statusless: the upstream's protocol has no HTTP status, so evidence holds none.
	Statusless bool
	Definite   func(string) bool // knows the upstream's rejection; nil where the provider itself does
}

// patience is how long a hanging call of the exam may take.
const patience = 500 * time.Millisecond

// writes are the parts for those who have any.
var writes = []string{
	"a write is applied once", "a broken write has the right outcome and is never sent twice", "a rejection is definite only where that is known",
}

// Run examines a provider. One without a write must refuse to execute anything: its reads take the place of one where nothing may be sent.
func Run(t *testing.T, w *World) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, *World)
	}{
		{"tools are listed with stable digests", tools},
		{"one unusable tool does not hide the rest", spoiled},
		{"a test tells what was found", tested},
		{"a read works and shows no credential", read},
		{"a warm read is exactly one upstream request", warm},
		{"a large result is bounded, marked and still valid", large},
		{"a broken read is an error with a known code", brokenRead},
		{"a write is applied once", written},
		{"a broken write has the right outcome and is never sent twice", brokenWrite},
		{"a rejection is definite only where that is known", rejected},
		{"a refusal for the rate is definite", limited},
		{"an upstream that is not there fails and nothing is sent", dead},
		{"a refused credential is said to be one", revoked},
	} {
		if writing := slices.Contains(writes, part.name); writing && w.Write.Tool == "" {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			w.Restore(t)
			part.run(t, w)
			w.Restore(t)
		})
	}
}

func tools(t *testing.T, w *World) {
	first := list(t, w)
	second := list(t, w)
	if len(first) == 0 {
		t.Fatal("no tools")
	}
	for i, d := range first {
		switch {
		case d.Problem != "":
			t.Errorf("%s: %s", d.Name, d.Problem)
		case d.Name == "" || len(d.Digest) != 64 || d.Recipe != provider.Recipe || !json.Valid(d.Raw) || !json.Valid(d.InputSchema):
			t.Errorf("%q is incomplete", d.Name)
		case i >= len(second) || second[i].Digest != d.Digest || !bytes.Equal(second[i].Raw, d.Raw):
			t.Errorf("%s differs between two lists", d.Name)
		}
	}
	for _, call := range []provider.Call{w.Read, w.Write} {
		if call.Tool == "" {
			continue
		}
		if !slices.ContainsFunc(first, func(d provider.Definition) bool { return d.Name == call.Tool }) {
			t.Errorf("%s is not listed", call.Tool)
		}
	}
}

func list(t *testing.T, w *World) []provider.Definition {
	t.Helper()
	l, err := w.Provider.Tools(t.Context(), w.Connect(t, provider.Settings{}))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func spoiled(t *testing.T, w *World) {
	if w.Spoil == nil {
		t.Skip("the tools of this provider are fixed")
	}
	before := list(t, w)
	name := w.Spoil(t)
	problems := 0
	after := list(t, w)
	for _, d := range after {
		if d.Problem == "" {
			continue
		}
		problems++
		if d.Name != name {
			t.Errorf("%s has the problem of %s: %s", d.Name, name, d.Problem)
		}
	}
	if problems != 1 || len(after) < len(before) {
		t.Errorf("%d problems in %d tools; %d tools before", problems, len(after), len(before))
	}
}

func tested(t *testing.T, w *World) {
	probe := w.Read
	f, err := w.Provider.Test(t.Context(), w.Connect(t, provider.Settings{Probe: &probe}))
	if err != nil {
		t.Fatal(err)
	}
	if !f.Proven || f.Tools == 0 || f.Broken != 0 {
		t.Errorf("found %+v", f)
	}
}

func read(t *testing.T, w *World) {
	r, err := w.Provider.Read(t.Context(), w.Connect(t, provider.Settings{}), w.Read)
	if err != nil {
		t.Fatal(err)
	}
	if r.IsError || r.Bounded || r.Size == 0 {
		t.Errorf("answered %+v", r)
	}
	checkResult(t, w, r.Raw)
}

// checkResult judges what an agent would get.
func checkResult(t *testing.T, w *World, raw json.RawMessage) {
	t.Helper()
	var result struct {
		Content []map[string]any `json:"content"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || result.Content == nil {
		t.Errorf("not a tool result: %v", err)
	}
	if w.Secret != "" && strings.Contains(string(raw), w.Secret) {
		t.Error("the credential came back")
	}
	for _, item := range result.Content {
		if item["_meta"] != nil || item["icons"] != nil {
			t.Error("_meta or icons came through")
		}
	}
}

func warm(t *testing.T, w *World) {
	c := w.Connect(t, provider.Settings{})
	if _, err := w.Provider.Read(t.Context(), c, w.Read); err != nil {
		t.Fatal(err)
	}
	const calls = 5
	before := w.Requests()
	for range calls {
		if _, err := w.Provider.Read(t.Context(), c, w.Read); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Requests() - before; n != calls {
		t.Errorf("%d reads made %d upstream requests", calls, n)
	}
}

func large(t *testing.T, w *World) {
	if w.Large.Tool == "" {
		t.Skip("no large read here")
	}
	const limit = 8 << 10
	r, err := w.Provider.Read(t.Context(), w.Connect(t, provider.Settings{MaxResult: limit}), w.Large)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Bounded || r.Size <= limit || len(r.Raw) > limit || len(r.Raw) < limit/4 {
		t.Errorf("bounded %v: %d bytes of %d within %d", r.Bounded, len(r.Raw), r.Size, limit)
	}
	if !strings.Contains(string(r.Raw), "Countersign") {
		t.Error("nothing says that something is missing")
	}
	checkResult(t, w, r.Raw)
}

// readCodes are the codes the contract allows for a read.
var readCodes = []fault.Code{fault.ConnectionUnavailable, fault.UpstreamError, fault.UpstreamTimeout, fault.ResultTooLarge, fault.InvalidArguments}

func brokenRead(t *testing.T, w *World) {
	for _, mode := range []Fault{Hang, ApplyThen500, ApplyThenTruncate} {
		if !slices.Contains(w.Faults, mode) {
			continue
		}
		w.Break(t, w.Read.Tool, mode)
		r, err := w.Provider.Read(t.Context(), w.Connect(t, provider.Settings{Timeout: patience}), w.Read)
		f, ok := fault.As(err)
		if !ok || !slices.Contains(readCodes, f.Code) {
			t.Errorf("%s: answered %s, %v", mode, r.Raw, err)
			continue
		}
		if mode == Hang && f.Code != fault.UpstreamTimeout {
			t.Errorf("%s: code %s", mode, f.Code)
		}
		w.Restore(t)
	}
}
