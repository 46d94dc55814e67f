package db_test

import (
	"testing"

	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

// What nobody confirmed cannot be granted as a read to a connection to a custom server, whatever the code above the database says.
func TestAnUnconfirmedReadOfACustomServerIsNotStored(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	c, err := s.connections.Install(t.Context(), installation.Connection{
		ID: identity.NewID("con_"), Org: s.org, Key: "custom-mcp-bbbbbb", Integration: "custom-mcp", Kind: registry.Remote, Runtime: "custom_mcp.v1", Release: rel, Name: "Ours",
		State: installation.Active, Destination: address, Contract: "token", Header: "X-Key", CreatedBy: "Admin",
	}, nil, s.entry(s.org, audit.ConnectionInstalled, "custom-mcp-bbbbbb"))
	if err != nil || s.fresh(c).Header != "X-Key" {
		t.Fatalf("%+v %v", c, err)
	}
	read := policy.Pinned{Tool: "find", Digest: "d1", Recipe: 1, Effect: policy.Read}
	snapshot, _ := policy.NewSnapshot([]policy.Pinned{read})
	next, raws := policy.Standing{Mode: policy.ReadOnly, Snapshot: snapshot}, map[string][]byte{"find": []byte(`{}`)}
	e := s.entry(s.org, audit.ReadConfirmed, c.Key.String())
	for name, now := range map[string][]installation.Confirmation{"nothing": nil, "another definition": {{Tool: "find", Digest: "d2"}}, "another tool": {{Tool: "seek", Digest: "d1"}}} {
		if _, err := s.connections.ConfirmReads(t.Context(), c, now, next, raws, e); err == nil {
			t.Errorf("with %s confirmed the read was stored", name)
		}
	}
	yes := []installation.Confirmation{{Tool: "find", Digest: "d1"}}
	c, err = s.connections.ConfirmReads(t.Context(), c, yes, next, raws, e)
	if err != nil || len(c.Confirmed) != 1 || c.Confirmed[0] != yes[0] || c.Standing.Snapshot.Len() != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	if _, err := s.connections.ConfirmReads(t.Context(), c, nil, next, raws, e); err == nil {
		t.Error("the confirmation was withdrawn and the read is still granted")
	}
	if got := s.fresh(c); len(got.Confirmed) != 1 || got.Version != c.Version {
		t.Errorf("a save that failed left %+v", got)
	}
	for _, statement := range []string{`UPDATE connections SET header = 'X-Other' WHERE key = 'custom-mcp-bbbbbb'`, `UPDATE connections SET header = 'X-Key' WHERE kind = 'hosted'`} {
		if err := s.try(statement); err == nil {
			t.Errorf("%s is possible", statement)
		}
	}
}
