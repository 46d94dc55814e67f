// Package upstash owns the tools of Upstash: its management API, with every secret taken out of what it answers, and one Redis database
// over REST, by lists of commands that deny by default. Where the database is, is fixed by the connection and never named by a call. It
// never runs a script, never blocks, sends a write alone or as one transaction, and knows no credential.
package upstash

import (
	"encoding/json"
	"strings"

	"countersign/internal/provider"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Key is the runtime's place in the registry.
const Key registry.Key = "upstash.v1"

// DatabaseSetting is the resource setting that names the one database: NAME of NAME.upstash.io.
const DatabaseSetting = "database"

// New makes the provider.
func New() *direct.Provider {
	return direct.New(direct.Vendor{
		Name: "Upstash", API: "REST", Tools: append(redisTools(), managementTools()...), Explain: explain,
		Probes: []direct.Probe{
			{Role: registry.API, Call: provider.Call{Tool: "list_redis"}},
			{Role: registry.Data, Call: provider.Call{Tool: "redis_read", Arguments: json.RawMessage(`{"arguments":["countersign:probe"],"command":"EXISTS"}`)}},
		},
	})
}

// explain reads {"error": "…"}, or the plain text that some of the management answers are.
func explain(r direct.Reply) string {
	var body struct{ Error string }
	if json.Unmarshal(r.Body, &body) == nil && body.Error != "" {
		return body.Error
	}
	text := strings.TrimSpace(string(r.Body))
	if len(text) > 300 || strings.ContainsAny(text, "<{") {
		return ""
	}
	return strings.Trim(text, `"`)
}
