// Package remote owns the custom remote kind: an MCP server that an organization runs itself, at the public HTTPS address a person typed.
// It is the MCP client and nothing more. It never trusts what such a server says of its own tools (an admin confirms a definition, or the
// tool is consequential), and never reaches an address that is not public, whoever asks.
package remote

import (
	"countersign/internal/provider"
	"countersign/internal/provider/mcpclient"
	"countersign/internal/registry"
)

// Kind is what the registry calls this kind.
const Kind = registry.Remote

// New makes the provider for every custom server.
func New(version string) provider.Provider { return mcpclient.New(version) }
