package provider

import (
	"net/http"
	"sync"
	"time"

	"countersign/internal/connector"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/registry"
)

// DefaultMaxResult is the most bytes of a result that reach an agent.
const DefaultMaxResult = 1 << 20

// Target is one address of a connection and what authorises requests to it.
type Target struct {
	Destination egress.Destination
	Editor      egress.Editor     // opaque; nil where the service is open
	ReadEditor  egress.Editor     // what authorises reads where the connection has a credential of its own for them; nil: Editor
	Headers     map[string]string // static and public
}

// Settings are the non-secret choices of a connection.
type Settings struct {
	Resources map[string]string // e.g. "database": "orders"
	Probe     *Call             // a read that proves the credential; nil where none is known
	MaxResult int               // bytes; 0 means DefaultMaxResult
	MaxAnswer int64             // bytes an upstream may send at all; 0 means egress.DefaultMaxBytes
	Timeout   time.Duration     // of one exchange; 0 means egress.DefaultTimeout
}

// Endpoint is an address with its two authorised clients.
type Endpoint struct {
	URL    string
	Origin string
	Reader *http.Client // keeps connections; for everything without an effect
	Writer *http.Client // one fresh connection per request, observed; for effects

	ReadsOnly bool // the connection has no credential for effects here

	// Where the service speaks a protocol of its own there are no HTTP clients: Raw opens connections and Login authenticates.
	Raw   *egress.Raw
	Login egress.Login
}

// Conn is one connection of one organization with one version of its credential. Build it once, share it, and Close it when the
// credential, the address or the connection changes. It must not be copied.
type Conn struct {
	Org      identity.OrgID
	Key      connector.Key
	Settings Settings

	endpoints map[registry.Role]Endpoint
	mu        sync.Mutex
	states    map[any]any
}

// NewConn builds the clients of a connection: its own, so that no connection to an upstream is ever shared with another.
func NewConn(org identity.OrgID, key connector.Key, s Settings, targets map[registry.Role]Target) *Conn {
	if s.MaxResult <= 0 {
		s.MaxResult = DefaultMaxResult
	}
	c := &Conn{Org: org, Key: key, Settings: s, endpoints: map[registry.Role]Endpoint{}, states: map[any]any{}}
	for role, t := range targets {
		if l, ok := t.Editor.(interface{ Login() (egress.Login, bool) }); ok {
			if login, ok := l.Login(); ok {
				c.endpoints[role] = Endpoint{URL: t.Destination.URL(), Origin: t.Destination.Origin(), Raw: egress.Through(t.Destination), Login: login}
				continue
			}
		}
		o := egress.Options{Editor: t.Editor, Headers: t.Headers, Timeout: s.Timeout, MaxBytes: s.MaxAnswer}
		reads := o
		if t.ReadEditor != nil {
			reads.Editor = t.ReadEditor
		}
		c.endpoints[role] = Endpoint{
			URL: t.Destination.URL(), Origin: t.Destination.Origin(),
			Reader: egress.Client(t.Destination, reads), Writer: egress.Dispatch(t.Destination, o),
			ReadsOnly: t.Editor == nil && t.ReadEditor != nil,
		}
	}
	return c
}

// Endpoint returns the address with a role.
func (c *Conn) Endpoint(r registry.Role) (Endpoint, error) {
	e, ok := c.endpoints[r]
	if !ok {
		return Endpoint{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This connection has no "+string(r)+" address.", "Ask the operator of this server.")
	}
	return e, nil
}

// Close gives back what the connection holds open. Calls that are under way end as they would have.
func (c *Conn) Close() {
	for _, e := range c.endpoints {
		if e.Reader != nil {
			e.Reader.CloseIdleConnections()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.states {
		if open, ok := s.(interface{ Close() }); ok {
			open.Close()
		}
	}
}

// Remember returns the T that belongs to this connection, making it the first time. Each provider uses a type of its own, and the
// state ends with the Conn, so that nothing learned under one credential is used under another.
func Remember[T any](c *Conn, make func() *T) *T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var key *T
	if s, ok := c.states[key]; ok {
		return s.(*T)
	}
	s := make()
	c.states[key] = s
	return s
}
