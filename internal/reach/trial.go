package reach

import (
	"context"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// Choices implements installation.Scout. The way it opens ends with the answer: nothing of a credential that nobody has stored stays here.
func (l *Lines) Choices(ctx context.Context, t installation.Trial, page int) (installation.Choices, error) {
	scout, ok := l.providers[t.Manifest.Kind].(interface {
		Choices(ctx context.Context, c *provider.Conn, page int) (installation.Choices, error)
	})
	if !ok {
		return installation.Choices{}, fault.Absent("list to choose from")
	}
	targets, err := trialTargets(t)
	if err != nil {
		return installation.Choices{}, err
	}
	conn := provider.NewConn(t.Org, "", provider.Settings{Timeout: ExecuteTimeout}, targets)
	defer conn.Close()
	return scout.Choices(ctx, conn, page)
}

// trialTargets are the addresses of a runtime, as targets makes them of a stored credential: one credential, for all of them.
func trialTargets(t installation.Trial) (map[registry.Role]provider.Target, error) {
	out := map[registry.Role]provider.Target{}
	var also []egress.Destination
	for _, role := range registry.Own {
		d, ok, err := installation.Place(t.Entry, role, nil)
		if err != nil {
			return nil, err
		}
		if ok {
			out[role] = provider.Target{Destination: d, Headers: t.Entry.Headers}
			also = append(also, d)
		}
	}
	if len(t.Parts) != 1 || !t.Parts[0].Everywhere {
		return nil, fault.Absent("list to choose from")
	}
	a, err := credential.Bind(t.Parts[0].Contract, t.Values, t.Parts[0].Destination, also...)
	if err != nil {
		return nil, err
	}
	for role, target := range out {
		target.Editor = a
		out[role] = target
	}
	return out, nil
}

var _ installation.Scout = (*Lines)(nil)
