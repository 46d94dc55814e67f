package provider

import (
	"errors"
	"net/http"
	"testing"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/registry"
)

type stateA struct{ n int }

type stateB struct{ n int }

func TestAConnectionRemembersOneStatePerProvider(t *testing.T) {
	c := NewConn("org_1", "a-abcdef", Settings{}, nil)
	made := 0
	a := Remember(c, func() *stateA { made++; return &stateA{1} })
	if Remember(c, func() *stateA { made++; return &stateA{2} }) != a || made != 1 {
		t.Error("the state was made again")
	}
	if b := Remember(c, func() *stateB { return &stateB{3} }); b.n != 3 {
		t.Error("two providers share a state")
	}
	if other := NewConn("org_1", "a-abcdef", Settings{}, nil); Remember(other, func() *stateA { return &stateA{4} }).n != 4 {
		t.Error("two connections share a state")
	}
	if c.Settings.MaxResult != DefaultMaxResult {
		t.Error("no bound on results")
	}
}

func TestOnlyAnOverriddenEndpointMayBePrivate(t *testing.T) {
	entry := registry.Entry{Key: "x.v1", Kind: registry.Hosted, Endpoints: map[registry.Role]registry.Endpoint{registry.MCP: {URL: "http://127.0.0.1:9001/mcp"}}}
	if _, err := Targets(entry, nil); err == nil {
		t.Error("a private address was accepted without the operator")
	}
	entry.Endpoints[registry.MCP] = registry.Endpoint{URL: "http://127.0.0.1:9001/mcp", Overridden: true}
	entry.Endpoints[registry.Token] = registry.Endpoint{URL: "https://auth.example.com/token"}
	entry.Endpoints[registry.API] = registry.Endpoint{}
	entry.Headers = map[string]string{"X-Static": "1"}
	asked := map[registry.Role]string{}
	targets, err := Targets(entry, func(r registry.Role, d egress.Destination) (egress.Editor, error) {
		asked[r] = d.Origin()
		return nil, nil
	})
	if err != nil || len(targets) != 2 || asked[registry.Token] != "https://auth.example.com" || targets[registry.MCP].Headers["X-Static"] != "1" {
		t.Errorf("%v %v %v", targets, asked, err)
	}
	c := NewConn("org_1", "a-abcdef", Settings{}, targets)
	defer c.Close()
	if e, err := c.Endpoint(registry.MCP); err != nil || e.Origin != "http://127.0.0.1:9001" || e.Reader == nil || e.Writer == nil || e.Reader == e.Writer {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := c.Endpoint(registry.API); !fault.Is(err, fault.ConnectionUnavailable) {
		t.Error(err)
	}
	no := errors.New("no")
	if _, err := Targets(entry, func(registry.Role, egress.Destination) (egress.Editor, error) { return nil, no }); !errors.Is(err, no) {
		t.Error(err)
	}
}

func TestEveryConnectionHasClientsOfItsOwn(t *testing.T) {
	d, err := egress.Public("https://mcp.example.com/mcp")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[*http.Client]bool{}
	for _, org := range []string{"org_1", "org_2"} {
		c := NewConn("org_"+"x", "a-abcdef", Settings{}, map[registry.Role]Target{registry.MCP: {Destination: d}})
		e, err := c.Endpoint(registry.MCP)
		if err != nil || seen[e.Reader] || seen[e.Writer] {
			t.Errorf("%s shares a client", org)
		}
		seen[e.Reader], seen[e.Writer] = true, true
	}
}
