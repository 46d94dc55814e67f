// Package reached owns the way from a scene's connections to real upstreams: the Sandbox CRM, served by the test, behind the catalog's own
// manifest, with the credentials, the lines and the HTTP clients of the product. It decides nothing, and no product code imports it.
package reached

import (
	"net/http/httptest"

	"countersign/catalog"
	"countersign/db"
	"countersign/db/dbtest/scene"
	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/crm/crmtest"
	"countersign/internal/installation"
	"countersign/internal/provider"
	"countersign/internal/provider/github"
	"countersign/internal/provider/hosted"
	"countersign/internal/provider/remote"
	"countersign/internal/reach"
	"countersign/internal/reach/reachtest"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
)

// Reached is what it takes to have connections that work.
type Reached struct {
	CRM      crmtest.CRM
	Upstream *reachtest.Watched // in front of the CRM: its requests can be held
	Table    registry.Table     // leads to the CRM, and to wherever else the test said
	Releases db.Releases
	Vault    *credential.Vault
	Lines    *reach.Lines
	Service  *installation.Connections
}

// New starts a CRM and publishes the catalog. Also moves other runtimes to addresses of the test's, as an operator's file would.
func New(s *scene.Scene, also map[registry.Key]string) *Reached {
	s.T.Helper()
	r := &Reached{Upstream: &reachtest.Watched{}}
	r.Upstream.Become(crm.New(crm.Config{BearerToken: crmtest.Bearer, ControlToken: crmtest.Control}).Handler())
	server := httptest.NewServer(r.Upstream)
	s.T.Cleanup(server.Close)
	r.CRM = crmtest.CRM{T: s.T, URL: server.URL, Token: crmtest.Control}

	r.Table = moved(s, registry.Trusted(), reachtest.Runtime, server.URL+"/mcp")
	for key, address := range also {
		r.Table = moved(s, r.Table, key, address)
	}
	r.Releases = s.ReleasesFor(r.Table)
	_, err := release.Publish(s.T.Context(), r.Releases, catalog.Files(), r.Table)
	s.Must(err)
	keys, err := secret.Generate()
	s.Must(err)
	r.Vault = credential.NewVault(keys, s.Credentials)
	r.Lines = reach.New(r.Releases, r.Table, r.Vault, map[registry.Kind]provider.Provider{
		hosted.Kind: hosted.New("test"), remote.Kind: remote.New("test"), github.Kind: &github.Provider{Packs: db.Git{DB: s.DB}, Pins: db.Git{DB: s.DB}},
	})
	s.T.Cleanup(r.Lines.Close)
	r.Service = &installation.Connections{Read: s.Connections, Write: s.Connections, Prober: r.Lines, Scout: r.Lines, Releases: r.Releases, Credentials: s.Credentials, Registry: r.Table, Keys: keys}
	return r
}

func moved(s *scene.Scene, table registry.Table, key registry.Key, address string) registry.Table {
	s.T.Helper()
	o, err := table.NewOverride(string(key), address)
	s.Must(err)
	return table.With(o)
}
