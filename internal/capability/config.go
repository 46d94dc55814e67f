package capability

import (
	"time"

	"countersign/internal/policy"
)

// Config is the execution-scoped gateway configuration: everything an agent gets besides its run token. It holds no provider address,
// no credential and no header.
type Config struct {
	MCP       MCPConfig      `json:"mcp"`
	Git       []GitConfig    `json:"git"`
	Stdio     []StdioConfig  `json:"stdio"`
	ExpiresAt time.Time      `json:"expires_at"`
	Surface   policy.Surface `json:"surface"`
}

// MCPConfig points at the gateway's MCP endpoint.
type MCPConfig struct {
	URL string `json:"url"`
}

// GitConfig points one ordinary remote at the gateway.
type GitConfig struct {
	Connection string `json:"connection"`
	Repository string `json:"repository"`
	URL        string `json:"url"`
	InsteadOf  string `json:"instead_of"`
}

// StdioConfig names a runtime pinned in the agent image.
type StdioConfig struct {
	Runtime string `json:"runtime"`
}

// ConfigOf makes the configuration of a run. publicURL is the origin people and agents reach this server at.
func ConfigOf(l Live, publicURL string) Config {
	return Config{
		MCP: MCPConfig{URL: publicURL + "/gateway/mcp"}, Git: []GitConfig{}, Stdio: []StdioConfig{},
		ExpiresAt: l.Run.ExpiresAt.UTC(), Surface: l.Run.Surface,
	}
}
