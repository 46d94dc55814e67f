package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/policy"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// taskParams and taskResult are what a client adds to the official SDK to speak the extension.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string         `json:"taskId"`
	InputResponses map[string]any `json:"inputResponses,omitempty"`
}

type taskResult struct {
	mcp.ResultBase
	ResultType     string              `json:"resultType"`
	TaskID         string              `json:"taskId"`
	Status         string              `json:"status"`
	StatusMessage  string              `json:"statusMessage"`
	CreatedAt      time.Time           `json:"createdAt"`
	LastUpdatedAt  time.Time           `json:"lastUpdatedAt"`
	TTLMS          *int64              `json:"ttlMs"`
	PollIntervalMS int                 `json:"pollIntervalMs"`
	Result         *mcp.CallToolResult `json:"result"`
	Error          *struct{ Code int } `json:"error"`
}

// taskClient is the official SDK's client of 2026-07-28 with the extension added by its custom methods. The SDK's own tools/call drops
// what it does not know, so that the handle is read from the bytes.
type taskClient struct {
	t       testing.TB
	session *mcp.ClientSession
	wire    *tap
}

func (w *world) taskClient(r started, only connector.Key) taskClient {
	w.T.Helper()
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension(tasksExtension, nil)
	c := mcp.NewClient(&mcp.Implementation{Name: "tasks", Version: "1"}, &mcp.ClientOptions{Capabilities: capabilities})
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		check(w.T, mcp.AddSendingCustomMethod[*taskParams, *taskResult](c, method))
	}
	wire := &tap{bearing: bearing{r.bearer}}
	s, err := c.Connect(w.T.Context(), &mcp.StreamableClientTransport{Endpoint: w.url(only), HTTPClient: &http.Client{Transport: wire}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: eras[0]})
	check(w.T, err)
	w.T.Cleanup(func() { _ = s.Close() })
	return taskClient{w.T, s, wire}
}

// call answers with the handle where the server answered one, and with the result where it did not.
func (c taskClient) call(tool, arguments string, meta ...string) (taskResult, called) {
	c.t.Helper()
	result := call(c.t, c.session, tool, arguments, meta...)
	var m struct{ Result taskResult }
	check(c.t, json.Unmarshal(c.wire.last, &m))
	return m.Result, result
}

func (c taskClient) ask(method, id string) (*taskResult, error) {
	return mcp.CallCustomMethod[*taskParams, *taskResult](c.t.Context(), c.session, method, &taskParams{TaskID: id, InputResponses: map[string]any{"approve": map[string]any{"action": "accept"}}})
}

func (c taskClient) get(id string) *taskResult {
	c.t.Helper()
	r, err := c.ask("tasks/get", id)
	check(c.t, err)
	return r
}

// tap keeps the bytes of the last answer.
type tap struct {
	bearing
	last []byte
}

func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.bearing.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if p.last, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(p.last))
	return res, nil
}

func TestAStagedCallIsATaskToAClientThatFollowsTasks(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	r := w.start(policy.Task, "engineering")
	s := w.taskClient(r, c.Key)

	if _, read := s.call("contacts_get", `{"contact_id":"c_1001"}`); read.IsError || !strings.Contains(read.text, "c_1001") {
		t.Errorf("a read is answered at once: %s", read.text)
	}
	const arguments = `{"name":"Ada","email":"ada@a.test"}`
	handle, _ := s.call("contacts_create", arguments)
	if handle.ResultType != "task" || handle.Status != "working" || handle.TaskID == "" || handle.Result != nil || handle.TTLMS == nil || handle.PollIntervalMS != 5000 ||
		!strings.Contains(handle.StatusMessage, publicURL+"/actions/"+handle.TaskID) || handle.CreatedAt.IsZero() || handle.LastUpdatedAt.Before(handle.CreatedAt) {
		t.Fatalf("the handle: %s", s.wire.last)
	}
	if most := time.Hour.Milliseconds(); *handle.TTLMS > most || *handle.TTLMS < most-time.Minute.Milliseconds() {
		t.Errorf("ttlMs %d is not the rest of the run", *handle.TTLMS)
	}
	if again, _ := s.call("contacts_create", arguments); again.TaskID != handle.TaskID {
		t.Errorf("the same call is another task: %s", s.wire.last)
	}
	// What a client may send to a task approves nothing, whatever it is called.
	for range 3 {
		if ack, err := s.ask("tasks/update", handle.TaskID); err != nil || ack.ResultType != "complete" || ack.TaskID != "" || ack.Status != "" {
			t.Fatalf("update: %v %s", err, s.wire.last)
		}
	}
	if got := s.get(handle.TaskID); got.Status != "working" || got.ResultType != "complete" || len(w.CRM.Did()) != 0 {
		t.Fatalf("after the updates: %s", s.wire.last)
	}
	w.Approve(action.ID(handle.TaskID))
	if got := s.get(handle.TaskID); got.Status != "working" || got.PollIntervalMS != 1000 || got.LastUpdatedAt.Before(handle.CreatedAt) {
		t.Errorf("approved: %s", s.wire.last)
	}
	w.dispatch(action.ID(handle.TaskID))
	done := s.get(handle.TaskID)
	if done.Status != "completed" || done.Result == nil || done.Result.IsError || !strings.Contains(string(s.wire.last), "Ada") || done.PollIntervalMS != 0 {
		t.Fatalf("executed: %s", s.wire.last)
	}
	if late, result := s.call("contacts_create", arguments); late.ResultType != "complete" || !strings.Contains(result.text, "Ada") {
		t.Errorf("the same call after the end: %s", s.wire.last)
	}
	if _, err := s.ask("tasks/cancel", handle.TaskID); err != nil {
		t.Errorf("cancelling what has ended is acknowledged: %v", err)
	}
	if again := s.get(handle.TaskID); again.Status != "completed" {
		t.Errorf("a terminal status changed: %s", s.wire.last)
	}
	if got := w.CRM.Did(); len(got) != 1 {
		t.Errorf("the CRM did %v", got)
	}
	again, _ := s.call("countersign__actions_retry", `{"action_id":"`+handle.TaskID+`","justification":"a second one on purpose"}`)
	if again.ResultType != "task" || again.TaskID == handle.TaskID {
		t.Errorf("a retry is a task, too: %s", s.wire.last)
	}
}

func TestHowTasksEnd(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.taskClient(w.start(policy.Task, "engineering"), c.Key)
	stage := func(email string) string {
		t.Helper()
		handle, _ := s.call("contacts_create", `{"name":"Ada","email":"`+email+`"}`)
		return handle.TaskID
	}

	cancelled := stage("cancelled@a.test")
	for range 2 {
		if ack, err := s.ask("tasks/cancel", cancelled); err != nil || ack.ResultType != "complete" || ack.TaskID != "" {
			t.Fatalf("cancel: %v %s", err, s.wire.last)
		}
	}
	if got := s.get(cancelled); got.Status != "cancelled" || got.Result != nil || !strings.Contains(got.StatusMessage, "took it back") {
		t.Errorf("cancelled: %s", s.wire.last)
	}

	denied := stage("denied@a.test")
	a := w.Action(action.ID(denied))
	_, err := w.Actions.Deny(t.Context(), scene.Decision(w.People[identity.Approver], a, "not this customer"))
	check(t, err)
	if got := s.get(denied); got.Status != "completed" || got.Result == nil || !got.Result.IsError || !strings.Contains(string(s.wire.last), "not this customer") || got.LastUpdatedAt.Equal(got.CreatedAt) {
		t.Errorf("denied: %s", s.wire.last)
	}

	lost := stage("lost@a.test")
	w.CRM.Breaks("contacts_create", "apply_then_reset")
	w.Approve(action.ID(lost))
	w.dispatch(action.ID(lost))
	if got := s.get(lost); got.Status != "working" || got.Result != nil || !strings.HasPrefix(got.StatusMessage, "UNCERTAIN.") {
		t.Errorf("uncertain: %s", s.wire.last)
	}
	if _, err := s.ask("tasks/cancel", lost); err != nil {
		t.Errorf("cancelling is a wish: %v", err)
	}
	a = w.Action(action.ID(lost))
	_, err = w.Actions.Settle(t.Context(), action.Settlement{Decision: scene.Decision(w.People[identity.Approver], a, "it is in the CRM"), Answer: action.Applied})
	check(t, err)
	if got := s.get(lost); got.Status != "completed" || got.Result == nil || got.Result.IsError {
		t.Errorf("settled: %s", s.wire.last)
	}

	rejected := stage("rejected@a.test")
	w.CRM.Breaks("contacts_create", "reject")
	w.Approve(action.ID(rejected))
	w.dispatch(action.ID(rejected))
	if got := s.get(rejected); got.Status != "completed" || got.Error != nil || got.Result == nil || !got.Result.IsError || !strings.Contains(string(s.wire.last), "upstream_error") {
		t.Errorf("rejected: %s", s.wire.last)
	}
	if got := call(t, s.session, "countersign__actions_get", `{"action_id":"\u0000"}`); got.code() != "not_found" {
		t.Errorf("an id that no database takes: %s", got.text)
	}
}

func TestATaskBelongsToItsRun(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	s := w.taskClient(w.start(policy.Task, "engineering"), c.Key)
	handle, _ := s.call("contacts_create", `{"name":"Ada","email":"ada@a.test"}`)
	for name, other := range map[string]started{"another run": w.start(policy.Task, "engineering"), "a chat": w.start(policy.Chat, "engineering")} {
		stranger := w.taskClient(other, "")
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			_, foreign := stranger.ask(method, handle.TaskID)
			_, absent := stranger.ask(method, "act_nobody")
			if foreign == nil || absent == nil || foreign.Error() != absent.Error() || !strings.Contains(string(stranger.wire.last), `"code":-32602`) {
				t.Errorf("%s, %s: %v and %v", name, method, foreign, absent)
			}
		}
	}
	if got := s.get(handle.TaskID); got.Status != "working" {
		t.Errorf("a stranger changed it: %s", s.wire.last)
	}
}

// Raw requests: what a client that declares nothing, or declares it wrongly, is answered.
func TestTasksAreOnlyForRequestsThatDeclareThem(t *testing.T) {
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.AskUserOnWrite)
	w.profile("engineering", c)
	r := w.start(policy.Task, "engineering")
	path := endpoint + "/" + c.Key.String()
	declaring := func(capabilities string) string {
		return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
	}
	yes := declaring(`{"extensions":{"` + tasksExtension + `":{}}}`)
	create := func(meta string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"contacts_create","arguments":{"name":"Ada","email":"ada@a.test"},` + meta + `}}`
	}
	for _, capabilities := range []string{
		`{}`, `{"extensions":{}}`, `{"extensions":[]}`, `{"extensions":{"` + tasksExtension + `":true}}`, `{"extensions":{"` + tasksExtension + `":null}}`, `{"tasks":{}}`,
		`{"Extensions":{"` + tasksExtension + `":{}}}`, `{"extensions":{"example.test/tasks":{}}}`,
	} {
		status, _, body := w.post(r, path, create(declaring(capabilities)), modernly("tools/call", "contacts_create")...)
		if status != 200 || !strings.Contains(body, `"resultType":"complete"`) || !strings.Contains(body, `"status":"awaiting_approval"`) || strings.Contains(body, "taskId") {
			t.Errorf("%s: %d %s", capabilities, status, body)
		}
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			status, _, body := w.post(r, path, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"taskId":"act_x","inputResponses":{},`+declaring(capabilities)+`}}`, modernly(method, "act_x")...)
			if status != 400 || !strings.Contains(body, `"code":-32021`) || !strings.Contains(body, `"requiredCapabilities":{"extensions":{"`+tasksExtension+`":{}}}`) {
				t.Errorf("%s with %s: %d %s", method, capabilities, status, body)
			}
		}
	}
	// The tasks of 2025-11-25 are another thing and are not served; what asks for one is answered as always.
	status, _, body := w.post(r, path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"contacts_create","task":{"ttl":60000},"arguments":{"name":"Ada","email":"ada@a.test"},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"`+tasksExtension+`":{}}}}}}`,
		"MCP-Protocol-Version", "2025-11-25")
	if status != 200 || !strings.Contains(body, "awaiting_approval") || strings.Contains(body, "taskId") {
		t.Errorf("2025: %d %s", status, body)
	}
	if status, _, body := w.post(r, path, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"act_x"}}`, "MCP-Protocol-Version", "2025-11-25"); status != 200 || !strings.Contains(body, "-32601") {
		t.Errorf("2025: %d %s", status, body)
	}

	_, _, body = w.post(r, path, create(yes), modernly("tools/call", "contacts_create")...)
	var m struct{ Result map[string]any }
	check(t, json.Unmarshal([]byte(body), &m))
	id, _ := m.Result["taskId"].(string)
	want := []string{"createdAt", "lastUpdatedAt", "pollIntervalMs", "resultType", "status", "statusMessage", "taskId", "ttlMs"}
	var got []string
	for name := range m.Result {
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, want) || m.Result["resultType"] != "task" {
		t.Errorf("the handle has %v, want %v: %s", got, want, body)
	}
	tests := []struct {
		name, method, params, header string
		status, code                 int
	}{
		{"as it should be", "tasks/get", `"taskId":"` + id + `"`, id, 200, 0},
		{"no Mcp-Name, as the official Go client sends it", "tasks/get", `"taskId":"` + id + `"`, "", 200, 0},
		{"another Mcp-Name", "tasks/get", `"taskId":"` + id + `"`, "act_other", 400, -32020},
		{"no taskId", "tasks/get", `"x":1`, "", 400, -32602},
		{"taskId is a number", "tasks/cancel", `"taskId":7`, "7", 400, -32602},
		{"no inputResponses", "tasks/update", `"taskId":"` + id + `"`, id, 400, -32602},
		{"inputResponses are a list", "tasks/update", `"taskId":"` + id + `","inputResponses":[]`, id, 400, -32602},
		{"empty taskId", "tasks/get", `"taskId":""`, "", 400, -32602},
		{"a taskId that no database takes", "tasks/get", `"taskId":"\u0000"`, "", 400, -32602},
		{"there is no list", "tasks/list", `"x":1`, "", 404, -32601},
		{"there is no blocking result", "tasks/result", `"taskId":"` + id + `"`, id, 404, -32601},
		{"nobody approves here", "tasks/approve", `"taskId":"` + id + `"`, id, 404, -32601},
	}
	for _, tt := range tests {
		status, _, body := w.post(r, path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, tt.method, tt.params, yes), modernly(tt.method, tt.header)...)
		if status != tt.status || tt.code != 0 && !strings.Contains(body, fmt.Sprintf(`"code":%d`, tt.code)) || tt.code == 0 && !strings.Contains(body, `"status":"working"`) {
			t.Errorf("%s: %d %s", tt.name, status, body)
		}
	}
	if list := w.trail(""); len(list) == 0 || len(w.CRM.Did()) != 0 {
		t.Errorf("the CRM did %v", w.CRM.Did())
	}
	discover := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + yes + `}}`
	if _, _, body := w.post(r, path, discover, modernly("server/discover", "")...); !strings.Contains(body, `"extensions":{"`+tasksExtension+`":{}}`) {
		t.Errorf("discover: %s", body)
	}
}
