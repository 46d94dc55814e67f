// Package gh owns what may be asked of GitHub's own command: workflows, their runs, labels and searches. It never sends a request of the
// caller's making, runs an alias or an extension, keeps a login, reads a secret or touches a repository's content: those subcommands are not in
// its grammar, and neither are those that ask by GraphQL, where a path does not tell a read from a write.
package gh

import (
	"countersign/internal/policy"
	"countersign/internal/provider/cli"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/registry"
)

// Key is its runtime.
const Key registry.Key = "gh.v1"

// New makes its provider. At is the folder of installed commands.
func New(at string) *cli.Provider { return cli.New(command, at) }

var (
	repo     = cli.Flag{Argument: "repo", Name: "--repo", Value: cli.Shaped("The repository, like acme/web.", `^[A-Za-z0-9][A-Za-z0-9-]{0,38}/\.?[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`), Required: true}
	run      = cli.Flag{Argument: "run", Value: cli.Shaped("The run's id, a number.", `^[0-9]{1,18}$`), Required: true}
	attempt  = cli.Flag{Argument: "attempt", Name: "--attempt", Value: cli.Shaped("Which attempt, a number; runs_view names the latest.", `^[1-9][0-9]{0,3}$`), Required: true}
	workflow = cli.Flag{Argument: "workflow", Value: cli.Shaped("The workflow's id, a number.", `^[0-9]{1,18}$`), Required: true}
	label    = cli.Flag{Argument: "label", Value: cli.Word("The label's name, one word."), Required: true}
	limit    = cli.Flag{Argument: "limit", Name: "--limit", Value: cli.Number("How many at most.", 1, 100)}
	words    = cli.Flag{Argument: "words", Value: cli.Several("What to search for: words, and qualifiers like is:open or repo:acme/web, with blanks between them.", 200), Required: true}
)

// command finds its service by its name for GitHub on this machine, which it asks without TLS, through the relay as its proxy.
var command = cli.Command{
	Name: "gh", Service: "GitHub",
	Program: cli.Program{
		Version: "2.74.0",
		Install: "Build gh 2.74.0 with Go 1.27.3, in the source of github.com/cli/cli/v2 v2.74.0: CGO_ENABLED=0 go build -trimpath -buildvcs=false ./cmd/gh; and put it there as gh/gh.",
		Native: map[string]cli.Bytes{
			"amd64": {File: "gh/gh", SHA256: "26e3458df250cfca0f328882191135d5b5144b970ae053ef977c27c1d4433aca"},
			"arm64": {File: "gh/gh", SHA256: "cd29b9183fddf6a5ae88a608546bed8a3d88d0ec5c83859e9f7358dba0af21c2"},
		},
	},
	Env: []string{
		"GH_HOST=github.localhost", "GH_TOKEN=" + cli.Ticket, "HTTP_PROXY=http://" + sandbox.Relay, "GH_CONFIG_DIR=" + sandbox.Home, "GH_PROMPT_DISABLED=1",
		"GH_NO_UPDATE_NOTIFIER=1", "GH_NO_EXTENSION_UPDATE_NOTIFIER=1", "NO_COLOR=1",
	},
	Closed: true,
	Tools: []cli.Invocation{
		{
			Tool: "runs_list", Title: "List runs", Description: "The latest workflow runs of a repository.", Words: []string{"run", "list"},
			Fixed: []string{"--json=databaseId,displayTitle,workflowName,status,conclusion,headBranch,event,createdAt,url"}, Flags: []cli.Flag{repo, limit}, Effect: policy.Read,
			Asks: []string{"GET /repos/{repo}/actions/runs", "GET /repos/{repo}/actions/workflows", "GET /repos/{repo}/actions/workflows/*"},
		},
		{
			Tool: "runs_view", Title: "Show a run", Description: "One workflow run, with the number of its latest attempt.", Words: []string{"run", "view"},
			Fixed: []string{"--json=databaseId,displayTitle,workflowName,status,conclusion,headBranch,event,createdAt,url,attempt"}, Flags: []cli.Flag{repo}, Operands: []cli.Flag{run},
			Effect: policy.Read, Asks: []string{"GET /repos/{repo}/actions/runs/{run}", "GET /repos/{repo}/actions/workflows/*"},
		},
		{
			// Without an attempt it would ask for jobs at the address that GitHub's answer names, which is none that it can reach.
			Tool: "runs_jobs", Title: "Show a run's jobs", Description: "The jobs of one attempt of a workflow run, with their steps.", Words: []string{"run", "view"},
			Fixed: []string{"--json=jobs"}, Flags: []cli.Flag{repo, attempt}, Operands: []cli.Flag{run}, Effect: policy.Read,
			Asks: []string{
				"GET /repos/{repo}/actions/runs/{run}/attempts/{attempt}", "GET /repos/{repo}/actions/workflows/*", "GET /repos/{repo}/actions/runs/{run}/attempts/{attempt}/jobs",
			},
		},
		{
			Tool: "workflows_list", Title: "List workflows", Description: "The workflows of a repository.", Words: []string{"workflow", "list"},
			Fixed: []string{"--json=id,name,state,path", "--all"}, Flags: []cli.Flag{repo, limit}, Effect: policy.Read, Asks: []string{"GET /repos/{repo}/actions/workflows"},
		},
		{
			Tool: "search_issues", Title: "Search issues", Description: "Issues anywhere the token can see.", Words: []string{"search", "issues"},
			Fixed: []string{"--json=number,title,state,repository,url,updatedAt"}, Flags: []cli.Flag{limit}, Operands: []cli.Flag{words}, Effect: policy.Read, Asks: []string{"GET /search/issues"},
		},
		{
			Tool: "search_prs", Title: "Search pull requests", Description: "Pull requests anywhere the token can see.", Words: []string{"search", "prs"},
			Fixed: []string{"--json=number,title,state,repository,url,updatedAt"}, Flags: []cli.Flag{limit}, Operands: []cli.Flag{words}, Effect: policy.Read, Asks: []string{"GET /search/issues"},
		},
		{
			Tool: "runs_rerun", Title: "Run again", Description: "Starts a finished workflow run once more.", Words: []string{"run", "rerun"}, Flags: []cli.Flag{repo}, Operands: []cli.Flag{run},
			Effect: policy.Consequential, Resource: "run",
			Asks: []string{"GET /repos/{repo}/actions/runs/{run}", "GET /repos/{repo}/actions/workflows/*", "POST /repos/{repo}/actions/runs/{run}/rerun"},
		},
		{
			Tool: "runs_delete", Title: "Delete a run", Description: "Deletes a workflow run with its logs.", Words: []string{"run", "delete"}, Flags: []cli.Flag{repo}, Operands: []cli.Flag{run},
			Effect: policy.Consequential, Destructive: true, Resource: "run", Gone: "runs_view",
			Asks: []string{"GET /repos/{repo}/actions/runs/{run}", "GET /repos/{repo}/actions/workflows/*", "DELETE /repos/{repo}/actions/runs/{run}"},
		},
		{
			Tool: "workflows_enable", Title: "Enable a workflow", Description: "Lets a workflow run again.", Words: []string{"workflow", "enable"}, Flags: []cli.Flag{repo},
			Operands: []cli.Flag{workflow}, Effect: policy.Consequential, Resource: "workflow",
			Asks: []string{"GET /repos/{repo}/actions/workflows/{workflow}", "PUT /repos/{repo}/actions/workflows/{workflow}/enable"},
		},
		{
			Tool: "workflows_disable", Title: "Disable a workflow", Description: "Keeps a workflow from running.", Words: []string{"workflow", "disable"}, Flags: []cli.Flag{repo},
			Operands: []cli.Flag{workflow}, Effect: policy.Consequential, Resource: "workflow",
			Asks: []string{"GET /repos/{repo}/actions/workflows/{workflow}", "PUT /repos/{repo}/actions/workflows/{workflow}/disable"},
		},
		{
			Tool: "labels_create", Title: "Create a label", Description: "Makes a label in a repository.", Words: []string{"label", "create"},
			Flags: []cli.Flag{
				repo,
				{Argument: "color", Name: "--color", Value: cli.Shaped("Six hexadecimal digits.", `^[0-9a-f]{6}$`), Required: true},
				{Argument: "description", Name: "--description", Value: cli.Line("What it means.", 100)},
			},
			Operands: []cli.Flag{label}, Effect: policy.Consequential, Resource: "label", Asks: []string{"POST /repos/{repo}/labels"},
		},
		{
			Tool: "labels_delete", Title: "Delete a label", Description: "Deletes a label and takes it off every issue.", Words: []string{"label", "delete"}, Fixed: []string{"--yes"},
			Flags: []cli.Flag{repo}, Operands: []cli.Flag{label}, Effect: policy.Consequential, Destructive: true, Resource: "label", Asks: []string{"DELETE /repos/{repo}/labels/{label}"},
		},
	},
}
