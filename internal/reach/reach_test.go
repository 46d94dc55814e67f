package reach_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"countersign/catalog"
	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/provider"
	"countersign/internal/reach"
	"countersign/internal/reach/reachtest"
)

func newWorld(t *testing.T) *reachtest.World {
	t.Helper()
	return reachtest.New(t, crm.New(crm.Config{BearerToken: reachtest.Credential, ControlToken: reachtest.Control}).Handler(), catalog.Files())
}

func opened(t *testing.T, l *reach.Lines, c installation.Connection) *reach.Line {
	t.Helper()
	line, err := l.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestALineIsAuthorisedAndSharedUntilItsConnectionChanges(t *testing.T) {
	w := newWorld(t)
	line := opened(t, w.Lines, w.Installed)
	r, err := line.Provider.Read(t.Context(), line.Conn, provider.Call{Tool: "contacts_list", Arguments: []byte(`{"limit":1}`)})
	if err != nil || r.IsError {
		t.Fatalf("the service refuses the line: %s, %v", r.Raw, err)
	}
	if line.Manifest.Key != "sandbox-crm" || line.Conn.Settings.Timeout != reach.ExecuteTimeout || line.Conn.Settings.Probe.Tool != "contacts_list" {
		t.Errorf("%+v", line.Conn.Settings)
	}
	if opened(t, w.Lines, w.Installed) != line {
		t.Error("the same version has two lines")
	}
	older := w.Installed
	w.Installed.Version++
	newer := opened(t, w.Lines, w.Installed)
	if newer == line {
		t.Error("a changed connection keeps its line")
	}
	if opened(t, w.Lines, older) != newer {
		t.Error("a row that was read before the change leads back to before it")
	}
}

func TestThoseWhoOpenAtOnceShareOneLine(t *testing.T) {
	w := newWorld(t)
	w.Installed.Version++ // nobody has opened this one
	lines := make([]*reach.Line, 20)
	var all sync.WaitGroup
	for i := range lines {
		all.Go(func() { lines[i], _ = w.Lines.Open(t.Context(), w.Installed) })
	}
	all.Wait()
	if lines[0] == nil || len(slices.Compact(lines)) != 1 {
		t.Errorf("%d lines for one version", len(slices.Compact(lines)))
	}
}

// A connection that is not active is not reached, and what was open is not found again when it comes back.
func TestOnlyAnActiveConnectionIsReached(t *testing.T) {
	for state, code := range map[installation.State]fault.Code{
		installation.NeedsConsent: fault.NeedsConsent,
		installation.Disconnected: fault.ConnectionUnavailable,
		installation.Retired:      fault.ConnectionUnavailable,
	} {
		t.Run(string(state), func(t *testing.T) {
			w := newWorld(t)
			before := opened(t, w.Lines, w.Installed)
			c := w.Installed
			c.State = state
			if _, err := w.Lines.Open(t.Context(), c); !fault.Is(err, code) {
				t.Errorf("got %v, want %s", err, code)
			}
			if opened(t, w.Lines, w.Installed) == before {
				t.Error("the line outlived the end of its connection")
			}
		})
	}
}

func TestALineIsRefusedForWhatItLacks(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(c *installation.Connection){
		"no code for its kind":                 func(c *installation.Connection) { c.Kind = "cli" },
		"an unknown runtime":                   func(c *installation.Connection) { c.Runtime = "nobody.v1" },
		"an entry its release does not hold":   func(c *installation.Connection) { c.Integration = "no-such" },
		"a credential of another connection":   func(c *installation.Connection) { c.Key = "sandbox-crm-bbbbbb" },
		"a credential of another organization": func(c *installation.Connection) { c.Org = "org_other" },
	} {
		c := w.Installed
		c.Version++
		change(&c)
		if _, err := w.Lines.Open(t.Context(), c); !fault.Is(err, fault.ConnectionUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := w.Installed
	c.Version++
	c.Release = "sha256:none"
	if _, err := w.Lines.Open(t.Context(), c); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("an unknown release: %v", err)
	}
	c = w.Installed
	c.Version++
	c.Contract = "oauth"
	_, err := w.Lines.Open(t.Context(), c)
	if f, ok := fault.As(err); !ok || f.Field != "contract" {
		t.Errorf("a way to authenticate the entry does not offer: %v", err)
	}
	if n := w.Upstream.Asked(""); n != 0 {
		t.Errorf("%d requests were sent for lines that were refused", n)
	}
}

// An address the operator has moved since gets neither a request nor the credential until a person has entered it again.
func TestAMovedRuntimeWaitsForAPerson(t *testing.T) {
	w := newWorld(t)
	elsewhere := newWorld(t)
	for _, address := range []string{elsewhere.Server.URL + "/mcp", w.Server.URL + "/other"} {
		if _, err := w.LinesAt(w.Moved(address)).Open(t.Context(), w.Installed); !errors.Is(err, credential.ErrElsewhere) {
			t.Errorf("%s: %v", address, err)
		}
	}
	c := w.Installed
	c.Destination = elsewhere.Installed.Destination // and changing the row alone does not open the credential there
	if _, err := w.LinesAt(w.Moved(elsewhere.Server.URL+"/mcp")).Open(t.Context(), c); !errors.Is(err, credential.ErrElsewhere) {
		t.Errorf("with the row changed: %v", err)
	}
	if n := elsewhere.Upstream.Asked(""); n != 0 {
		t.Errorf("the other address was sent %d requests", n)
	}
}

func TestClosingForgetsEveryLine(t *testing.T) {
	w := newWorld(t)
	before := opened(t, w.Lines, w.Installed)
	w.Lines.Close()
	if opened(t, w.Lines, w.Installed) == before {
		t.Error("a closed line is handed out")
	}
}
