// Package lemonsqueezy owns the tools of the Lemon Squeezy API: what each asks and sends, the store a connection is limited to, the pace of
// its rate limit, and how a lost effect is looked for. It never sends a write twice, never believes the vendor to keep the store fence (it
// has none), and knows no credential.
package lemonsqueezy

import (
	"encoding/json"
	"strings"

	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Key is the runtime's place in the registry.
const Key registry.Key = "lemonsqueezy.v1"

// StoreSetting is the resource setting that limits a connection to one store. The vendor's keys reach every store of the account.
const StoreSetting = "store_id"

const role = registry.MCP // the one address of this runtime

// media is asked for and sent: with another one the vendor answers 401, which would read as a refused key.
const media = "application/vnd.api+json"

// New makes the provider.
func New() *direct.Provider {
	return direct.New(direct.Vendor{
		Name: "Lemon Squeezy", API: "JSON:API v1", Accept: media, Tools: tools(), Explain: explain, Pace: pace, Paced: paced,
	})
}

func tools() []direct.Tool {
	out := []direct.Tool{me}
	for _, k := range kinds {
		out = append(out, k.list(), k.get())
	}
	return append(append(out, currentUsage), writes()...)
}

// explain translates JSON:API errors: title, detail, and which member of the request is meant.
func explain(r direct.Reply) string {
	var body struct {
		Errors []struct {
			Title, Detail string
			Source        struct{ Pointer, Parameter string }
		}
		Message string // some answers of the framework below are no JSON:API
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return ""
	}
	var parts []string
	for _, e := range body.Errors {
		words := e.Title
		if e.Detail != "" && e.Detail != e.Title {
			words = strings.TrimSuffix(strings.TrimSuffix(e.Title, ".")+": "+e.Detail, ": ")
		}
		if at := e.Source.Pointer + e.Source.Parameter; at != "" {
			words += " (" + strings.TrimPrefix(at, "/data/attributes/") + ")"
		}
		parts = append(parts, strings.TrimPrefix(words, ": "))
	}
	if len(parts) == 0 {
		return body.Message
	}
	return strings.Join(parts, " · ")
}
