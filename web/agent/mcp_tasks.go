package agent

import (
	"encoding/json"
	"net/http"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/fault"
)

// metaTasks names the extension by which a call that waits for a person is answered with a task. It exists since 2026-07-28 only, and
// only for the requests that declare it: a client that does not know tasks would take a handle for a result.
const metaTasks = "io.modelcontextprotocol/tasks"

// followsTasks reports whether a request declares the extension.
func (m message) followsTasks() bool {
	if !m.modern {
		return false
	}
	raw, _ := m.meta.get(metaCapabilities)
	capabilities, _, _ := object(raw)
	raw, _ = capabilities.get("extensions")
	extensions, _, _ := object(raw)
	raw, given := extensions.get(metaTasks)
	return given && len(raw) > 0 && raw[0] == '{'
}

// tasks answers the methods of the extension: get, update and cancel. There is no list and no call that blocks, and none of them can
// approve: what a client sends to tasks/update answers a question that is never asked here.
func (m *mcp) tasks(r *http.Request, live capability.Live, msg message, a reply) reply {
	if !msg.followsTasks() {
		a.status = http.StatusBadRequest
		return a.failWith(codeMissingCapability, "This method needs the client capability "+metaTasks+".",
			map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{metaTasks: struct{}{}}}})
	}
	id, ok := msg.params.text("taskId")
	if !ok {
		return m.invalid(msg, a, "The params have no taskId.")
	}
	a.result = []byte("{}")
	var err error
	switch msg.method {
	case "tasks/cancel":
		err = m.gateway.CancelTask(r.Context(), live, action.ID(id))
	case "tasks/update":
		if raw, _ := msg.params.get("inputResponses"); len(raw) == 0 || raw[0] != '{' {
			return m.invalid(msg, a, "The params have no inputResponses.")
		}
		_, err = m.gateway.Task(r.Context(), live, action.ID(id)) // known, or not: no response is ever outstanding
	default:
		t, failed := m.gateway.Task(r.Context(), live, action.ID(id))
		if err = failed; err == nil {
			a.result, err = json.Marshal(t)
		}
	}
	if fault.Is(err, fault.CodeNotFound) {
		return m.invalid(msg, a, "This run has no such task.")
	}
	if err != nil {
		return m.failed(r, a, err)
	}
	return a
}
