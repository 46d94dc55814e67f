package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/policy"
	"countersign/internal/run"
)

const (
	endpoint = "/gateway/mcp"
	meta     = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// modernly is a call of 2026-07-28 with the headers that repeat it.
func modernly(method, name string) []string {
	h := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

func TestTheEdgeRefusesWhatIsNoMessage(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	r := w.start(policy.Task, "engineering")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	tests := []struct {
		name    string
		body    string
		headers []string
		status  int
		code    int // of the JSON-RPC error; 0: no such body is demanded
	}{
		{"fine", list, nil, 200, 0},
		{"not JSON", `{`, nil, 400, -32700},
		{"empty", ``, nil, 400, -32700},
		{"duplicate method", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, nil, 400, -32700},
		{"duplicate argument", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"\u0061":2}}}`, nil, 400, -32700},
		{"another case is another name", `{"jsonrpc":"2.0","id":1,"METHOD":"tools/list"}`, nil, 400, -32600},
		{"10,000 deep", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":` + deep + `}}}`, nil, 400, -32700},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}", nil, 400, -32700},
		{"lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}`, nil, 400, -32700},
		{"5 MB", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("a", 5<<20) + `"}}`, nil, 413, 0},
		{"batch", `[` + list + `]`, nil, 400, -32600},
		{"a number", `7`, nil, 400, -32600},
		{"no version", `{"id":1,"method":"ping"}`, nil, 400, -32600},
		{"old version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, -32600},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":7}`, nil, 400, -32600},
		{"id is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, -32600},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, -32600},
		{"params are a list", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, nil, 400, -32602},
		{"_meta is text", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":"x"}}`, nil, 400, -32602},
		{"name is a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, nil, 200, -32602},
		{"no such cursor", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, nil, 200, -32602},
		{"no such method", `{"jsonrpc":"2.0","id":1,"method":"nothing/list"}`, nil, 200, -32601},
		{"the key is a number", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"countersign.dev/idempotency-key":7}}}`, nil, 200, -32602},
		{"not JSON by its type", list, []string{"Content-Type", "text/plain"}, 415, 0},
		{"compressed", list, []string{"Content-Encoding", "gzip"}, 415, 0},
		{"takes no JSON", list, []string{"Accept", "text/html"}, 406, 0},
		{"a version nobody speaks", list, []string{"MCP-Protocol-Version", "1999-01-01"}, 400, -32022},
		{"modern without a header", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, nil, 400, -32020},
		{"modern, headers disagree", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, modernly("tools/call", "x"), 400, -32020},
		{"modern, version disagrees", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, []string{"MCP-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/list"}, 400, -32020},
		{"modern, another name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + meta + `}}`, modernly("tools/call", "b"), 400, -32020},
		{"modern, no name in the header", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + meta + `}}`, modernly("tools/call", ""), 400, -32020},
		{"modern without _meta", list, modernly("tools/list", ""), 400, -32602},
		{"modern without capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, modernly("tools/list", ""), 400, -32602},
		{"newer than we are", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}`, []string{"MCP-Protocol-Version", "2027-01-01"}, 400, -32022},
		{"modern ping", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + meta + `}}`, modernly("ping", ""), 404, -32601},
		{"modern initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` + meta + `}}`, modernly("initialize", ""), 404, -32601},
		{"discover of old", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, nil, 200, -32601},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, 0},
	}
	for _, tt := range tests {
		status, _, body := w.post(r, endpoint, tt.body, tt.headers...)
		var m struct {
			JSONRPC string
			Error   struct {
				Code int
				Data struct{ Supported []string }
			}
		}
		err := json.Unmarshal([]byte(body), &m)
		if status != tt.status || (tt.code != 0 && (err != nil || m.Error.Code != tt.code || m.JSONRPC != "2.0")) {
			t.Errorf("%s: %d %s, want %d with %d", tt.name, status, body, tt.status, tt.code)
		}
		if tt.code == -32022 && !slices.Equal(m.Error.Data.Supported, []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}) {
			t.Errorf("%s: offers %v", tt.name, m.Error.Data.Supported)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		if status, h, _ := w.send(method, r.bearer, endpoint, ""); status != 405 || h.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, status, h.Get("Allow"))
		}
	}
	for _, id := range []string{`"x"`, `0`, `-1`, `12345678901234567890`, `1.50`, `"\u0041\n"`} {
		if _, _, body := w.post(r, endpoint, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`); body != `{"jsonrpc":"2.0","id":`+id+`,"result":{}}` {
			t.Errorf("the id %s came back as %s", id, body)
		}
	}
	if _, h, body := w.post(r, endpoint, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, modernly("tools/list", "")...); !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{`) || h.Get("Mcp-Session-Id") != "" {
		t.Errorf("a modern list: %.200s %v", body, h)
	}
}

func TestEveryBadTokenLooksTheSame(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	r, ended := w.start(policy.Task, "engineering"), w.start(policy.Task, "engineering")
	_, err := w.Runs.End(t.Context(), w.Org.ID, ended.Run.ID, audit.Entry{Org: w.Org.ID, Actor: audit.Operator, Event: audit.RunEnded, Object: audit.Object{Kind: "run", ID: string(ended.Run.ID)}})
	check(t, err)
	unknown, _ := run.NewToken()
	want := ""
	for _, bearer := range []string{"", "x", unknown, r.bearer + "x", ended.bearer, "csr_" + strings.Repeat("a", 10_000), "cst_" + r.bearer[4:]} {
		for _, path := range []string{endpoint, endpoint + "/" + c.Key.String()} {
			status, h, body := w.send(http.MethodPost, bearer, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			if want == "" {
				want = body
			}
			if status != 401 || body != want || h.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%.40s: %d %s", bearer, status, body)
			}
		}
	}
	if status, _, _ := w.post(r, endpoint, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "bearer "+r.bearer); status != 200 {
		t.Errorf("the scheme in lower case: %d", status)
	}
	status, _, body := w.send(http.MethodGet, r.bearer, "/gateway/config", "")
	if status != 200 || !strings.Contains(body, `"mcp":{"url":"`+publicURL+`/gateway/mcp"}`) || strings.Contains(body, w.CRM.URL) {
		t.Errorf("the configuration: %d %s", status, body)
	}
	if status, _, body := w.send(http.MethodGet, ended.bearer, "/gateway/config", ""); status != 401 || body != want {
		t.Errorf("the configuration of an ended run: %d %s", status, body)
	}
	w.DB.Close()
	if status, h, _ := w.post(r, endpoint, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != 503 || h.Get("Retry-After") == "" {
		t.Errorf("without a database: %d", status)
	}
}

func TestArgumentsAreHeldToTheSchema(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.Autonomous)
	w.profile("engineering", c)
	s := w.client(w.start(policy.Task, "engineering"), eras[1], c.Key)
	for tool, arguments := range map[string][]string{
		"contacts_get":    {`{}`, `{"contact_id":7}`, `{"contact_id":"x_1"}`, `{"contact_id":"c_1001","bcc":"x"}`, `[]`, `"x"`, `null`},
		"refund_issue":    {`{"contact_id":"c_1001","amount_cents":"100"}`, `{"contact_id":"c_1001","amount_cents":1.5}`, `{"contact_id":"c_1001","amount_cents":-5}`},
		"contacts_search": {`{"query":""}`, `{"query":"a","limit":1000}`, `{"query":"a","limit":1e999999999}`},
	} {
		for _, a := range arguments {
			_, _, body := w.post(w.start(policy.Task, "engineering"), endpoint+"/"+c.Key.String(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+a+`}}`)
			if !strings.Contains(body, `"code":"invalid_arguments"`) || !strings.Contains(body, `"isError":true`) {
				t.Errorf("%s %s: %s", tool, a, body)
			}
		}
	}
	if got := call(t, s, "contacts_get", `{"contact_id":"c_1001"}`); got.IsError {
		t.Errorf("good arguments: %s", got.text)
	}
	if got := w.CRM.Did(); len(got) != 0 {
		t.Errorf("the CRM did %v", got)
	}
	refused := w.trail(audit.ToolRefused)
	if len(refused) == 0 || fact(refused[0], "code") != "invalid_arguments" || fact(refused[0], "argument_bytes") == "" {
		t.Errorf("refusals in the trail: %+v", refused)
	}
}

func TestNamesThatMustBeShortenedCollideOrAreOdd(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("long_name.", 12)
	raw := []string{"a.b", "a_b", "a b", "with/slash", long + "1", long + "2", "plain", "looks_abcdefgh", strings.Repeat("x", 43), "über"}
	var tools []string
	for i, name := range raw {
		tools = append(tools, reading(name, fmt.Sprintf(`{"type":"object","properties":{"n":{"const":%d}}}`, i)))
	}
	tools = append(tools,
		reading("bad_schema", `{"type":"object","properties":{"a":{"$ref":"https://evil.example/s.json"}}}`),
		reading("loops", `{"type":"object","$ref":"#"}`),
		reading("headers", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Route"},"x-mcp-header":{"type":"string"}}}`),
		`{"name":"no_schema"}`, `{"name":7,"inputSchema":{"type":"object"}}`, `"text"`, `{"name":"twice","inputSchema":{"type":"object"}}`, `{"name":"twice","inputSchema":{"type":"object"}}`)
	swap(w.odd.tools, tools)
	odd, fine := w.install("deepwiki", "Odd", policy.AskUserOnWrite), w.install("sandbox-crm", "CRM", policy.ReadOnly)
	w.profile("engineering", odd, fine)
	r := w.start(policy.Task, "engineering")
	all, single := w.client(r, eras[0], ""), w.client(r, eras[2], odd.Key)
	listed, alone := names(t, all), names(t, single)
	for i, name := range raw {
		full, short := capability.Name(odd.Key, name), capability.ShortName(odd.Key, name)
		mustHave(t, listed, full)
		mustHave(t, alone, short)
		if len(full) > 64 || full != odd.Key.String()+"__"+short || strings.Trim(full, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%q is listed as %q", name, full)
		}
		if got := call(t, all, full, fmt.Sprintf(`{"n":%d}`, i)); got.IsError || !strings.HasPrefix(got.text, name+" ") {
			t.Errorf("%q reached %s", full, got.text)
		}
		if got := call(t, single, short, fmt.Sprintf(`{"n":%d}`, i)); got.IsError || !strings.HasPrefix(got.text, name+" ") {
			t.Errorf("%q reached %s", short, got.text)
		}
	}
	if got := call(t, single, "looks_abcdefgh", `{"n":7}`); !strings.HasPrefix(got.text, "looks_abcdefgh ") {
		t.Errorf("by its own name: %s", got.text)
	}
	mustLack(t, alone, "a.b", "looks_abcdefgh", "bad_schema", "loops", "no_schema", "twice")
	mustHave(t, listed, fine.Key.String()+"__contacts_get")
	if len(listed) != len(slices.Compact(slices.Sorted(slices.Values(listed)))) {
		t.Errorf("a name is listed twice: %v", listed)
	}
	for tool, code := range map[string]string{"bad_schema": "tool_not_granted", "loops": "tool_not_granted", "twice": "tool_not_granted", "a.b": "tool_not_granted", "A_B": "tool_not_granted", "": "tool_not_granted"} {
		if got := call(t, single, tool, `{}`); got.code() != code {
			t.Errorf("%s: %q %s, want %s", tool, got.code(), got.text, code)
		}
	}
	_, _, body := w.post(r, endpoint+"/"+odd.Key.String(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for _, unwanted := range []string{"outputSchema", "icons", "evil.example", `"_meta"`, `"x-mcp-header":"Route"`} {
		if strings.Contains(body, unwanted) {
			t.Errorf("the list holds %s: %s", unwanted, body)
		}
	}
	if !strings.Contains(body, `"x-mcp-header":{"type":"string"}`) {
		t.Errorf("a property of that name is gone: %s", body)
	}
	if again := names(t, all); !slices.Equal(again, listed) {
		t.Errorf("the order changed: %v, %v", listed, again)
	}
}

func TestADeadUpstreamHidesNoOther(t *testing.T) {
	w := newWorld(t)
	swap(w.odd.tools, []string{reading("plain", `{"type":"object"}`)})
	odd, fine := w.install("deepwiki", "Odd", policy.ReadOnly), w.install("sandbox-crm", "CRM", policy.ReadOnly)
	w.profile("both", odd, fine)
	w.profile("one", odd)
	both, one := w.client(w.start(policy.Task, "both"), eras[0], ""), w.client(w.start(policy.Chat, "one"), eras[1], "")
	swap(w.odd.down, true)
	// A new version of the connection opens a new line, whose list must be fetched.
	odd = w.access(odd, policy.AskUserOnWrite)
	odd = w.access(odd, policy.ReadOnly)
	list := names(t, both)
	mustHave(t, list, fine.Key.String()+"__contacts_get", "countersign__actions_get")
	mustLack(t, list, odd.Key.String()+"__plain")
	if got := call(t, both, odd.Key.String()+"__plain", `{}`); got.code() != "connection_unavailable" {
		t.Errorf("a call: %s", got.text)
	}
	if got := call(t, both, fine.Key.String()+"__contacts_get", `{"contact_id":"c_1001"}`); got.IsError {
		t.Errorf("the other: %s", got.text)
	}
	if list, err := one.ListTools(t.Context(), nil); err == nil {
		t.Errorf("all are dead, listed %v", list.Tools)
	} else if !strings.Contains(err.Error(), "could not be reached") && !strings.Contains(err.Error(), "service") {
		t.Errorf("all are dead: %v", err)
	}
	swap(w.odd.down, false)
	mustHave(t, names(t, one), odd.Key.String()+"__plain")
}
