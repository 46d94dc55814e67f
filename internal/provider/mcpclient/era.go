package mcpclient

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"countersign/internal/provider"
)

// The revisions spoken. The modern one is stateless; the others begin with initialize and may have a session.
const (
	modern = "2026-07-28"
	offer  = "2025-11-25" // what initialize asks for
)

var legacy = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// era is what was agreed with a server. It is immutable.
type era struct {
	version string
	session string // empty: none
	server  string // name and version, for display
}

func (e *era) isModern() bool { return e.version == modern }

// mark sets the headers that repeat what the body says.
func (e *era) mark(h http.Header, m message) {
	if e.version != "" {
		h.Set("Mcp-Protocol-Version", e.version)
	}
	if e.session != "" {
		h.Set("Mcp-Session-Id", e.session)
	}
	if !e.isModern() {
		return
	}
	h.Set("Mcp-Method", m.method)
	if m.name != "" {
		h.Set("Mcp-Name", headerText(m.name))
	}
	for name, value := range m.headers {
		h.Set(name, value)
	}
}

// negotiated returns what was agreed, agreeing first where nothing was. However many calls wait, the server is asked once.
func (l link) negotiated(ctx context.Context) (*era, error) {
	if e := l.up.era.Load(); e != nil {
		return e, nil
	}
	select {
	case l.up.turn <- struct{}{}:
		defer func() { <-l.up.turn }()
	case <-ctx.Done():
		return nil, provider.TimedOut(ctx.Err())
	}
	if e := l.up.era.Load(); e != nil {
		return e, nil
	}
	e, err := l.negotiate(ctx)
	if err != nil {
		return nil, err
	}
	l.up.era.Store(e)
	return e, nil
}

// forget drops an agreement that the server no longer knows; a newer one stays.
func (l link) forget(e *era) { l.up.era.CompareAndSwap(e, nil) }

func (l link) negotiate(ctx context.Context) (*era, error) {
	discover := func() (answer, error) {
		return l.post(ctx, l.endpoint.Reader, &era{version: modern}, message{method: "server/discover"})
	}
	a, err := discover()
	if a.offersModern() { // behind one address stand an older and a newer server, as during an upgrade
		a, err = discover()
	}
	if err != nil && a.status == 0 {
		return nil, exchangeFault(err)
	}
	if refusesCaller(a.status) {
		return nil, statusFault(a)
	}
	if e := discovered(a); e != nil {
		return e, nil
	}
	// Whatever else an older server answers to a method it does not know, initialize is what it does know.
	return l.initialize(ctx)
}

// offersModern reports whether a refusal of the revision names that very revision as one that is spoken.
func (a answer) offersModern() bool {
	if a.failure == nil || a.failure.Code != codeVersion {
		return false
	}
	var data struct{ Supported []string }
	return json.Unmarshal(a.failure.Data, &data) == nil && slices.Contains(data.Supported, modern)
}

// refusesCaller finds the statuses after which asking in another way makes no sense.
func refusesCaller(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests || status/100 == 3
}

func discovered(a answer) *era {
	if a.status/100 != 2 || a.result == nil {
		return nil
	}
	var d struct {
		SupportedVersions []string                   `json:"supportedVersions"`
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(a.result, &d) != nil || !slices.Contains(d.SupportedVersions, modern) {
		return nil
	}
	return &era{version: modern, server: serverName(d.Meta["io.modelcontextprotocol/serverInfo"])}
}

// initialize opens a session, or an agreement without one where the server gives none.
func (l link) initialize(ctx context.Context) (*era, error) {
	params := []byte(`"protocolVersion":"` + offer + `","capabilities":{},"clientInfo":` + l.client.self.info)
	a, err := l.post(ctx, l.endpoint.Reader, &era{}, message{method: "initialize", params: params})
	if err != nil && (a.status == 0 || a.status/100 == 2) {
		return nil, exchangeFault(err)
	}
	if a.status/100 != 2 {
		return nil, statusFault(a)
	}
	var r struct {
		ProtocolVersion string          `json:"protocolVersion"`
		ServerInfo      json.RawMessage `json:"serverInfo"`
	}
	if a.result == nil || json.Unmarshal(a.result, &r) != nil || !slices.Contains(legacy, r.ProtocolVersion) {
		return nil, provider.Unreachable("The service answers, but in no revision of MCP that is spoken here.", nil)
	}
	if !validSession(a.session) {
		return nil, provider.Unreachable("The service gave a session id that is no valid header.", nil)
	}
	e := &era{version: r.ProtocolVersion, session: a.session, server: serverName(r.ServerInfo)}
	if a, err = l.post(ctx, l.endpoint.Reader, e, message{method: "notifications/initialized", notify: true}); err != nil && a.status == 0 {
		return nil, exchangeFault(err)
	}
	return e, nil
}

// end closes a session that was opened for one write; servers keep one for hours otherwise. Nobody waits for the answer's content.
func (l link) end(ctx context.Context, e *era) {
	if e.session == "" {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.endpoint.URL, nil)
	if err != nil {
		return
	}
	e.mark(req.Header, message{})
	if resp, err := l.endpoint.Reader.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

func validSession(s string) bool {
	if len(s) > 1024 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

func serverName(raw json.RawMessage) string {
	var info struct{ Name, Title, Version string }
	if json.Unmarshal(raw, &info) != nil {
		return ""
	}
	name := info.Title
	if name == "" {
		name = info.Name
	}
	return clip(strings.TrimSpace(name+" "+info.Version), 120)
}

// clip bounds a text for display and drops what cannot be seen.
func clip(s string, most int) string {
	s = provider.Printable(s)
	for i := range s {
		if i > most {
			return s[:i] + "…"
		}
	}
	return s
}
