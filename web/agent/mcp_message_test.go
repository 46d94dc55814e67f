package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// sameRequest holds the edge to what a proxy that believes the headers, or a decoder that reads the body again, would take a message for;
// and whatever it answers to be one JSON value of the length it claims, about the request's own id.
func sameRequest(t *testing.T, body []byte, version, method, name string) {
	m, refusal, ok := parse(body)
	h := http.Header{}
	for header, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
		if value != "" {
			h.Set(header, value)
		}
	}
	if ok {
		var decoded map[string]json.RawMessage // by name as written: a struct would take METHOD for method
		var inBody string
		if err := json.Unmarshal(body, &decoded); err != nil || json.Unmarshal(decoded["method"], &inBody) != nil || inBody != m.method || string(decoded["id"]) != string(m.id) {
			t.Fatalf("%.200q: method %q and id %s, a decoder reads %q and %s (%v)", body, m.method, m.id, inBody, decoded["id"], err)
		}
		refusal, ok = m.revision(h)
		if ok && m.modern && (method != m.method || version != modern) {
			t.Fatalf("%.200q: let through as %q of %q, the headers say %q of %q", body, m.method, modern, method, version)
		}
		if member := named[m.method]; ok && m.modern && member != "" && name != "" {
			if inBody, _ := m.params.text(member); plain(name) != inBody {
				t.Fatalf("%.200q: let through with %q, the header says %q", body, inBody, plain(name))
			}
		}
	}
	if ok {
		_ = m.followsTasks()
		refusal = reply{id: m.id}.fail(codeMethodNotFound, "x")
	}
	w := httptest.NewRecorder()
	refusal.write(w)
	var answer struct{ ID json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
		t.Fatalf("%.200q: answered %q, %v", body, w.Body, err)
	}
	if m.id != nil && string(answer.ID) != string(m.id) {
		t.Fatalf("%.200q: answered to %s", body, answer.ID)
	}
}

func FuzzMessage(f *testing.F) {
	const says = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	for _, s := range [][4]string{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__b","arguments":{"x":1},` + says + `}}`, modern, "tools/call", "a__b"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é",` + says + `}}`, modern, "tools/call", "=?base64?w6k=?="},
		{`{"jsonrpc":"2.0","id":"x","method":"tasks/get","params":{"taskId":"act_1",` + says + `}}`, modern, "tasks/get", "act_1"},
		{`{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"taskId":"act_1",` + says + `}}`, modern, "tasks/cancel", "act_2"},
		{`{"jsonrpc":"2.0","id":-0.1e9,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}`, "2027-01-01", "tools/list", ""},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, modern, "notifications/initialized", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, "", "", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}`, "2025-06-18", "", ""},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "", "", ""},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "", "", ""},
		{`{"id":"\ud800"}`, "", "", ""},
		{"", "", "", ""},
	} {
		f.Add([]byte(s[0]), s[1], s[2], s[3])
	}
	f.Fuzz(sameRequest)
}
