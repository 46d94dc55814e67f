// Package reach owns the way from a connection to the provider that works for it: manifest, address, credential and kind come together
// here, and nowhere else. What it hands out is already authorised; it never hands out a credential, never decides whether a call is
// allowed, and sends nothing on its own but look-ups of the tool list and the test of a connection.
package reach

import (
	"context"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/registry"
	"countersign/internal/release"
)

// FreshFor is how old a live tool list may be for a call.
const FreshFor = 60 * time.Second

// ExecuteTimeout is how long a dispatch waits for its answer. What is lost after it is uncertain, never sent again.
const ExecuteTimeout = 30 * time.Second

// Bounds of one exchange of git: a clone of a large repository over a slow line.
const (
	gitTimeout   = 2 * time.Hour
	gitMaxAnswer = 64 << 30
)

// Releases finds the release a connection was installed from.
type Releases interface {
	ByDigest(ctx context.Context, d release.Digest) (release.Release, error)
}

// Lines makes lines. One value serves the whole process.
type Lines struct {
	releases  Releases
	registry  registry.Table
	vault     *credential.Vault
	providers map[registry.Kind]provider.Provider
	direct    map[registry.Key]provider.Provider // a direct runtime has code of its own, and so has a command
	consents  *consent.Keeper                    // nil: this server keeps none

	mu   sync.Mutex
	open map[string]*Line // by connection id
}

// New makes lines for the kinds that have a provider.
func New(releases Releases, table registry.Table, vault *credential.Vault, providers map[registry.Kind]provider.Provider) *Lines {
	return &Lines{releases: releases, registry: table, vault: vault, providers: providers, open: map[string]*Line{}}
}

// Keeping makes the lines of connections that are made by consent. It is called before the first line is opened.
func (l *Lines) Keeping(k *consent.Keeper) *Lines {
	l.consents = k
	return l
}

// Directly adds the code of the direct runtimes and of the vendors' commands. It is called before the first line is opened.
func (l *Lines) Directly(direct map[registry.Key]provider.Provider) *Lines {
	l.direct = direct
	return l
}

// Ready says what this server itself lacks to serve connections of a runtime, like a program of its vendor; nil where it lacks nothing.
func (l *Lines) Ready(key registry.Key) error {
	if p, needs := l.direct[key].(interface{ Ready() error }); needs {
		return p.Ready()
	}
	return nil
}

// Line is an open way to one connection at one of its versions. Lines are shared by concurrent calls.
type Line struct {
	Provider provider.Provider
	Conn     *provider.Conn
	Manifest manifest.Manifest

	held    *consent.Held // what authorises it; nil where a static credential does
	version int
	list    list
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
}

// Open answers the line of a connection as it was read from the database. A connection that changed since gets a new line; calls under
// way on the old one end as they would have.
func (l *Lines) Open(ctx context.Context, c installation.Connection) (*Line, error) {
	if err := usable(c); err != nil {
		l.drop(c.ID)
		return nil, err
	}
	line, err := l.at(ctx, c)
	if err != nil || line.held == nil {
		return line, err
	}
	if err := line.held.Ready(ctx); err != nil { // whoever has the line is about to send: now is when the token has to last
		return nil, err
	}
	return line, nil
}

// at is the line of a connection at its version.
func (l *Lines) at(ctx context.Context, c installation.Connection) (*Line, error) {
	l.mu.Lock()
	line := l.open[c.ID]
	l.mu.Unlock()
	if line != nil && line.version == c.Version {
		return line, nil
	}
	line, err := l.make(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.open[c.ID]
	if old != nil && old.version >= c.Version { // a concurrent call was faster, or has read a newer row
		line.Conn.Close()
		return old, nil
	}
	if old != nil {
		old.Conn.Close()
	}
	l.open[c.ID] = line
	return line, nil
}

// Close gives back everything that is held open.
func (l *Lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, line := range l.open {
		line.Conn.Close()
		delete(l.open, id)
	}
	for _, p := range l.direct {
		if held, ok := p.(interface{ Close() }); ok {
			held.Close()
		}
	}
}

func (l *Lines) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.open[id]; line != nil {
		line.Conn.Close()
		delete(l.open, id)
	}
}

func usable(c installation.Connection) error {
	switch c.State {
	case installation.Active:
		return nil
	case installation.NeedsConsent:
		return fault.New(fault.Unavailable, fault.NeedsConsent, "The connection needs a person's consent again.", "An admin can reconnect it on the connection's page.")
	}
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The connection is not active.", "Go on without it. An admin sees why on the connection's page.")
}

func (l *Lines) make(ctx context.Context, c installation.Connection) (*Line, error) {
	p, ok := l.providers[c.Kind]
	if c.Kind == registry.Direct || c.Kind == registry.CLI {
		p, ok = l.direct[c.Runtime]
	}
	if !ok {
		return nil, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This server has no code for connections of kind “"+string(c.Kind)+"”.", "Update the server.")
	}
	m, err := l.manifest(ctx, c)
	if err != nil {
		return nil, err
	}
	destination, err := l.destination(c)
	if err != nil {
		return nil, err
	}
	held, err := l.held(ctx, c, m)
	if err != nil {
		return nil, err
	}
	targets, err := l.targets(ctx, c, m, destination, held)
	if err != nil {
		return nil, err
	}
	if held != nil {
		p = renewing{p, held, m}
	}
	settings := provider.Settings{Resources: c.Settings, Probe: probe(m), Timeout: ExecuteTimeout}
	if c.Kind == registry.Git { // a history streams through as it comes; what is sent is bounded by its lease
		settings.Timeout, settings.MaxAnswer = gitTimeout, gitMaxAnswer
	}
	return &Line{Provider: p, Conn: provider.NewConn(c.Org, c.Key, settings, targets), Manifest: m, held: held, version: c.Version, breaker: newBreaker()}, nil
}

// held is what a connection that is made by consent is authorised with; nil for every other.
func (l *Lines) held(ctx context.Context, c installation.Connection, m manifest.Manifest) (*consent.Held, error) {
	auth, ok := m.Contract(manifest.OAuth2)
	if !ok || c.Contract != string(manifest.OAuth2) || l.consents == nil {
		return nil, nil
	}
	return l.consents.Hold(ctx, c, auth.OAuth)
}

// installAgain is what an agent is told where the catalog entry of a connection is gone.
const installAgain = "An admin can install it again and retire this one."

func (l *Lines) manifest(ctx context.Context, c installation.Connection) (manifest.Manifest, error) {
	r, err := l.releases.ByDigest(ctx, release.Digest(c.Release))
	if err != nil {
		return manifest.Manifest{}, err
	}
	m, ok := r.Manifest(c.Integration)
	if !ok {
		return manifest.Manifest{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable,
			"This server no longer accepts the catalog entry this connection was installed from.", installAgain)
	}
	return m, nil
}

// destination is the address stored when the connection was made, never one derived from anything later. When the operator has moved
// the runtime since, the connection waits for a person to enter its credential again.
func (l *Lines) destination(c installation.Connection) (egress.Destination, error) {
	now, err := installation.WhereStored(l.registry, c)
	if err != nil {
		return egress.Destination{}, err
	}
	if now.URL() != c.Destination {
		return egress.Destination{}, credential.ErrElsewhere
	}
	return now, nil
}

func probe(m manifest.Manifest) *provider.Call {
	if m.Probe == nil {
		return nil
	}
	return &provider.Call{Tool: m.Probe.Tool, Arguments: m.Probe.ArgumentsJSON()}
}
