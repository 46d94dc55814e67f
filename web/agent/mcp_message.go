package agent

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// The revisions spoken. The modern one has no sessions, and says with each request which revision it is.
const modern = "2026-07-28"

var (
	legacy    = []string{"2025-11-25", "2025-06-18", "2025-03-26"}
	supported = append([]string{modern}, legacy...)
)

// Error codes of JSON-RPC and of the protocol.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeResourceNotFound   = -32002 // of the 2025 revisions; later ones call it invalid params
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// Members of _meta.
const (
	metaVersion       = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities  = "io.modelcontextprotocol/clientCapabilities"
	metaClient        = "io.modelcontextprotocol/clientInfo"
	metaServer        = "io.modelcontextprotocol/serverInfo"
	metaKey           = "countersign.dev/idempotency-key"
	metaJustification = "countersign.dev/justification"
)

// message is one JSON-RPC request or notification. Names were compared byte for byte: a decoder into a struct would also take "METHOD"
// for "method", and two readers would see two requests.
type message struct {
	id     []byte // nil: a notification
	method string
	params fields
	meta   fields
	modern bool
}

func (m message) notification() bool { return m.id == nil }

// parse reads a body, or says why not.
func parse(body []byte) (message, reply, bool) {
	bad := reply{status: http.StatusBadRequest}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		return message{}, bad.fail(codeInvalidRequest, "Batches are not answered; send one message a request."), false
	}
	members, ok, err := object(body)
	if err != nil {
		return message{}, bad.fail(codeParse, "The message is not one unambiguous JSON value: "+err.Error()+"."), false
	}
	if !ok {
		return message{}, bad.fail(codeInvalidRequest, "A message is a JSON object."), false
	}
	var m message
	if m.id, ok = identifier(members); !ok {
		return message{}, bad.fail(codeInvalidRequest, "The id of a request is a string or a number."), false
	}
	bad.id = m.id
	version, _ := members.text("jsonrpc")
	if m.method, ok = members.text("method"); !ok || version != "2.0" {
		return message{}, bad.fail(codeInvalidRequest, "A message has jsonrpc “2.0” and a method."), false
	}
	if raw, given := members.get("params"); given {
		if m.params, ok, _ = object(raw); !ok {
			return message{}, bad.fail(codeInvalidParams, "The params are not an object."), false
		}
	}
	if raw, given := m.params.get("_meta"); given {
		if m.meta, ok, _ = object(raw); !ok {
			return message{}, bad.fail(codeInvalidParams, "The member _meta is not an object."), false
		}
	}
	return m, reply{id: m.id}, true
}

// identifier is the id as written; nil without an id.
func identifier(members fields) ([]byte, bool) {
	id, given := members.get("id")
	if !given {
		return nil, true
	}
	const most = 1 << 10
	ok := len(id) <= most && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
	return id, ok
}

// revision finds out which revision a request speaks, and holds a modern one to its rules: what the headers repeat must be what the body
// says, since a proxy in between believes the headers.
func (m *message) revision(h http.Header) (reply, bool) {
	bad := reply{id: m.id, status: http.StatusBadRequest}
	values := h.Values("Mcp-Protocol-Version")
	header := strings.Join(values, ", ")
	_, inBody := m.meta.get(metaVersion)
	version, isText := m.meta.text(metaVersion)
	m.modern = inBody && !m.notification() || header != "" && !slices.Contains(legacy, header)
	switch {
	case !m.modern:
		return reply{}, true
	case m.notification() && header == modern:
		return m.standardHeaders(h)
	case m.notification():
		return unsupported(bad, header), false
	case header == "":
		return bad.fail(codeHeaderMismatch, "The header MCP-Protocol-Version is missing; it repeats the version in _meta."), false
	case inBody && isText && header != version:
		return bad.fail(codeHeaderMismatch, "The header MCP-Protocol-Version is not the version in _meta."), false
	case header != modern:
		return unsupported(bad, header), false
	case !isText:
		return bad.fail(codeInvalidParams, "The member "+metaVersion+" of _meta is missing or no text."), false
	}
	if raw, _ := m.meta.get(metaCapabilities); len(raw) == 0 || raw[0] != '{' {
		return bad.fail(codeInvalidParams, "The member "+metaCapabilities+" of _meta is missing or no object."), false
	}
	if raw, given := m.meta.get(metaClient); given && raw[0] != '{' {
		return bad.fail(codeInvalidParams, "The member "+metaClient+" of _meta is no object."), false
	}
	return m.standardHeaders(h)
}

func unsupported(bad reply, asked string) reply {
	return bad.failWith(codeUnsupportedVersion, "This protocol version is not supported.", map[string]any{"supported": supported, "requested": asked})
}

// named are the methods whose Mcp-Name header repeats a member of the params.
var named = map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

func (m *message) standardHeaders(h http.Header) (reply, bool) {
	bad := reply{id: m.id, status: http.StatusBadRequest}
	if given := h.Values("Mcp-Method"); len(given) != 1 || given[0] != m.method {
		return bad.fail(codeHeaderMismatch, "The header Mcp-Method is missing or not the method of the message."), false
	}
	member, ok := named[m.method]
	if !ok {
		return reply{}, true
	}
	name, ok := m.params.text(member)
	if !ok {
		return bad.fail(codeInvalidParams, "The params have no "+member+"."), false
	}
	if member == "taskId" && len(h.Values("Mcp-Name")) == 0 {
		return reply{}, true // the official Go client does not know to send it; what no proxy reads misleads none
	}
	if given := h.Values("Mcp-Name"); len(given) != 1 || plain(given[0]) != name {
		return bad.fail(codeHeaderMismatch, "The header Mcp-Name is missing or not the "+member+" in the params."), false
	}
	return reply{}, true
}

// plain decodes a header value that was wrapped because it is not plain ASCII.
func plain(value string) string {
	inner, wrapped := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if !wrapped || !closed {
		return value
	}
	raw, err := base64.StdEncoding.DecodeString(inner)
	if err != nil {
		return value
	}
	return string(raw)
}
