// Package reachtest owns one connection of the Sandbox CRM for the tests of reach and of whatever works through its lines: real HTTP, the
// real client and a real credential, with the stores of the database held in memory. It knows the CRM only through HTTP, decides
// nothing, and no product code imports it.
package reachtest

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/crm/crmtest"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/reach"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
)

// What the CRM is to be started with.
const (
	Credential = crmtest.Bearer
	Control    = crmtest.Control
)

// Runtime is the CRM's place in the registry.
const Runtime registry.Key = "sandbox_crm.v1"

// World is an upstream and a connection that leads there.
type World struct {
	crmtest.CRM                         // its control side
	Installed   installation.Connection // as the database answers it; a test changes it as people would
	Lines       *reach.Lines
	Upstream    *Watched
	Server      *httptest.Server
	Table       registry.Table
	Release     release.Release
	Credential  *Shelf

	t     *testing.T
	vault *credential.Vault
}

// New installs the CRM of a catalog, served by upstream, with every tool granted that it offers.
func New(t *testing.T, upstream http.Handler, catalog fs.FS) *World {
	t.Helper()
	w := &World{t: t, Upstream: &Watched{next: upstream}, Credential: &Shelf{}}
	w.Server = httptest.NewServer(w.Upstream)
	t.Cleanup(w.Server.Close)
	w.CRM = crmtest.CRM{T: t, URL: w.Server.URL, Token: Control}
	w.Table = w.Moved(w.Server.URL + "/mcp")
	var err error
	w.Release, err = release.Build(theCRM(t, catalog, func(text string) string { return text }), w.Table)
	must(t, err)
	keys, err := secret.Generate()
	must(t, err)
	w.vault = credential.NewVault(keys, w.Credential)
	destination, err := installation.DestinationOf(w.Table, Runtime)
	must(t, err)
	w.Installed = installation.Connection{
		ID: "con_crm", Org: "org_home", Key: "sandbox-crm-aaaaaa", Integration: "sandbox-crm", Kind: hosted.Kind, Runtime: Runtime, Name: "Sandbox CRM",
		Release: string(w.Release.Digest()), State: installation.Active, Contract: "token", Destination: destination.URL(), Version: 1,
	}
	w.save(destination)
	w.Lines = w.NewLines(hosted.New("test"))
	w.grant()
	return w
}

// NewLines makes lines that work through another provider.
func (w *World) NewLines(p provider.Provider) *reach.Lines {
	lines := reach.New(w, w.Table, w.vault, map[registry.Kind]provider.Provider{hosted.Kind: p})
	w.t.Cleanup(lines.Close)
	return lines
}

// Moved is the registry with the CRM at another address, as an operator's file would have it.
func (w *World) Moved(address string) registry.Table {
	w.t.Helper()
	trusted := registry.Trusted()
	o, err := trusted.NewOverride(string(Runtime), address)
	must(w.t, err)
	return trusted.With(o)
}

// LinesAt makes lines over another registry.
func (w *World) LinesAt(table registry.Table) *reach.Lines {
	lines := reach.New(w, table, w.vault, map[registry.Kind]provider.Provider{hosted.Kind: hosted.New("test")})
	w.t.Cleanup(lines.Close)
	return lines
}

func (w *World) save(d egress.Destination) {
	w.t.Helper()
	m, _ := w.Release.Manifest(w.Installed.Integration)
	contract, err := installation.ContractOf(m, "token")
	must(w.t, err)
	place := credential.Place{Org: w.Installed.Org, Connection: w.Installed.Key}
	_, err = w.vault.Save(w.t.Context(), place, contract, map[string]secret.Value{"api_key": secret.New(Credential)}, d)
	must(w.t, err)
}

// grant pins every tool as it is offered now, with the effect that was reviewed.
func (w *World) grant() {
	w.t.Helper()
	line, err := w.Lines.Open(w.t.Context(), w.Installed)
	must(w.t, err)
	tools, err := line.Tools(w.t.Context(), 0)
	must(w.t, err)
	var pinned []policy.Pinned
	for _, d := range tools {
		p := policy.Pinned{Tool: d.Name, Digest: d.Digest, Recipe: d.Recipe, Effect: policy.Consequential}
		if reviewed, ok := line.Manifest.Policy(d.Name); ok {
			p.Effect, p.Destructive = reviewed.Effect, reviewed.Destructive
		}
		pinned = append(pinned, p)
	}
	w.Grant(pinned...)
	w.Upstream.Forget()
}

// Grant replaces what is granted.
func (w *World) Grant(pinned ...policy.Pinned) {
	w.t.Helper()
	snapshot, err := policy.NewSnapshot(pinned)
	must(w.t, err)
	w.Installed.Standing = policy.Standing{Mode: policy.AskUserOnWrite, Snapshot: snapshot}
}

// Edited is a catalog of the CRM alone, with one passage of its manifest written otherwise.
func Edited(t *testing.T, catalog fs.FS, passage, by string) fs.FS {
	t.Helper()
	return theCRM(t, catalog, func(text string) string {
		if strings.Count(text, passage) != 1 {
			t.Fatalf("the manifest does not hold %q once", passage)
		}
		return strings.Replace(text, passage, by, 1)
	})
}

// theCRM leaves the rest of a catalog out: a test that needs one manifest need not read a hundred.
func theCRM(t *testing.T, catalog fs.FS, edit func(string) string) fs.FS {
	t.Helper()
	const file = "sandbox-crm.toml"
	raw, err := fs.ReadFile(catalog, file)
	must(t, err)
	return fstest.MapFS{file: {Data: []byte(edit(string(raw)))}}
}

// Call is an action of the connection that has this tool called with these arguments.
func (w *World) Call(state action.State, tool, arguments string) action.Action {
	pinned, _ := w.Installed.Standing.Snapshot.Find(tool)
	return action.Action{
		ID: "act_1", Org: w.Installed.Org, Connection: w.Installed.Key, Tool: tool, Definition: pinned.Digest, Arguments: []byte(arguments),
		Destination: w.Installed.Destination, State: state, Version: 3,
	}
}

// ByDigest is the store of releases.
func (w *World) ByDigest(_ context.Context, d release.Digest) (release.Release, error) {
	if d != w.Release.Digest() {
		return release.Release{}, fault.Absent("release")
	}
	return w.Release, nil
}

// Connection is the store of connections.
func (w *World) Connection(_ context.Context, org identity.OrgID, key connector.Key) (installation.Connection, error) {
	if org != w.Installed.Org || key != w.Installed.Key {
		return installation.Connection{}, fault.Absent("connection")
	}
	return w.Installed, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
