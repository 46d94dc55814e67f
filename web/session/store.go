package session

import (
	"context"
	"time"

	"countersign/internal/audit"
	"countersign/internal/identity"
)

// Bounds of a session, by the database's clock.
const (
	Life = 12 * time.Hour   // from sign-in, absolute
	Idle = 60 * time.Minute // without a request
)

// Session is a signed-in browser. Only the SHA-256 of its random cookie value is stored.
type Session struct {
	Person    identity.Person
	Org       identity.Org
	CreatedAt time.Time
	Flash     []byte // JSON of what the next page says once; empty mostly
}

// Store keeps sessions. Sessions cross organizations in SessionByHash only: the cookie is what names one.
type Store interface {
	StartSession(ctx context.Context, s Session, hash []byte, e audit.Entry) error
	// SessionByHash finds a session that is neither over nor idle and whose person is active, and notes that it was used.
	SessionByHash(ctx context.Context, hash []byte) (Session, error)
	SaveFlash(ctx context.Context, hash []byte, flash []byte) error
	EndSession(ctx context.Context, hash []byte, e *audit.Entry) error
	// SignInAttempt counts one attempt for an account and an address and says how long to wait before it may be tried: zero means now.
	// 5 attempts an account and 20 an address in 15 minutes are free.
	SignInAttempt(ctx context.Context, account, address string) (wait time.Duration, err error)
	SignInSucceeded(ctx context.Context, account, address string) error
}
