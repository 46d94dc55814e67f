// Package github owns the git kind: GitHub as a transport of repositories. It streams fetches through, delivers an approved push once
// with the old id that was shown, and finds out afterwards, by reading, what became of one whose answer was lost. A repository is the
// one a person named, by GitHub's own number for it: a rename is followed by asking for that number, never by a redirect. It knows no credential (the clients
// it is given carry it), and sends nothing that was not approved.
package github

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/identity"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// Kind is what the registry calls this kind.
const Kind = registry.Git

// The tools that stand for git's own two halves. An agent uses them by git, not by calling them.
const (
	Fetch = "git_fetch"
	Push  = "git_push_branch"
)

// The resource settings of a connection.
const (
	RepositoriesSetting = "repositories"
	BranchesSetting     = "branches"
)

// Packs opens the pack of a push as it was kept, and says how many bytes it has.
type Packs interface {
	Open(ctx context.Context, org identity.OrgID, key connector.Key, digest string) (io.ReadCloser, int64, error)
}

// Pins keeps GitHub's number of a repository the first time a connection meets it, and answers the kept one ever after.
type Pins interface {
	Pin(ctx context.Context, org identity.OrgID, key connector.Key, repository string, id int64) (int64, error)
	// Pins are those that are kept.
	Pins(ctx context.Context, org identity.OrgID, key connector.Key) ([]gitgateway.Pinned, error)
	// Named keeps the name a kept repository has now.
	Named(ctx context.Context, org identity.OrgID, key connector.Key, p gitgateway.Pinned) error
}

// Provider serves every connection to GitHub.
type Provider struct {
	Packs Packs
	Pins  Pins
}

var (
	_ provider.Provider      = (*Provider)(nil)
	_ provider.OwnReconciler = (*Provider)(nil)
)

// Repositories are the names a connection is for, in lower case, in the order a person wrote them.
func Repositories(settings map[string]string) []string {
	return strings.FieldsFunc(strings.ToLower(settings[RepositoriesSetting]), func(r rune) bool { return r == ' ' || r == ',' })
}

// Tools implements provider.Provider. The list is part of this program.
func (p *Provider) Tools(context.Context, *provider.Conn) ([]provider.Definition, error) {
	return definitions(), nil
}

// byGit is the answer to whoever calls what git does.
var byGit = fault.New(fault.Forbidden, fault.ToolNotGranted, "This is done with git, not by a call.", "Clone, fetch and push the repository with the git remote of the gateway configuration.")

// Execute implements provider.Provider.
func (p *Provider) Execute(ctx context.Context, c *provider.Conn, call provider.Call) action.Outcome {
	if call.Tool == Push {
		return p.deliver(ctx, c, call)
	}
	return p.effect(ctx, c, call)
}

// Test implements provider.Provider: it looks at every repository that was named, and so keeps its number, and finds out by reading what the
// token may do there.
func (p *Provider) Test(ctx context.Context, c *provider.Conn) (provider.Finding, error) {
	began := time.Now()
	var all []Repository
	for _, name := range Repositories(c.Settings.Resources) {
		r, err := p.look(ctx, c, name)
		if err != nil {
			return provider.Finding{}, err
		}
		all = append(all, r)
	}
	t, err := p.judge(ctx, c, all)
	return provider.Finding{
		Server: "GitHub", Protocol: "git and REST", Tools: len(definitions()), Proven: true, Kind: t.kind, Lacks: t.lacks, Beyond: t.beyond, Took: time.Since(began),
	}, err
}

// PushArguments are the canonical arguments of a push as this package reads them; the rest of them is for people.
type PushArguments struct {
	Repository   string `json:"repository"`
	RepositoryID int64  `json:"repository_id"`
	Branch       string `json:"branch"`
	Old          string `json:"old"`
	New          string `json:"new"`
	Pack         string `json:"pack"`
}

// ReadPush reads the arguments of a push.
func ReadPush(raw json.RawMessage) (PushArguments, error) {
	var a PushArguments
	err := json.Unmarshal(raw, &a)
	return a, err
}
