package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// upstream is an MCP server that costs next to nothing, so that it hides nobody's cost. It speaks 2026-07-28 and what 2025 clients need.
type upstream struct {
	answers map[string][]byte // by tool, the result
	posts   atomic.Int64
	mu      sync.Mutex
	seen    map[string]int64 // text of a note → when it arrived, µs since 1970
}

const blobSize = 64 << 10

func serveUpstream() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	blob, _ := json.Marshal(strings.Repeat("Sixty-four bytes of ordinary text, which no secret stands in... ", blobSize/64))
	u := &upstream{seen: map[string]int64{}, answers: map[string][]byte{
		"echo": []byte(`{"content":[{"type":"text","text":"hello"}],"isError":false}`),
		"blob": []byte(`{"content":[{"type":"text","text":` + string(blob) + `}],"isError":false}`),
		"note": []byte(`{"content":[{"type":"text","text":"noted"}],"isError":false}`),
	}}
	mux := http.NewServeMux()
	mux.Handle("/small", u.mcp(smallTools()))
	mux.Handle("/200", u.mcp(manyTools(200)))
	mux.Handle("/1000", u.mcp(manyTools(1000)))
	mux.HandleFunc("/posts", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, u.posts.Load()) })
	mux.HandleFunc("/seen", func(w http.ResponseWriter, _ *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		_ = json.NewEncoder(w).Encode(u.seen) // a reader that is gone reads nothing
	})
	fmt.Println(listener.Addr())
	return http.Serve(listener, mux)
}

func smallTools() []byte {
	const schema = `"inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`
	return []byte(`[{"name":"echo","description":"Says it again.",` + schema + `,"annotations":{"readOnlyHint":true}},` +
		`{"name":"blob","description":"Says much.",` + schema + `,"annotations":{"readOnlyHint":true}},` +
		`{"name":"note","description":"Writes it down.",` + schema + `,"annotations":{"readOnlyHint":false,"destructiveHint":false}}]`)
}

func manyTools(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"name":"tool-%d","description":"%s","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"%s"}},"required":["message"]},"annotations":{"readOnlyHint":true}}`,
			i, strings.Repeat("What the tool does. ", 12), strings.Repeat("What it is about. ", 14))
	}
	return []byte("[" + b.String()[1:] + "]")
}

// question is what is read of a request; the rest is of no interest here.
type question struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Message string `json:"message"`
		} `json:"arguments"`
	} `json:"params"`
}

func (u *upstream) mcp(tools []byte) http.HandlerFunc {
	list := []byte(`{"tools":` + string(tools) + `}`)
	discovered := []byte(`{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}}}`)
	initialized := []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1"}}`)
	return func(w http.ResponseWriter, r *http.Request) {
		u.posts.Add(1)
		body, err := io.ReadAll(r.Body)
		var q question
		if err != nil || json.Unmarshal(body, &q) != nil {
			http.Error(w, "not read", http.StatusBadRequest)
			return
		}
		if q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := []byte("{}")
		switch q.Method {
		case "server/discover":
			result = discovered
		case "initialize":
			result = initialized
		case "tools/list":
			result = list
		case "tools/call":
			if result = u.answers[q.Params.Name]; result == nil {
				result = u.answers["echo"]
			}
			if q.Params.Name == "note" {
				u.arrived(q.Params.Arguments.Message)
			}
		}
		head := `{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":`
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(result)+1))
		_, _ = io.WriteString(w, head)
		_, _ = w.Write(result)
		_, _ = io.WriteString(w, "}")
	}
}

func (u *upstream) arrived(note string) {
	now := time.Now().UnixMicro()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen[note] = now
}
