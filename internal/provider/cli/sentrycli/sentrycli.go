// Package sentrycli owns what may be asked of Sentry's own command: releases, deploys and issues of an organization. It never uploads files,
// sends events, runs hooks or updates itself: those subcommands are not in its grammar.
package sentrycli

import (
	"countersign/internal/policy"
	"countersign/internal/provider/cli"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/registry"
)

// Key is its runtime.
const Key registry.Key = "sentry_cli.v1"

// New makes its provider. At is the folder of installed commands.
func New(at string) *cli.Provider { return cli.New(command, at) }

var (
	org     = cli.Flag{Argument: "org", Name: "--org", Value: cli.Word("The organization's slug."), Required: true}
	project = cli.Flag{Argument: "project", Name: "--project", Value: cli.Word("The project's slug."), Required: true}
	version = cli.Flag{Argument: "version", Value: cli.Shaped("The release's version.", `^[A-Za-z0-9_][A-Za-z0-9._@+-]{0,199}$`), Required: true}
	issue   = cli.Flag{Argument: "issue", Name: "--id", Value: cli.Shaped("The issue's id, a number.", `^[0-9]{1,18}$`), Required: true}
)

var command = cli.Command{
	Name: "sentry-cli", Service: "Sentry", Probe: "organizations_list",
	Program: cli.Program{
		Version: "3.8.0", Install: "Install @sentry/cli 3.8.0 with npm ci and the package-lock.json of this release.",
		Native: map[string]cli.Bytes{
			"amd64": {File: "@sentry/cli-linux-x64/bin/sentry-cli", SHA256: "13f8cb34ae01a6a272d7d7c22e277a105286615b4020de900ea95a8de47cdbb6"},
			"arm64": {File: "@sentry/cli-linux-arm64/bin/sentry-cli", SHA256: "eaea24b5b47b61a96d9a2e353268ea41fd9a8c5b7979694330df614d4af672bf"},
		},
	},
	// It asks again by itself where nobody tells it not to, and it would look for a newer version of itself.
	Env: []string{
		"SENTRY_URL=http://" + sandbox.Relay, "SENTRY_AUTH_TOKEN=" + cli.Ticket, "SENTRY_HTTP_MAX_RETRIES=0", "SENTRY_DISABLE_UPDATE_CHECK=1",
		"SENTRY_LOAD_DOTENV=0", "NO_COLOR=1",
	},
	Closed: true,
	Tools: []cli.Invocation{
		{
			Tool: "organizations_list", Title: "List organizations", Description: "The organizations that the token can see.",
			Words: []string{"organizations", "list"}, Effect: policy.Read, Asks: []string{"GET /api/0/organizations/"},
		},
		{
			Tool: "projects_list", Title: "List projects", Description: "The projects of an organization.",
			Words: []string{"projects", "list"}, Flags: []cli.Flag{org}, Effect: policy.Read, Asks: []string{"GET /api/0/organizations/{org}/projects/"},
		},
		{
			Tool: "releases_list", Title: "List releases", Description: "The most recent releases of a project.",
			Words: []string{"releases", "list"}, Flags: []cli.Flag{org, project}, Effect: policy.Read, Asks: []string{"GET /api/0/projects/{org}/{project}/releases/"},
		},
		{
			Tool: "releases_info", Title: "Show a release", Description: "When a release was made, and its last event.",
			Words: []string{"releases", "info"}, Flags: []cli.Flag{org, project}, Operands: []cli.Flag{version}, Effect: policy.Read,
			Asks: []string{"GET /api/0/organizations/{org}/releases/{version}/"},
		},
		{
			Tool: "issues_list", Title: "List issues", Description: "Issues of a project, at most one hundred.",
			Words: []string{"issues", "list"}, Fixed: []string{"--pages=1"}, Effect: policy.Read, Asks: []string{"GET /api/0/projects/{org}/{project}/issues/"},
			Flags: []cli.Flag{
				org, project,
				{Argument: "status", Name: "--status", Value: cli.OneOf("Only those.", "resolved", "muted", "unresolved")},
				{Argument: "query", Name: "--query", Value: cli.Line("A search in Sentry's own words, like is:unresolved.", 200)},
			},
		},
		{
			Tool: "deploys_list", Title: "List deploys", Description: "The deploys of a release.",
			Words: []string{"deploys", "list"}, Effect: policy.Read, Asks: []string{"GET /api/0/organizations/{org}/releases/{release}/deploys/"},
			Flags: []cli.Flag{org, project, {Argument: "release", Name: "--release", Value: version.Value, Required: true}},
		},
		{
			Tool: "releases_new", Title: "Create a release", Description: "Makes a release of a project. One that is there already stays as it is.",
			Words: []string{"releases", "new"}, Flags: []cli.Flag{org, project}, Operands: []cli.Flag{version}, Effect: policy.Consequential, Resource: "version",
			Asks: []string{"POST /api/0/organizations/{org}/releases/"},
		},
		{
			Tool: "releases_finalize", Title: "Finalize a release", Description: "Marks a release as released now.",
			Words: []string{"releases", "finalize"}, Flags: []cli.Flag{org, project}, Operands: []cli.Flag{version}, Effect: policy.Consequential, Resource: "version",
			Asks: []string{"PUT /api/0/organizations/{org}/releases/{version}/"},
		},
		{
			Tool: "releases_delete", Title: "Delete a release", Description: "Deletes a release with its files.",
			Words: []string{"releases", "delete"}, Flags: []cli.Flag{org, project}, Operands: []cli.Flag{version}, Effect: policy.Consequential, Destructive: true,
			Resource: "version", Gone: "releases_info", Asks: []string{"DELETE /api/0/organizations/{org}/releases/{version}/"},
		},
		{
			Tool: "issues_resolve", Title: "Resolve an issue", Description: "Marks one issue as resolved.",
			Words: []string{"issues", "resolve"}, Flags: []cli.Flag{org, project, issue}, Effect: policy.Consequential, Resource: "issue",
			Asks: []string{"PUT /api/0/projects/{org}/{project}/issues/?id={issue}"},
		},
		{
			Tool: "deploys_new", Title: "Record a deploy", Description: "Records that a release was deployed to an environment.",
			Words: []string{"deploys", "new"}, Effect: policy.Consequential, Resource: "release", Asks: []string{"POST /api/0/organizations/{org}/releases/{release}/deploys/"},
			Flags: []cli.Flag{
				org, project,
				{Argument: "release", Name: "--release", Value: version.Value, Required: true},
				{Argument: "environment", Name: "--env", Value: cli.Word("Where it was deployed, like production."), Required: true},
				{Argument: "name", Name: "--name", Value: cli.Line("A name for people.", 64)},
			},
		},
	},
}
