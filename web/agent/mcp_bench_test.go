package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign/internal/capability"
	"countersign/internal/policy"
	"countersign/web/agent"
)

// remembered answers a token from memory, as the process cache in front of the store does, so that the benchmarks measure the edge.
type remembered capability.Live

func (r remembered) ByToken(context.Context, []byte) (capability.Live, error) {
	return capability.Live(r), nil
}

// BenchmarkEdge is the edge and the gateway without the network on the agent's side.
func BenchmarkEdge(b *testing.B) {
	w := newWorld(b)
	var tools []string
	for i := range 1000 {
		tools = append(tools, reading(fmt.Sprintf("tool-%d", i), `{"type":"object","properties":{"message":{"type":"string","description":"`+strings.Repeat("words ", 80)+`"}},"required":["message"]}`))
	}
	swap(w.odd.tools, tools)
	c := w.install("deepwiki", "Odd", policy.ReadOnly)
	w.profile("engineering", c)
	r := w.start(policy.Task, "engineering")
	h := agent.NewMCP(remembered(r.Live), w.gateway, "bench")
	for name, body := range map[string]string{
		"ping":            `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"list of 1000":    `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"refused call":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + c.Key.String() + `__tool-7","arguments":{"message":7}}}`,
		"read with an RT": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + c.Key.String() + `__tool-7","arguments":{"message":"hello"}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := httptest.NewRequest(http.MethodPost, endpoint, strings.NewReader(body))
				q.Header.Set("Content-Type", "application/json")
				q.Header.Set("Authorization", "Bearer "+r.bearer)
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, q)
				if rec.Code != http.StatusOK {
					b.Fatal(rec.Code, rec.Body)
				}
			}
		})
	}
}
