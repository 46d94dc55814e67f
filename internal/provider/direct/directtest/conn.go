package directtest

import (
	"net/http"
	"testing"

	"countersign/internal/connector"
	"countersign/internal/egress"
	"countersign/internal/identity"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// At is one address of a test's connection.
type At struct {
	URL          string
	Editor, Read egress.Editor
}

// Connect makes a connection to addresses on this machine, as the server does for those that an operator moved.
func Connect(t testing.TB, s provider.Settings, to map[registry.Role]At) *provider.Conn {
	t.Helper()
	targets := map[registry.Role]provider.Target{}
	for role, at := range to {
		d, err := egress.Operator(at.URL)
		if err != nil {
			t.Fatal(err)
		}
		targets[role] = provider.Target{Destination: d, Editor: at.Editor, ReadEditor: at.Read}
	}
	c := provider.NewConn(identity.OrgID("org_1"), connector.NewKey("vendor"), s, targets)
	t.Cleanup(c.Close)
	return c
}

// Nowhere is an address where nothing listens.
func Nowhere(t testing.TB) string {
	t.Helper()
	s := &Server{Name: func(*http.Request) string { return "" }}
	s.Start(t)
	s.server.Close()
	return s.URL
}
