package admin

import (
	"context"
	"slices"
	"strings"

	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/provider/github"
	"countersign/internal/registry"
	"countersign/views"
)

// Repositories knows the repositories of connections to git. reach.Lines implements it.
type Repositories interface {
	DefaultBranch(ctx context.Context, c installation.Connection, repository string) (string, error)
}

// Pins reads which repositories a connection has met. db.Git implements it.
type Pins interface {
	Pins(ctx context.Context, org identity.OrgID, key connector.Key) ([]gitgateway.Pinned, error)
}

// branches fills in where agents may push, and answers for the branch that the query names. A push is judged by the same rules.
func (p *Connections) branches(r *Request, c installation.Connection) (*views.BranchesView, error) {
	if c.Kind != registry.Git || p.Repositories == nil {
		return nil, nil
	}
	rules, err := gitgateway.ParseRules(c.Settings[github.BranchesSetting])
	if err != nil {
		return nil, err
	}
	v := &views.BranchesView{
		Patterns: rules, Repositories: github.Repositories(c.Settings), Repository: strings.ToLower(r.QueryParam("repository")), Branch: strings.TrimPrefix(strings.TrimSpace(r.QueryParam("branch")), "refs/heads/"),
	}
	if p.Pins != nil {
		if v.Known, err = p.Pins.Pins(r.Ctx(), c.Org, c.Key); err != nil {
			return nil, err
		}
	}
	if len(v.Repositories) > 0 && !slices.Contains(v.Repositories, v.Repository) {
		v.Repository = v.Repositories[0]
	}
	if v.Branch == "" {
		return v, nil
	}
	usual, err := p.Repositories.DefaultBranch(r.Ctx(), c, v.Repository)
	if err == nil {
		if refusal := rules.Allows(v.Branch, usual); refusal != nil {
			err = refusal
		}
	}
	if err != nil {
		f := fault.Of(err)
		v.Refused, v.Next = f.What, f.Next
	}
	v.Pattern = rules.Deciding(v.Branch)
	return v, nil
}
