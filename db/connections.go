package db

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

// Connections keeps connections: what they are, what their upstream lists, and the snapshot a person granted.
type Connections struct{ *DB }

var (
	_ installation.Reader    = Connections{}
	_ installation.Writer    = Connections{}
	_ capability.Definitions = Connections{}
)

// Connections implements installation.Reader.
func (s Connections) Connections(ctx context.Context, org identity.OrgID) (out []installation.Connection, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		found, err := q.ConnectionList(ctx, string(org))
		if err != nil {
			return err
		}
		out, err = completed(ctx, q, found)
		return err
	})
	return out, err
}

// Connection implements installation.Reader.
func (s Connections) Connection(ctx context.Context, org identity.OrgID, key connector.Key) (c installation.Connection, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		found, err := q.ConnectionByKey(ctx, string(org), string(key))
		if err != nil {
			return orAbsent(err, "connection")
		}
		c, err = complete(ctx, q, found)
		return err
	})
	return c, err
}

// ObservedTools implements installation.Reader.
func (s Connections) ObservedTools(ctx context.Context, org identity.OrgID, key connector.Key) (out []installation.Observed, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if _, err := q.ConnectionByKey(ctx, string(org), string(key)); err != nil {
			return orAbsent(err, "connection")
		}
		found, err := q.ObservedToolList(ctx, string(org), string(key))
		for _, o := range found {
			out = append(out, observedOf(o))
		}
		return err
	})
	return out, err
}

// Listings implements installation.Reader.
func (s Connections) Listings(ctx context.Context, org identity.OrgID) (map[connector.Key][]installation.Observed, error) {
	out := map[connector.Key][]installation.Observed{}
	err := s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ListingList(ctx, string(org))
		for _, r := range found {
			o := observedOf(rows.ObservedTool{Tool: r.Tool, Digest: r.Digest, Recipe: r.Recipe, ReadOnly: r.ReadOnly, Destructive: r.Destructive, Problem: r.Problem, FirstSeen: r.FirstSeen})
			out[connector.Key(r.Key)] = append(out[connector.Key(r.Key)], o)
		}
		return err
	})
	return out, err
}

// PinnedDefinitions implements installation.Reader and capability.Definitions.
func (s Connections) PinnedDefinitions(ctx context.Context, org identity.OrgID, key connector.Key) (out map[string][]byte, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if _, err := q.ConnectionByKey(ctx, string(org), string(key)); err != nil {
			return orAbsent(err, "connection")
		}
		found, err := q.PinnedToolRawList(ctx, string(org), string(key))
		out = make(map[string][]byte, len(found))
		for _, p := range found {
			out[p.Tool] = p.Raw
		}
		return err
	})
	return out, err
}

func complete(ctx context.Context, q *rows.Queries, c rows.Connection) (installation.Connection, error) {
	all, err := completed(ctx, q, []rows.Connection{c})
	if err != nil {
		return installation.Connection{}, err
	}
	return all[0], nil
}

// completed adds settings, snapshot and granted scopes to connections.
func completed(ctx context.Context, q *rows.Queries, found []rows.Connection) ([]installation.Connection, error) {
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	settings, err := q.ConnectionSettingList(ctx, ids)
	if err != nil {
		return nil, err
	}
	pins, err := q.PinnedToolList(ctx, ids)
	if err != nil {
		return nil, err
	}
	granted := map[string][]policy.Pinned{}
	for _, p := range pins {
		granted[p.ConnectionID] = append(granted[p.ConnectionID], policy.Pinned{
			Tool: p.Tool, Digest: p.Digest, Recipe: int(p.Recipe), Effect: policy.Effect(p.Effect), Destructive: p.Destructive,
		})
	}
	out, err := connectionsOf(found, settings, granted)
	if err == nil {
		err = confirmed(ctx, q, ids, out)
	}
	if err != nil || !slices.ContainsFunc(found, func(c rows.Connection) bool { return c.Contract == string(manifest.OAuth2) }) {
		return out, err
	}
	consents, err := q.ConsentScopeList(ctx, ids)
	for _, n := range consents {
		i := slices.Index(ids, n.ConnectionID)
		out[i].Granted, out[i].Refused = n.Granted, n.Refused
	}
	return out, err
}

// confirmed adds what was confirmed as a read to remote connections.
func confirmed(ctx context.Context, q *rows.Queries, ids []string, out []installation.Connection) error {
	if !slices.ContainsFunc(out, func(c installation.Connection) bool { return c.Kind == registry.Remote }) {
		return nil
	}
	reads, err := q.ConfirmedReadList(ctx, ids)
	for _, r := range reads {
		c := &out[slices.Index(ids, r.ConnectionID)]
		c.Confirmed = append(c.Confirmed, installation.Confirmation{Tool: r.Tool, Digest: r.Digest})
	}
	return err
}

func connectionsOf(found []rows.Connection, settings []rows.ConnectionSetting, granted map[string][]policy.Pinned) ([]installation.Connection, error) {
	out := make([]installation.Connection, len(found))
	for i, r := range found {
		snapshot, err := policy.NewSnapshot(granted[r.ID])
		if err != nil {
			return nil, err
		}
		out[i] = connectionOf(r)
		out[i].Standing.Snapshot = snapshot
		for _, s := range settings {
			if s.ConnectionID == r.ID {
				out[i].Settings[s.Name] = s.Value
			}
		}
	}
	return out, nil
}

func connectionOf(r rows.Connection) installation.Connection {
	return installation.Connection{
		ID: r.ID, Org: identity.OrgID(r.OrgID), Key: connector.Key(r.Key), Integration: r.Integration, Kind: registry.Kind(r.Kind), Runtime: registry.Key(r.Runtime),
		Release: r.ReleaseDigest, Name: r.Name, State: installation.State(r.State), Standing: policy.Standing{Mode: policy.Mode(r.Mode)},
		Snapshot: int(r.SnapshotVersion), Version: int(r.Version), Destination: r.Destination, Contract: r.Contract, Header: r.Header, Settings: map[string]string{},
		Health:    installation.Health{TestedAt: r.TestedAt, OK: r.Healthy, Found: r.Found, What: r.Trouble, Next: r.Remedy, Since: r.HealthSince},
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, RetiredAt: r.RetiredAt, DurableReads: r.DurableReads,
	}
}

func observedOf(o rows.ObservedTool) installation.Observed {
	return installation.Observed{
		Tool: o.Tool, Title: o.Title, Description: o.Description, Digest: o.Digest, Recipe: int(o.Recipe), Raw: o.Raw,
		Annotations: policy.Annotations{ReadOnly: policy.Hint(o.ReadOnly), Destructive: policy.Hint(o.Destructive)},
		Problem:     o.Problem, FirstSeen: o.FirstSeen, SeenAt: o.SeenAt,
	}
}

// maxToolName is in bytes, far above what any model accepts.
const maxToolName = 1000

// storedObserved is an observed tool as it can be stored. A name that PostgreSQL cannot hold is shown with a mark and can never be
// granted: a grant is by byte-equal name.
func storedObserved(c rows.Connection, o installation.Observed) rows.ObservedToolSaveParams {
	p := rows.ObservedToolSaveParams{
		OrgID: c.OrgID, ConnectionID: c.ID, Tool: storable(o.Tool), Title: storable(o.Title), Description: storable(o.Description), Digest: o.Digest,
		Recipe: int32(o.Recipe), Raw: o.Raw, ReadOnly: int16(o.Annotations.ReadOnly), Destructive: int16(o.Annotations.Destructive), Problem: storable(o.Problem),
	}
	switch {
	case p.Tool != o.Tool && p.Problem == "":
		p.Problem = "its name is not text."
	case len(p.Tool) > maxToolName: // an index entry of PostgreSQL has a bound; one long name must not hide the other tools
		p.Tool, p.Problem = storable(p.Tool[:maxToolName]), "its name is too long."
	}
	if p.Raw == nil {
		p.Raw = []byte{}
	}
	return p
}

// listDigest is what decides whether two lists are the same to a person who has one of them open.
func listDigest(tools []installation.Observed) string {
	var b strings.Builder
	for _, t := range tools {
		b.WriteString(t.Tool + "\x00" + t.Digest + "\x00" + t.Problem + "\x01")
	}
	return b.String()
}
