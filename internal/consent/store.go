package consent

import (
	"context"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
)

// Requests keeps consents that are under way.
type Requests interface {
	// Begin stores a request and forgets what is long over.
	Begin(ctx context.Context, q Request) error
	// Take answers a request once: whoever asks again, or after its time, is answered ErrNotStarted.
	Take(ctx context.Context, org identity.OrgID, state []byte) (Request, error)
}

// Store keeps consents. Each change is one compare-and-set, with its audit row.
type Store interface {
	// Held answers a connection's consent with its sealed tokens, as they were at one moment; NotFound where there is none.
	Held(ctx context.Context, p credential.Place) (Consent, []credential.Record, error)
	// Give stores a consent and its tokens if the newest version there is lies just below, and makes the connection active.
	Give(ctx context.Context, c Consent, sealed []credential.Record, e audit.Entry) error
	// Claim takes the lease to renew a version, for everybody. It answers over where that version is not the newest any more, or lost.
	Claim(ctx context.Context, c Consent, by string, lease time.Duration) (claimed, over bool, err error)
	// Renew stores what the holder of the lease was given. Doing it again is harmless.
	Renew(ctx context.Context, c Consent, by string, next Consent, sealed []credential.Record) error
	// Release gives a lease back.
	Release(ctx context.Context, c Consent, by string) error
	// Lose says that this version of a consent no longer works, and why. A newer one is left alone.
	Lose(ctx context.Context, c Consent, t Trouble, e audit.Entry) error
}

// Directory answers questions about consents.
type Directory interface {
	// OfPerson lists the consents a person gave, by connection.
	OfPerson(ctx context.Context, org identity.OrgID, person identity.PersonID) ([]Consent, error)
	// Sharing counts the other consents of the same client at the same server.
	Sharing(ctx context.Context, c Consent) (int, error)
	// Refuse notes which scopes a service missed. It answers false where that was known.
	Refuse(ctx context.Context, c Consent, scopes []string, e audit.Entry) (bool, error)
}

// Connections answers what a consent is about. installation.Reader implements it.
type Connections interface {
	Connection(ctx context.Context, org identity.OrgID, key connector.Key) (installation.Connection, error)
}

// Manifests answers the manifest of a connection. installation.Connections implements it.
type Manifests interface {
	Manifest(ctx context.Context, c installation.Connection) (manifest.Manifest, error)
}
