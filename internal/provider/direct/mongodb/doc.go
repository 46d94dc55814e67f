// Package mongodb owns the tools of a MongoDB database: what each asks, which databases, collections, stages and operators an agent may
// name, how one document is changed and how a lost change is looked for. It never writes more than one document at a time, never runs
// JavaScript at the server, never keeps a cursor open there, never lets the driver open a connection or look up a name by itself, and
// never keeps the login: the driver is given it in client.go and nowhere else.
package mongodb

import (
	"encoding/json"

	"countersign/internal/provider"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Key is the runtime's place in the registry.
const Key registry.Key = "mongodb.v1"

// The resource settings that bound a connection.
const (
	DatabaseSetting    = "database"    // the one database; empty: whatever the login reaches
	CollectionsSetting = "collections" // names with commas between them; empty: all of the database
)

const role = registry.MCP // the one endpoint of this runtime

// New makes the provider.
func New() *direct.Provider {
	return direct.New(direct.Vendor{
		Name: "MongoDB", API: "its wire protocol", Tools: append(reads(), writes()...), Beyond: beyond,
		Probes: []direct.Probe{{Role: role, Call: provider.Call{Tool: "list_databases", Arguments: json.RawMessage(`{}`)}}},
	})
}
