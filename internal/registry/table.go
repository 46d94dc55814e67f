package registry

import "strings"

// Trusted is everything this server may call or run, as compiled in. To review what the server trusts, read this file.
func Trusted() Table {
	bearer := []CredentialHeader{{Header: "Authorization", Format: "Bearer {secret}"}}
	return tableOf(
		Entry{Key: "airtable.v1", Kind: Hosted, Endpoints: mcp("https://mcp.airtable.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "asana.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{
			MCP: {URL: "https://mcp.asana.com/v2/mcp"}, Authorize: {URL: "https://app.asana.com/-/oauth_authorize"}, Token: {URL: "https://app.asana.com/-/oauth_token"}, Revoke: {URL: "https://app.asana.com/-/oauth_revoke"},
		}, OAuth: true},
		Entry{Key: "atlassian.v1", Kind: Hosted, Endpoints: mcp("https://mcp.atlassian.com/v1/mcp/authv2"), OAuth: true},
		Entry{Key: "atlassian_service.v1", Kind: Hosted, Endpoints: mcp("https://mcp.atlassian.com/v1/mcp"), Credentials: bearer},
		Entry{Key: "aws_knowledge.v1", Kind: Hosted, Endpoints: mcp("https://knowledge-mcp.global.api.aws")},
		Entry{Key: "box.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{
			MCP: {URL: "https://mcp.box.com"}, Authorize: {URL: "https://account.box.com/api/oauth2/authorize"}, Token: {URL: "https://api.box.com/oauth2/token"},
		}, OAuth: true},
		Entry{Key: "buildkite.v1", Kind: Hosted, Endpoints: mcp("https://mcp.buildkite.com/mcp"), OAuth: true},
		Entry{Key: "cloudflare.v1", Kind: Hosted, Endpoints: mcp("https://mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_bindings.v1", Kind: Hosted, Endpoints: mcp("https://bindings.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_browser.v1", Kind: Hosted, Endpoints: mcp("https://browser.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_builds.v1", Kind: Hosted, Endpoints: mcp("https://builds.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_casb.v1", Kind: Hosted, Endpoints: mcp("https://casb.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_containers.v1", Kind: Hosted, Endpoints: mcp("https://containers.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_dex.v1", Kind: Hosted, Endpoints: mcp("https://dex.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "cloudflare_docs.v1", Kind: Hosted, Endpoints: mcp("https://docs.mcp.cloudflare.com/mcp")},
		Entry{Key: "cloudflare_observability.v1", Kind: Hosted, Endpoints: mcp("https://observability.mcp.cloudflare.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "context7.v1", Kind: Hosted, Endpoints: mcp("https://mcp.context7.com/mcp"), Credentials: []CredentialHeader{{Header: "CONTEXT7_API_KEY", Format: "{secret}"}}},
		Entry{Key: "datadog.v1", Kind: Hosted, Endpoints: mcp("https://mcp.datadoghq.com/api/unstable/mcp-server/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "deepwiki.v1", Kind: Hosted, Endpoints: mcp("https://mcp.deepwiki.com/mcp")},
		Entry{Key: "exa.v1", Kind: Hosted, Endpoints: mcp("https://mcp.exa.ai/mcp"), Credentials: []CredentialHeader{{Header: "x-api-key", Format: "{secret}"}}},
		Entry{Key: "firecrawl.v1", Kind: Hosted, Endpoints: mcp("https://mcp.firecrawl.dev/v2/mcp"), Credentials: bearer},
		Entry{Key: "github.v1", Kind: Git, Endpoints: map[Role]Endpoint{
			GitHTTP: {URL: "https://github.com"}, API: {URL: "https://api.github.com"},
		}, Credentials: []CredentialHeader{{Header: "Authorization", Format: "Basic x-access-token:{secret}"}}},
		Entry{Key: "github_mcp.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{
			MCP: {URL: "https://api.githubcopilot.com/mcp/"}, Authorize: {URL: "https://github.com/login/oauth/authorize"}, Token: {URL: "https://github.com/login/oauth/access_token"},
		}, Credentials: bearer, OAuth: true},
		Entry{Key: "gitlab.v1", Kind: Hosted, Endpoints: mcp("https://gitlab.com/api/v4/mcp"), OAuth: true},
		Entry{Key: "gmail.v1", Kind: Hosted, Endpoints: google("https://gmailmcp.googleapis.com/mcp/v1"), OAuth: true},
		Entry{Key: "google_bigquery.v1", Kind: Hosted, Endpoints: google("https://bigquery.googleapis.com/mcp"), OAuth: true},
		Entry{Key: "google_calendar.v1", Kind: Hosted, Endpoints: google("https://calendarmcp.googleapis.com/mcp/v1"), OAuth: true},
		Entry{Key: "google_drive.v1", Kind: Hosted, Endpoints: google("https://drivemcp.googleapis.com/mcp/v1"), OAuth: true},
		Entry{Key: "google_maps.v1", Kind: Hosted, Endpoints: mcp("https://mapstools.googleapis.com/mcp"), Credentials: []CredentialHeader{{Header: "X-Goog-Api-Key", Format: "{secret}"}}},
		Entry{Key: "hubspot.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{
			MCP: {URL: "https://mcp.hubspot.com"}, Authorize: {URL: "https://mcp.hubspot.com/oauth/authorize/user"}, Token: {URL: "https://mcp.hubspot.com/oauth/v3/token"},
		}, OAuth: true},
		Entry{Key: "huggingface.v1", Kind: Hosted, Endpoints: mcp("https://huggingface.co/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "intercom.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{
			MCP: {URL: "https://mcp.intercom.com/mcp"}, Authorize: {URL: "https://app.intercom.com/oauth"}, Token: {URL: "https://api.intercom.io/auth/eagle/token"},
		}, Credentials: bearer, OAuth: true},
		Entry{Key: "linear.v1", Kind: Hosted, Endpoints: mcp("https://mcp.linear.app/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "microsoft_learn.v1", Kind: Hosted, Endpoints: mcp("https://learn.microsoft.com/api/mcp")},
		Entry{Key: "monday.v1", Kind: Hosted, Endpoints: mcp("https://mcp.monday.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "neon.v1", Kind: Hosted, Endpoints: mcp("https://mcp.neon.tech/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "notion.v1", Kind: Hosted, Endpoints: mcp("https://mcp.notion.com/mcp"), OAuth: true},
		Entry{Key: "pagerduty.v1", Kind: Hosted, Endpoints: mcp("https://mcp.pagerduty.com/mcp"), Credentials: []CredentialHeader{{Header: "Authorization", Format: "Token token={secret}"}}},
		Entry{Key: "paypal.v1", Kind: Hosted, Endpoints: mcp("https://mcp.paypal.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "posthog.v1", Kind: Hosted, Endpoints: mcp("https://mcp.posthog.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "postman.v1", Kind: Hosted, Endpoints: mcp("https://mcp.postman.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "render.v1", Kind: Hosted, Endpoints: mcp("https://mcp.render.com/mcp"), Credentials: bearer},
		Entry{Key: "sentry.v1", Kind: Hosted, Endpoints: mcp("https://mcp.sentry.dev/mcp"), Credentials: []CredentialHeader{{Header: "Authorization", Format: "Sentry-Bearer {secret}"}}, OAuth: true},
		Entry{Key: "slack.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{
			MCP: {URL: "https://mcp.slack.com/mcp"}, Authorize: {URL: "https://slack.com/oauth/v2_user/authorize"}, Token: {URL: "https://slack.com/api/oauth.v2.user.access"},
		}, OAuth: true},
		Entry{Key: "stripe.v1", Kind: Hosted, Endpoints: mcp("https://mcp.stripe.com"), Credentials: bearer, OAuth: true},
		Entry{Key: "supabase.v1", Kind: Hosted, Endpoints: mcp("https://mcp.supabase.com/mcp"), Credentials: bearer, OAuth: true},
		Entry{Key: "tavily.v1", Kind: Hosted, Endpoints: mcp("https://mcp.tavily.com/mcp/"), Credentials: bearer, OAuth: true},

		// Direct runtimes: our own code, one folder each below internal/provider/direct.
		Entry{Key: "lemonsqueezy.v1", Kind: Direct, Endpoints: mcp("https://api.lemonsqueezy.com/v1"), Credentials: bearer},
		Entry{Key: "google_analytics.v1", Kind: Direct, Endpoints: map[Role]Endpoint{
			Data: {URL: "https://analyticsdata.googleapis.com"}, Admin: {URL: "https://analyticsadmin.googleapis.com"}, Authorize: {URL: "https://accounts.google.com/o/oauth2/v2/auth"},
			Token: {URL: "https://oauth2.googleapis.com/token"}, Revoke: {URL: "https://oauth2.googleapis.com/revoke"},
		}, OAuth: true, ServiceAccount: true},
		Entry{
			Key: "upstash.v1", Kind: Direct, Endpoints: map[Role]Endpoint{API: {URL: "https://api.upstash.com/v2"}, Data: {URL: "https://{database}.upstash.io"}},
			Parts: []Part{
				{Role: Data, Header: "Authorization", Format: "Bearer {rest_token}"},
				{Role: Data, Header: "Authorization", Format: "Bearer {read_token}", Reads: true},
				{Role: API, Header: "Authorization", Format: "Basic {email:api_key}"},
			},
		},

		// Vendors' commands: a folder each below internal/provider/cli, with the program's pin and grammar. They ask their service at API.
		Entry{
			Key: "gh.v1", Kind: CLI, Endpoints: map[Role]Endpoint{API: {URL: "https://api.github.com"}}, Credentials: bearer,
			Invocations: invocations(
				"runs_list runs_view runs_jobs workflows_list search_issues search_prs",
				"runs_rerun runs_delete workflows_enable workflows_disable labels_create labels_delete",
			),
		},
		Entry{
			Key: "neonctl.v1", Kind: CLI, Endpoints: map[Role]Endpoint{API: {URL: "https://console.neon.tech/api/v2"}}, Credentials: bearer,
			Invocations: invocations(
				"me orgs_list projects_list projects_get branches_list branches_get databases_list operations_list",
				"projects_rename projects_delete branches_create branches_rename branches_delete databases_create databases_delete",
			),
		},
		Entry{
			Key: "sentry_cli.v1", Kind: CLI, Endpoints: map[Role]Endpoint{API: {URL: "https://sentry.io"}}, Credentials: bearer,
			Invocations: invocations(
				"organizations_list projects_list releases_list releases_info issues_list deploys_list",
				"releases_new releases_finalize releases_delete issues_resolve deploys_new",
			),
		},

		// A database has the address its connection string names, unless the operator names one.
		Entry{Key: "mongodb.v1", Kind: Direct, Endpoints: mcp(""), ConnectionString: true},

		// An MCP server that an organization runs itself. Its address is typed by a person and is public by rule: no operator's file moves it.
		Entry{Key: "custom_mcp.v1", Kind: Remote, Endpoints: mcp(""), Credentials: bearer, OAuth: true},

		// Stdio runtimes: servers pinned in the agent image. This server only names them; what a key starts, and with which bytes, is compiled
		// into countersign-agent.
		Entry{Key: "structured_questions.v1", Kind: Stdio},
		Entry{Key: "sequential_thinking.v1", Kind: Stdio},

		// The practice CRM runs beside the server, on an address only the operator knows: it has none of its own. An authorization
		// server in front of it is found by discovery; where that is at a private address too, the operator vouches for it by naming
		// the one of its endpoints that the server's own documents may leave out.
		Entry{Key: "sandbox_crm.v1", Kind: Hosted, Endpoints: map[Role]Endpoint{MCP: {}, Revoke: {}}, Credentials: bearer, OAuth: true},
	)
}

// invocations are those that read and those that write.
func invocations(reads, writes string) map[string]Effect {
	out := map[string]Effect{}
	for _, name := range strings.Fields(reads) {
		out[name] = Reads
	}
	for _, name := range strings.Fields(writes) {
		out[name] = Writes
	}
	return out
}

// mcp is the one endpoint of a server that has no other, or names the rest by itself.
func mcp(url string) map[Role]Endpoint { return map[Role]Endpoint{MCP: {URL: url}} }

// google is one of Google's MCP servers, with the authorization server all of them share.
func google(url string) map[Role]Endpoint {
	return map[Role]Endpoint{
		MCP: {URL: url}, Authorize: {URL: "https://accounts.google.com/o/oauth2/v2/auth"}, Token: {URL: "https://oauth2.googleapis.com/token"},
		Revoke: {URL: "https://oauth2.googleapis.com/revoke"},
	}
}
