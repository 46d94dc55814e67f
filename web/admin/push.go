package admin

import (
	"context"

	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/provider/github"
	"countersign/views"
)

// DiffReader reads what was kept of a push for people. db.Git implements it.
type DiffReader interface {
	Diff(ctx context.Context, org identity.OrgID, key connector.Key, digest string) (string, error)
}

// push shows a push as one. Only the gateway keeps packs, and it does for connections to GitHub alone: a tool of some other service that
// is called the same, with arguments that look like these, has none and is shown as what it is.
func (p *Actions) push(r *Request, v *views.ActionView) error {
	if p.Diffs == nil || v.Action.Tool != github.Push {
		return nil
	}
	a, err := github.ReadPush(v.Action.Arguments)
	if err != nil || a.Pack == "" {
		return nil //nolint:nilerr // it is no push
	}
	diff, err := p.Diffs.Diff(r.Ctx(), r.Org(), v.Action.Connection, a.Pack)
	if fault.Is(err, fault.CodeNotFound) {
		return nil // never one, or kept long enough
	}
	if err != nil {
		return err
	}
	if push, ok := views.ReadPush(v.Action.Arguments, diff); ok {
		v.Push = &push
	}
	return nil
}
