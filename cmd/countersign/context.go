package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"countersign/db"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/preferences"
)

type contextCommand struct {
	Pull contextPullCommand `cmd:"" help:"Write the newest preferences.toml to a file, and its revision beside it."`
	Push contextPushCommand `cmd:"" help:"Save a file as the next revision, unless somebody saved another one since."`
}

// revisionFile holds the number of the revision a file was pulled or pushed as. It is kept in Git with the file.
func revisionFile(file string) string { return file + ".revision" }

type contextPullCommand struct {
	place
	Org string `required:"" help:"Slug of the organization."`
	Out string `help:"File to write; standard output when empty. FILE.revision gets the number of the revision."`
}

func (c *contextPullCommand) Run(p *process) error {
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org, err := d.people().OrgBySlug(ctx, c.Org)
		if err != nil {
			return err
		}
		now, err := db.Contexts{DB: d.DB}.Context(ctx, org.ID)
		if err != nil {
			return err
		}
		if now.Number == 0 {
			return fault.New(fault.NotFound, fault.CodeNotFound, "“"+org.Slug+"” has written nothing yet.", "Push the first text with --base 0, or write it on the page Context.")
		}
		if c.Out == "" {
			fmt.Fprintf(p.stderr, "Revision %d.\n", now.Number)
			_, err := io.WriteString(p.stdout, now.Text)
			return err
		}
		if err := writeRevision(c.Out, now); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s is revision %d.\n", c.Out, now.Number)
		return nil
	})
}

// writeRevision writes the text and then its number: a number without its text would let a push replace what nobody has read.
func writeRevision(file string, r preferences.Revision) error {
	if err := os.WriteFile(file, []byte(r.Text), 0o644); err != nil {
		return unwritten(file, err)
	}
	return writeNumber(file, r.Number)
}

func unwritten(file string, err error) error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The file "+file+" cannot be written.", "Name one in a folder that this user may write.").Wrap(err)
}

func writeNumber(file string, n int) error {
	name := revisionFile(file)
	if err := os.WriteFile(name, []byte(strconv.Itoa(n)+"\n"), 0o644); err != nil {
		return unwritten(name, err)
	}
	return nil
}

type contextPushCommand struct {
	place
	Org   string `required:"" help:"Slug of the organization."`
	In    string `required:"" help:"File to save, as it stands."`
	Base  int    `default:"-1" help:"Revision the file was changed from; read from FILE.revision when absent. 0: there is none yet."`
	After string `help:"File with the text the change was made to, instead of a revision: refused unless it is what is saved now."`
}

func (c *contextPushCommand) Run(p *process) error {
	raw, err := readNamed(c.In)
	if err != nil {
		return usageError{err}
	}
	text := preferences.Normal(string(raw))
	doc, found := preferences.Parse(text)
	if len(found) > 0 {
		for _, f := range found {
			fmt.Fprintf(p.stderr, "%s:%d: %s\n", c.In, f.Line, f.What)
		}
		return errWrong
	}
	if c.Base >= 0 && c.After != "" {
		return usageError{errors.New("--base and --after both say what was changed; give one of them")}
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org, err := d.people().OrgBySlug(ctx, c.Org)
		if err != nil {
			return err
		}
		store := db.Contexts{DB: d.DB}
		base, err := c.base(ctx, store, org.ID)
		if err != nil {
			return err
		}
		saved, err := store.SaveContext(ctx, preferences.Edition{Org: org.ID, Base: base, Text: text, How: preferences.Pushed, By: audit.Operator})
		if fault.Is(err, fault.CodeStale) {
			return moved(org, "The file was changed from revision "+strconv.Itoa(base)+".")
		}
		if err != nil {
			return err
		}
		return c.tell(ctx, p, d, doc, saved, base)
	})
}

func moved(org identity.Org, why string) error {
	return fault.New(fault.Conflict, fault.CodeStale, "Somebody saved another context of “"+org.Slug+"” since. "+why+" Nothing was saved.",
		"Pull it into another file, bring both together, and push with the pulled revision.")
}

// base is the revision that the pushed text replaces.
func (c *contextPushCommand) base(ctx context.Context, store preferences.Store, org identity.OrgID) (int, error) {
	if c.Base >= 0 {
		return c.Base, nil
	}
	if c.After != "" {
		before, err := readNamed(c.After)
		if err != nil {
			return 0, usageError{err}
		}
		now, err := store.Context(ctx, org)
		if err == nil && now.Text != preferences.Normal(string(before)) {
			err = moved(identity.Org{Slug: c.Org}, c.After+" is not what is saved now.")
		}
		return now.Number, err
	}
	raw, err := readNamed(revisionFile(c.In))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, usageError{fmt.Errorf("%s does not exist; say with --base which revision the file was changed from (0: there is none yet)", revisionFile(c.In))}
	}
	if err != nil {
		return 0, usageError{err}
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || n < 0 {
		return 0, usageError{fmt.Errorf("%s does not hold the number of a revision", revisionFile(c.In))}
	}
	return n, nil
}

// tell says what was saved, keeps its number for the next push, and points out names that lead nowhere.
func (c *contextPushCommand) tell(ctx context.Context, p *process, d *database, doc preferences.Document, saved preferences.Revision, base int) error {
	if saved.Number == base {
		fmt.Fprintf(p.stdout, "Nothing to save: revision %d says the same.\n", saved.Number)
	} else {
		fmt.Fprintf(p.stdout, "Saved as revision %d.\n", saved.Number)
	}
	if err := writeNumber(c.In, saved.Number); err != nil {
		return err
	}
	leads, err := dangling(ctx, d, saved.Org, doc)
	for _, f := range leads {
		fmt.Fprintf(p.stderr, "%s:%d: %s\n", c.In, f.Line, f.What)
	}
	return err
}

func dangling(ctx context.Context, d *database, org identity.OrgID, doc preferences.Document) (preferences.Findings, error) {
	connections, err := db.Connections{DB: d.DB}.Connections(ctx, org)
	if err != nil {
		return nil, err
	}
	profiles, err := db.Profiles{DB: d.DB}.Profiles(ctx, org)
	if err != nil {
		return nil, err
	}
	standing := map[connector.Key]preferences.Standing{}
	for _, k := range connections {
		standing[k.Key] = preferences.Present
		if k.State == installation.Retired {
			standing[k.Key] = preferences.Retired
		}
	}
	var departments []string
	for _, pr := range profiles {
		departments = append(departments, pr.Department)
	}
	return doc.Dangling(func(k connector.Key) preferences.Standing { return standing[k] }, departments), nil
}
