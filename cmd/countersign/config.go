package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"countersign/db"
	"countersign/db/embedded"
	"countersign/internal/fault"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// place is where the server keeps its things; every command that opens the database has it.
type place struct {
	DataDir     string `name:"data-dir" env:"COUNTERSIGN_DATA_DIR" default:"./data" help:"Embedded PostgreSQL and generated key file live here."`
	DatabaseURL string `name:"database-url" env:"DATABASE_URL" help:"Production database; empty starts the embedded one."`
	KeysetFile  string `name:"keyset-file" env:"COUNTERSIGN_KEYSET_FILE" help:"Encryption keyset; <data>/keyset.json when empty."`
	Log         string `name:"log" env:"COUNTERSIGN_LOG" default:"info" help:"Log threshold: debug, info, warn or error."`
}

// logger writes text to a terminal and JSON elsewhere.
func (c place) logger(w io.Writer) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(c.Log)); err != nil {
		return nil, usageError{fmt.Errorf("COUNTERSIGN_LOG is “%s”; write debug, info, warn or error", c.Log)}
	}
	options := &slog.HandlerOptions{Level: threshold}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, options)), nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (c place) keysetPath() string {
	if c.KeysetFile != "" {
		return c.KeysetFile
	}
	return filepath.Join(c.DataDir, "keyset.json")
}

// keys loads the keyset. Only beside the embedded database is a missing one made: a new keyset beside a production database would open
// none of its credentials and would look like a working server.
func (c place) keys() (*secret.Keyset, error) {
	if c.DatabaseURL == "" {
		return secret.LoadOrCreate(c.keysetPath())
	}
	if _, err := os.Stat(c.keysetPath()); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "The keyset file "+c.keysetPath()+" does not exist.",
			"Set COUNTERSIGN_KEYSET_FILE to the keyset of this database, or make the first one with countersign key create --out FILE.")
	}
	return secret.Load(c.keysetPath())
}

// database is an open database with whatever had to be started for it.
type database struct {
	*db.DB
	dsn     string
	cluster *embedded.Cluster // nil where somebody else runs PostgreSQL
}

// open connects, starting the embedded PostgreSQL or joining the one a running server has started, and brings the schema up to date.
func (c place) open(ctx context.Context, log *slog.Logger) (*database, error) {
	d := &database{dsn: c.DatabaseURL}
	if d.dsn == "" {
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "The data directory "+c.DataDir+" cannot be made.",
				"Make it writable for this user, or name another one in COUNTERSIGN_DATA_DIR.").Wrap(err)
		}
		if access, ok := embedded.Attach(ctx, c.DataDir); ok {
			d.dsn = access.DSN(embedded.Database)
		} else {
			cluster, err := embedded.Start(ctx, embedded.Config{DataDir: c.DataDir, Log: log})
			if err != nil {
				return nil, err
			}
			d.cluster, d.dsn = cluster, cluster.DSN(embedded.Database)
		}
	}
	if err := d.connect(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *database) connect(ctx context.Context) error {
	if err := db.Migrate(ctx, d.dsn); err != nil {
		return err
	}
	var err error
	d.DB, err = db.Open(ctx, d.dsn)
	return err
}

func (d *database) people() db.People { return db.People{DB: d.DB} }

// Close lets go of the database and stops what open started.
func (d *database) Close() {
	if d.DB != nil {
		d.DB.Close()
	}
	if d.cluster != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		if err := d.cluster.Stop(ctx); err != nil {
			slog.Error("the embedded database did not stop cleanly", "error", err)
		}
	}
}

// endpoints is the trusted table with the operator's file laid over it.
func endpoints(file string, log *slog.Logger) (registry.Table, error) {
	table := registry.Trusted()
	if file == "" {
		return table, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return table, fault.New(fault.Unavailable, fault.CodeUnavailable, "The endpoints file "+file+" cannot be read.", "Correct COUNTERSIGN_ENDPOINTS_FILE, or leave it empty.").Wrap(err)
	}
	defer f.Close()
	overrides, err := table.LoadEndpoints(file, f)
	if err != nil {
		return table, fault.New(fault.Unavailable, fault.CodeUnavailable, strings.TrimSuffix(err.Error(), "."), "Correct the file and start again.")
	}
	for _, o := range overrides {
		log.Warn("ENDPOINT MOVED by the operator's file: calls and credentials of this runtime go to this address", "runtime", o.Target(), "address", o.URL())
	}
	return table.With(overrides...), nil
}
