package db

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/web/session"
)

// Sessions keeps who is signed in, and how often somebody tried.
type Sessions struct{ *DB }

var _ session.Store = Sessions{}

// StartSession signs an active person in. Its end is fixed now; the idle time runs from the last use.
func (s Sessions) StartSession(ctx context.Context, in session.Session, hash []byte, e audit.Entry) error {
	org := in.Person.Org
	return s.change(ctx, org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.PersonSignedIn(ctx, string(org), string(in.Person.ID))
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Absent("person")
		}
		return q.SessionInsert(ctx, rows.SessionInsertParams{Hash: hash, OrgID: string(org), PersonID: string(in.Person.ID), Life: session.Life, Flash: notNull(in.Flash)})
	})
}

// notNull makes nothing an empty text: the column is never null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// SessionByHash finds who a cookie is signed in as, and keeps the session from going idle.
func (s Sessions) SessionByHash(ctx context.Context, hash []byte) (session.Session, error) {
	var out session.Session
	var p struct {
		org, slug, orgName, id, email, name string
		roles                               []string
	}
	err := s.pool.QueryRow(ctx, "SELECT org, org_slug, org_name, person, email, name, roles, started, flash FROM find_session($1, $2)", hash, session.Idle).
		Scan(&p.org, &p.slug, &p.orgName, &p.id, &p.email, &p.name, &p.roles, &out.CreatedAt, &out.Flash)
	if err != nil {
		return session.Session{}, translated(orAbsent(err, "session"))
	}
	out.Org = identity.Org{ID: identity.OrgID(p.org), Slug: p.slug, Name: p.orgName}
	out.Person = person(p.id, p.org, p.email, p.name, p.roles, true) // the door opens for active people only
	return out, nil
}

// SaveFlash keeps what the next page says once; nil takes it away.
func (s Sessions) SaveFlash(ctx context.Context, hash, flash []byte) error {
	var found bool
	err := s.pool.QueryRow(ctx, "SELECT save_session_flash($1, $2)", hash, notNull(flash)).Scan(&found)
	if err == nil && !found {
		return fault.Absent("session")
	}
	return translated(err)
}

// EndSession signs out. A session that is gone already is fine, and worth no second entry.
func (s Sessions) EndSession(ctx context.Context, hash []byte, e *audit.Entry) error {
	end := func(tx pgx.Tx) error {
		var found bool
		if err := tx.QueryRow(ctx, "SELECT end_session($1)", hash).Scan(&found); err != nil || !found || e == nil {
			return err
		}
		return insertAudit(ctx, tx, *e)
	}
	if e == nil {
		return s.inTx(ctx, end)
	}
	return s.inOrg(ctx, e.Org, end)
}

// Sweep removes sessions that are over or idle, and attempts that count no more. Neither opens or closes anything as it is.
func (s Sessions) Sweep(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "SELECT end_old_sessions($1)", session.Idle); err != nil {
		return translated(err)
	}
	return translated(rows.New(s.pool).AttemptForgetOld(ctx, attemptSpan))
}

// What is free in a span of time.
const (
	attemptSpan = 15 * time.Minute
	accountFree = 5
	addressFree = 20
)

// tried is what attempts are counted for.
type tried struct {
	lock int32
	hash []byte
	free int32
}

func ofAccount(account string) tried {
	return tried{lockAccount, hashed("account", account), accountFree}
}

// ofAddress counts a whole IPv6 /64 as one: every customer of a provider has 2^64 addresses to try from.
func ofAddress(address string) tried {
	if ip, err := netip.ParseAddr(address); err == nil {
		ip = ip.Unmap().WithZone("")
		if address = ip.String(); ip.Is6() {
			p, _ := ip.Prefix(64) // 64 is a length every IPv6 address has
			address = p.String()
		}
	}
	return tried{lockAddress, hashed("address", address), addressFree}
}

func hashed(kind, name string) []byte {
	h := sha256.Sum256([]byte(kind + "\x00" + name))
	return h[:]
}

func (s tried) key() int32 { return int32(binary.BigEndian.Uint32(s.hash)) } // any 32 bits will do

// triedBy are what one attempt counts for, in the order in which they are locked. What could not be an account's address is
// counted for where it came from only.
func triedBy(account, address string) []tried {
	if account == "" {
		return []tried{ofAddress(address)}
	}
	return []tried{ofAccount(account), ofAddress(address)}
}

// SignInAttempt counts an attempt when one is free, and says how long to wait when none is. An attempt that has to wait is not
// counted: whoever keeps trying does not push the end of the wait away. The locks make attempts of one account or address follow
// each other, so that a hundred at once are not all the first.
func (s Sessions) SignInAttempt(ctx context.Context, account, address string) (wait time.Duration, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		q := rows.New(tx)
		var counted [][]byte
		for _, about := range triedBy(account, address) {
			if err := q.AttemptLock(ctx, about.lock, about.key()); err != nil {
				return err
			}
			w, err := q.AttemptWait(ctx, attemptSpan, about.hash, about.free-1)
			if err := orNone(err); err != nil {
				return err
			}
			wait = max(wait, w)
			counted = append(counted, about.hash)
		}
		if wait > 0 {
			return nil
		}
		return q.AttemptInsert(ctx, counted)
	})
	return wait, err
}

// SignInSucceeded forgets the attempts of the account. Of the address it forgets only the one that succeeded: else somebody with an
// account of their own could clear the count of the place they attack others from.
func (s Sessions) SignInSucceeded(ctx context.Context, account, address string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := q.AttemptForget(ctx, ofAccount(account).hash); err != nil {
			return err
		}
		return q.AttemptForgetNewest(ctx, ofAddress(address).hash)
	})
}
