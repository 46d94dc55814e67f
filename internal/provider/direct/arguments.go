package direct

import (
	"encoding/json"
	"strconv"
)

// Arguments are those of one call, after they were checked against the tool's schema.
type Arguments map[string]json.RawMessage

// Text is a text argument; empty where it is absent.
func (a Arguments) Text(name string) string {
	var s string
	_ = json.Unmarshal(a[name], &s) // checked against the schema
	return s
}

// Int is a whole number; the fallback where it is absent.
func (a Arguments) Int(name string, otherwise int64) int64 {
	n, err := strconv.ParseInt(string(a[name]), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// True reports whether an argument is true.
func (a Arguments) True(name string) bool { return string(a[name]) == "true" }

// Has reports whether an argument is there.
func (a Arguments) Has(name string) bool { return len(a[name]) > 0 }

// Into decodes one argument.
func (a Arguments) Into(name string, into any) error {
	if !a.Has(name) {
		return nil
	}
	return json.Unmarshal(a[name], into)
}
