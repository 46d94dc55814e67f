package capability

import (
	"slices"
	"strings"
	"time"

	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
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
		MCP: MCPConfig{URL: publicURL + "/gateway/mcp"}, Git: repositories(l, publicURL), Stdio: besides(l),
		ExpiresAt: l.Run.ExpiresAt.UTC(), Surface: l.Run.Surface,
	}
}

// besides are the runtimes that the agent's own image starts for this run. Mode and tools bind nothing there, since no call of theirs comes
// this way: that a profile has the connection is what gives it, and it ends with the connection.
func besides(l Live) []StdioConfig {
	out := []StdioConfig{}
	for _, g := range l.Grants {
		s := StdioConfig{Runtime: string(g.Connection.Runtime)}
		if g.Connection.Kind == registry.Stdio && g.Connection.State == installation.Active && g.InProfile && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// What a connection of repositories is made of: the tool that stands for fetching, and the setting that names them.
const (
	fetchTool           = "git_fetch"
	repositoriesSetting = "repositories"
)

// repositories are those a run may fetch from now. Their remotes in a workspace stay GitHub's own; git is told to ask here instead.
func repositories(l Live, publicURL string) []GitConfig {
	out := []GitConfig{}
	for _, g := range l.Grants {
		_, minted := g.Minted.Find(fetchTool)
		_, now := g.Now.Snapshot.Find(fetchTool)
		if g.Connection.Kind != registry.Git || g.Connection.State != installation.Active || !g.InProfile || !minted || !now {
			continue
		}
		key := g.Connection.Key.String()
		for name := range strings.FieldsFuncSeq(g.Connection.Settings[repositoriesSetting], func(r rune) bool { return r == ' ' || r == ',' }) {
			out = append(out, GitConfig{
				Connection: key, Repository: name, URL: publicURL + "/gateway/git/" + key + "/" + name + ".git", InsteadOf: "https://github.com/" + name,
			})
		}
	}
	return out
}
