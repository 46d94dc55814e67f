package agentside

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"countersign/internal/secret"
)

// client is one MCP client that is configured in the place: the file, and the variable that says where, which holds what the client takes.
type client struct {
	name     string
	file     string
	variable string
	where    string // what the variable names: the file or, relative to the place, a folder
	encode   func([]server) ([]byte, error)
}

// clients are those that are known, each in its own format:
//   - mcp: the mcpServers JSON that most clients read
//   - claude: the same; claude --mcp-config FILE --strict-mcp-config (https://code.claude.com/docs/en/mcp)
//   - codex: config.toml in CODEX_HOME, headers as http_headers (https://developers.openai.com/codex/mcp)
//   - vscode: mcp.json of a user, below "servers"; code --user-data-dir DIR (https://code.visualstudio.com/docs/copilot/reference/mcp-configuration)
//   - cursor: ~/.cursor/mcp.json, which knows a remote server by its url (https://cursor.com/docs/mcp)
var clients = []client{
	{"mcp", "mcp.json", "COUNTERSIGN_MCP_CONFIG", "mcp.json", typedServers("mcpServers")},
	{"claude", "claude/mcp.json", "COUNTERSIGN_CLAUDE_MCP_CONFIG", "claude/mcp.json", typedServers("mcpServers")},
	{"codex", "codex/config.toml", "COUNTERSIGN_CODEX_HOME", "codex", codexServers},
	{"vscode", "vscode/User/mcp.json", "COUNTERSIGN_VSCODE_USER_DATA_DIR", "vscode", typedServers("servers")},
	{"cursor", "cursor/mcp.json", "COUNTERSIGN_CURSOR_MCP_CONFIG", "cursor/mcp.json", cursorServers},
}

// Clients names the clients that can be configured.
func Clients() []string {
	out := make([]string, len(clients))
	for i, c := range clients {
		out[i] = c.name
	}
	return out
}

// server is one MCP server of a run: the gateway, or one that this image starts.
type server struct {
	name    string
	url     string
	bearer  secret.Value
	command string
	args    []string
}

// gatewayName is what clients call the gateway.
const gatewayName = "countersign"

// remote is how a server behind an address is written, with the fields of most clients.
type remote struct {
	Type    string            `json:"type,omitempty" toml:"-"`
	URL     string            `json:"url" toml:"url"`
	Headers map[string]string `json:"headers" toml:"http_headers"`
}

// local is how a server is written that the client starts.
type local struct {
	Type    string   `json:"type,omitempty" toml:"-"`
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
}

// entries are the servers by name. The token is revealed here, into files of the place alone.
func entries(list []server, typed bool) map[string]any {
	kind := func(s string) string {
		if typed {
			return s
		}
		return ""
	}
	out := map[string]any{}
	for _, s := range list {
		if s.url != "" {
			out[s.name] = remote{kind("http"), s.url, map[string]string{"Authorization": "Bearer " + s.bearer.Reveal()}}
		} else {
			out[s.name] = local{kind("stdio"), s.command, s.args}
		}
	}
	return out
}

func typedServers(member string) func([]server) ([]byte, error) {
	return func(list []server) ([]byte, error) {
		return json.MarshalIndent(map[string]any{member: entries(list, true)}, "", "  ")
	}
}

func cursorServers(list []server) ([]byte, error) {
	return json.MarshalIndent(map[string]any{"mcpServers": entries(list, false)}, "", "  ")
}

func codexServers(list []server) ([]byte, error) {
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(map[string]any{"mcp_servers": entries(list, false)})
	return b.Bytes(), err
}

// configure writes the configuration of the named clients into the place and answers the variables that say where.
func configure(p *Place, names []string, list []server) (env []string, err error) {
	for _, c := range clients {
		if !slices.Contains(names, c.name) {
			continue
		}
		data, err := c.encode(list)
		if err == nil {
			err = p.Write(c.file, data)
		}
		if err != nil {
			return nil, err
		}
		env = append(env, c.variable+"="+filepath.Join(p.Dir, c.where))
	}
	return env, nil
}

// CheckClients judges names of clients.
func CheckClients(names []string) error {
	for _, n := range names {
		if !slices.Contains(Clients(), n) {
			return invalid("There is no client “"+n+"”.", "Name some of "+strings.Join(Clients(), ", ")+".")
		}
	}
	return nil
}
