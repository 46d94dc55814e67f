package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/db"
	"countersign/internal/audit"
)

type auditCommand struct {
	Verify     auditVerifyCommand     `cmd:"" help:"Prove an organization's trail whole, or name the first thing that is wrong with it."`
	Checkpoint auditCheckpointCommand `cmd:"" help:"Print a checkpoint of the trail, to be kept elsewhere."`
}

type auditVerifyCommand struct {
	place
	Org        string `required:"" help:"Slug of the organization."`
	Checkpoint string `help:"File with a checkpoint that was kept elsewhere; a trail that ends before it was truncated."`
	JSON       bool   `help:"Print JSON."`
}

func (c *auditVerifyCommand) Run(p *process) error {
	var kept []audit.Checkpoint
	if c.Checkpoint != "" {
		raw, err := readNamed(c.Checkpoint)
		if err != nil {
			return usageError{err}
		}
		kept = make([]audit.Checkpoint, 1)
		if err := json.Unmarshal(raw, &kept[0]); err != nil {
			return usageError{fmt.Errorf("%s is no checkpoint: %w", c.Checkpoint, err)}
		}
	}
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org, err := d.people().OrgBySlug(ctx, c.Org)
		if err != nil {
			return err
		}
		keys, err := c.keys()
		if err != nil {
			return err
		}
		chain := db.Audit{DB: d.DB}
		if _, err := chain.Seal(ctx, keys); err != nil { // of a server that is stopped, or a second behind
			return err
		}
		found, err := chain.Verify(ctx, org.ID, keys, kept...)
		var broken *audit.Break
		if err != nil && !errors.As(err, &broken) {
			return err
		}
		return c.tell(p, found.Sealed, broken)
	})
}

func (c *auditVerifyCommand) tell(p *process, length int64, broken *audit.Break) error {
	if c.JSON {
		answer := map[string]any{"org": c.Org, "ok": broken == nil, "entries": length}
		if broken != nil {
			answer["broken_at"], answer["entry"], answer["what"] = broken.Seq, broken.EntryID, broken.What
		}
		if err := printJSON(p.stdout, answer); err != nil {
			return err
		}
	} else if broken == nil {
		fmt.Fprintf(p.stdout, "The trail of “%s” is whole: %d entries, unbroken.\n", c.Org, length)
	} else {
		fmt.Fprintf(p.stderr, "countersign: in the trail of “%s”, %v\n", c.Org, broken)
	}
	if broken != nil {
		return errWrong
	}
	return nil
}

type auditCheckpointCommand struct {
	place
	Org string `required:"" help:"Slug of the organization."`
}

func (c *auditCheckpointCommand) Run(p *process) error {
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		org, err := d.people().OrgBySlug(ctx, c.Org)
		if err != nil {
			return err
		}
		checkpoint, err := db.Audit{DB: d.DB}.Checkpoint(ctx, org.ID)
		if err != nil {
			return err
		}
		return printJSON(p.stdout, checkpoint)
	})
}
