package db

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/fault"
)

// translated turns "the database does not answer" into the fault a page can show. Everything else stays what it is.
func translated(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := fault.As(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || !unreachable(err) {
		return err
	}
	// Nothing is said about what was done: a connection lost at COMMIT leaves that open.
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The database does not answer.", "Try again in a moment; the operator finds the cause in the server log.").Wrap(err)
}

func unreachable(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Connection exceptions, too many connections, shut-down and crash, disk full, read-only after a fail-over.
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "25006"
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || strings.Contains(err.Error(), "closed pool") || strings.Contains(err.Error(), "conn closed")
}

// orAbsent turns "no row" into the one answer for what does not exist or belongs to somebody else.
func orAbsent(err error, noun string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Absent(noun)
	}
	return err
}

// orNone lets "no row" pass as nothing.
func orNone(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// violates reports whether err is the breach of a named constraint or unique index.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "23") && pg.ConstraintName == constraint
}

func badAddress() error {
	// The cause is left out: pgx redacts the password in its message, but not in every malformed address.
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The database address cannot be read.", "Set DATABASE_URL to postgres://user:password@host:5432/name.")
}
