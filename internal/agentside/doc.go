// Package agentside owns what happens in the agent's image: how a run token gets to git and to MCP clients and to nobody else, which pinned
// servers are started beside the agent, and what a run may do in words. It knows the gateway through HTTP alone, holds no credential of the
// organization, puts no secret on a command line, into the environment or into the workspace, and starts nothing but what it was built
// with and the command its user typed.
package agentside
