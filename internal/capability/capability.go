// Package capability owns the run-local capability: what was minted into one run, what of it still holds, under which names an agent
// sees it, and the gateway configuration the agent receives. A capability only ever shrinks: it is what was minted, cut with what the
// connections and the profile grant now. It holds no credential and no provider address.
package capability

import (
	"context"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
)

// Grant is one connection of a run: as minted, and as it is now.
type Grant struct {
	Connection installation.Connection // as it is now; Standing is the connection's own
	Minted     policy.Snapshot         // the profile-narrowed snapshot when the run started
	Now        policy.Standing         // the connection's standing, narrowed by the profile as it is now; its mode never above the minted one
	InProfile  bool                    // the profile still uses the connection
	Resources  map[string][]string     // of a resource setting, the values the profile allows now
}

// Live is a run with its grants and the database's time of reading.
type Live struct {
	Run    run.Run
	Org    identity.Org
	Now    time.Time
	Grants []Grant // in the order of their keys
	Told   *Told   // what was made of it for the agent; nil where a Live answers one question only
}

// Find returns the grant of a connection.
func (l Live) Find(key connector.Key) (Grant, bool) {
	for _, g := range l.Grants {
		if g.Connection.Key == key {
			return g, true
		}
	}
	return Grant{}, false
}

// Order is what Mint needs besides the run's own order.
type Order struct {
	run.Order
	Token     servicetoken.Token // who starts it
	TokenHash []byte             // of the new run token
	// IdempotencyKey and RequestDigest make a repeated start answer the same run; both empty when the caller brought no key.
	IdempotencyKey string
	RequestDigest  string
}

// Store keeps runs and what was minted into them.
type Store interface {
	// Mint starts a run: the profile must exist, on_behalf_of must be an active person of the organization, every named connection must
	// belong to the profile and be active. It copies the narrowed snapshots, in one transaction with the audit row. A known idempotency
	// key with an equal digest answers that run with created false; with another digest it is a conflict.
	Mint(ctx context.Context, o Order, e audit.Entry) (l Live, created bool, err error)
	// ByToken finds a live run by its token's hash, across organizations. Ended, expired and unknown look the same: Unauthenticated.
	ByToken(ctx context.Context, hash []byte) (Live, error)
	Run(ctx context.Context, org identity.OrgID, id run.ID) (Live, error)
	Runs(ctx context.Context, org identity.OrgID, liveOnly bool, before run.ID, limit int) ([]run.Run, error)
	// End ends a run and cancels its staged actions; approved ones proceed. Ending twice is fine.
	End(ctx context.Context, org identity.OrgID, id run.ID, e audit.Entry) (run.Run, error)
}

// Definitions finds the raw pinned definitions of one connection, by tool. installation.Reader implements it.
type Definitions interface {
	PinnedDefinitions(ctx context.Context, org identity.OrgID, key connector.Key) (map[string][]byte, error)
}
