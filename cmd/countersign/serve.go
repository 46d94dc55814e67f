package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"countersign/internal/fault"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/registry"
)

// stopPatience is how long each part may take to stop in order.
const stopPatience = 15 * time.Second

// gcPercent lets garbage grow to three times what is in use before it is collected. What is in use is a few megabytes, so that the usual
// hundred percent collects several times a second under load: a tenth of the CPU of a call, for memory nobody misses.
const gcPercent = 300

type serveCommand struct {
	place
	Listen        string `env:"COUNTERSIGN_LISTEN" default:"127.0.0.1:8080" help:"Listen address."`
	PublicURL     string `name:"public-url" env:"COUNTERSIGN_PUBLIC_URL" help:"Origin in links and the Host allowlist; http:// and the listen address when empty."`
	EndpointsFile string `env:"COUNTERSIGN_ENDPOINTS_FILE" help:"Operator's TOML file that moves trusted runtimes to other addresses."`
	Commands      string `env:"COUNTERSIGN_COMMANDS" default:"node_modules" help:"Folder where vendors' commands are installed; each is compared with its pin before it runs."`
	CRMListen     string `name:"crm-listen" env:"COUNTERSIGN_CRM_LISTEN" default:"127.0.0.1:8090" help:"Where the sandbox's CRM listens."`
	Demo          bool   `env:"COUNTERSIGN_DEMO" help:"Seed the sandbox organization."`
}

// Run is the server from start to stop. It takes the port before anything that is slow, so that a taken one is told at once.
func (c *serveCommand) Run(p *process) error {
	log, err := c.logger(p.stderr)
	if err != nil {
		return err
	}
	slog.SetDefault(log)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("MCPGODEBUG") != "" {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "MCPGODEBUG is set; it can switch off protections of the MCP library.", "Unset it and start again.")
	}
	if c.PublicURL == "" {
		c.PublicURL = "http://" + c.Listen
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The address "+c.Listen+" cannot be listened on.", "Stop what uses it, or set COUNTERSIGN_LISTEN to another one.").Wrap(err)
	}
	defer listener.Close()
	table, err := endpoints(c.EndpointsFile, log)
	if err != nil {
		return err
	}
	go func() { // finding out starts a process; nothing waits for the answer
		for _, lack := range sandbox.Lacks() {
			log.Warn("vendors' commands are held less than they could be", "why", lack)
		}
	}()
	var sandbox *sandboxCRM
	if c.Demo {
		if sandbox, table, err = startSandboxCRM(p.ctx, c, table, log); err != nil {
			return err
		}
		defer sandbox.stop()
	}
	return c.serve(p, listener, table, sandbox, log)
}

func (c *serveCommand) serve(p *process, listener net.Listener, table registry.Table, sandbox *sandboxCRM, log *slog.Logger) error {
	d, err := c.open(p.ctx, log)
	if err != nil {
		return err
	}
	defer d.Close()
	keys, err := c.keys()
	if err != nil {
		return err
	}
	var seeded atomic.Bool
	app, err := wire(wiring{db: d.DB, keys: keys, registry: table, publicURL: c.PublicURL, listen: c.Listen, commands: c.Commands, mirrors: filepath.Join(c.DataDir, "git"), log: log, seeded: &seeded})
	if err != nil {
		return err
	}
	if err := app.start(p.ctx); err != nil {
		return err
	}
	defer app.stop()
	server := newServer(app.handler, log)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := c.prepare(p, app, sandbox, log); err != nil {
		return errors.Join(err, shutdown(server))
	}
	seeded.Store(true)
	log.Info("ready", "address", c.PublicURL)
	go debug.FreeOSMemory() // the start has used several times what is in use after it
	select {
	case err = <-failed:
	case <-d.gone():
		err = fault.New(fault.Unavailable, fault.CodeUnavailable, "The embedded database has stopped.", "Look at the log above, and start again.")
	case <-p.ctx.Done():
		log.Info("stopping")
		err = nil
	}
	if stopErr := shutdown(server); err == nil && stopErr != nil {
		log.Warn("requests were cut off at the stop", "error", stopErr)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// prepare is what must be there before the server calls itself ready: a published catalog and, in a demo, the sandbox organization.
func (c *serveCommand) prepare(p *process, app *app, sandbox *sandboxCRM, log *slog.Logger) error {
	if err := app.publishCatalog(p.ctx, c.Demo, log); err != nil {
		return err
	}
	if !c.Demo {
		return nil
	}
	facts, err := seedSandbox(p.ctx, app, c, sandbox)
	if err != nil {
		return err
	}
	fmt.Fprint(p.stdout, facts.greeting())
	return nil
}

// newServer bounds what a client can hold open. There is no write timeout: an answer of the gateway may take as long as its upstream,
// which has its own bound.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

func shutdown(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	err := s.Shutdown(ctx)
	if err != nil {
		_ = s.Close() // whoever did not finish in time is cut off
	}
	return err
}

// gone is closed when the embedded database ends by itself; it never is where somebody else runs PostgreSQL.
func (d *database) gone() <-chan struct{} {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Done()
}
