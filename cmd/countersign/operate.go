package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/db"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
)

// withDatabase runs an operator's command on the database of a place, which may be in use by a running server.
func (c place) withDatabase(p *process, do func(context.Context, *database) error) error {
	log, err := c.logger(p.stderr)
	if err != nil {
		return err
	}
	if c.Log == "info" { // starting and stopping the embedded database is no news to somebody who asked for a list
		log = slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	d, err := c.open(p.ctx, log)
	if err != nil {
		return err
	}
	defer d.Close()
	return do(p.ctx, d)
}

type migrateCommand struct{ place }

func (c *migrateCommand) Run(p *process) error {
	return c.withDatabase(p, func(context.Context, *database) error {
		fmt.Fprintln(p.stdout, "The database is at this version.")
		return nil
	})
}

// slugShape is the short name of an organization in commands.
var slugShape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

type orgCommand struct {
	Create orgCreateCommand `cmd:"" help:"Create an organization and its first owner."`
}

type orgCreateCommand struct {
	place
	Slug          string `required:"" help:"Short name for commands: lower-case letters, digits and hyphens."`
	Name          string `required:"" help:"What people call the organization."`
	OwnerEmail    string `required:"" help:"Email address of the first owner."`
	OwnerName     string `help:"Name of the first owner."`
	PasswordStdin bool   `required:"" help:"Read the owner's password from standard input."`
}

func (c *orgCreateCommand) Run(p *process) error {
	if !slugShape.MatchString(c.Slug) {
		return usageError{fmt.Errorf("--slug is 1 to 40 lower-case letters, digits and hyphens, starting with a letter")}
	}
	if strings.TrimSpace(c.Name) == "" {
		return usageError{fmt.Errorf("--name must not be empty")}
	}
	password, err := readPassword(p.stdin)
	if err != nil {
		return err
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org := identity.Org{ID: identity.OrgID(identity.NewID("org_")), Slug: c.Slug, Name: strings.TrimSpace(c.Name)}
		owner, err := createOrganization(ctx, db.People{DB: d.DB}, org, c.OwnerEmail, c.OwnerName, password)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "Organization “%s” exists. %s can sign in as its owner.\n", org.Slug, owner.Email)
		return nil
	})
}

func createOrganization(ctx context.Context, roster people.Roster, org identity.Org, email, name string, password secret.Value) (identity.Person, error) {
	owner, err := people.NewPerson(org.ID, email, name, []string{string(identity.Owner)})
	if err != nil {
		return identity.Person{}, err
	}
	hash, err := people.HashPassword(password)
	if err != nil {
		return identity.Person{}, err
	}
	created := audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.OrgCreated, Object: audit.Object{Kind: "organization", ID: org.Slug}}
	return owner, roster.CreateOrganization(ctx, org, owner, hash, created, added(org.ID, owner))
}

func added(org identity.OrgID, p identity.Person) audit.Entry {
	return audit.Entry{
		Org: org, Actor: audit.Operator, Event: audit.PersonAdded, Object: audit.Object{Kind: "person", ID: string(p.ID)},
		Facts: []audit.Fact{{Name: "email", Value: p.Email}, {Name: "roles", Value: roleNames(p.Roles)}},
	}
}

func roleNames(roles []identity.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

type userCommand struct {
	Add userAddCommand `cmd:"" help:"Add a person to an organization."`
}

type userAddCommand struct {
	place
	Org           string   `required:"" help:"Slug of the organization."`
	Email         string   `required:"" help:"Email address."`
	Name          string   `help:"The person's name."`
	Role          []string `required:"" sep:"," help:"Roles: owner, admin, approver, auditor, member. They combine."`
	PasswordStdin bool     `required:"" help:"Read the password from standard input."`
}

func (c *userAddCommand) Run(p *process) error {
	password, err := readPassword(p.stdin)
	if err != nil {
		return err
	}
	hash, err := people.HashPassword(password)
	if err != nil {
		return err
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org, err := d.people().OrgBySlug(ctx, c.Org)
		if err != nil {
			return err
		}
		person, err := people.NewPerson(org.ID, c.Email, c.Name, c.Role)
		if err != nil {
			return err
		}
		if err := (db.People{DB: d.DB}).AddPerson(ctx, person, hash, added(org.ID, person)); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s can sign in to “%s” as %s.\n", person.Email, org.Slug, roleNames(person.Roles))
		return nil
	})
}

type tokenCommand struct {
	Create tokenCreateCommand `cmd:"" help:"Create a service token and print it once."`
}

type tokenCreateCommand struct {
	place
	Org    string   `required:"" help:"Slug of the organization."`
	Name   string   `required:"" help:"What the token is for."`
	Scopes []string `required:"" sep:"," help:"Scopes: runs:write, runs:read, actions:read, connections:read, audit:read."`
	Owner  string   `help:"Email of the person who answers for it; the first owner when empty."`
	Days   int      `default:"90" help:"How long it works, 1 to 366 days."`
	JSON   bool     `help:"Print JSON."`
}

func (c *tokenCreateCommand) Run(p *process) error {
	life := time.Duration(c.Days) * 24 * time.Hour
	if life <= 0 || life > servicetoken.MaxLife {
		return usageError{fmt.Errorf("--days is 1 to 366")}
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org, err := d.people().OrgBySlug(ctx, c.Org)
		if err != nil {
			return err
		}
		owner, err := tokenOwner(ctx, db.People{DB: d.DB}, org.ID, c.Owner)
		if err != nil {
			return err
		}
		token, clear, hash, err := servicetoken.New(owner, c.Name, c.Scopes)
		if err != nil {
			return err
		}
		e := audit.Entry{Org: org.ID, Actor: audit.Operator, Event: audit.TokenCreated, Object: audit.Object{Kind: "token", ID: token.ID}, Facts: []audit.Fact{{Name: "name", Value: token.Name}}}
		if token, err = (db.ServiceTokens{DB: d.DB}).SaveToken(ctx, token, hash, life, e); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, map[string]any{"id": token.ID, "name": token.Name, "token": clear, "expires_at": token.ExpiresAt.UTC()})
		}
		fmt.Fprintln(p.stdout, clear)
		return nil
	})
}

// tokenOwner is the person who may not decide on what the token's runs ask for.
func tokenOwner(ctx context.Context, directory people.Directory, org identity.OrgID, email string) (identity.Person, error) {
	all, err := directory.People(ctx, org)
	if err != nil {
		return identity.Person{}, err
	}
	for _, p := range all {
		if p.Active && ((email == "" && slices.Contains(p.Roles, identity.Owner)) || (email != "" && strings.EqualFold(p.Email, email))) {
			return p.Person, nil
		}
	}
	return identity.Person{}, fault.Field("owner", "The organization has no active person “"+email+"” who could own the token.")
}

// mostNamed is far more than any file that a command is given holds.
const mostNamed = 4 << 20

// readNamed reads a file that somebody named. A device, or something of gigabytes that was named by mistake, is refused and does not fill
// the memory.
func readNamed(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, mostNamed+1))
	if err == nil && len(raw) > mostNamed {
		err = fmt.Errorf("%s has more than %d MiB, so it is another file than the one that is meant", name, mostNamed>>20)
	}
	return raw, err
}

// readPassword reads one line, so that `printf '%s\n'` and a pipe from a password store both work.
func readPassword(r io.Reader) (secret.Value, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return secret.Value{}, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return secret.Value{}, usageError{fmt.Errorf("standard input holds no password; pipe one in, e.g. from a password store")}
	}
	return secret.New(line), nil
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Make the keyset file of a new production database."`
	Rotate keyRotateCommand `cmd:"" help:"Add a new encryption key, seal everything again with it, and disable the old ones."`
}

type keyCreateCommand struct {
	Out string `required:"" help:"File to write; it must not exist."`
}

func (c *keyCreateCommand) Run(p *process) error {
	if _, err := secret.Create(c.Out); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s holds a new keyset. Keep a copy apart from the database's backups: without it no credential opens.\n", c.Out)
	return nil
}
