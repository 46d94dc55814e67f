package web_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign/db"
	"countersign/db/dbtest/scene"
	"countersign/internal/audit"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/secret"
	"countersign/web"
	"countersign/web/admin"
	"countersign/web/agent"
	"countersign/web/session"
)

// site is the whole server over a scene.
type site struct {
	*scene.Scene
	server *httptest.Server
	signer signer
	ready  func(context.Context) error
}

// signer is a keyed MAC with a key of its own.
type signer string

func (k signer) MAC(data []byte) ([]byte, error) {
	h := hmac.New(sha256.New, []byte(k))
	h.Write(data)
	return h.Sum(nil), nil
}

func (k signer) Verify(mac, data []byte) bool {
	want, _ := k.MAC(data)
	return hmac.Equal(mac, want)
}

// chain lends the verifier its key, as the wiring does.
type chain struct {
	trail db.Audit
	key   audit.Signer
}

func (c chain) Verify(ctx context.Context, org identity.OrgID) (sealed, pending int64, err error) {
	v, err := c.trail.Verify(ctx, org, c.key)
	return v.Sealed, v.Pending, err
}

// newEmptySite is a site before the first organization.
func newEmptySite(t *testing.T) *site { return serve(scene.Empty(t)) }

// newSite is a site with people in it.
func newSite(t *testing.T) *site { return serve(scene.New(t)) }

func serve(sc *scene.Scene) *site {
	s := &site{Scene: sc, signer: "test"}
	s.serve(func(*web.Handlers) {})
	return s
}

// serve starts the server anew, with some of its handlers made otherwise.
func (s *site) serve(otherwise func(*web.Handlers)) {
	s.T.Helper()
	s.server = httptest.NewUnstartedServer(nil)
	origin := "http://" + s.server.Listener.Addr().String()
	h := s.handlers(origin)
	otherwise(&h)
	handler, err := web.New(s.config(origin), h)
	s.Must(err)
	s.server.Config.Handler = handler
	s.server.Start()
	s.T.Cleanup(s.server.Close)
}

func (s *site) config(origin string) web.Config {
	return web.Config{
		PublicURL: origin, Listen: strings.TrimPrefix(origin, "http://"), Sessions: session.NewKeeper(s.Sessions, false), Chrome: s.navigation(),
		Ready: func(ctx context.Context) error {
			if s.ready != nil {
				return s.ready(ctx)
			}
			return s.DB.Ping(ctx)
		},
	}
}

func (s *site) navigation() *admin.Navigation {
	return &admin.Navigation{Actions: s.Actions, Runs: s.Runs, Connections: s.Connections, Listings: s.Connections, Freezer: s.Actions}
}

func (s *site) installations() *installation.Connections {
	return &installation.Connections{Read: s.Connections, Write: s.Connections, Releases: s.ReleasesFor(registry.Trusted())}
}

func (s *site) handlers(origin string) web.Handlers {
	keeper := session.NewKeeper(s.Sessions, false)
	releases := s.ReleasesFor(registry.Trusted())
	who, attempts, connections := s.Directory, s.Sessions, s.Connections
	trail := s.Trail
	keys, err := secret.Generate()
	s.Must(err)
	inbox := &admin.Actions{Reader: s.Actions, Decider: s.Actions, Runs: s.Runs, Connections: connections, Releases: releases, Directory: who, Trail: trail, Freezer: s.Actions, Investigator: s.Actions}
	return web.Handlers{
		Freezes:  &admin.Freezes{Freezer: s.Actions},
		Doors:    &admin.Doors{Directory: who, Invitations: who, Attempts: attempts, Trail: trail, Sessions: keeper},
		Overview: &admin.Overview{Actions: s.Actions, Runs: s.Runs, Connections: connections, Listings: connections},
		People:   &admin.People{Directory: who, Roster: who, Invitations: who, PublicURL: origin},
		Tokens:   &admin.Tokens{Store: s.Tokens},
		Settings: &admin.Settings{Directory: who, Roster: who, Attempts: attempts, Sessions: keeper, Releases: releases, PublicURL: origin},
		Audit:    &admin.Audit{Trail: trail, Verifier: chain{trail, s.signer}},
		Releases: &admin.Releases{Store: releases},
		Profiles: &admin.Profiles{Store: s.Profiles, Connections: connections, Groups: s.Groups, Releases: releases},
		Groups:   &admin.Groups{Store: s.Groups, Directory: who, Profiles: s.Profiles},
		Catalog:  &admin.Catalog{Releases: releases, Read: connections, Registry: registry.Trusted()},
		Connections: &admin.Connections{
			Service: s.installations(), Vault: credential.NewVault(keys, s.Credentials), Trail: trail,
			Profiles: s.Profiles, Actions: s.Actions, Contexts: db.Contexts{DB: s.DB},
		},
		Contexts: &admin.Contexts{Store: db.Contexts{DB: s.DB}, Connections: connections, Profiles: s.Profiles},
		Actions:  inbox,
		Runs:     &admin.Runs{Store: s.Runs, Actions: inbox, Observed: connections},
		API: &agent.API{
			Tokens: s.Tokens, Runs: s.Runs, Actions: s.Actions, Connections: connections,
			Trail: trail, PublicURL: origin,
		},
	}
}

// connection is an active connection with three tools granted.
func (s *site) connection(org identity.Org) installation.Connection {
	s.T.Helper()
	return s.Grant(s.Install(org, s.Publish()), policy.AskUserOnWrite, nil, scene.Search, scene.Create, scene.Delete)
}
