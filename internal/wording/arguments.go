package wording

import (
	"bytes"
	"encoding/json"
	"strconv"

	"countersign/internal/canonical"
	"countersign/internal/fault"
)

// Kind is the JSON kind of an argument.
type Kind string

// The kinds.
const (
	Text      Kind = "text"
	Number    Kind = "number"
	Truth     Kind = "truth" // true or false
	Null      Kind = "null"
	Structure Kind = "structure" // an object or a list
)

// Argument is one member of an action's arguments.
type Argument struct {
	Name string
	Kind Kind
	Raw  string // the JSON text of the value, byte for byte
	Text string // a text without its quotes and escapes; empty for every other kind
}

// Arguments takes the canonical bytes of an action apart, in their own order, which is the order the provider gets. Numbers stay the
// digits they are: 12345678901234567890 must not be shown as 12345678901234567000.
func Arguments(raw []byte) ([]Argument, error) {
	if form, err := canonical.Object(raw); err != nil {
		return nil, err
	} else if !bytes.Equal(form, raw) {
		return nil, fault.New(fault.Internal, fault.CodeInternal, "The stored arguments are not in canonical form.", "Do not decide on this action; tell the operator.")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, err
	}
	out := []Argument{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		a, err := argument(name.(string), value) // a member name is always a string
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func argument(name string, value json.RawMessage) (Argument, error) {
	a := Argument{Name: name, Raw: string(value)}
	switch value[0] {
	case '"':
		a.Kind = Text
		return a, json.Unmarshal(value, &a.Text)
	case '{', '[':
		a.Kind = Structure
	case 't', 'f':
		a.Kind = Truth
	case 'n':
		a.Kind = Null
	default:
		a.Kind = Number
	}
	return a, nil
}

func find(arguments []Argument, name string) (Argument, bool) {
	for _, a := range arguments {
		if a.Name == name {
			return a, true
		}
	}
	return Argument{}, false
}

// count is "1 digit", "1,540 characters".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(strconv.Itoa(n)) + " " + noun + "s"
}

// Short reports whether an argument fits a line of its own without a frame: a number, true, false, null, or a text that can only be
// read as a key.
func (a Argument) Short() bool {
	switch a.Kind {
	case Text:
		return len(a.Text) <= longest && isKey(a.Text)
	case Structure:
		return a.Raw == "{}" || a.Raw == "[]"
	}
	return len(a.Raw) <= longest
}

// Shown is the text to draw for an argument that is not short: a text without its quotes, a structure with its members on lines of
// their own. Numbers and escapes inside a structure stay as they are sent.
func (a Argument) Shown() string {
	switch a.Kind {
	case Text:
		return a.Text
	case Structure:
		var b bytes.Buffer
		if json.Indent(&b, []byte(a.Raw), "", "  ") == nil {
			return b.String()
		}
	}
	return a.Raw
}
