package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"countersign/catalog"
	"countersign/db"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/registry"
	"countersign/internal/release"
)

type doctorCommand struct {
	place
	Listen        string `env:"COUNTERSIGN_LISTEN" default:"127.0.0.1:8080" help:"Listen address."`
	EndpointsFile string `env:"COUNTERSIGN_ENDPOINTS_FILE" help:"Operator's endpoints file."`
	JSON          bool   `help:"Print JSON."`
}

// examination is one thing doctor looked at.
type examination struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
}

// Run examines everything a start needs and names each thing that would stop it.
func (c *doctorCommand) Run(p *process) error {
	log, err := c.logger(p.stderr)
	if err != nil {
		return err
	}
	var found []examination
	note := func(what string, says string, err error) {
		e := examination{What: what, OK: err == nil, Says: says}
		if err != nil {
			e.Says = err.Error()
		}
		found = append(found, e)
	}
	note("address "+c.Listen, "free, or in use by a running server", c.listening())
	_, err = endpoints(c.EndpointsFile, log)
	note("endpoints file", "nothing wrong with it", err)
	_, err = release.Build(catalog.Files(), registry.Trusted())
	note("catalog in this binary", "every entry passes the check", err)
	held := "held in full"
	if lacks := sandbox.Lacks(); len(lacks) > 0 {
		held = strings.Join(lacks, " ")
	}
	note("vendors' commands", held, nil)
	d, err := c.open(p.ctx, log)
	note("database", "answers, and its schema is at this version", err)
	if err == nil {
		defer d.Close()
		_, err = c.keys()
		note("keyset", "opens", err)
		note("published catalog", "present", published(p.ctx, d))
	}
	return c.tell(p, found)
}

func published(ctx context.Context, d *database) error {
	_, err := db.NewReleases(d.DB, registry.Trusted()).Current(ctx)
	return err
}

// listening accepts a port that is taken: a running server beside doctor is the usual case.
func (c *doctorCommand) listening() error {
	if l, err := net.Listen("tcp", c.Listen); err == nil {
		return l.Close()
	}
	conn, err := net.Dial("tcp", c.Listen)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *doctorCommand) tell(p *process, found []examination) error {
	well := true
	for _, e := range found {
		well = well && e.OK
		if !c.JSON {
			sign := "ok  "
			if !e.OK {
				sign = "FAIL"
			}
			fmt.Fprintf(p.stdout, "%s  %s: %s\n", sign, e.What, e.Says)
		}
	}
	if c.JSON {
		if err := printJSON(p.stdout, found); err != nil {
			return err
		}
	}
	if !well {
		return errWrong
	}
	return nil
}
