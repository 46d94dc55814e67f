package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"countersign/catalog"
	"countersign/db"
	"countersign/db/wake"
	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/dispatch"
	"countersign/internal/fault"
	"countersign/internal/gateway"
	"countersign/internal/gitgateway"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/preferences"
	"countersign/internal/profile"
	"countersign/internal/provider"
	"countersign/internal/provider/github"
	"countersign/internal/provider/hosted"
	"countersign/internal/provider/remote"
	"countersign/internal/reach"
	"countersign/internal/reconcile"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
	"countersign/web"
	"countersign/web/admin"
	"countersign/web/agent"
	"countersign/web/session"
)

// How often the background loops turn.
const (
	sealEvery  = 500 * time.Millisecond // how far the audit chain may trail behind the entries
	packsEvery = time.Hour              // packs of pushes that ended long ago
	sweepEvery = 5 * time.Minute        // sessions that are over, sign-in attempts that no longer count
)

// wiring is what the parts are made from.
type wiring struct {
	db        *db.DB
	keys      *secret.Keyset
	registry  registry.Table
	publicURL string
	listen    string
	commands  string // the folder where vendors' commands are installed
	mirrors   string // a folder of this replica for copies of repositories
	log       *slog.Logger
	seeded    *atomic.Bool // what must be there before the first request is there
}

// app is the wired product.
type app struct {
	handler http.Handler

	people      db.People
	tokens      servicetoken.Store
	profiles    profile.Store
	contexts    preferences.Store
	releases    db.Releases
	connections *installation.Connections

	registry registry.Table
	queue    *wake.Queue
	recorder *db.Recorder
	memory   *db.Capabilities
	gateway  *gateway.Gateway
	lines    *reach.Lines
	chain    db.Audit
	sessions db.Sessions
	packs    db.Git
	keys     *secret.Keyset
	log      *slog.Logger
	endLoops context.CancelFunc
	loops    chan struct{}
}

// wire puts the parts together. It is the only place that knows all of them.
func wire(w wiring) (*app, error) {
	a := &app{
		people: db.People{DB: w.db}, tokens: db.ServiceTokens{DB: w.db}, profiles: db.Profiles{DB: w.db}, contexts: db.Contexts{DB: w.db}, releases: db.NewReleases(w.db, w.registry),
		registry: w.registry, recorder: w.db.NewRecorder(w.log), chain: db.Audit{DB: w.db}, sessions: db.Sessions{DB: w.db}, packs: db.Git{DB: w.db}, keys: w.keys, log: w.log,
	}
	var (
		actions     = db.Actions{DB: w.db}
		runs        = db.Runs{DB: w.db}
		connections = db.Connections{DB: w.db}
		credentials = db.Credentials{DB: w.db}
		vault       = credential.NewVault(w.keys, credentials)
	)
	a.memory = db.NewCapabilities(runs, w.log)
	a.lines = reach.New(a.releases, w.registry, vault, map[registry.Kind]provider.Provider{
		registry.Hosted: hosted.New(version()), registry.Remote: remote.New(version()), github.Kind: &github.Provider{Packs: db.Git{DB: w.db}, Pins: db.Git{DB: w.db}},
	}).Directly(direct(w.commands))
	consents := db.Consents{DB: w.db}
	a.lines.Keeping(&consent.Keeper{Store: consents, Directory: consents, Registry: w.registry, Keys: w.keys, Log: w.log})
	a.connections = &installation.Connections{
		Read: connections, Write: connections, Prober: a.lines, Scout: a.lines, Releases: a.releases, Credentials: credentials, Registry: w.registry, Keys: w.keys,
	}
	desk := &consent.Desk{
		Ours: consent.Ours{PublicURL: w.publicURL}, Requests: consents, Store: consents, Directory: consents, Connections: connections, Manifests: a.connections,
		Registry: w.registry, Keys: w.keys, Log: w.log,
	}
	dispatcher := &dispatch.Dispatcher{Actions: actions, Connections: connections, Lines: a.lines, Log: w.log}
	var err error
	reconciler := &reconcile.Reconciler{Actions: actions, Connections: connections, Lines: a.lines, Log: w.log}
	if a.queue, err = wake.New(w.db.Pool(), dispatcher, actions, w.log, wake.WithReconciler(reconciler, w.log)); err != nil {
		return nil, err
	}
	a.gateway = gateway.New(gateway.Config{
		Lines: a.lines, Actions: actions, Dispatch: dispatcher, Recorder: a.recorder, Trail: a.chain, Observer: a.connections, PublicURL: w.publicURL, Log: w.log,
		Git:  gateway.Git{Packs: db.Git{DB: w.db}, Mirrors: &gitgateway.Mirrors{Dir: w.mirrors}},
		Room: room{actions, runs, db.Profiles{DB: w.db}},
	})
	https := strings.HasPrefix(w.publicURL, "https://")
	keeper := session.NewKeeper(a.sessions, https)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	inbox := &admin.Actions{
		Reader: actions, Decider: actions, Runs: runs, Connections: connections, Releases: a.releases, Directory: a.people, Trail: a.chain, Waker: a.queue,
		Freezer: actions, Investigator: actions, Looker: reconciler, Foreseer: reconciler, Diffs: db.Git{DB: w.db},
	}
	a.handler, err = web.New(web.Config{
		PublicURL: w.publicURL, Listen: w.listen, Sessions: keeper, Metrics: metrics, Ready: a.ready(w.db, w.seeded),
		Chrome: &admin.Navigation{Actions: actions, Runs: runs, Connections: connections, Listings: connections, Freezer: actions},
	}, web.Handlers{
		Doors:    &admin.Doors{Directory: a.people, Invitations: a.people, Attempts: a.sessions, Trail: a.chain, Sessions: keeper},
		Overview: &admin.Overview{Actions: actions, Runs: runs, Connections: connections, Listings: connections},
		People:   &admin.People{Directory: a.people, Roster: a.people, Invitations: a.people, PublicURL: w.publicURL, Consents: consents},
		Tokens:   &admin.Tokens{Store: a.tokens},
		Settings: &admin.Settings{Directory: a.people, Roster: a.people, Attempts: a.sessions, Sessions: keeper, Releases: a.releases, PublicURL: w.publicURL, Secure: https},
		Audit:    &admin.Audit{Trail: a.chain, Verifier: chainVerifier{a.chain, w.keys}},
		Catalog:  &admin.Catalog{Releases: a.releases, Read: connections, Registry: w.registry, Ready: a.lines.Ready},
		Connections: &admin.Connections{
			Service: a.connections, Desk: desk, People: a.people, Vault: vault, Trail: a.chain, Profiles: a.profiles, Actions: actions, Contexts: a.contexts,
			Ready: a.lines.Ready, Repositories: a.lines, Pins: db.Git{DB: w.db},
		},
		Consents: &admin.Consents{Desk: desk, Service: a.connections},
		Actions:  inbox,
		Freezes:  &admin.Freezes{Freezer: actions},
		Contexts: &admin.Contexts{Store: a.contexts, Connections: connections, Profiles: a.profiles},
		Runs:     &admin.Runs{Store: runs, Actions: inbox, Observed: connections},
		Releases: &admin.Releases{Store: a.releases},
		Profiles: &admin.Profiles{Store: a.profiles, Connections: connections, Groups: db.Groups{DB: w.db}, Releases: a.releases},
		Groups:   &admin.Groups{Store: db.Groups{DB: w.db}, Directory: a.people, Profiles: a.profiles},
		API:      &agent.API{Tokens: a.tokens, Runs: runs, Actions: actions, Connections: connections, Trail: a.chain, PublicURL: w.publicURL},
		Gateway:  &web.Gateway{MCP: agent.NewMCP(a.memory, a.gateway, version(), agent.WithContext(a.contexts, a.profiles)), Config: agent.NewConfig(a.memory, w.publicURL), Preflight: agent.NewPreflight(a.memory, a.gateway), Git: agent.NewGit(a.memory, a.gateway)},
	})
	return a, err
}

// room is what limits a run, from three stores.
type room struct {
	db.Actions
	db.Runs
	db.Profiles
}

// chainVerifier walks chains with the server's keys.
type chainVerifier struct {
	chain db.Audit
	keys  *secret.Keyset
}

// Verify implements admin.Verifier.
func (v chainVerifier) Verify(ctx context.Context, org identity.OrgID) (sealed, pending int64, err error) {
	found, err := v.chain.Verify(ctx, org, v.keys)
	return found.Sealed, found.Pending, err
}

// ready says whether the server can do its work now.
func (a *app) ready(d *db.DB, seeded *atomic.Bool) func(context.Context) error {
	return func(ctx context.Context) error {
		if !seeded.Load() {
			return fault.New(fault.Unavailable, fault.CodeUnavailable, "The server is still starting.", "Ask again in a moment.")
		}
		return errors.Join(d.Ping(ctx), a.recorder.Ready())
	}
}

// start begins the background work: waking, sweeping, and sealing the audit chain.
func (a *app) start(ctx context.Context) error {
	if err := a.queue.Start(ctx); err != nil {
		return err
	}
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.endLoops, a.loops = cancel, make(chan struct{})
	go func() {
		defer close(a.loops)
		var all sync.WaitGroup
		all.Go(func() { a.every(loop, sealEvery, "the audit chain is not sealed; entries are kept and wait", a.seal) })
		all.Go(func() { a.every(loop, sweepEvery, "old sessions are not removed", a.sessions.Sweep) })
		all.Go(func() { a.every(loop, packsEvery, "packs that nothing waits for are not removed", a.packs.Sweep) })
		all.Go(func() { a.memory.Listen(loop) })
		all.Wait()
	}()
	return nil
}

func (a *app) seal(ctx context.Context) error {
	_, err := a.chain.Seal(ctx, a.keys)
	return err
}

// every repeats work until ctx ends, and says once when it begins to fail.
func (a *app) every(ctx context.Context, pause time.Duration, failing string, work func(context.Context) error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := work(ctx)
		if err != nil && !told && ctx.Err() == nil {
			a.log.Error(failing, "error", err)
		}
		told = err != nil
	}
}

// stop ends the background work in order: first whoever makes entries, then the recorder, then a last seal.
func (a *app) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := a.queue.Stop(ctx); err != nil {
		a.log.Warn("actions being sent were cut off; they become uncertain at the end of their lease", "error", err)
	}
	a.gateway.Drain(ctx)
	if err := a.recorder.Close(ctx); err != nil {
		a.log.Error("reads were not recorded at the stop", "error", err)
	}
	a.endLoops()
	<-a.loops
	if err := a.seal(ctx); err != nil {
		a.log.Warn("the last audit entries are sealed at the next start", "error", err)
	}
	a.lines.Close()
}

// publishCatalog publishes the catalog inside this binary where there is none yet, and in a demo always. Elsewhere a newer one waits for an
// operator: what may be connected changes when a person says so.
func (a *app) publishCatalog(ctx context.Context, demo bool, log *slog.Logger) error {
	carried, err := release.Carried(catalog.Files())
	if err != nil {
		return err
	}
	current, err := a.releases.CurrentDigest(ctx)
	switch {
	case err != nil && !fault.Is(err, fault.CodeNotFound):
		return err
	case err == nil && current == carried:
		return nil
	case err == nil && !demo:
		log.Info("this binary carries another catalog than the published one; countersign catalog publish makes it current", "published", current, "carried", carried)
		return nil
	}
	_, err = release.Publish(ctx, a.releases, catalog.Files(), a.registry)
	return err
}

func (a *app) organizations(ctx context.Context) ([]identity.Org, error) {
	return a.people.Organizations(ctx)
}

// owner is the first active owner of an organization.
func (a *app) owner(ctx context.Context, org identity.OrgID) (identity.Person, error) {
	all, err := people.Directory(a.people).People(ctx, org)
	if err != nil {
		return identity.Person{}, err
	}
	for _, p := range all {
		if p.Active && slices.Contains(p.Roles, identity.Owner) {
			return p.Person, nil
		}
	}
	return identity.Person{}, fault.Absent("active owner")
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "dev"
	}
	return info.Main.Version
}
