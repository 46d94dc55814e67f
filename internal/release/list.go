package release

import (
	"context"
	"io"

	"countersign/internal/fault"
	"countersign/internal/manifest"
)

// Entry is one line of `catalog list`.
type Entry struct {
	Key      string `json:"key"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Auth     string `json:"auth"` // the contracts, joined with "|" where the person chooses
	Category string `json:"category"`
	Runtime  string `json:"runtime"`
}

// List is the release as `catalog list` shows it, sorted by name.
func (r Release) List() []Entry {
	out := make([]Entry, 0, len(r.manifests))
	for _, m := range r.manifests {
		out = append(out, Entry{Key: m.Key, Name: m.Name, Kind: string(m.Kind), Auth: contracts(m), Category: string(m.Category), Runtime: string(m.Runtime)})
	}
	return out
}

func contracts(m manifest.Manifest) string {
	s := ""
	for i, a := range m.Auth {
		if i > 0 {
			s += "|"
		}
		s += string(a.Contract)
	}
	return s
}

// currentOrNone is the current release, or an empty one before the first.
func currentOrNone(ctx context.Context, s Store) (Release, error) {
	r, err := s.Current(ctx)
	if f, ok := fault.As(err); ok && f.Kind == fault.NotFound {
		return Release{}, nil
	}
	return r, err
}

func readAtMost(r io.Reader, n int64) ([]byte, error) { return io.ReadAll(io.LimitReader(r, n)) }
