package registry

// Trusted is everything this server may call or run, as compiled in. To review what the server trusts, read this function.
func Trusted() Table {
	bearer := CredentialHeader{Header: "Authorization", Format: "Bearer {secret}"}
	return tableOf(
		Entry{
			Key: "cloudflare_docs.v1", Kind: Hosted,
			Endpoints: map[Role]Endpoint{MCP: {URL: "https://docs.mcp.cloudflare.com/mcp"}},
		},

		Entry{
			Key: "context7.v1", Kind: Hosted,
			Endpoints:   map[Role]Endpoint{MCP: {URL: "https://mcp.context7.com/mcp"}},
			Credentials: []CredentialHeader{{Header: "CONTEXT7_API_KEY", Format: "{secret}"}},
		},

		Entry{
			Key: "deepwiki.v1", Kind: Hosted,
			Endpoints: map[Role]Endpoint{MCP: {URL: "https://mcp.deepwiki.com/mcp"}},
		},

		Entry{
			Key: "exa.v1", Kind: Hosted,
			Endpoints:   map[Role]Endpoint{MCP: {URL: "https://mcp.exa.ai/mcp"}},
			Credentials: []CredentialHeader{{Header: "x-api-key", Format: "{secret}"}},
		},

		Entry{
			Key: "firecrawl.v1", Kind: Hosted,
			Endpoints:   map[Role]Endpoint{MCP: {URL: "https://mcp.firecrawl.dev/v2/mcp"}},
			Credentials: []CredentialHeader{bearer},
		},

		Entry{
			Key: "microsoft_learn.v1", Kind: Hosted,
			Endpoints: map[Role]Endpoint{MCP: {URL: "https://learn.microsoft.com/api/mcp"}},
		},

		// The practice CRM runs beside the server, on an address only the operator knows: it has none of its own.
		Entry{
			Key: "sandbox_crm.v1", Kind: Hosted,
			Endpoints:   map[Role]Endpoint{MCP: {}},
			Credentials: []CredentialHeader{bearer},
			OAuth:       true, // an authorization server in front of it is found by discovery
		},
	)
}
