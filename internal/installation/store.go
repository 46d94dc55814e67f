package installation

import (
	"context"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/policy"
)

// Reader reads connections and what was observed behind them.
type Reader interface {
	Connections(ctx context.Context, org identity.OrgID) ([]Connection, error)
	Connection(ctx context.Context, org identity.OrgID, key connector.Key) (Connection, error)
	ObservedTools(ctx context.Context, org identity.OrgID, key connector.Key) ([]Observed, error)
	// Listings is ObservedTools of every connection, without titles, descriptions and raw definitions.
	Listings(ctx context.Context, org identity.OrgID) (map[connector.Key][]Observed, error)
	// PinnedDefinitions maps a granted tool to the raw definition a person accepted.
	PinnedDefinitions(ctx context.Context, org identity.OrgID, key connector.Key) (map[string][]byte, error)
}

// Writer changes connections. Each is compare-and-set on Version (a stale fault otherwise) with its audit row in the same transaction.
type Writer interface {
	// Install stores a new connection and its sealed credential fields together.
	Install(ctx context.Context, c Connection, sealed []credential.Record, e audit.Entry) (Connection, error)
	// RecordFinding stores a test's result and, when Tools is not nil, what is listed now (replacing the list; first-seen times stay).
	// It never touches the snapshot. held receives one entry per tool that is newly held back. The version grows only when health or the
	// list changed, so that a quiet test does not make an open form stale.
	RecordFinding(ctx context.Context, c Connection, f Finding, tested *audit.Entry, held []audit.Entry) (Connection, error)
	// SaveStanding replaces mode and snapshot, with each pinned definition's raw bytes, and cancels the staged and approved actions
	// whose tool, as they were asked for, is no longer granted.
	SaveStanding(ctx context.Context, c Connection, next policy.Standing, raws map[string][]byte, e audit.Entry) (Connection, error)
	// ConfirmReads replaces c.Confirmed, and saves the standing that follows from it as SaveStanding does.
	ConfirmReads(ctx context.Context, c Connection, now []Confirmation, next policy.Standing, raws map[string][]byte, e audit.Entry) (Connection, error)
	// ReplaceCredential seals in new values, stores c.Destination with them, and makes a disconnected connection active again.
	ReplaceCredential(ctx context.Context, c Connection, sealed []credential.Record, e audit.Entry) (Connection, error)
	// End disconnects or retires: the credential is shredded, staged and approved actions are cancelled.
	End(ctx context.Context, c Connection, state State, e audit.Entry) (Connection, error)
	Rename(ctx context.Context, c Connection, name string, e audit.Entry) (Connection, error)
	// RecordReads says whether each read must be in the trail before its answer leaves.
	RecordReads(ctx context.Context, c Connection, durably bool, e audit.Entry) (Connection, error)
}

// Prober tests a connection with an authenticated call and lists its tools. It never returns an error for what the upstream did wrong:
// that is the finding.
type Prober interface {
	Probe(ctx context.Context, c Connection) Finding
	// Examine is Probe part by part: every part of the way there, in order, up to the first that fails.
	Examine(ctx context.Context, c Connection) ([]Check, Finding)
}
