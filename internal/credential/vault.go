package credential

import (
	"context"
	"slices"
	"time"

	"countersign/internal/connector"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/secret"
)

// Place is the connection a credential belongs to.
type Place struct {
	Org        identity.OrgID
	Connection connector.Key
}

func (p Place) binding(field, origin string, version int64) secret.Binding {
	return secret.Binding{Org: string(p.Org), Connection: string(p.Connection), Field: field, Origin: origin, Version: version}
}

// Record is one sealed field as it is stored. Nothing in it opens without the keyset.
type Record struct {
	Place
	Field       string
	Version     int64 // counts the saves of the connection's credential; all fields of one save share it
	Sealed      secret.Sealed
	Origin      string // the only origin it may be sent to
	Fingerprint string
	Last4       string
	CreatedAt   time.Time // set by the store
}

// Store keeps records. It is implemented by the database.
type Store interface {
	// Current returns the records of the newest version, none where there is no credential.
	Current(ctx context.Context, p Place) ([]Record, error)
	// Put stores a new version whole, if the newest is expected (0: none); else it answers fault.Stale.
	Put(ctx context.Context, p Place, expected int64, records []Record) error
	// Reseal replaces the ciphertext of one record whose ciphertext is still old; it changes nothing else.
	Reseal(ctx context.Context, r Record, old secret.Sealed) error
	// Shred removes every version of a connection's credential for good.
	Shred(ctx context.Context, p Place) error
}

// Summary is all that people see of a stored field.
type Summary struct {
	Field       string
	Version     int64
	Origin      string
	Fingerprint string
	Last4       string
	CreatedAt   time.Time
}

// Vault seals what people enter and opens it only into an Authorizer.
type Vault struct {
	keys  *secret.Keyset
	store Store
}

// NewVault makes a vault over a store.
func NewVault(keys *secret.Keyset, store Store) *Vault { return &Vault{keys: keys, store: store} }

// Save checks values against the contract and stores them as the next version, for requests to d only. It answers the new version.
func (v *Vault) Save(ctx context.Context, p Place, c Contract, values map[string]secret.Value, d egress.Destination) (int64, error) {
	if _, err := Bind(c, values, d); err != nil {
		return 0, err
	}
	now, err := v.store.Current(ctx, p)
	if err != nil {
		return 0, err
	}
	expected := versionOf(now)
	records, err := Seal(v.keys, p, expected+1, values, d)
	if err != nil {
		return 0, err
	}
	return expected + 1, v.store.Put(ctx, p, expected, records)
}

// values opens some fields of the newest credential, all stored for the origin of d.
func (v *Vault) values(ctx context.Context, p Place, fields []string, d egress.Destination) (map[string]secret.Value, error) {
	records, err := v.store.Current(ctx, p)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return !slices.Contains(fields, r.Field) })
	return Open(v.keys, p, records, d)
}

// Holds reports whether all of these fields are stored.
func (v *Vault) Holds(ctx context.Context, p Place, fields []string) (bool, error) {
	records, err := v.store.Current(ctx, p)
	for _, f := range fields {
		if !slices.ContainsFunc(records, func(r Record) bool { return r.Field == f }) {
			return false, err
		}
	}
	return true, err
}

// Authorizer opens the newest credential for requests to d, and to the same runtime's other addresses where one credential is for all. It
// refuses when the credential was stored for another origin than that of d.
func (v *Vault) Authorizer(ctx context.Context, p Place, c Contract, d egress.Destination, also ...egress.Destination) (*Authorizer, error) {
	if len(c.Fields()) == 0 {
		return Bind(c, nil, d, also...)
	}
	values, err := v.values(ctx, p, c.Fields(), d)
	if err != nil {
		return nil, err
	}
	return Bind(c, values, d, also...)
}

// Summaries tells people what is stored.
func (v *Vault) Summaries(ctx context.Context, p Place) ([]Summary, error) {
	records, err := v.store.Current(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make([]Summary, len(records))
	for i, r := range records {
		out[i] = Summary{r.Field, r.Version, r.Origin, r.Fingerprint, r.Last4, r.CreatedAt}
	}
	return out, nil
}

// Reseal seals again, under the present primary key, what an older key sealed. It answers how many records it replaced.
func (v *Vault) Reseal(ctx context.Context, p Place) (int, error) {
	records, err := v.store.Current(ctx, p)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range records {
		if !v.keys.NeedsReseal(r.Sealed) {
			continue
		}
		value, err := v.keys.Open(r.Sealed, p.binding(r.Field, r.Origin, r.Version))
		if err != nil {
			return n, err
		}
		old := r.Sealed
		if r.Sealed, err = v.keys.Seal(value, p.binding(r.Field, r.Origin, r.Version)); err != nil {
			return n, err
		}
		if err := v.store.Reseal(ctx, r, old); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Shred forgets the credential of a connection.
func (v *Vault) Shred(ctx context.Context, p Place) error { return v.store.Shred(ctx, p) }

// Seal makes the records of one version.
func Seal(keys *secret.Keyset, p Place, version int64, values map[string]secret.Value, d egress.Destination) ([]Record, error) {
	if d.IsZero() {
		return nil, egress.ErrRefused
	}
	var out []Record
	for field, value := range values {
		sealed, err := keys.Seal(value, p.binding(field, d.Origin(), version))
		if err != nil {
			return nil, err
		}
		out = append(out, Record{
			Place: p, Field: field, Version: version, Sealed: sealed, Origin: d.Origin(),
			Fingerprint: value.Fingerprint(), Last4: value.Last4(),
		})
	}
	slices.SortFunc(out, func(a, b Record) int {
		if a.Field < b.Field {
			return -1
		}
		return 1
	})
	return out, nil
}

// Open opens the records of one version of p, all stored for the origin of d. The place is the caller's, never the record's own:
// a row that was copied to another connection must not open there.
func Open(keys *secret.Keyset, p Place, records []Record, d egress.Destination) (map[string]secret.Value, error) {
	if len(records) == 0 {
		return nil, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This connection has no credential.", "Enter one on the connection's page.")
	}
	values := make(map[string]secret.Value, len(records))
	for _, r := range records {
		if r.Origin != d.Origin() || d.IsZero() {
			return nil, ErrElsewhere
		}
		value, err := keys.Open(r.Sealed, p.binding(r.Field, r.Origin, r.Version))
		if err != nil {
			return nil, err
		}
		values[r.Field] = value
	}
	return values, nil
}

func versionOf(records []Record) int64 {
	if len(records) == 0 {
		return 0
	}
	return records[0].Version
}
