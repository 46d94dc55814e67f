package provider

import (
	"bytes"
	"encoding/json"
	"strconv"

	"countersign/internal/canonical"
	"countersign/internal/policy"
)

// Recipe is the version of the digest recipe in use. Recipe 1: SHA-256, in hex, of the canonical form of the raw tool object
// without its top-level "_meta" and "icons". Changing what is hashed is a new number, or every pinned tool would be quarantined.
const Recipe = 1

// Bounds of one tool object.
const (
	maxDefinition = 256 << 10
	maxToolName   = 256
)

// Definition is one tool as the upstream offers it.
type Definition struct {
	Name        string             // byte for byte; empty where even the name cannot be read
	Raw         json.RawMessage    // the tool object exactly as received
	Digest      string             // by Recipe; empty where the object cannot be canonicalized
	Recipe      int                // version of the recipe of Digest
	Title       string             // for display
	Description string             // the upstream's text: untrusted
	InputSchema json.RawMessage    // as received
	Annotations policy.Annotations // as found in the raw JSON
	Problem     string             // why this tool cannot be used, a sentence; empty where it can
}

// Define reads one raw tool object. It never fails: what is wrong with the tool is its Problem.
func Define(raw json.RawMessage) Definition {
	d := Definition{Raw: raw}
	if len(raw) > maxDefinition {
		d.Name = nameOf(raw)
		d.Problem = "Its definition is larger than " + strconv.Itoa(maxDefinition>>10) + " KiB."
		return d
	}
	form, err := canonical.Object(raw, "_meta", "icons")
	if err != nil {
		d.Name = nameOf(raw)
		d.Problem = "Its definition is not one unambiguous JSON object."
		return d
	}
	d.Digest, d.Recipe = canonical.Digest(form), Recipe
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		d.Problem = "Its definition is not one unambiguous JSON object."
		return d
	}
	d.Name = text(members["name"])
	d.Title, d.Description = text(members["title"]), text(members["description"])
	d.InputSchema = members["inputSchema"]
	d.Annotations = annotations(members["annotations"])
	if d.Title == "" {
		d.Title = annotatedTitle(members["annotations"])
	}
	d.Problem = problem(d, members)
	return d
}

// DigestOf is the digest of a raw tool object by a recipe; false where the recipe is unknown or the object ambiguous.
func DigestOf(raw json.RawMessage, recipe int) (string, bool) {
	if recipe != Recipe {
		return "", false
	}
	form, err := canonical.Object(raw, "_meta", "icons")
	if err != nil {
		return "", false
	}
	return canonical.Digest(form), true
}

func nameOf(raw json.RawMessage) string {
	var members map[string]json.RawMessage // not a struct, whose names match in any case
	_ = json.Unmarshal(raw, &members)      // what cannot be read has no name
	return text(members["name"])
}

func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // anything but a string is no text
	return s
}

func annotatedTitle(raw json.RawMessage) string {
	var a map[string]json.RawMessage
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	return text(a["title"])
}

// annotations reads the two hints from the raw JSON, because a decoder with a bool cannot tell "missing" from "false" and fails on
// "true" as text. Annotations that are not an object are malformed as a whole.
func annotations(raw json.RawMessage) policy.Annotations {
	if raw == nil || string(raw) == "null" {
		return policy.Annotations{}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return policy.Annotations{ReadOnly: policy.HintMalformed, Destructive: policy.HintMalformed}
	}
	return policy.Annotations{ReadOnly: hint(members["readOnlyHint"]), Destructive: hint(members["destructiveHint"])}
}

func hint(raw json.RawMessage) policy.Hint {
	switch string(raw) {
	case "", "null":
		return policy.HintAbsent
	case "true":
		return policy.HintTrue
	case "false":
		return policy.HintFalse
	}
	return policy.HintMalformed
}

func problem(d Definition, members map[string]json.RawMessage) string {
	switch {
	case d.Name == "":
		return "It has no name."
	case len(d.Name) > maxToolName:
		return "Its name is longer than " + strconv.Itoa(maxToolName) + " bytes."
	case Printable(d.Name) != d.Name:
		return "Its name contains control or invisible characters."
	case d.InputSchema == nil:
		return "It has no input schema."
	case !bytes.HasPrefix(d.InputSchema, []byte("{")):
		return "Its input schema is not a JSON object."
	}
	if members["description"] != nil && d.Description == "" && string(members["description"]) != `""` && string(members["description"]) != "null" {
		return "Its description is not a text."
	}
	return schemaProblem(d.InputSchema)
}
