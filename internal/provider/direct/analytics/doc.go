// Package analytics owns the tools of Google Analytics 4: reports as tables, what a report can be made of, and the property a connection is
// limited to. It has reads only, and asks for nothing that makes anything: creating an audience export is left out although the read-only
// scope allows it. It knows no credential.
package analytics

import (
	"encoding/json"
	"strings"

	"countersign/internal/provider"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Key is the runtime's place in the registry.
const Key registry.Key = "google_analytics.v1"

// PropertySetting is the resource setting that limits a connection to one property: its number.
const PropertySetting = "property_id"

// New makes the provider.
func New() *direct.Provider {
	return direct.New(direct.Vendor{Name: "Google Analytics", API: "Data and Admin API v1beta", Tools: tools(), Explain: explain})
}

// explain reads google.rpc.Status.
func explain(r direct.Reply) string {
	var body struct {
		Error struct{ Status, Message string }
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return ""
	}
	return strings.TrimPrefix(body.Error.Status+": "+body.Error.Message, ": ")
}

func unreadable(err error) error {
	return provider.Upstream("Google Analytics' answer is not what its API promises.", err)
}
