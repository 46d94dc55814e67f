package release

import (
	"context"
	"io/fs"
	"time"

	"countersign/internal/fault"
	"countersign/internal/registry"
)

// Summary is one published release in a list.
type Summary struct {
	Digest      Digest    `json:"digest"`
	PublishedAt time.Time `json:"published_at"`
	Files       int       `json:"files"`
	Current     bool      `json:"current"`
}

// Store keeps published releases as raw files, for ever. The newest published one is current; publishing an older digest again
// makes it current and adds no row. Both find methods answer fault.NotFound when there is none.
type Store interface {
	Insert(ctx context.Context, r Release) (created bool, err error)
	Current(ctx context.Context) (Release, error)
	ByDigest(ctx context.Context, d Digest) (Release, error)
	All(ctx context.Context) ([]Summary, error) // newest first
}

// Published is the answer of Publish.
type Published struct {
	Digest  Digest  `json:"digest"`
	Created bool    `json:"created"` // false: exactly this catalog was published before
	Changes Changes `json:"changes"` // against what was current
}

// Publish checks a catalog folder and makes it the current release. Publishing the same bytes again changes nothing: a release is
// named by its digest.
func Publish(ctx context.Context, s Store, files fs.FS, reg registry.Table) (Published, error) {
	next, err := Build(files, reg)
	if err != nil {
		return Published{}, err
	}
	before, err := currentOrNone(ctx, s)
	if err != nil {
		return Published{}, err
	}
	created, err := s.Insert(ctx, next)
	if err != nil {
		return Published{}, err
	}
	return Published{Digest: next.digest, Created: created, Changes: Diff(before, next)}, nil
}

// Compare checks a catalog folder and says how it differs from what is current. This is `catalog diff`.
func Compare(ctx context.Context, s Store, files fs.FS, reg registry.Table) (Changes, error) {
	next, err := Build(files, reg)
	if err != nil {
		return Changes{}, err
	}
	before, err := currentOrNone(ctx, s)
	if err != nil {
		return Changes{}, err
	}
	return Diff(before, next), nil
}

// currentOrNone is the current release, or an empty one before the first.
func currentOrNone(ctx context.Context, s Store) (Release, error) {
	r, err := s.Current(ctx)
	if f, ok := fault.As(err); ok && f.Kind == fault.NotFound {
		return Release{}, nil
	}
	return r, err
}
