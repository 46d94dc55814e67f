package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"countersign/internal/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// The wake-up queue's own tables are one migration of ours, at a pinned version of theirs: an upgrade of the library changes no
// table until a migration here says so.
const (
	queueMigration = 2
	queueTarget    = 8
)

// Migrate brings the database at dsn to this version, as the owner of its tables. Several servers may start at once: one migrates,
// the others wait.
func Migrate(ctx context.Context, dsn string) error {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return badAddress()
	}
	cfg.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return translated(err)
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return noDatabase(err)
	}
	conns := stdlib.OpenDBFromPool(pool)
	defer conns.Close()
	p, err := provider(conns, pool)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return unmigrated(err)
	}
	return nil
}

// noDatabase is told to an operator, who can correct the address; what people read when the database goes away later is another sentence.
func noDatabase(err error) error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The database cannot be reached, or it refuses the user of its address.",
		"Start PostgreSQL, or correct DATABASE_URL.").Wrap(err)
}

func provider(conns *sql.DB, pool *pgxpool.Pool) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	queue := goose.NewGoMigration(queueMigration, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error { return migrateQueue(ctx, pool) }}, nil)
	return goose.NewProvider(goose.DialectPostgres, conns, files, goose.WithSessionLocker(locker), goose.WithGoMigrations(queue), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}

// migrateQueue is outside a transaction: one of the queue's steps adds a value to an enumeration, which must be committed before
// the next one uses it. Each step commits by itself and a second run continues where the first stopped.
func migrateQueue(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: queueTarget}); err != nil {
		return fmt.Errorf("the queue's tables: %w", err)
	}
	return grantQueue(ctx, pool)
}

// grantQueue lets the application role use whatever tables and sequences that version has.
func grantQueue(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT CASE c.relkind WHEN 'S' THEN format('GRANT USAGE ON SEQUENCE %I TO `+AppRole+`', c.relname)
			ELSE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO `+AppRole+`', c.relname) END
			FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S') AND c.relname LIKE 'river\_%'`)
		if err != nil {
			return err
		}
		grants, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, g := range grants {
			if _, err := tx.Exec(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

// unmigrated says what an operator can do about a migration that failed.
func unmigrated(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The database user may not do what a migration needs ("+pg.Message+").",
			"Let it own the database, and either give it CREATEROLE or run once as a superuser: CREATE ROLE "+AppRole+" NOLOGIN; GRANT "+AppRole+" TO that user.").Wrap(err)
	}
	return translated(err)
}
