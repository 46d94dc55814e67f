// Package embedded owns the default database: a private PostgreSQL that belongs to one server process and one data directory.
// It finds the binaries, makes the cluster, starts it on a unix socket nobody else can open, and sees to it that PostgreSQL never
// outlives us. It listens on no network address, knows no table and runs no migration, and it never logs a statement or a value.
package embedded

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"countersign/internal/fault"
)

// Names inside the cluster. The superuser only ever makes roles and databases; the server signs in as the owner and works as the
// application role, which can neither change a table nor step around row-level security.
const (
	Superuser = "countersign_super"
	OwnerRole = "countersign_owner"
	AppRole   = "countersign_app"
	Database  = "countersign"
)

// startLimit bounds the wait for the first connection. Recovery after a crash replays at most a gigabyte of log.
const startLimit = 2 * time.Minute

// Config says where the cluster lives and where its binaries may be found.
type Config struct {
	DataDir    string       // the server's data directory; the cluster lives in its folder "pg"
	BinDir     string       // a folder with initdb and postgres; empty means $PG_BIN_DIR, then the search of findBinaries
	ModulesDir string       // a node_modules folder to look in before the usual ones; may be empty
	Log        *slog.Logger // nil means slog.Default()

	// Throwaway gives up durability for speed. For tests: a crash of the machine may lose the cluster.
	Throwaway bool
}

// Cluster is a running PostgreSQL. It stops when Stop is called, or by itself when this process ends for whatever reason.
type Cluster struct {
	Access
	place   *place
	process *process
	log     *slog.Logger

	stopOnce sync.Once
	stopErr  error
}

// Start makes the cluster in cfg.DataDir if there is none, starts it, and makes sure that its roles and the database
// "countersign" exist. Everything that can go wrong on an operator's machine comes back as a fault.Error with the fix; a second
// Start on a data directory in use is told so at once. The first start takes about 3 s, a later one 0.2 s.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	return start(ctx, cfg, chooseIdentity)
}

func start(ctx context.Context, cfg Config, choose func(string) (identity, error)) (*Cluster, error) {
	log := cfg.Log
	if log == nil {
		log = slog.Default()
	}
	p, err := openPlace(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	c, err := startIn(ctx, p, cfg, choose, log)
	if err != nil {
		p.close()
		if ctx.Err() != nil {
			return nil, ctx.Err() // what failed did so because we were told to give up; its sentence would mislead
		}
		return nil, err
	}
	return c, nil
}

// startIn runs with the lock of the place held.
func startIn(ctx context.Context, p *place, cfg Config, choose func(string) (identity, error), log *slog.Logger) (*Cluster, error) {
	if err := p.awaitVacancy(ctx); err != nil {
		return nil, err
	}
	bin, err := findBinaries(ctx, cfg, p.recordedMajor())
	if err != nil {
		return nil, err
	}
	who, err := choose(bin.dir)
	if err != nil {
		return nil, err
	}
	if err := p.prepare(who); err != nil {
		return nil, err
	}
	access, err := p.access()
	if err != nil {
		return nil, err
	}
	if p.recordedMajor() == "" {
		log.Info("Making the embedded database.", "postgres", bin.version, "directory", p.root)
		if err := p.initialize(ctx, bin, who, access.SuperPassword); err != nil {
			return nil, err
		}
	}
	proc, err := launch(bin.path("postgres"), p.arguments(cfg.Throwaway), p.cluster, who, log)
	if err != nil {
		return nil, p.cannotStart(err)
	}
	c := &Cluster{Access: access, place: p, process: proc, log: log}
	if err := c.ready(ctx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = proc.stop(stopCtx)
		return nil, err
	}
	log.Info("The embedded database is ready.", "postgres", bin.version, "directory", p.root)
	go c.watch()
	return c, nil
}

// ready waits for the first connection and then makes the roles and the database.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	conn, err := c.firstConnection(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := ensureRoles(ctx, conn, c.Access); err != nil {
		return err
	}
	return ensureDatabase(ctx, conn)
}

// watch says it loudly when PostgreSQL ends without having been asked to. Done tells the server.
func (c *Cluster) watch() {
	<-c.process.done
	if !c.process.asked.Load() {
		c.log.Error("The embedded database ended by itself.", "reason", c.process.reason())
	}
}

// Done is closed once PostgreSQL has ended, asked or not.
func (c *Cluster) Done() <-chan struct{} { return c.process.done }

// Stop shuts PostgreSQL down in order: open transactions are rolled back, a checkpoint is written. When ctx ends first it is
// ended by force, which costs a recovery at the next start and no committed row. Later calls return the first one's answer.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		c.stopErr = c.process.stop(ctx)
		c.place.close()
	})
	return c.stopErr
}

// Directory is the folder that holds the cluster, its socket and its secret: what a backup of a stopped server copies.
func (c *Cluster) Directory() string { return c.place.root }

// absolute resolves a directory so that two spellings of one place are one place, also where it does not exist yet.
func absolute(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func unavailable(what, next string) *fault.Error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, what, next)
}
