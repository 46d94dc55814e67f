package agent

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gateway"
	"countersign/web/answer"
)

// instructions tell a model what is unusual here.
const instructions = "Tools are named <connection>__<tool>. A tool that changes something may answer NOT EXECUTED: it then waits for a person's approval as an action. " +
	"Calling it again answers the same action; follow it with the countersign__actions_ tools. A refusal says why and what to do next."

// answer answers one message of a live run.
func (m *mcp) answer(r *http.Request, live capability.Live, only connector.Key, body []byte) reply {
	msg, refusal, ok := parse(body)
	if !ok {
		return refusal
	}
	if refusal, ok := msg.revision(r.Header); !ok {
		return refusal
	}
	if msg.notification() {
		return reply{status: http.StatusAccepted, empty: true} // initialized, cancelled, progress: nothing here waits for them
	}
	a := reply{id: msg.id}
	if msg.modern {
		a.extra = `"resultType":"complete",`
	}
	switch {
	case msg.method == "tools/call":
		return m.call(r, live, only, msg, a)
	case msg.method == "tools/list":
		return m.list(r, live, only, msg, a)
	case msg.method == "server/discover" && msg.modern:
		return m.discover(r, live, only, a)
	case m.words != nil && (msg.method == "resources/list" || msg.method == "resources/read" || msg.method == "resources/templates/list"):
		return m.resources(r, live, only, msg, a)
	case msg.modern && (msg.method == "tasks/get" || msg.method == "tasks/update" || msg.method == "tasks/cancel"):
		return m.tasks(r, live, msg, a)
	case msg.method == "initialize" && !msg.modern:
		return m.initialize(r, live, only, msg, a)
	case msg.method == "ping" && !msg.modern:
		a.result = []byte("{}")
		return a
	}
	if msg.modern {
		a.status = http.StatusNotFound
	}
	return a.fail(codeMethodNotFound, "There is no such method here.")
}

func (m *mcp) discover(r *http.Request, live capability.Live, only connector.Key, a reply) reply {
	versions, _ := json.Marshal(supported) // strings always marshal
	words, err := m.instructed(r, live, only)
	if err != nil {
		return m.failed(r, a, err)
	}
	a.result = []byte(`{"supportedVersions":` + string(versions) + `,"capabilities":{` + m.offers() + `,"extensions":{"` + metaTasks + `":{}}},"instructions":` + string(words) +
		`,"ttlMs":0,"cacheScope":"private","_meta":{"` + metaServer + `":` + m.self + `}}`)
	return a
}

// initialize answers in the revision asked for, or offers the newest of those that begin this way. There is no session to begin.
func (m *mcp) initialize(r *http.Request, live capability.Live, only connector.Key, msg message, a reply) reply {
	version, ok := msg.params.text("protocolVersion")
	if !ok {
		return a.fail(codeInvalidParams, "The params have no protocolVersion.")
	}
	if !slices.Contains(legacy, version) {
		version = legacy[0]
	}
	words, err := m.instructed(r, live, only)
	if err != nil {
		return m.failed(r, a, err)
	}
	a.result = []byte(`{"protocolVersion":"` + version + `","capabilities":{` + m.offers() + `},"serverInfo":` + m.self + `,"instructions":` + string(words) + `}`)
	return a
}

func (m *mcp) list(r *http.Request, live capability.Live, only connector.Key, msg message, a reply) reply {
	if raw, given := msg.params.get("cursor"); given && string(raw) != "null" {
		return m.invalid(msg, a, "The list has one page; there is no such cursor.")
	}
	tools, err := m.gateway.Tools(r.Context(), live, only)
	if err != nil {
		return m.failed(r, a, err)
	}
	a.tools = tools
	if msg.modern {
		// A capability shrinks at any moment, so that a list is stale as soon as it is read.
		a.extra += `"ttlMs":0,"cacheScope":"private",`
	}
	return a
}

func (m *mcp) call(r *http.Request, live capability.Live, only connector.Key, msg message, a reply) reply {
	name, ok := msg.params.text("name")
	if !ok {
		return m.invalid(msg, a, "The params have no name.")
	}
	c := gateway.Call{Name: name}
	c.Arguments, _ = msg.params.get("arguments")
	if _, given := msg.meta.get(metaKey); given {
		if c.Key, ok = msg.meta.text(metaKey); !ok || c.Key == "" {
			return m.invalid(msg, a, "The member "+metaKey+" of _meta is no text.")
		}
	}
	if _, given := msg.meta.get(metaJustification); given {
		const most = 8 << 10
		if c.Justification, ok = msg.meta.text(metaJustification); !ok || len(c.Justification) > most {
			return m.invalid(msg, a, "The member "+metaJustification+" of _meta is no text of at most 8 KiB.")
		}
	}
	if !msg.followsTasks() {
		result, err := m.gateway.Call(r.Context(), live, only, c)
		if err != nil {
			return m.failed(r, a, err)
		}
		a.result = result
		return a
	}
	result, task, err := m.gateway.CallOrTask(r.Context(), live, only, c)
	if a.result = result; err == nil && task != nil {
		a.extra = `"resultType":"task",`
		a.result, err = json.Marshal(task)
	}
	if err != nil {
		return m.failed(r, a, err)
	}
	return a
}

func (m *mcp) invalid(msg message, a reply, what string) reply {
	if msg.modern {
		a.status = http.StatusBadRequest
	}
	return a.fail(codeInvalidParams, what)
}

// failed answers what is no answer to the request: an upstream that cannot be listed, a database that does not answer, our own defect.
func (m *mcp) failed(r *http.Request, a reply, err error) reply {
	f := answer.Of(err)
	answer.Log(r.Context(), f, "")
	data := map[string]string{"code": string(f.Code), "message": f.What, "next": f.Next}
	switch {
	case f.Code == fault.CodeUnavailable:
		a.status, a.later = http.StatusServiceUnavailable, true
	case f.Kind == fault.Internal:
		a.status = http.StatusInternalServerError
	}
	return a.failWith(codeInternal, strings.TrimSpace(f.What+" "+f.Next), data)
}
