package agent_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// upstream is an MCP server of the 2025 kind whose list is written by the test, byte for byte.
type upstream struct {
	*httptest.Server
	tools chan []string // holds the list
	calls chan []string // holds the names called
	down  chan bool
	hold  chan chan struct{} // until it is closed, nothing is answered, where there is one
	next  chan *url.URL      // answers in its place, where there is one
}

func newUpstream(t testing.TB) *upstream {
	u := &upstream{tools: make(chan []string, 1), calls: make(chan []string, 1), down: make(chan bool, 1), next: make(chan *url.URL, 1), hold: make(chan chan struct{}, 1)}
	u.hold <- nil
	u.next <- nil
	u.tools <- nil
	u.calls <- nil
	u.down <- false
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func swap[T any](c chan T, v T) T {
	old := <-c
	c <- v
	return old
}

func peek[T any](c chan T) T {
	v := <-c
	c <- v
	return v
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if next := peek(u.next); next != nil {
		forward(w, r, next)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if hold := peek(u.hold); hold != nil {
		<-hold
	}
	switch {
	case peek(u.down):
		panic(http.ErrAbortHandler)
	case json.Unmarshal(body, &m) != nil || r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := `"error":{"code":-32601,"message":"no such method"}`
	switch m.Method {
	case "initialize":
		answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
	case "tools/list":
		answer = `"result":{"tools":[` + strings.Join(peek(u.tools), ",") + `]}`
	case "tools/call":
		u.calls <- append(<-u.calls, m.Params.Name)
		answer = `"result":{"content":[{"type":"text","text":` + quoted(m.Params.Name+" "+string(m.Params.Arguments)) + `}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`))
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSpace(b.String())
}

// reading is the raw definition of a tool that says it reads.
func reading(name, schema string) string {
	return `{"name":` + quoted(name) + `,"description":"Reads.","inputSchema":` + schema + `,"outputSchema":{"type":"object"},"icons":[{"src":"https://evil.example/i.png"}],"_meta":{"x":1},"annotations":{"readOnlyHint":true}}`
}
