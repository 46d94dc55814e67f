package mongodb

import (
	"encoding/json"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/internal/canonical"
	"countersign/internal/provider/direct"
)

// Extended JSON (relaxed) is how documents look here: text, numbers and lists as in JSON; {"$oid": …}, {"$date": …} and their like where
// JSON has no such type.

// objectArgument decodes an argument that is a document.
func objectArgument(a direct.Arguments, name string) (bson.D, error) {
	d := bson.D{}
	if !a.Has(name) {
		return d, nil
	}
	if err := bson.UnmarshalExtJSON(a[name], false, &d); err != nil {
		return nil, notExtended(name)
	}
	return d, nil
}

// listArgument decodes an argument that is a list. Extended JSON of a driver is always a document, so it is wrapped in one.
func listArgument(a direct.Arguments, name string) (bson.A, error) {
	var d struct{ V bson.A }
	if !a.Has(name) {
		return bson.A{}, nil
	}
	if err := bson.UnmarshalExtJSON(wrapped(a[name]), false, &d); err != nil {
		return nil, notExtended(name)
	}
	return d.V, nil
}

func wrapped(raw json.RawMessage) []byte {
	return append(append([]byte(`{"v":`), raw...), '}')
}

func notExtended(name string) error {
	return invalid("“"+name+"” is not extended JSON.", "Write an object id as {\"$oid\": \"…\"} and a moment as {\"$date\": \"2026-12-24T00:00:00Z\"}.")
}

// The kinds an _id is named by. Almost every _id is one of the first three.
const (
	idObject   = "object_id"
	idText     = "text"
	idNumber   = "number"
	idExtended = "extended_json"
)

// idArgument is the _id a call names: 24 hexadecimal digits are an object id and anything else is text, unless id_type says otherwise.
func idArgument(a direct.Arguments) (any, error) {
	text, kind := a.Text("id"), a.Text("id_type")
	if kind == "" {
		kind = idText
		if objectID.MatchString(text) {
			kind = idObject
		}
	}
	bad := invalid("“id” is no _id of the kind “"+kind+"”.", "Give the _id as the document shows it, and id_type where it is neither an object id nor a text.")
	switch kind {
	case idObject:
		id, err := bson.ObjectIDFromHex(text)
		if err != nil {
			return nil, bad
		}
		return id, nil
	case idNumber:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, bad
		}
		return n, nil
	case idExtended:
		var d struct{ V any }
		if err := bson.UnmarshalExtJSON(wrapped(json.RawMessage(text)), false, &d); err != nil {
			return nil, bad
		}
		if harmless(bson.A{d.V}) != nil || hasOperator(d.V) {
			return nil, bad
		}
		return d.V, nil
	}
	return text, nil
}

// hasOperator finds what would make a condition of an _id, which would match other documents.
func hasOperator(v any) bool {
	switch x := v.(type) {
	case bson.D:
		for _, e := range x {
			if len(e.Key) > 0 && e.Key[0] == '$' || hasOperator(e.Value) {
				return true
			}
		}
	case bson.Regex:
		return true
	}
	return false
}

// shown is a document as relaxed extended JSON.
func shown(doc any) (json.RawMessage, error) {
	return bson.MarshalExtJSON(doc, false, false)
}

// drawn is a document for the eyes of a person.
func drawn(doc any) string {
	raw, err := bson.MarshalExtJSONIndent(doc, false, false, "", "  ")
	if err != nil {
		return ""
	}
	return string(raw)
}

// digestOf tells whether a document changed, without holding it. Types count: 1 as a long is not 1 as an int. The order of members does
// not: servers of different age append a new one at different places.
func digestOf(doc any) string {
	raw, err := bson.MarshalExtJSON(doc, true, false)
	if err != nil {
		return ""
	}
	form, err := canonical.Object(raw)
	if err != nil {
		return ""
	}
	return canonical.Digest(form)
}
