package direct

import (
	"encoding/json"

	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/schema"
)

// Object is a JSON schema of an object, in the words a tool needs. Anything not named is refused.
type Object struct {
	Fields   map[string]Field
	Required []string
}

// Field is the schema of one value. Its JSON form is the schema's own.
type Field struct {
	Type        string           `json:"type,omitempty"`
	Description string           `json:"description,omitempty"`
	Enum        []string         `json:"enum,omitempty"`
	Pattern     string           `json:"pattern,omitempty"`
	MinLength   int              `json:"minLength,omitempty"`
	MaxLength   int              `json:"maxLength,omitempty"`
	Minimum     *int             `json:"minimum,omitempty"`
	Maximum     *int             `json:"maximum,omitempty"`
	MinItems    int              `json:"minItems,omitempty"`
	MaxItems    int              `json:"maxItems,omitempty"`
	Items       *Field           `json:"items,omitempty"`
	Properties  map[string]Field `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Additional  *bool            `json:"additionalProperties,omitempty"`
}

// Text is a text that is not empty.
func Text(description string) Field {
	return Field{Type: "string", Description: description, MinLength: 1, MaxLength: 2000}
}

// ID is a text that becomes part of an address, so it holds nothing that could change the address.
func ID(description string) Field {
	return Field{Type: "string", Description: description, Pattern: `^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`}
}

// Number is a whole number between two bounds.
func Number(description string, least, most int) Field {
	return Field{Type: "integer", Description: description, Minimum: &least, Maximum: &most}
}

// Truth is true or false.
func Truth(description string) Field { return Field{Type: "boolean", Description: description} }

// OneOf is one of several texts.
func OneOf(description string, of ...string) Field {
	return Field{Type: "string", Description: description, Enum: of}
}

// ListOf is a list of at most so many.
func ListOf(description string, of Field, most int) Field {
	return Field{Type: "array", Description: description, Items: &of, MinItems: 1, MaxItems: most}
}

// Strict is an object inside another.
func Strict(description string, fields map[string]Field, required ...string) Field {
	no := false
	return Field{Type: "object", Description: description, Properties: fields, Required: required, Additional: &no}
}

// Free is an object that the vendor describes, not we.
func Free(description string) Field { return Field{Type: "object", Description: description} }

// With adds fields to a copy.
func (o Object) With(more map[string]Field, required ...string) Object {
	out := Object{Fields: map[string]Field{}, Required: append(append([]string(nil), o.Required...), required...)}
	for _, fields := range []map[string]Field{o.Fields, more} {
		for name, f := range fields {
			out.Fields[name] = f
		}
	}
	return out
}

type annotated struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

type listed struct {
	Name        string    `json:"name"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Input       Field     `json:"inputSchema"`
	Output      *Field    `json:"outputSchema,omitempty"`
	Annotations annotated `json:"annotations"`
}

// define makes the tool object. It is the same for every connection and every process: its digest is what people approve.
func (t Tool) define() (provider.Definition, *schema.Schema) {
	no := false
	l := listed{
		Name: t.Name, Title: t.Title, Description: t.Description,
		Input:       Field{Type: "object", Properties: t.Input.Fields, Required: t.Input.Required, Additional: &no},
		Annotations: annotated{ReadOnly: t.Effect() == policy.Read, Destructive: t.Destructive, OpenWorld: true},
	}
	if t.Output.Fields != nil {
		l.Output = &Field{Type: "object", Properties: t.Output.Fields, Required: t.Output.Required}
	}
	raw, err := json.Marshal(l)
	if err != nil {
		panic("direct: " + t.Name + " does not marshal: " + err.Error())
	}
	d := provider.Define(raw)
	compiled, err := schema.Compile(d.InputSchema)
	if err != nil {
		d.Problem = err.Error()
	}
	return d, compiled
}
