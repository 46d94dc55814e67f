package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/policy"
	"countersign/internal/preferences"
	"countersign/internal/profile"
	"countersign/internal/run"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
)

const sandboxSlug = "sandbox"

// sandboxPeople are the demo people, the owner first. Each plays one part of the journey; there are two approvers because nobody
// countersigns what was asked for on their own behalf.
var sandboxPeople = []struct {
	email, name string
	role        identity.Role
}{
	{"owner@sandbox.test", "Olu Owner", identity.Owner},
	{"admin@sandbox.test", "Ada Lind", identity.Admin},
	{"approver@sandbox.test", "Ines Duarte", identity.Approver},
	{"approver2@sandbox.test", "Tomas Berg", identity.Approver},
	{"auditor@sandbox.test", "Noor Haddad", identity.Auditor},
}

// sandboxFacts is <data>/sandbox.json: everything somebody who tries the product needs, readable by its owner only.
type sandboxFacts struct {
	URL          string              `json:"url"`
	Org          string              `json:"org"`
	Users        []sandboxUser       `json:"users"`
	ServiceToken string              `json:"service_token"`
	CRM          sandboxService      `json:"crm"`
	Connections  []sandboxConnection `json:"connections"`
}

type sandboxUser struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Role     string `json:"role"`
}

type sandboxService struct {
	URL          string `json:"url"`
	ControlToken string `json:"control_token"`
}

type sandboxConnection struct {
	Key         string `json:"key"`
	Integration string `json:"integration"`
}

// seedSandbox makes the sandbox organization once. A later start reads what the first one wrote and corrects only what moved: addresses.
func seedSandbox(ctx context.Context, a *app, c *serveCommand, crm *sandboxCRM) (sandboxFacts, error) {
	path := filepath.Join(c.DataDir, "sandbox.json")
	orgs, err := a.organizations(ctx)
	if err != nil {
		return sandboxFacts{}, err
	}
	for _, o := range orgs {
		if o.Slug != sandboxSlug {
			return sandboxFacts{}, fault.New(fault.Unavailable, fault.CodeUnavailable, "COUNTERSIGN_DEMO is set, but this database holds the organization “"+o.Slug+"”.",
				"Unset COUNTERSIGN_DEMO, or point DATA_DIR and DATABASE_URL at an empty database.")
		}
	}
	facts, err := readSandbox(path)
	if err != nil {
		return sandboxFacts{}, err
	}
	s := seeding{app: a, crm: crm, facts: facts}
	if len(orgs) == 0 {
		err = s.organization(ctx)
	} else {
		s.owner, err = a.owner(ctx, orgs[0].ID)
	}
	if err == nil {
		err = s.complete(ctx)
	}
	if err != nil {
		return sandboxFacts{}, err
	}
	s.facts.URL, s.facts.Org, s.facts.CRM = c.PublicURL, sandboxSlug, sandboxService{URL: crm.url, ControlToken: crm.tokens.Control}
	return s.facts, writeSandbox(path, s.facts)
}

func readSandbox(path string) (sandboxFacts, error) {
	var f sandboxFacts
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, cannotKeep(path, err)
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fault.New(fault.Unavailable, fault.CodeUnavailable, "The file "+path+" is damaged.", "Remove the data directory for a fresh sandbox.").Wrap(err)
	}
	return f, nil
}

// writeSandbox replaces the file whole, so that a reader never sees half of it.
func writeSandbox(path string, f sandboxFacts) error {
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, append(raw, '\n'), 0o600); err != nil {
		return cannotKeep(path, err)
	}
	return os.Rename(next, path)
}

// seeding makes the sandbox through the same calls people make.
type seeding struct {
	app   *app
	crm   *sandboxCRM
	owner identity.Person
	facts sandboxFacts
}

func (s *seeding) organization(ctx context.Context) error {
	org := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: sandboxSlug, Name: "Sandbox"}
	s.facts.Users = nil
	for i, who := range sandboxPeople {
		password := secret.New(randomText())
		if i == 0 {
			owner, err := createOrganization(ctx, s.app.people, org, who.email, who.name, password)
			if err != nil {
				return err
			}
			s.owner = owner
		} else if err := s.person(ctx, org.ID, who.email, who.name, who.role, password); err != nil {
			return err
		}
		s.facts.Users = append(s.facts.Users, sandboxUser{Email: who.email, Password: password.Reveal(), Role: string(who.role)})
	}
	return nil
}

func (s *seeding) person(ctx context.Context, org identity.OrgID, email, name string, role identity.Role, password secret.Value) error {
	p, err := people.NewPerson(org, email, name, []string{string(role)})
	if err != nil {
		return err
	}
	hash, err := people.HashPassword(password)
	if err != nil {
		return err
	}
	return s.app.people.AddPerson(ctx, p, hash, added(org, p))
}

// complete makes whatever is missing besides people, so that a start that was interrupted is finished by the next one.
func (s *seeding) complete(ctx context.Context) error {
	if s.facts.ServiceToken == "" {
		if err := s.token(ctx); err != nil {
			return err
		}
	}
	key, err := s.connection(ctx)
	if err != nil {
		return err
	}
	s.facts.Connections = []sandboxConnection{{Key: key.String(), Integration: "sandbox-crm"}}
	if err := s.profiles(ctx, key); err != nil {
		return err
	}
	return s.context(ctx, key)
}

func (s *seeding) token(ctx context.Context) error {
	scopes := make([]string, len(servicetoken.Scopes))
	for i, scope := range servicetoken.Scopes {
		scopes[i] = string(scope)
	}
	token, clear, hash, err := servicetoken.New(s.owner, "sandbox runtime", scopes)
	if err != nil {
		return err
	}
	e := audit.Entry{Org: s.owner.Org, Actor: audit.Operator, Event: audit.TokenCreated, Object: audit.Object{Kind: "token", ID: token.ID}, Facts: []audit.Fact{{Name: "name", Value: token.Name}}}
	if _, err := s.app.tokens.SaveToken(ctx, token, hash, servicetoken.MaxLife, e); err != nil {
		return err
	}
	s.facts.ServiceToken = clear
	return nil
}

// connection installs the CRM in mode ask_user_on_write with every eligible tool, or gives an existing connection the CRM's present address.
func (s *seeding) connection(ctx context.Context) (connector.Key, error) {
	existing, err := s.app.connections.Read.Connections(ctx, s.owner.Org)
	if err != nil {
		return "", err
	}
	values := map[string]secret.Value{"api_key": secret.New(s.crm.tokens.Bearer)}
	for _, c := range existing {
		if c.Integration != "sandbox-crm" || c.State == installation.Retired {
			continue
		}
		if d, err := installation.DestinationOf(s.app.connections.Registry, c.Runtime); err == nil && d.URL() != c.Destination {
			_, err = s.app.connections.ReplaceCredential(ctx, s.owner, c.Key, values)
			return c.Key, err
		}
		return c.Key, nil
	}
	c, err := s.app.connections.Install(ctx, s.owner, installation.Setup{Integration: "sandbox-crm", Name: "Sandbox CRM", Secrets: values})
	if err != nil {
		return "", err
	}
	if !c.Health.OK {
		return "", fault.New(fault.Unavailable, fault.CodeUnavailable, "The sandbox CRM was installed, but its test failed: "+c.Health.What, c.Health.Next)
	}
	c, err = s.app.connections.SaveAccess(ctx, s.owner, installation.Access{Key: c.Key, Choice: policy.Choice{Mode: policy.AskUserOnWrite}})
	return c.Key, err
}

func (s *seeding) profiles(ctx context.Context, key connector.Key) error {
	existing, err := s.app.profiles.Profiles(ctx, s.owner.Org)
	if err != nil || len(existing) > 0 {
		return err
	}
	for _, name := range []string{"engineering", "support"} {
		p := profile.Profile{Org: s.owner.Org, Name: name, Department: name, Budget: run.DefaultBudget, Uses: []profile.Use{{Connection: key}}}
		e := audit.Entry{Org: p.Org, Actor: audit.Operator, Event: audit.ProfileSaved, Object: audit.Object{Kind: "profile", ID: name}}
		if err := s.app.profiles.SaveProfile(ctx, p, e); err != nil {
			return err
		}
	}
	return nil
}

// context says what the connection means, for people to look at and change.
func (s *seeding) context(ctx context.Context, key connector.Key) error {
	now, err := s.app.contexts.Context(ctx, s.owner.Org)
	if err != nil || now.Number > 0 {
		return err
	}
	text := "# What connections mean in this sandbox, in words that agents are told. They grant nothing.\n" + preferences.Nothing + `
[connectors.` + key.String() + `]
purpose = "The customers of a shop: contacts, deals, notes and refunds. It is a practice service; nothing in it is real."
avoid = ["Refunding the same order twice"]

[connectors.` + key.String() + `.vocabulary]
deal = "A quote that was sent to a contact"

[departments.support.connectors.` + key.String() + `]
meaning = "Where a customer is looked up before anybody answers them."

[workflows.refund]
uses = ["` + key.String() + `"]
`
	_, err = s.app.contexts.SaveContext(ctx, preferences.Edition{Org: s.owner.Org, Text: text, How: preferences.Pushed, By: audit.Operator})
	return err
}

// greeting is what a person at the terminal needs next.
func (f sandboxFacts) greeting() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nCountersign is ready. Sign in at %s/sign-in\n\n", f.URL)
	for _, u := range f.Users {
		fmt.Fprintf(&b, "  %-24s %-10s %s\n", u.Email, u.Role, u.Password)
	}
	fmt.Fprintf(&b, "\nAn agent developer pastes:\n\n")
	fmt.Fprintf(&b, "  export CS_TOKEN=%s\n", f.ServiceToken)
	fmt.Fprintf(&b, "  curl -s %s/api/v1/runs -H \"Authorization: Bearer $CS_TOKEN\" -H 'Content-Type: application/json' -d '{\"surface\":\"task\",\"profile\":\"support\",\"task\":\"SUP-1\",\"on_behalf_of\":\"admin@sandbox.test\"}'\n", f.URL)
	fmt.Fprintf(&b, "  npx @modelcontextprotocol/inspector --cli %s/gateway/mcp --transport http --header \"Authorization: Bearer <token of the run>\" --method tools/list\n\n", f.URL)
	return b.String()
}
