package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"text/tabwriter"

	"countersign/catalog"
	"countersign/db"
	"countersign/internal/fault"
	"countersign/internal/registry"
	"countersign/internal/release"
)

type catalogCommand struct {
	Check   catalogCheckCommand   `cmd:"" help:"Say what is wrong with a catalog folder."`
	List    catalogListCommand    `cmd:"" help:"List the integrations of a catalog folder."`
	Diff    catalogDiffCommand    `cmd:"" help:"Say how a catalog folder differs from what is published."`
	Import  catalogImportCommand  `cmd:"" help:"Print the draft of a catalog file from an entry of an MCP registry; nothing that runs or is reached is taken over."`
	Publish catalogPublishCommand `cmd:"" help:"Publish a catalog folder. Publishing the same bytes again changes nothing."`
}

// folder names the catalog's files: a folder, or the catalog this binary carries.
type folder struct {
	Dir string `help:"Catalog folder; the catalog inside this binary when empty."`
}

func (f folder) files() (fs.FS, error) {
	if f.Dir == "" {
		return catalog.Files(), nil
	}
	if info, err := os.Stat(f.Dir); err != nil || !info.IsDir() {
		return nil, usageError{fmt.Errorf("--dir “%s” is no folder", f.Dir)}
	}
	return os.DirFS(f.Dir), nil
}

type catalogCheckCommand struct {
	folder
	JSON bool `help:"Print JSON."`
}

func (c *catalogCheckCommand) Run(p *process) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	r, err := release.Build(files, registry.Trusted())
	if c.JSON {
		return c.asJSON(p, r, err)
	}
	if list, ok := err.(fault.List); ok {
		for _, f := range list {
			fmt.Fprintln(p.stderr, f.Error())
		}
		return errWrong
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d integrations, all fine. %s\n", len(r.Manifests()), r.Digest())
	return nil
}

func (c *catalogCheckCommand) asJSON(p *process, r release.Release, err error) error {
	problems := []string{}
	list, ok := err.(fault.List)
	if err != nil && !ok {
		return err
	}
	for _, f := range list {
		problems = append(problems, f.Error())
	}
	answer := map[string]any{"ok": err == nil, "problems": problems}
	if err == nil {
		answer["digest"] = r.Digest()
	}
	if printErr := printJSON(p.stdout, answer); printErr != nil {
		return printErr
	}
	if err != nil {
		return errWrong
	}
	return nil
}

type catalogListCommand struct {
	folder
	JSON bool `help:"Print JSON."`
}

func (c *catalogListCommand) Run(p *process) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	r, err := release.Build(files, registry.Trusted())
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, r.List())
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tNAME\tKIND\tAUTH\tCATEGORY\tRUNTIME")
	for _, e := range r.List() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Key, e.Name, e.Kind, e.Auth, e.Category, e.Runtime)
	}
	return w.Flush()
}

type catalogDiffCommand struct {
	place
	folder
	JSON bool `help:"Print JSON."`
}

func (c *catalogDiffCommand) Run(p *process) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		changes, err := release.Compare(ctx, db.NewReleases(d.DB, registry.Trusted()), files, registry.Trusted())
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, changes)
		}
		printChanges(p, changes)
		return nil
	})
}

type catalogPublishCommand struct {
	place
	folder
	JSON bool `help:"Print JSON."`
}

func (c *catalogPublishCommand) Run(p *process) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		published, err := release.Publish(ctx, db.NewReleases(d.DB, registry.Trusted()), files, registry.Trusted())
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, published)
		}
		if !published.Created {
			fmt.Fprintf(p.stdout, "Nothing to do: %s is published.\n", published.Digest)
			return nil
		}
		printChanges(p, published.Changes)
		fmt.Fprintf(p.stdout, "Published %s. Connections keep the release they were installed from.\n", published.Digest)
		return nil
	})
}

func printChanges(p *process, changes release.Changes) {
	if changes.None() {
		fmt.Fprintln(p.stdout, "No difference.")
	}
	for _, line := range changes.Words() {
		fmt.Fprintln(p.stdout, line)
	}
}
