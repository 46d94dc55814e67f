// Package mcpclient owns the one client for MCP servers over streamable HTTP, written by hand because three things must stay in our
// hands: the raw bytes of tools (their digest is what people approved), the bounds of every answer, and what is known of a write
// whose answer was lost. It speaks 2026-07-28, which has no sessions, and falls back to the 2025 revisions, which have. It sends a
// write once and never again, whatever is answered. It never sees a credential, never opens a connection of its own, never answers
// questions of a server, and stores nothing.
package mcpclient

import (
	"context"
	"sync/atomic"
	"time"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// Client is the provider for every MCP server. It has no state of its own.
type Client struct {
	role registry.Role
	self identification
}

// New makes a client that introduces itself to servers with the given version of this program.
func New(version string) *Client {
	return &Client{role: registry.MCP, self: identify("countersign", version)}
}

var (
	_ provider.Provider   = (*Client)(nil)
	_ provider.Reconciler = (*Client)(nil)
)

// upstream is what is remembered of the server of one connection.
type upstream struct {
	turn     chan struct{} // held while negotiating; a channel, so that waiting ends with the waiter's context
	era      atomic.Pointer[era]
	lastID   atomic.Int64
	bindings bindings
}

func newUpstream() *upstream { return &upstream{turn: make(chan struct{}, 1)} }

// link is one connection, ready to be talked over.
type link struct {
	client   *Client
	conn     *provider.Conn
	endpoint provider.Endpoint
	up       *upstream
}

func (c *Client) link(conn *provider.Conn) (link, error) {
	e, err := conn.Endpoint(c.role)
	if err != nil {
		return link{}, err
	}
	return link{client: c, conn: conn, endpoint: e, up: provider.Remember(conn, newUpstream)}, nil
}

// Read implements provider.Provider.
func (c *Client) Read(ctx context.Context, conn *provider.Conn, call provider.Call) (provider.Result, error) {
	l, err := c.link(conn)
	if err != nil {
		return provider.Result{}, err
	}
	return l.read(ctx, call)
}

// Execute implements provider.Provider.
func (c *Client) Execute(ctx context.Context, conn *provider.Conn, call provider.Call) action.Outcome {
	l, err := c.link(conn)
	if err != nil {
		return unsent(err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, egress.DefaultTimeout)
		defer cancel()
	}
	return l.execute(ctx, call)
}

// Test implements provider.Provider. It begins anew: what was negotiated before is not trusted.
func (c *Client) Test(ctx context.Context, conn *provider.Conn) (provider.Finding, error) {
	start := time.Now()
	l, err := c.link(conn)
	if err != nil {
		return provider.Finding{}, err
	}
	l.up.era.Store(nil)
	e, err := l.negotiated(ctx)
	if err != nil {
		return provider.Finding{}, err
	}
	f := provider.Finding{Server: e.server, Protocol: "MCP " + e.version}
	tools, err := l.tools(ctx)
	if err != nil {
		return f, err
	}
	f.Tools = len(tools)
	probe, offered := conn.Settings.Probe, false
	for _, t := range tools {
		offered = offered || probe != nil && t.Name == probe.Tool
		if t.Problem != "" {
			f.Broken++
		}
	}
	// A service that no longer offers the probe still works; it only proves nothing about the credential.
	if offered {
		r, err := l.read(ctx, *probe)
		if err != nil {
			return f, err
		}
		if r.IsError {
			return f, provider.Upstream("The service answered the test call with an error.", nil)
		}
		f.Proven = true
	}
	f.Took = time.Since(start)
	return f, nil
}

// Tools implements provider.Provider.
func (c *Client) Tools(ctx context.Context, conn *provider.Conn) ([]provider.Definition, error) {
	l, err := c.link(conn)
	if err != nil {
		return nil, err
	}
	return l.tools(ctx)
}
