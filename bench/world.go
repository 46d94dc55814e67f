package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/catalog"
	"countersign/db"
	"countersign/db/embedded"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/reach"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/internal/run"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
)

// world is everything a run of the benchmark has started or made.
type world struct {
	options
	dir      string
	cluster  *embedded.Cluster
	dsn      string
	super    *pgxpool.Pool
	db       *db.DB
	upstream *child
	proxy    *child
	server   *child
	org      identity.OrgID
	asker    string                   // email of the person behind the runs
	service  string                   // service token
	keys     map[string]connector.Key // of the connections, by their profile
	ends     []func()
}

const (
	password = "a-password-for-the-benchmark"
	bearer   = "fc-a-credential-for-the-benchmark"
)

// The connections: one that needs a credential and has the small tools, and two with many tools. Each is the one of its profile.
var connections = []struct {
	profile, integration, runtime, path string
	secrets                             map[string]secret.Value
}{
	{"small", "firecrawl", "firecrawl.v1", "/small", map[string]secret.Value{"api_key": secret.New(bearer)}},
	{"wide200", "deepwiki", "deepwiki.v1", "/200", nil},
	{"wide1000", "microsoft-learn", "microsoft_learn.v1", "/1000", nil},
}

func newWorld(ctx context.Context, o options) (*world, error) {
	w := &world{options: o, keys: map[string]connector.Key{}}
	for _, step := range []func(context.Context) error{w.startDatabase, w.startUpstream, w.furnish, w.startServer} {
		if err := step(ctx); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *world) close() {
	for i := len(w.ends) - 1; i >= 0; i-- {
		w.ends[i]()
	}
}

func (w *world) atEnd(f func()) { w.ends = append(w.ends, f) }

func (w *world) startDatabase(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("", "countersign-bench"); err != nil {
		return err
	}
	w.atEnd(func() { _ = os.RemoveAll(w.dir) })
	if w.cluster, err = embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(w.dir, "data"), Log: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	w.atEnd(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = w.cluster.Stop(ctx)
	})
	w.dsn = w.cluster.DSN(embedded.Database)
	if err := db.Migrate(ctx, w.dsn); err != nil {
		return err
	}
	if w.db, err = db.Open(ctx, w.dsn); err != nil {
		return err
	}
	w.atEnd(w.db.Close)
	if w.super, err = pgxpool.New(ctx, w.cluster.SuperDSN(embedded.Database)); err != nil {
		return err
	}
	w.atEnd(w.super.Close)
	return nil
}

func (w *world) startUpstream(context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if w.upstream, err = w.announced(self, "upstream"); err != nil {
		return err
	}
	w.proxy, err = w.announced(self, "proxy", w.upstream.url)
	return err
}

// furnish makes an organization with people, connections and profiles, through the same calls as pages and seeding make.
func (w *world) furnish(ctx context.Context) error {
	keys, err := secret.LoadOrCreate(filepath.Join(w.dir, "keyset.json"))
	if err != nil {
		return err
	}
	table, lines := registry.Trusted(), "[endpoints]\n"
	for _, c := range connections {
		o, err := table.NewOverride(c.runtime, w.upstream.url+c.path)
		if err != nil {
			return err
		}
		table = table.With(o)
		lines += fmt.Sprintf("%q = %q\n", c.runtime, w.upstream.url+c.path)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "endpoints.toml"), []byte(lines), 0o600); err != nil {
		return err
	}
	releases := db.NewReleases(w.db, table)
	if _, err := release.Publish(ctx, releases, catalog.Files(), table); err != nil {
		return err
	}
	owner, err := w.people(ctx)
	if err != nil {
		return err
	}
	credentials := db.Credentials{DB: w.db}
	way := reach.New(releases, table, credential.NewVault(keys, credentials), map[registry.Kind]provider.Provider{registry.Hosted: hosted.New("bench")})
	defer way.Close()
	service := &installation.Connections{
		Read: db.Connections{DB: w.db}, Write: db.Connections{DB: w.db}, Prober: way, Releases: releases, Credentials: credentials, Registry: table, Keys: keys,
	}
	for _, c := range connections {
		installed, err := service.Install(ctx, owner, installation.Setup{Integration: c.integration, Secrets: c.secrets})
		if err != nil {
			return err
		}
		if !installed.Health.OK {
			return errors.New(installed.Health.What)
		}
		w.keys[c.profile] = installed.Key
		if _, err := service.SaveAccess(ctx, owner, installation.Access{Key: installed.Key, Version: installed.Version, Choice: policy.Choice{Mode: policy.AskUserOnWrite}}); err != nil {
			return err
		}
		p := profile.Profile{Org: w.org, Name: c.profile, Budget: run.MaxBudget, Uses: []profile.Use{{Connection: installed.Key}}}
		if err := (db.Profiles{DB: w.db}).SaveProfile(ctx, p, entry(w.org, audit.ProfileSaved, "profile", p.Name)); err != nil {
			return err
		}
	}
	return nil
}

func entry(org identity.OrgID, event audit.Event, kind, id string) audit.Entry {
	return audit.Entry{Org: org, Actor: audit.Operator, Event: event, Object: audit.Object{Kind: kind, ID: id}}
}

// people makes the organization with an owner, whose token starts runs, somebody the runs are for, an approver and an auditor.
func (w *world) people(ctx context.Context) (owner identity.Person, err error) {
	w.org, w.asker = identity.OrgID(identity.NewID("org_")), "asker@bench.test"
	hash, err := people.HashPassword(secret.New(password))
	if err != nil {
		return owner, err
	}
	store := db.People{DB: w.db}
	if owner, err = people.NewPerson(w.org, "owner@bench.test", "Owner", []string{"owner"}); err != nil {
		return owner, err
	}
	org := identity.Org{ID: w.org, Slug: "bench", Name: "Bench"}
	if err := store.CreateOrganization(ctx, org, owner, hash, entry(w.org, audit.OrgCreated, "organization", "bench")); err != nil {
		return owner, err
	}
	for email, role := range map[string]string{w.asker: "member", "approver@bench.test": "approver", "auditor@bench.test": "auditor"} {
		p, err := people.NewPerson(w.org, email, role, []string{role})
		if err != nil {
			return owner, err
		}
		if err := store.AddPerson(ctx, p, hash, entry(w.org, audit.PersonAdded, "person", string(p.ID))); err != nil {
			return owner, err
		}
	}
	token, clear, tokenHash, err := servicetoken.New(owner, "bench", []string{"runs:write", "actions:read"})
	if err != nil {
		return owner, err
	}
	w.service = clear
	_, err = (db.ServiceTokens{DB: w.db}).SaveToken(ctx, token, tokenHash, servicetoken.MaxLife, entry(w.org, audit.TokenCreated, "token", token.ID))
	return owner, err
}

// child is a process of ours.
type child struct {
	cmd  *exec.Cmd
	url  string
	over chan struct{} // of a server: closed when it has ended
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// announced starts a role of this program, which prints its address first.
func (w *world) announced(path string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(path, args...)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	w.atEnd(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	c.url = "http://" + strings.TrimSpace(line)
	return c, err
}

// launch starts a server under test on a free port and returns at once.
func (w *world) launch() (*child, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	_ = free.Close()
	c := &child{cmd: exec.Command(w.binary, "serve"), url: "http://" + address}
	c.cmd.Env = append(ordinary(), "COUNTERSIGN_LISTEN="+address, "COUNTERSIGN_PUBLIC_URL="+c.url, "DATABASE_URL="+w.dsn, "COUNTERSIGN_LOG=warn",
		"COUNTERSIGN_DATA_DIR="+w.dir, "COUNTERSIGN_KEYSET_FILE="+filepath.Join(w.dir, "keyset.json"), "COUNTERSIGN_ENDPOINTS_FILE="+filepath.Join(w.dir, "endpoints.toml"))
	log, err := os.OpenFile(filepath.Join(w.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd.Stdout, c.cmd.Stderr, c.over = log, log, make(chan struct{})
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.over)
		_ = c.cmd.Wait() // its log says why
	}()
	return c, nil
}

// ordinary is the environment without anything that would configure a server.
func ordinary() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "COUNTERSIGN_") || strings.HasPrefix(v, "DATABASE_URL=")
	})
}

// stop is Ctrl-C.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(os.Interrupt)
	<-c.over
}

// ended is nil while a server runs, and what its log says last otherwise.
func (w *world) ended(c *child) error {
	select {
	case <-c.over:
		log, _ := os.ReadFile(filepath.Join(w.dir, "server.log"))
		return fmt.Errorf("the server has ended: %s", log[max(0, len(log)-500):])
	default:
		return nil
	}
}

func (w *world) startServer(ctx context.Context) (err error) {
	if w.server, err = w.launch(); err != nil {
		return err
	}
	w.atEnd(w.server.stop)
	for {
		res, err := http.Get(w.server.url + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if err := w.ended(w.server); err != nil {
			return err
		}
	}
}

// agent is one run: what its calls need.
type agent struct {
	url    string
	header string
	key    connector.Key
	id     string
}

// newRun starts a task run of a profile through the service API.
func (w *world) newRun(profile string) (agent, error) {
	order, _ := json.Marshal(map[string]string{"surface": "task", "profile": profile, "task": "BENCH-1", "on_behalf_of": w.asker}) // texts marshal
	req, err := http.NewRequest(http.MethodPost, w.server.url+"/api/v1/runs", bytes.NewReader(order))
	if err != nil {
		return agent{}, err
	}
	req.Header.Set("Authorization", "Bearer "+w.service)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return agent{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusCreated {
		return agent{}, fmt.Errorf("starting a run: %s %s %w", res.Status, raw, err)
	}
	var started struct{ ID, Token string }
	err = json.Unmarshal(raw, &started)
	return agent{url: w.server.url + "/gateway/mcp", header: "Authorization: Bearer " + started.Token, key: w.keys[profile], id: started.ID}, err
}

// tool is a tool's name for the agent.
func (a agent) tool(name string) string { return a.key.String() + "__" + name }

// text is what an address of the upstream answers.
func text(address string) (string, error) {
	res, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return string(raw), err
}
