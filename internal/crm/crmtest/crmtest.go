// Package crmtest owns the control side of a Sandbox CRM in a test: what the CRM really did, what it is to do wrong, and what it offers.
// It knows the CRM through HTTP only, so it serves one in the test's process as well as one in another, and no product code imports it.
package crmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a CRM of the test's own is to be started with.
const (
	Bearer  = "crm-credential-3b1f8a0c5d7e"
	Control = "crm-control-9a2b4c6d8e0f"
)

// CRM is one Sandbox CRM.
type CRM struct {
	T     testing.TB
	URL   string // without a path
	Token string // of the control side
}

// Effect is one entry of the CRM's journal.
type Effect struct {
	Tool      string
	Arguments json.RawMessage
	Headers   []string
}

// Journal is what the CRM really did, in order.
func (c CRM) Journal() (out []Effect) {
	c.T.Helper()
	if err := json.Unmarshal(c.ask(http.MethodGet, "/journal", ""), &out); err != nil {
		c.T.Fatalf("the CRM's journal: %v", err)
	}
	return out
}

// Did are the tools of the journal.
func (c CRM) Did() (tools []string) {
	c.T.Helper()
	for _, e := range c.Journal() {
		tools = append(tools, e.Tool)
	}
	return tools
}

// Effects is what the CRM really did with a tool.
func (c CRM) Effects(tool string) (out []Effect) {
	c.T.Helper()
	for _, e := range c.Journal() {
		if e.Tool == tool {
			out = append(out, e)
		}
	}
	return out
}

// Breaks makes the next call of a tool go wrong.
func (c CRM) Breaks(tool, mode string) {
	c.T.Helper()
	c.BreaksFor(tool, mode, 1, 0)
}

// BreaksFor makes the next calls of a tool go wrong; a mode that takes time takes the seconds.
func (c CRM) BreaksFor(tool, mode string, times int, seconds float64) {
	c.T.Helper()
	c.ask(http.MethodPost, "/faults", fmt.Sprintf(`{"tool":%q,"mode":%q,"times":%d,"seconds":%g}`, tool, mode, times, seconds))
}

// Patch changes one definition, or adds one, as a vendor's deploy would; null takes the tool away.
func (c CRM) Patch(tool, patch string) {
	c.T.Helper()
	name, err := json.Marshal(tool) // a hostile name may hold anything
	if err != nil {
		c.T.Fatal(err)
	}
	c.ask(http.MethodPost, "/tools", `{"name":`+string(name)+`,"patch":`+patch+`}`)
}

func (c CRM) ask(method, path, body string) []byte {
	c.T.Helper()
	r, err := http.NewRequestWithContext(c.T.Context(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		c.T.Fatalf("%s %s: %d %s", method, path, res.StatusCode, out)
	}
	return out
}
