package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"countersign/internal/crm"
	"countersign/internal/fault"
	"countersign/internal/registry"
)

// crmTokens are the two credentials of the Sandbox CRM, in <data>/sandbox-crm.json, 0600. They travel in a file, since a command line and
// an environment can be read by others.
type crmTokens struct {
	Bearer  string `json:"bearer"`
	Control string `json:"control"`
}

type sandboxCRMCommand struct {
	DataDir string `name:"data-dir" env:"COUNTERSIGN_DATA_DIR" default:"./data" help:"Folder of sandbox-crm.json, which holds the CRM's two tokens and is made when missing."`
	Listen  string `env:"COUNTERSIGN_CRM_LISTEN" default:"127.0.0.1:8090" help:"Listen address."`
	Log     string `env:"COUNTERSIGN_LOG" default:"info" help:"Log threshold."`
}

func (c *sandboxCRMCommand) Run(p *process) error {
	log, err := place{Log: c.Log}.logger(p.stderr)
	if err != nil {
		return err
	}
	tokens, err := loadCRMTokens(c.DataDir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return cannotListen(c.Listen, err)
	}
	log.Info("the sandbox CRM is ready", "address", "http://"+l.Addr().String()+"/mcp")
	return crm.New(crm.Config{Listen: c.Listen, BearerToken: tokens.Bearer, ControlToken: tokens.Control, Log: log}).Run(p.ctx, l)
}

func cannotListen(address string, err error) error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The sandbox CRM cannot listen on "+address+".", "Stop what uses it, or set COUNTERSIGN_CRM_LISTEN to another address.").Wrap(err)
}

// loadCRMTokens reads the tokens, or makes them once.
func loadCRMTokens(dataDir string) (crmTokens, error) {
	path := filepath.Join(dataDir, "sandbox-crm.json")
	var t crmTokens
	raw, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(raw, &t); err != nil || t.Bearer == "" || t.Control == "" {
			return t, fault.New(fault.Unavailable, fault.CodeUnavailable, "The file "+path+" does not hold the sandbox CRM's tokens.", "Remove it; the next start makes new ones.")
		}
		return t, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return t, cannotKeep(path, err)
	}
	t = crmTokens{Bearer: randomText(), Control: randomText()}
	if raw, err = json.Marshal(t); err != nil {
		return t, err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return t, cannotKeep(path, err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
		return t, cannotKeep(path, err)
	}
	return t, nil
}

func cannotKeep(path string, err error) error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The file "+path+" cannot be read or written.", "Make its folder writable for this user, or name another one in COUNTERSIGN_DATA_DIR.").Wrap(err)
}

func randomText() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// sandboxCRM is the child process that plays the vendor. It is a process of its own so that what the product does is what it does with any
// vendor: over a socket, with a credential.
type sandboxCRM struct {
	url    string
	tokens crmTokens
	stop   func()
}

// startSandboxCRM starts the child, waits until it answers, and points the trusted runtime at it unless the operator's file already has.
func startSandboxCRM(ctx context.Context, c *serveCommand, table registry.Table, log *slog.Logger) (*sandboxCRM, registry.Table, error) {
	tokens, err := loadCRMTokens(c.DataDir)
	if err != nil {
		return nil, table, err
	}
	probe, err := net.Listen("tcp", c.CRMListen)
	if err != nil {
		return nil, table, cannotListen(c.CRMListen, err)
	}
	_ = probe.Close()
	s := &sandboxCRM{url: "http://" + c.CRMListen, tokens: tokens}
	if s.stop, err = supervise(c, log); err != nil {
		return nil, table, err
	}
	if err := s.awaitAnswer(ctx, c); err != nil {
		s.stop()
		return nil, table, err
	}
	if e, ok := table.Lookup("sandbox_crm.v1"); ok && e.Endpoints[registry.MCP].URL == "" {
		moved, err := table.NewOverride("sandbox_crm.v1", s.url+"/mcp")
		if err != nil {
			s.stop()
			return nil, table, err
		}
		table = table.With(moved)
	}
	return s, table, nil
}

// supervise runs this very program as the CRM and starts it again when it dies. The child has a process group of its own, so that Ctrl-C
// reaches it through us and in order, and dies with us however we die.
func supervise(c *serveCommand, log *slog.Logger) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			child := exec.CommandContext(ctx, self, "sandbox-crm", "--data-dir", c.DataDir, "--listen", c.CRMListen, "--log", "warn")
			child.Env = []string{}
			child.Stderr = os.Stderr
			child.SysProcAttr = childAttributes()
			child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
			child.WaitDelay = 5 * time.Second
			if err := runLocked(child); err != nil && ctx.Err() == nil {
				log.Warn("the sandbox CRM ended; starting it again", "error", err)
				pause(ctx, time.Second)
			}
		}
	}()
	return func() { cancel(); <-done }, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s *sandboxCRM) awaitAnswer(ctx context.Context, c *serveCommand) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.CRMListen)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil {
			return fault.New(fault.Unavailable, fault.CodeUnavailable, fmt.Sprintf("The sandbox CRM does not answer on %s.", s.url), "Look at the log above.").Wrap(err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}
