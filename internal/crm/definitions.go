package crm

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed tools.json
var builtin []byte

// definition is a tool as tools/list shows it. Raw is served byte for byte: a struct would repair exactly the defects that tests
// plant (a hint as text, a schema without a type, annotations that are missing).
type definition struct {
	name   string // the name it is called by; a patch may make raw claim another
	raw    json.RawMessage
	schema *jsonschema.Resolved // what the arguments of a built-in tool must satisfy; nil when raw holds no usable schema
}

// readOnly reports whether the definition claims to be a read: the JSON boolean true and nothing that merely looks like it.
func (d definition) readOnly() bool {
	var t struct {
		Annotations struct {
			ReadOnlyHint any `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	return json.Unmarshal(d.raw, &t) == nil && t.Annotations.ReadOnlyHint == true
}

// check validates arguments against the definition as it is now.
func (d definition) check(args json.RawMessage) error {
	if d.schema == nil {
		return nil
	}
	// Numbers as float64, which refuses 1e999999: kept exact, the validator would expand it digit by digit.
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return invalid("The arguments do not hold usable JSON.")
	}
	if err := d.schema.Validate(v); err != nil {
		why := err.Error()
		return invalid("The arguments do not fit the input schema: " + strings.ToValidUTF8(why[:min(len(why), 400)], "") + ".")
	}
	return nil
}

func define(name string, raw json.RawMessage) definition {
	d := definition{name: name, raw: raw}
	var t struct {
		InputSchema *jsonschema.Schema `json:"inputSchema"`
	}
	// A planted schema that refers to itself would send the validator round for ever; ours refer to nothing.
	if bytes.Contains(raw, []byte(`"$ref"`)) || bytes.Contains(raw, []byte(`"$dynamicRef"`)) || json.Unmarshal(raw, &t) != nil || t.InputSchema == nil {
		return d
	}
	if resolved, err := t.InputSchema.Resolve(nil); err == nil {
		d.schema = resolved
	}
	return d
}

// builtinDefinitions returns the eleven tools in the order they are listed.
func builtinDefinitions() []definition {
	var raws []json.RawMessage
	if err := json.Unmarshal(builtin, &raws); err != nil {
		panic("crm: the built-in tools do not parse: " + err.Error())
	}
	out := make([]definition, len(raws))
	for i, raw := range raws {
		var t struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			panic("crm: a built-in tool does not parse: " + err.Error())
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // parsed just above
		out[i] = define(t.Name, compact.Bytes())
	}
	return out
}

// patched applies a JSON merge patch (RFC 7396) to the definition called name and returns the new list. A name nobody has adds a
// tool; the patch null takes one away.
func patched(defs []definition, name string, patch any) ([]definition, json.RawMessage, error) {
	at := slices.IndexFunc(defs, func(d definition) bool { return d.name == name })
	if patch == nil {
		if at < 0 {
			return nil, nil, errors.New("there is no tool of that name to take away")
		}
		return slices.Delete(slices.Clone(defs), at, at+1), json.RawMessage("null"), nil
	}
	var before any = map[string]any{"name": name}
	if at >= 0 {
		var err error
		if before, err = decodeAny(defs[at].raw); err != nil {
			return nil, nil, err
		}
	}
	raw, err := encodeAny(merge(before, patch))
	if err != nil {
		return nil, nil, err
	}
	out := slices.Clone(defs)
	if at < 0 {
		return append(out, define(name, raw)), raw, nil
	}
	out[at] = define(name, raw)
	return out, raw, nil
}

func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for k, v := range changes {
		if v == nil {
			delete(object, k)
		} else {
			object[k] = merge(object[k], v)
		}
	}
	return object
}

// decodeAny parses one JSON value and keeps numbers as written.
func decodeAny(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func encodeAny(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
