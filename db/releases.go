package db

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/registry"
	"countersign/internal/release"
)

// Releases keeps published catalogs. They are the same for every organization.
type Releases struct {
	*DB
	registry registry.Table
	parsed   *sync.Map // release.Digest → release.Release; what a digest names never changes
}

var _ release.Store = Releases{}

// NewReleases reads stored releases back with the runtimes of reg.
func NewReleases(d *DB, reg registry.Table) Releases {
	return Releases{DB: d, registry: reg, parsed: &sync.Map{}}
}

// Insert stores a release unless it is there, makes it the current one, and tells every organization's trail when that changed.
func (s Releases) Insert(ctx context.Context, r release.Release) (created bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := q.ReleaseLock(ctx, lockPublish); err != nil {
			return err
		}
		exists, err := q.ReleaseExists(ctx, string(r.Digest()))
		if err != nil {
			return err
		}
		if created = !exists; created {
			if err := insertRelease(ctx, q, r); err != nil {
				return err
			}
		}
		current, err := q.ReleaseCurrent(ctx)
		if err := orNone(err); err != nil || current == string(r.Digest()) {
			return err
		}
		if err := q.ReleaseChoose(ctx, string(r.Digest())); err != nil {
			return err
		}
		return announce(ctx, tx, r.Digest())
	})
	return created && err == nil, err
}

func insertRelease(ctx context.Context, q *rows.Queries, r release.Release) error {
	files := r.Files()
	names, contents := make([]string, len(files)), make([][]byte, len(files))
	for i, f := range files {
		names[i], contents[i] = f.Name, notNull(f.Data)
	}
	if err := q.ReleaseFileInsert(ctx, string(r.Digest()), names, contents); err != nil {
		return err
	}
	return q.ReleaseInsert(ctx, string(r.Digest()), int32(len(files)))
}

// announce writes the change into each organization's trail: what may be connected changed for all of them.
func announce(ctx context.Context, tx pgx.Tx, d release.Digest) error {
	found, err := tx.Query(ctx, "SELECT org FROM each_org()")
	if err != nil {
		return err
	}
	orgs, err := pgx.CollectRows(found, pgx.RowTo[identity.OrgID])
	if err != nil {
		return err
	}
	for _, org := range orgs {
		if err := enterOrg(ctx, tx, org); err != nil {
			return err
		}
		e := audit.Entry{Org: org, Actor: audit.Operator, Event: audit.ReleasePublished, Object: audit.Object{Kind: "release", ID: string(d)}}
		if err := insertAudit(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

// CurrentDigest names the release that was published last.
func (s Releases) CurrentDigest(ctx context.Context) (release.Digest, error) {
	digest, err := rows.New(s.pool).ReleaseCurrent(ctx)
	return release.Digest(digest), translated(orAbsent(err, "release"))
}

// Current is the release that was published last.
func (s Releases) Current(ctx context.Context) (release.Release, error) {
	digest, err := s.CurrentDigest(ctx)
	if err != nil {
		return release.Release{}, err
	}
	return s.ByDigest(ctx, digest)
}

// ByDigest reads a release back and checks that its bytes are those it is named by. Each is read once in
// a process: a digest cannot come to name anything else.
func (s Releases) ByDigest(ctx context.Context, d release.Digest) (release.Release, error) {
	if r, ok := s.parsed.Load(d); ok {
		return r.(release.Release), nil
	}
	found, err := rows.New(s.pool).ReleaseFileList(ctx, storable(string(d)))
	if err != nil {
		return release.Release{}, translated(err)
	}
	if len(found) == 0 {
		return release.Release{}, orAbsent(pgx.ErrNoRows, "release")
	}
	files := make([]release.File, len(found))
	for i, f := range found {
		files[i] = release.File{Name: f.Name, Data: f.Data}
	}
	r, err := release.Load(d, files, s.registry)
	if err != nil {
		return release.Release{}, err
	}
	s.parsed.Store(d, r)
	return r, nil
}

// All lists every release, the newest first.
func (s Releases) All(ctx context.Context) ([]release.Summary, error) {
	found, err := rows.New(s.pool).ReleaseList(ctx)
	if err != nil {
		return nil, translated(err)
	}
	out := make([]release.Summary, len(found))
	for i, r := range found {
		out[i] = release.Summary{Digest: release.Digest(r.Digest), PublishedAt: r.PublishedAt, Files: int(r.FileCount), Current: r.Current}
	}
	return out, nil
}
