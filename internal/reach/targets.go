package reach

import (
	"context"

	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// targets are the addresses of a connection, each with what authorises requests to it and nothing else.
func (l *Lines) targets(ctx context.Context, c installation.Connection, m manifest.Manifest, primary egress.Destination, held *consent.Held) (map[registry.Role]provider.Target, error) {
	entry, err := installation.EntryOf(l.registry, c)
	if err != nil {
		return nil, err
	}
	out := map[registry.Role]provider.Target{}
	for _, role := range registry.Own {
		d, ok, err := installation.Place(entry, role, c.Settings)
		switch {
		case err != nil:
			return nil, err
		case role == entry.Primary():
			d = primary
		case !ok:
			continue
		}
		t := provider.Target{Destination: d, Headers: entry.Headers}
		if held != nil {
			t.Editor = held
		}
		out[role] = t
	}
	if held != nil {
		return out, nil
	}
	parts, err := installation.Parts(m, entry, manifest.Contract(c.Contract), c.Settings, primary)
	if err != nil {
		return nil, err
	}
	return out, l.authorise(ctx, c, m, parts, out)
}

// authorise gives each address its part of the credential. An address whose part nobody entered is not one of this connection.
func (l *Lines) authorise(ctx context.Context, c installation.Connection, m manifest.Manifest, parts []installation.Part, out map[registry.Role]provider.Target) error {
	place := credential.Place{Org: c.Org, Connection: c.Key}
	for _, part := range parts {
		if part.Account {
			return l.account(ctx, place, m, part, out)
		}
		if len(parts) > 1 {
			if there, err := l.vault.Holds(ctx, place, part.Fields); err != nil {
				return err
			} else if !there {
				continue
			}
		}
		if part.Everywhere {
			return l.everywhere(ctx, place, part, out)
		}
		a, err := l.vault.Authorizer(ctx, place, part.Contract, part.Destination)
		if err != nil {
			return err
		}
		t := out[part.Role]
		if part.Reads {
			t.ReadEditor = a
		} else {
			t.Editor = a
		}
		out[part.Role] = t
	}
	if len(parts) > 1 {
		for role, t := range out {
			if t.Editor == nil && t.ReadEditor == nil {
				delete(out, role)
			}
		}
	}
	return nil
}

// everywhere gives every address of the runtime the one credential.
func (l *Lines) everywhere(ctx context.Context, place credential.Place, part installation.Part, out map[registry.Role]provider.Target) error {
	var also []egress.Destination
	for _, t := range out {
		also = append(also, t.Destination)
	}
	a, err := l.vault.Authorizer(ctx, place, part.Contract, part.Destination, also...)
	for role, t := range out {
		t.Editor = a
		out[role] = t
	}
	return err
}

func (l *Lines) account(ctx context.Context, place credential.Place, m manifest.Manifest, part installation.Part, out map[registry.Role]provider.Target) error {
	var to []egress.Destination
	for _, t := range out {
		to = append(to, t.Destination)
	}
	a, err := l.vault.Account(ctx, place, part.Fields[0], part.Destination, m.AccountScopes(), to...)
	if err != nil {
		return err
	}
	for role, t := range out {
		t.Editor = a
		out[role] = t
	}
	return nil
}
