package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/fault"
)

// The port only names the socket file; nothing listens on it.
const (
	socketPort = "5432"
	socketName = ".s.PGSQL." + socketPort
)

// Access is what it takes to reach a running cluster: the socket's folder and the passwords. It prints without them.
type Access struct {
	SocketDir     string `json:"socket_dir"`
	SuperPassword string `json:"super_password"`
	OwnerPassword string `json:"owner_password"`
}

// String names the cluster without its passwords.
func (a Access) String() string { return "postgres at " + a.SocketDir }

// GoString is String, for %#v.
func (a Access) GoString() string { return a.String() }

// LogValue is String, for slog.
func (a Access) LogValue() slog.Value { return slog.StringValue(a.String()) }

// DSN is the connection string of the owner role for one database, as a postgres:// URL. It holds the password: do not print it.
func (a Access) DSN(database string) string { return a.dsn(OwnerRole, a.OwnerPassword, database) }

// SuperDSN is the same for the superuser, for backups and tests; the server has no use for it.
func (a Access) SuperDSN(database string) string {
	return a.dsn(Superuser, a.SuperPassword, database)
}

func (a Access) dsn(role, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, password),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {a.SocketDir}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// CreateDatabase makes a database that belongs to the owner role, as a copy of template; an empty template means an empty
// database. Nobody may be connected to the template.
func (a Access) CreateDatabase(ctx context.Context, name, template string) error {
	if template == "" {
		template = "template0"
	}
	return a.asSuperuser(ctx, func(conn *pgx.Conn) error { return createDatabase(ctx, conn, name, template) })
}

// DropDatabase removes a database and ends whatever is connected to it. An absent one is fine.
func (a Access) DropDatabase(ctx context.Context, name string) error {
	return a.asSuperuser(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted(name)+" WITH (FORCE)")
		return err
	})
}

func (a Access) asSuperuser(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, a.SuperDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// createDatabase also takes from PUBLIC what PostgreSQL grants it on every new database: to connect and to make temporary tables.
func createDatabase(ctx context.Context, conn *pgx.Conn, name, template string) error {
	for _, statement := range []string{
		"CREATE DATABASE " + quoted(name) + " OWNER " + OwnerRole + " TEMPLATE " + quoted(template) + strategy(conn, template),
		"REVOKE ALL ON DATABASE " + quoted(name) + " FROM PUBLIC",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// strategy copies a database of ours file by file, which is quicker to make and to drop than one that went through the write-ahead log
// and the buffers. PostgreSQL before 15 has no other way, and no word for it.
func strategy(conn *pgx.Conn, template string) string {
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 15 || template == "template0" {
		return ""
	}
	return " STRATEGY FILE_COPY"
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", Database).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return nil
	}
	return createDatabase(ctx, conn, Database, "template0")
}

// ensureRoles makes the two roles and says at every start what they may not do, so that a change by hand does not stay. The owner
// can become the application role, never the other way round.
func ensureRoles(ctx context.Context, conn *pgx.Conn, a Access) error {
	const powerless = " NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
	for _, role := range []string{OwnerRole, AppRole} {
		var exists bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role).Scan(&exists); err != nil {
			return err
		}
		if exists {
			continue
		}
		if _, err := conn.Exec(ctx, "CREATE ROLE "+role); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		fmt.Sprintf("ALTER ROLE %s LOGIN%s PASSWORD '%s'", OwnerRole, powerless, a.OwnerPassword), // hex: nothing to quote
		"ALTER ROLE " + AppRole + " NOLOGIN" + powerless,
		"GRANT " + AppRole + " TO " + OwnerRole,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// firstConnection asks until PostgreSQL answers, ends, or ctx does.
func (c *Cluster) firstConnection(ctx context.Context) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, c.SuperDSN("postgres"))
		if err == nil {
			return conn, nil
		}
		if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && pgErr.Code == "28P01" {
			return nil, unavailable("The secret in "+c.place.root+" does not open the database beside it.", "Restore both from the same backup of the data directory.").Wrap(err)
		}
		select {
		case <-c.process.done:
			return nil, c.place.endedAtStart(c.process.reason())
		case <-ctx.Done():
			return nil, unavailable("PostgreSQL in "+c.place.root+" did not answer in time.", "The server log holds what it said last; start again once the machine is less busy.").Wrap(ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func (p *place) endedAtStart(reason string) *fault.Error {
	return unavailable("PostgreSQL ended while it was starting in "+p.root+": "+reason+".", "Fix that and start again.")
}
