package provider

import (
	"encoding/json"
	"strings"
	"unicode"

	"countersign/internal/unseen"
)

// schemaProblem looks for what no client could work with. Whether arguments fit the schema is checked where they are validated.
func schemaProblem(schema json.RawMessage) string {
	var root struct {
		Type       json.RawMessage `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &root) != nil {
		return "Its input schema cannot be read."
	}
	if t := text(root.Type); t != "object" && root.Type != nil {
		return "Its input schema does not describe an object."
	}
	if len(root.Properties) > 0 && root.Properties[0] != '{' && string(root.Properties) != "null" {
		return "The properties of its input schema are not an object."
	}
	return ""
}

// Printable drops control, format and other invisible characters: with them two names can look the same.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unseen.Is(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
}
