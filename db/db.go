package db

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/fault"
	"countersign/internal/identity"
)

// AppRole is the role the server works as. It owns nothing, so row-level security applies to it, and it was granted each table it needs.
const AppRole = "countersign_app"

// maxConns is the size of the pool unless the address says pool_max_conns.
const maxConns = 20

// The first of the two keys of our advisory locks; the second is a hash. One number, one purpose. 1 is used by the trigger
// keep_an_owner.
const (
	lockAccount int32 = 2 // sign-in attempts of an account
	lockAddress int32 = 3 // sign-in attempts from an address; always after lockAccount
	lockChain   int32 = 4 // sealing one organization's trail
	lockPublish int32 = 5 // publishing a catalog: rare, and one at a time
	// 6 is used by the functions hold_switch and press_switch: the kill switch of one organization
	lockListener int32 = 7 // held, shared, by each replica that remembers capabilities; the second key is its number
	lockContext  int32 = 8 // saving what one organization writes about its connections
)

// DB is the connected database. It is safe for concurrent use.
type DB struct {
	pool *pgxpool.Pool
}

// Open connects to a migrated database. dsn is a PostgreSQL address or key=value string. Every connection works as AppRole; a
// database where that role could step around row-level security is refused.
func Open(ctx context.Context, dsn string) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, badAddress()
	}
	if !poolSizeGiven.MatchString(dsn) {
		cfg.MaxConns = maxConns
	}
	prepare(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, translated(err)
	}
	d := &DB{pool: pool}
	if err := d.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return d, nil
}

var poolSizeGiven = regexp.MustCompile(`\bpool_max_conns=`)

// prepare makes every connection start as AppRole, by a start-up parameter, so that RESET ROLE leads back to it.
func prepare(cfg *pgxpool.Config) {
	params := cfg.ConnConfig.RuntimeParams
	params["role"] = AppRole
	params["timezone"] = "UTC"
	if params["application_name"] == "" {
		params["application_name"] = "countersign"
	}
	// A transaction of ours lasts milliseconds. One whose client hangs must not hold its locks for ever.
	params["idle_in_transaction_session_timeout"] = "60000"
	params["client_min_messages"] = "notice" // triggers tell their session by notices, see tell
	cfg.ConnConfig.OnNotice = notice
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		return powerless(ctx, conn)
	}
}

// powerless refuses a connection that row-level security would not bind.
func powerless(ctx context.Context, conn *pgx.Conn) error {
	var name string
	var super, bypass, owns bool
	err := conn.QueryRow(ctx, `SELECT current_user, r.rolsuper, r.rolbypassrls, EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid)
		FROM pg_roles r WHERE r.rolname = current_user`).Scan(&name, &super, &bypass, &owns)
	if err != nil {
		return err
	}
	if name != AppRole || super || bypass || owns {
		return fault.New(fault.Unavailable, fault.CodeUnavailable,
			fmt.Sprintf("The database role %s could read across organizations (superuser %t, bypassrls %t, owner of tables %t).", name, super, bypass, owns),
			"Make "+AppRole+" an ordinary role: ALTER ROLE "+AppRole+" NOSUPERUSER NOBYPASSRLS, owning nothing.")
	}
	return nil
}

// Close waits for the connections in use and closes all.
func (d *DB) Close() { d.pool.Close() }

// Pool is for the wake-up queue, which brings its own statements. Stores never use it.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// Ping asks the database for one row: nil when it answers.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	return translated(d.pool.QueryRow(ctx, "SELECT 1").Scan(&one))
}

// isWord keeps an id of an organization from being anything but a word of the statement below.
func isWord(org identity.OrgID) bool {
	for i := range len(org) {
		if c := org[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return org != "" && len(org) <= 64
}

// inOrg runs f in a transaction that sees one organization. The transaction and its organization begin in one round trip.
func (d *DB) inOrg(ctx context.Context, org identity.OrgID, f func(tx pgx.Tx) error) error {
	return d.fenced(ctx, "BEGIN", org, f)
}

// readOrg is inOrg for statements that change nothing; the database refuses if they do.
func (d *DB) readOrg(ctx context.Context, org identity.OrgID, f func(tx pgx.Tx) error) error {
	return d.fenced(ctx, "BEGIN READ ONLY", org, f)
}

// snapshotOrg is readOrg with one snapshot for all statements.
func (d *DB) snapshotOrg(ctx context.Context, org identity.OrgID, f func(tx pgx.Tx) error) error {
	return d.fenced(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", org, f)
}

func (d *DB) fenced(ctx context.Context, begin string, org identity.OrgID, f func(tx pgx.Tx) error) error {
	if !isWord(org) {
		return fault.Absent("organization")
	}
	opts := pgx.TxOptions{BeginQuery: begin + "; SET LOCAL countersign.org = '" + string(org) + "'"}
	return d.commit(ctx, opts, f)
}

// inTx runs f in a transaction that sees no organization: only the doors and the tables that belong to nobody.
func (d *DB) inTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	return d.commit(ctx, pgx.TxOptions{}, f)
}

// commit runs f in a transaction. When that changed what a capability follows from, it returns when nobody remembers the old one.
func (d *DB) commit(ctx context.Context, opts pgx.TxOptions, f func(tx pgx.Tx) error) error {
	changed := false
	err := pgx.BeginTxFunc(ctx, d.pool, opts, func(tx pgx.Tx) error {
		changedCapability(tx) // left by a statement outside a transaction of ours
		err := f(tx)
		changed = changedCapability(tx)
		return err
	})
	if err == nil && changed {
		d.tell(ctx)
	}
	return translated(err)
}

// enterOrg moves a transaction into an organization, for the few changes that touch several.
func enterOrg(ctx context.Context, tx pgx.Tx, org identity.OrgID) error {
	_, err := tx.Exec(ctx, "SELECT set_config('countersign.org', $1, true)", string(org))
	return err
}
