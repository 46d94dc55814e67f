package mcpclient

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"countersign/internal/provider"
)

// A 2026-07-28 server may ask, by "x-mcp-header" in a tool's input schema, that an argument be repeated in a header Mcp-Param-…,
// so that proxies in front of it can route. The values are the approved arguments; the prefix keeps them from being any other header.

const bindingKey = "x-mcp-header"

// maxBindings bounds how many arguments one tool may ask for.
const maxBindings = 16

type binding struct {
	path   []string
	header string
}

type property struct {
	Type       json.RawMessage     `json:"type"`
	Header     json.RawMessage     `json:"x-mcp-header"`
	Properties map[string]property `json:"properties"`
}

// bindingsOf reads the bindings of a raw tool object. Problem says what is wrong with them.
func bindingsOf(definition []byte) (found []binding, problem string) {
	if !bytes.Contains(definition, []byte(bindingKey)) {
		return nil, ""
	}
	var tool struct {
		InputSchema property `json:"inputSchema"`
	}
	if json.Unmarshal(definition, &tool) != nil {
		return nil, "Its input schema asks for arguments in headers in a form that cannot be read."
	}
	seen := map[string]bool{}
	problem = collect(tool.InputSchema.Properties, nil, seen, &found)
	if problem == "" && len(found) > maxBindings {
		problem = "Its input schema asks for more than " + strconv.Itoa(maxBindings) + " arguments in headers."
	}
	if problem != "" {
		return nil, problem
	}
	return found, ""
}

func collect(properties map[string]property, path []string, seen map[string]bool, found *[]binding) string {
	for name, p := range properties {
		at := append(append([]string(nil), path...), name)
		if p.Header != nil {
			var header, kind string
			_ = json.Unmarshal(p.Header, &header) // stays empty, which is refused below
			_ = json.Unmarshal(p.Type, &kind)
			switch {
			case !httpguts.ValidHeaderFieldName(header):
				return "Its input schema asks for an argument in a header with an invalid name."
			case kind != "string" && kind != "integer" && kind != "boolean":
				return "Its input schema asks for an argument in a header that is neither a string nor an integer nor a boolean."
			case seen[strings.ToLower(header)]:
				return "Its input schema asks for two arguments in one header."
			}
			seen[strings.ToLower(header)] = true
			*found = append(*found, binding{at, header})
		}
		if problem := collect(p.Properties, at, seen, found); problem != "" {
			return problem
		}
	}
	return ""
}

// headersFor are the headers that repeat arguments.
func headersFor(list []binding, arguments json.RawMessage) map[string]string {
	out := map[string]string{}
	for _, b := range list {
		if text, ok := argument(arguments, b.path); ok {
			out["Mcp-Param-"+b.header] = headerText(text)
		}
	}
	return out
}

func argument(object json.RawMessage, path []string) (string, bool) {
	current := object
	for _, name := range path {
		var m map[string]json.RawMessage
		if json.Unmarshal(current, &m) != nil {
			return "", false
		}
		var ok bool
		if current, ok = m[name]; !ok {
			return "", false
		}
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(current))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return wholeNumber(v)
	}
	return "", false
}

// wholeNumber formats an integer that every reader understands alike; others travel in the body only, and the server decides.
func wholeNumber(n json.Number) (string, bool) {
	const safe = 1<<53 - 1
	i, err := n.Int64()
	if err != nil || i > safe || i < -safe {
		return "", false
	}
	return strconv.FormatInt(i, 10), true
}

// bindings remembers what each listed tool asks for, for callers that do not have the definition at hand.
type bindings struct {
	mu     sync.Mutex
	byTool map[string][]binding // nil until a list was seen
}

func (b *bindings) known(call provider.Call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return call.Definition != nil || b.byTool != nil
}

// learn keeps the bindings of listed tools and reports the bad ones as problems.
func (b *bindings) learn(list []provider.Definition) {
	byTool := map[string][]binding{}
	for i := range list {
		found, problem := bindingsOf(list[i].Raw)
		if problem != "" && list[i].Problem == "" {
			list[i].Problem = problem
		}
		if len(found) > 0 {
			byTool[list[i].Name] = found
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byTool = byTool
}

func (b *bindings) of(call provider.Call) []binding {
	if call.Definition != nil {
		found, _ := bindingsOf(call.Definition)
		return found
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byTool[call.Tool]
}
