package main

import (
	"fmt"

	"countersign/internal/fault"
	"countersign/internal/manifest"
)

type catalogImportCommand struct {
	File string `arg:"" help:"The server.json of one server, as an MCP registry has it."`
}

// Run prints a draft. It writes no file: whoever takes it into the catalog has it in front of them.
func (c *catalogImportCommand) Run(p *process) error {
	entry, err := readNamed(c.File)
	if err != nil {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The file "+c.File+" cannot be read.", "Name the server.json of one server.").Wrap(err)
	}
	draft, err := manifest.Draft(entry)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s", draft)
	return err
}
