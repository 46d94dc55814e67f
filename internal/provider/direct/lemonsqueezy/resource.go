package lemonsqueezy

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// resource is one object of the vendor's API.
type resource struct {
	Type       string         `json:"type"`
	ID         string         `json:"id"`
	Attributes map[string]any `json:"attributes"`
}

// text is an attribute as it is written: ids are numbers in some answers and texts in others.
func (r resource) text(name string) string {
	switch v := r.Attributes[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return ""
}

// shown is the object as an agent gets it: its attributes with its id, without links and relationships.
func (r resource) shown() map[string]any {
	out := map[string]any{"id": r.ID, "type": r.Type}
	for name, v := range r.Attributes {
		if !secretAttribute(name) {
			out[name] = v
		}
	}
	return out
}

// secretAttribute names what an agent must not hold: a webhook's signing secret proves messages of the vendor. Customers' licence keys are
// what people ask support for, and stay.
func secretAttribute(name string) bool { return name == "secret" || name == "signing_secret" }

type one struct{ Data resource }

type many struct {
	Data []resource
	Meta struct {
		Page struct{ CurrentPage, LastPage, PerPage, Total int }
	}
}

// fetch reads one object.
func fetch(ctx context.Context, l *direct.Link, plural, id string) (resource, error) {
	r, err := l.Ask(ctx, direct.Request{Role: role, Method: http.MethodGet, Path: direct.At("/"+plural+"/%s", id)})
	if err != nil {
		return resource{}, err
	}
	return resourceOf(r)
}

func resourceOf(r direct.Reply) (resource, error) {
	var o one
	if err := r.JSON(&o); err != nil || o.Data.ID == "" {
		return resource{}, unreadable(err)
	}
	return o.Data, nil
}

func unreadable(err error) error {
	return provider.Upstream("Lemon Squeezy's answer is not what its API promises.", err)
}

// document is a JSON:API request body.
func document(kind, id string, attributes map[string]any, relationships map[string][2]string) map[string]any {
	data := map[string]any{"type": kind, "attributes": attributes}
	if id != "" {
		data["id"] = id
	}
	if len(relationships) > 0 {
		all := map[string]any{}
		for name, r := range relationships {
			all[name] = map[string]any{"data": map[string]string{"type": r[0], "id": r[1]}}
		}
		data["relationships"] = all
	}
	return map[string]any{"data": data}
}

// same compares a value that was sent with one that was read: numbers by their digits, moments as moments, anything else by its JSON.
func same(sent json.RawMessage, read any) bool {
	raw, err := json.Marshal(read)
	if err != nil {
		return false
	}
	sent, raw = bytes.TrimSpace(sent), bytes.TrimSpace(raw)
	switch {
	case bytes.Equal(sent, raw):
		return true
	case len(sent) == 0 || sent[0] == '{' || sent[0] == '[':
		return false
	}
	a, b := strings.Trim(string(sent), `"`), strings.Trim(string(raw), `"`)
	if at, err := time.Parse(time.RFC3339, a); err == nil {
		was, err := time.Parse(time.RFC3339, b)
		return err == nil && was.Equal(at)
	}
	return a == b
}
