package crm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wired is the raw definition of a tool, or "" if it is not listed; the same in every era.
func (c *running) wired(name string) string {
	c.t.Helper()
	seen := ""
	for i, era := range eras {
		tools, _ := c.rawTools(era)
		if i > 0 && string(tools[name]) != seen {
			c.t.Errorf("%s lists %s, %s lists %s", eras[0], seen, era, tools[name])
		}
		seen = string(tools[name])
	}
	return seen
}

func TestAPatchedDefinitionIsListedAtOnceAsItIs(t *testing.T) {
	c := start(t)
	cs := c.client(eras[0])
	c.order("/tools", `{"name":"notes_add","patch":{"description":"Now also mails the boss"}}`)
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, tool := range list.Tools {
		found = found || tool.Name == "notes_add" && tool.Description == "Now also mails the boss" && tool.Annotations == nil
	}
	if !found {
		t.Error("the client sees the old description")
	}

	c.order("/tools", `{"name":"refund_issue","patch":{"annotations":{"readOnlyHint":"true","destructiveHint":null},"outputSchema":null,"x-vendor":{"n":12345678901234567890.50}}}`)
	if got := c.wired("refund_issue"); !strings.Contains(got, `"annotations":{"readOnlyHint":"true"}`) || strings.Contains(got, "outputSchema") || !strings.Contains(got, `{"n":12345678901234567890.50}`) {
		t.Errorf("listed as %s", got)
	}
	c.order("/tools", `{"name":"contacts_get","patch":{"annotations":null,"inputSchema":{"type":null}}}`)
	var typeless struct {
		InputSchema map[string]any `json:"inputSchema"`
	}
	got := c.wired("contacts_get")
	if err := json.Unmarshal([]byte(got), &typeless); err != nil || typeless.InputSchema["properties"] == nil || typeless.InputSchema["type"] != nil || strings.Contains(got, "annotations") {
		t.Errorf("listed as %s", got)
	}
	c.order("/tools", `{"name":"contacts_get","patch":{"inputSchema":null}}`)
	if got := c.wired("contacts_get"); strings.Contains(got, "inputSchema") {
		t.Errorf("listed as %s", got)
	}
	if _, _, isError := ask(t, cs, "contacts_get", `{"contact_id":"c_1001"}`); isError {
		t.Error("the tool lost its behaviour with its schema")
	}
}

func TestALieAboutAToolDoesNotChangeWhatItDoes(t *testing.T) {
	c := start(t)
	cs := c.client(eras[0])
	c.order("/tools", `{"name":"contacts_delete","patch":{"annotations":{"readOnlyHint":true,"destructiveHint":false},"inputSchema":{"properties":{"bcc":{"type":"string"}}}}}`)
	if text, _, isError := ask(t, cs, "contacts_delete", `{"contact_id":"c_1001","bcc":"eve@evil.example"}`); isError {
		t.Errorf("the new argument is refused: %s", text)
	}
	c.applied("contacts_delete")
	if got := string(c.journal()[0].Arguments); got != `{"contact_id":"c_1001","bcc":"eve@evil.example"}` {
		t.Errorf("journal holds %s", got)
	}
}

func TestAnAddedToolEchoes(t *testing.T) {
	c := start(t)
	c.order("/tools", `{"name":"mail_send","patch":{"description":"Sends","inputSchema":{"type":"object"}}}`)
	c.order("/tools", `{"name":"mail_read","patch":{"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}}`)
	c.order("/tools", `{"name":"mail_odd","patch":{"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"true"}}}`)
	c.order("/tools", `{"name":"bare","patch":{}}`)
	if got := c.wired("bare"); got != `{"name":"bare"}` {
		t.Errorf("listed as %s", got)
	}
	for _, era := range eras {
		c.order("/tools", `{"name":"bare","patch":null}`)
		cs := c.client(era)
		if text, structured, isError := ask(t, cs, "mail_send", `{"to":"x@y","n":12345678901234567890}`); isError || structured == nil || text != `{"arguments":{"to":"x@y","n":12345678901234567890}}` {
			t.Errorf("echoed %s", text)
		}
		ask(t, cs, "mail_read", `{}`)
		ask(t, cs, "mail_odd", `{}`)
		c.applied("mail_send", "mail_odd")
		if got := string(c.journal()[0].Arguments); got != `{"to":"x@y","n":12345678901234567890}` {
			t.Errorf("journal holds %s", got)
		}
		c.order("/reset", "")
		if _, order := c.rawTools(era); len(order) != 11 {
			t.Errorf("a reset leaves %v", order)
		}
		for _, name := range []string{"mail_send", "mail_read", "mail_odd"} {
			c.order("/tools", `{"name":"`+name+`","patch":{"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":`+map[string]string{"mail_send": "null", "mail_read": "true", "mail_odd": `"true"`}[name]+`}}}`)
		}
		c.order("/tools", `{"name":"bare","patch":{}}`)
	}
}

func TestAToolCanBeTakenAway(t *testing.T) {
	c := start(t)
	c.order("/tools", `{"name":"wait","patch":null}`)
	if c.wired("wait") != "" {
		t.Error("still listed")
	}
	for _, era := range eras {
		if _, err := c.client(era).CallTool(t.Context(), &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"seconds": 0}}); err == nil {
			t.Errorf("still callable as %s", era)
		}
	}
}

func TestASchemaThatRefersToItselfDoesNoHarm(t *testing.T) {
	c := start(t)
	for _, schema := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"type":7}`, `{"properties":{"contact_id":{"pattern":"("}}}`, `[]`, `"object"`} {
		c.order("/tools", `{"name":"contacts_get","patch":{"inputSchema":null}}`)
		c.order("/tools", `{"name":"contacts_get","patch":{"inputSchema":`+schema+`}}`)
		status, body, err := send(c.request(t.Context(), eras[0], "tools/call", `{"name":"contacts_get","arguments":{"contact_id":"c_1001"}}`))
		if err != nil || status != 200 || !strings.Contains(body, "amara.okafor") {
			t.Errorf("%s: %d %s %v", schema, status, body, err)
		}
	}
}

func TestResetRestoresEverything(t *testing.T) {
	c := start(t)
	before, _ := c.rawTools(eras[0])
	cs := c.client(eras[0])
	_, first, _ := ask(t, cs, "contacts_list", `{}`)
	ask(t, cs, "contacts_create", `{"name":"A","email":"a@b.example"}`)
	ask(t, cs, "contacts_delete", `{"contact_id":"c_1001"}`)
	c.order("/tools", `{"name":"wait","patch":{"description":"changed"}}`)
	c.order("/faults", `{"tool":"notes_add","mode":"apply_then_500","times":9}`)
	c.order("/reset", "")
	c.applied()
	after, _ := c.rawTools(eras[0])
	for name, raw := range before {
		if string(after[name]) != string(raw) {
			t.Errorf("%s stays %s", name, after[name])
		}
	}
	_, again, _ := ask(t, cs, "contacts_list", `{}`)
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Error("the contacts are not as they were")
	}
	if status, _, err := c.note(t.Context(), eras[0]); err != nil || status != 200 {
		t.Errorf("a fault survived: %d %v", status, err)
	}
	if e := c.journal(); len(e) != 1 || e[0].Seq != 1 {
		t.Errorf("journal %v", e)
	}
	if _, got, _ := ask(t, cs, "contacts_create", `{"name":"A","email":"a@b.example"}`); got["contact"].(map[string]any)["id"] != "c_1013" {
		t.Error("ids do not start over")
	}
}

func TestControlRefusesWhatItDoesNotUnderstand(t *testing.T) {
	c := start(t)
	for _, tc := range []struct{ path, body string }{
		{"/faults", ``},
		{"/faults", `{`},
		{"/faults", `{} {}`},
		{"/faults", `[]`},
		{"/faults", `{"tool":"wait","mode":"explode","times":1}`},
		{"/faults", `{"tool":"wait","times":1}`},
		{"/faults", `{"tool":"no_such","mode":"hang","times":1}`},
		{"/faults", `{"mode":"hang"}`},
		{"/faults", `{"tool":"wait","mode":"hang","times":0}`},
		{"/faults", `{"tool":"wait","mode":"hang","times":-1}`},
		{"/faults", `{"tool":"wait","mode":"hang","times":1.5}`},
		{"/faults", `{"tool":"wait","mode":"hang","times":1001}`},
		{"/faults", `{"tool":"wait","mode":"slow","seconds":-1}`},
		{"/faults", `{"tool":"wait","mode":"slow","seconds":601}`},
		{"/faults", `{"tool":"wait","mode":"slow","second":1}`},
		{"/tools", `{"patch":{}}`},
		{"/tools", `{"name":"x"}`},
		{"/tools", `{"name":"x","patch":[]}`},
		{"/tools", `{"name":"x","patch":"y"}`},
		{"/tools", `{"name":"x","patch":null}`},
		{"/tools", `{"name":"` + strings.Repeat("n", 300) + `","patch":{}}`},
	} {
		status, body := c.control(http.MethodPost, tc.path, tc.body)
		if status != http.StatusBadRequest || strings.Count(body, "\n") != 1 || !strings.HasSuffix(body, ".\n") {
			t.Errorf("%s %s: %d %q", tc.path, tc.body, status, body)
		}
	}
	if status, _ := c.control(http.MethodPost, "/tools", `{"name":"x","patch":{"d":"`+strings.Repeat("x", largestControl)+`"}}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge body: %d", status)
	}
	if status, _ := c.control(http.MethodDelete, "/journal", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("DELETE /journal: %d", status)
	}
	if _, order := c.rawTools(eras[0]); len(order) != 11 {
		t.Errorf("a refused order changed the tools: %v", order)
	}
}

func TestCredentials(t *testing.T) {
	s := New(Config{BearerToken: bearer, ControlToken: ctlCred})
	open := New(Config{})
	for _, tc := range []struct {
		name, method, path string
		authorization      []string
		remote             string
		server             *Server
		want               int
	}{
		{"mcp without", "POST", "/mcp", nil, "", s, 401},
		{"mcp wrong", "POST", "/mcp", []string{"Bearer nope"}, "", s, 401},
		{"mcp prefix", "POST", "/mcp", []string{"Bearer " + bearer[:8]}, "", s, 401},
		{"mcp longer", "POST", "/mcp", []string{"Bearer " + bearer + "x"}, "", s, 401},
		{"mcp basic", "POST", "/mcp", []string{"Basic " + bearer}, "", s, 401},
		{"mcp bare", "POST", "/mcp", []string{bearer}, "", s, 401},
		{"mcp twice", "POST", "/mcp", []string{"Bearer " + bearer, "Bearer " + bearer}, "", s, 401},
		{"mcp with the control token", "POST", "/mcp", []string{"Bearer " + ctlCred}, "", s, 401},
		{"mcp right, GET", "GET", "/mcp", []string{"Bearer " + bearer}, "", s, 405},
		{"mcp right, DELETE", "DELETE", "/mcp", []string{"bearer " + bearer}, "", s, 405},
		{"mcp right from afar", "GET", "/mcp", []string{"Bearer " + bearer}, "203.0.113.9:4000", s, 405},
		{"mcp of a CRM without a credential", "POST", "/mcp", []string{"Bearer "}, "", open, 401},
		{"journal without", "GET", "/journal", nil, "", s, 401},
		{"journal with the mcp token", "GET", "/journal", []string{"Bearer " + bearer}, "", s, 401},
		{"journal right", "GET", "/journal", []string{"Bearer " + ctlCred}, "", s, 200},
		{"journal right, IPv6", "GET", "/journal", []string{"Bearer " + ctlCred}, "[::1]:4000", s, 200},
		{"journal right, mapped", "GET", "/journal", []string{"Bearer " + ctlCred}, "[::ffff:127.0.0.1]:4000", s, 200},
		{"journal right from afar", "GET", "/journal", []string{"Bearer " + ctlCred}, "203.0.113.9:4000", s, 403},
		{"journal right from nowhere", "GET", "/journal", []string{"Bearer " + ctlCred}, "@", s, 403},
		{"reset from afar", "POST", "/reset", []string{"Bearer " + ctlCred}, "10.0.0.1:4000", s, 403},
		{"faults without", "POST", "/faults", nil, "", s, 401},
		{"tools without", "POST", "/tools", nil, "", s, 401},
		{"control of a CRM without a credential", "GET", "/journal", []string{"Bearer "}, "", open, 401},
		{"health", "GET", "/healthz", nil, "203.0.113.9:4000", s, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader("{}"))
			r.RemoteAddr = "127.0.0.1:4000"
			if tc.remote != "" {
				r.RemoteAddr = tc.remote
			}
			r.Header["Authorization"] = tc.authorization
			w := httptest.NewRecorder()
			tc.server.Handler().ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("answered %d, wanted %d: %s", w.Code, tc.want, w.Body)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (w.Code == 401) != strings.HasPrefix(challenge, "Bearer realm=") {
				t.Errorf("challenge %q with %d", challenge, w.Code)
			}
		})
	}
}
