// Package neonctl owns what may be asked of Neon's own command: projects, branches and databases. It never reads a connection string or a
// password, opens no SQL, links no folder and applies no file: those subcommands are not in its grammar, and what a new branch is reached with
// is left out of its answer.
package neonctl

import (
	_ "embed"

	"countersign/internal/policy"
	"countersign/internal/provider/cli"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/registry"
)

// Key is its runtime.
const Key registry.Key = "neonctl.v1"

// New makes its provider. At is the folder of installed commands.
func New(at string) *cli.Provider { return cli.New(command, at) }

// pins is made by go test ./internal/provider/cli/neonctl -run TestThePins -update, after package-lock.json was read: npm compares what it
// installs with the integrity that stands there.
//
//go:embed pins.txt
var pins string

var (
	project  = cli.Flag{Argument: "project", Name: "--project-id", Value: projectID, Required: true}
	which    = cli.Flag{Argument: "project", Value: projectID, Required: true}
	branch   = cli.Flag{Argument: "branch", Value: branchID, Required: true}
	ofBranch = cli.Flag{Argument: "branch", Name: "--branch", Value: branchID, Required: true}

	projectID = cli.Shaped("The project's id, like cool-sun-12345678.", `^[a-z0-9][a-z0-9-]{0,59}$`)
	branchID  = cli.Shaped("The branch's id, like br-cool-sun-12345678. Names are not taken: they can be given to another branch.", `^br-[a-z]+-[a-z]+-[a-z0-9]{6,20}$`)
	database  = cli.Shaped("The database's name.", `^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
)

func named(value cli.Value) cli.Flag {
	return cli.Flag{Argument: "name", Name: "--name", Value: value, Required: true}
}

var script = cli.Script{Package: "neon", Entry: "dist/cli.js", Pins: pins, Memory: 2 << 30}

var command = cli.Command{
	Name: "neonctl", Service: "Neon", Probe: "me",
	Program: cli.Program{Version: "5.0.1", Install: "Install the package neon 5.0.1 (neonctl) with npm ci and the package-lock.json of this release.", Script: &script},
	Env:     []string{"NEON_API_HOST=http://" + sandbox.Relay, "NEON_API_KEY=" + cli.Ticket, "CI=1", "NO_COLOR=1", "NODE_OPTIONS="},
	Ahead:   []string{"--no-analytics", "--no-color", "--output=json"},
	Tools: []cli.Invocation{
		{Tool: "me", Title: "Who this is", Description: "The account of the key.", Words: []string{"me"}, Effect: policy.Read, Asks: []string{"GET /users/me"}},
		{
			Tool: "orgs_list", Title: "List organizations", Description: "The organizations of the account.", Words: []string{"orgs", "list"}, Effect: policy.Read,
			Asks: []string{"GET /users/me/organizations"},
		},
		{
			Tool: "projects_list", Title: "List projects", Description: "The projects of an organization.", Words: []string{"projects", "list"}, Effect: policy.Read,
			Flags: []cli.Flag{{Argument: "org", Name: "--org-id", Value: cli.Shaped("The organization's id, like org-cool-sun-12345678.", `^org-[a-z0-9-]{1,60}$`), Required: true}},
			Asks:  []string{"GET /projects"},
		},
		{
			Tool: "projects_get", Title: "Show a project", Description: "One project.", Words: []string{"projects", "get"}, Operands: []cli.Flag{which},
			Effect: policy.Read, Asks: []string{"GET /projects/{project}"},
		},
		{
			Tool: "branches_list", Title: "List branches", Description: "The branches of a project.", Words: []string{"branches", "list"}, Flags: []cli.Flag{project},
			Effect: policy.Read, Asks: []string{"GET /projects/{project}/branches"},
		},
		{
			Tool: "branches_get", Title: "Show a branch", Description: "One branch of a project.", Words: []string{"branches", "get"}, Flags: []cli.Flag{project},
			Operands: []cli.Flag{branch}, Effect: policy.Read, Asks: []string{"GET /projects/{project}/branches/{branch}"},
		},
		{
			Tool: "databases_list", Title: "List databases", Description: "The databases of a branch.", Words: []string{"databases", "list"}, Flags: []cli.Flag{project, ofBranch},
			Effect: policy.Read, Asks: []string{"GET /projects/{project}/branches/{branch}/databases"},
		},
		{
			Tool: "operations_list", Title: "List operations", Description: "What Neon did in a project lately.", Words: []string{"operations", "list"}, Flags: []cli.Flag{project},
			Effect: policy.Read, Asks: []string{"GET /projects/{project}/operations"},
		},
		{
			Tool: "projects_rename", Title: "Rename a project", Description: "Gives a project another name.", Words: []string{"projects", "update"},
			Flags: []cli.Flag{named(cli.Line("The new name.", 64))}, Operands: []cli.Flag{which}, Effect: policy.Consequential, Resource: "project", Asks: []string{"PATCH /projects/{project}"},
		},
		{
			Tool: "projects_delete", Title: "Delete a project", Description: "Deletes a project with all its branches and databases.", Words: []string{"projects", "delete"},
			Operands: []cli.Flag{which}, Effect: policy.Consequential, Destructive: true, Resource: "project", Asks: []string{"DELETE /projects/{project}"}, Gone: "projects_get",
		},
		{
			Tool: "branches_create", Title: "Create a branch", Description: "Makes a branch from the project's default branch, with a compute, which costs while it is used.",
			Words: []string{"branches", "create"}, Fixed: []string{"--no-secrets"}, Flags: []cli.Flag{project, named(cli.Line("The branch's name.", 64))}, Effect: policy.Consequential,
			Resource: "project", Asks: []string{"GET /projects/{project}/branches", "POST /projects/{project}/branches"},
		},
		{
			Tool: "branches_rename", Title: "Rename a branch", Description: "Gives a branch another name.", Words: []string{"branches", "rename"}, Flags: []cli.Flag{project},
			Operands: []cli.Flag{branch, {Argument: "name", Value: cli.Word("The new name."), Required: true}}, Effect: policy.Consequential, Resource: "branch",
			Asks: []string{"PATCH /projects/{project}/branches/{branch}"},
		},
		{
			Tool: "branches_delete", Title: "Delete a branch", Description: "Deletes a branch with its databases.", Words: []string{"branches", "delete"}, Flags: []cli.Flag{project},
			Operands: []cli.Flag{branch}, Effect: policy.Consequential, Destructive: true, Resource: "branch", Asks: []string{"DELETE /projects/{project}/branches/{branch}"},
			Gone: "branches_get",
		},
		{
			Tool: "databases_create", Title: "Create a database", Description: "Makes an empty database in a branch.", Words: []string{"databases", "create"},
			Flags:  []cli.Flag{project, ofBranch, named(database), {Argument: "owner", Name: "--owner-name", Value: cli.Word("The role that owns it."), Required: true}},
			Effect: policy.Consequential, Resource: "name", Asks: []string{"POST /projects/{project}/branches/{branch}/databases"},
		},
		{
			Tool: "databases_delete", Title: "Delete a database", Description: "Deletes a database of a branch with all it holds.", Words: []string{"databases", "delete"},
			Flags: []cli.Flag{project, ofBranch}, Operands: []cli.Flag{{Argument: "database", Value: database, Required: true}}, Effect: policy.Consequential, Destructive: true,
			Resource: "database", Asks: []string{"DELETE /projects/{project}/branches/{branch}/databases/{database}"},
		},
	},
}
