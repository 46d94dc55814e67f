package scene

import (
	"time"

	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/release"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
)

// Tools of the Sandbox CRM as a snapshot pins them, for connections whose upstream nobody asks.
var (
	Search = policy.Pinned{Tool: "contacts_search", Digest: "d1", Recipe: 1, Effect: policy.Read}
	Create = policy.Pinned{Tool: "contacts_create", Digest: "d2", Recipe: 1, Effect: policy.Consequential}
	Delete = policy.Pinned{Tool: "contacts_delete", Digest: "d3", Recipe: 1, Effect: policy.Consequential, Destructive: true}
	Refund = policy.Pinned{Tool: "refund_issue", Digest: "d4", Recipe: 1, Effect: policy.Consequential, Destructive: true}
)

// Install is an active connection of the Sandbox CRM with nothing granted. It leads to an address where nobody answers.
func (s *Scene) Install(org identity.Org, of release.Digest) installation.Connection {
	s.T.Helper()
	key := connector.NewKey("sandbox-crm")
	c, err := s.Connections.Install(s.T.Context(), installation.Connection{
		ID: installation.NewID(), Org: org.ID, Key: key, Integration: "sandbox-crm", Kind: "hosted", Runtime: "sandbox_crm.v1", Release: string(of), Name: "Sandbox CRM",
		State: installation.Active, Destination: "https://crm.example.com/mcp", Contract: "token", CreatedBy: "operator",
	}, nil, Note(org.ID, audit.ConnectionInstalled, "connection", key.String()))
	s.Must(err)
	return c
}

// Grant pins tools on a connection as it is now. Raws are the definitions that matter to the test; the others hold the name alone.
func (s *Scene) Grant(c installation.Connection, mode policy.Mode, raws map[string]string, tools ...policy.Pinned) installation.Connection {
	s.T.Helper()
	now, err := s.Connections.Connection(s.T.Context(), c.Org, c.Key)
	s.Must(err)
	snapshot, err := policy.NewSnapshot(tools)
	s.Must(err)
	definitions := map[string][]byte{}
	for _, p := range tools {
		definitions[p.Tool] = []byte(`{"name":"` + p.Tool + `"}`)
		if raw, given := raws[p.Tool]; given {
			definitions[p.Tool] = []byte(raw)
		}
	}
	c, err = s.Connections.SaveStanding(s.T.Context(), now, policy.Standing{Mode: mode, Snapshot: snapshot}, definitions, Note(c.Org, audit.AccessSaved, "connection", c.Key.String()))
	s.Must(err)
	return c
}

// Profile makes a profile of Org, or replaces what it was.
func (s *Scene) Profile(name string, budget int, uses ...profile.Use) {
	s.T.Helper()
	now, err := s.Profiles.Profile(s.T.Context(), s.Org.ID, name)
	if !fault.Is(err, fault.CodeNotFound) {
		s.Must(err)
	}
	next := profile.Profile{Org: s.Org.ID, Name: name, Budget: budget, Version: now.Version, Uses: uses}
	s.Must(s.Profiles.SaveProfile(s.T.Context(), next, Note(s.Org.ID, audit.ProfileSaved, "profile", name)))
}

// Uses are connections used without a limit.
func Uses(connections ...installation.Connection) (out []profile.Use) {
	for _, c := range connections {
		out = append(out, profile.Use{Connection: c.Key})
	}
	return out
}

// Token is a service token of Org's owner, with its value.
func (s *Scene) Token(name string, scopes ...servicetoken.Scope) (servicetoken.Token, string) {
	s.T.Helper()
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	t, value, hash, err := servicetoken.New(s.People[identity.Owner], name, names)
	s.Must(err)
	t, err = s.Tokens.SaveToken(s.T.Context(), t, hash, servicetoken.DefaultLife, Note(s.Org.ID, audit.TokenCreated, "token", t.ID))
	s.Must(err)
	return t, value
}

// Mint starts a run of an hour with a token, and answers its bearer too.
func (s *Scene) Mint(token servicetoken.Token, o run.Order) (capability.Live, string) {
	s.T.Helper()
	o.TTL = time.Hour
	bearer, hash := run.NewToken()
	e := audit.Entry{Org: s.Org.ID, Actor: audit.Actor{Kind: audit.ByService, ID: token.ID, Name: token.Name}, Event: audit.RunStarted, Object: audit.Object{Kind: "run"}}
	l, _, err := s.Runs.Mint(s.T.Context(), capability.Order{Order: o, Token: token, TokenHash: hash}, e)
	s.Must(err)
	return l, bearer
}
