package release

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"countersign/internal/manifest"
	"countersign/internal/registry"
)

// shelf parses what is asked for, once: one manifest for an agent's call, all of them for a page that lists them. A start needs few,
// and a catalog of a thousand costs more to parse than everything else it does.
type shelf struct {
	byKey map[string]func() (manifest.Manifest, error)
	whole func() parsed
}

// parsed is a catalog whose every file was read.
type parsed struct {
	manifests   []manifest.Manifest // sorted by name as people read it
	unavailable []Unavailable
	index       []indexed // of each manifest
}

func newShelf(files []File, reg registry.Table) *shelf {
	s := &shelf{byKey: make(map[string]func() (manifest.Manifest, error), len(files))}
	for _, f := range files {
		s.byKey[manifest.KeyOf(f.Name)] = sync.OnceValues(func() (manifest.Manifest, error) { return manifest.Parse(f.Name, f.Data, reg) })
	}
	s.whole = sync.OnceValue(func() parsed { return s.parse(files) })
	return s
}

func (s *shelf) parse(files []File) (p parsed) {
	for _, f := range files {
		key := manifest.KeyOf(f.Name)
		m, err := s.byKey[key]()
		if err != nil {
			p.unavailable = append(p.unavailable, Unavailable{Key: key, Why: err})
			continue
		}
		p.manifests = append(p.manifests, m)
	}
	slices.SortFunc(p.manifests, func(a, b manifest.Manifest) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Key, b.Key))
	})
	p.index = indexAll(p.manifests)
	return p
}

// all is the release with every file read.
func (r Release) all() parsed {
	if r.shelf == nil {
		return parsed{}
	}
	return r.shelf.whole()
}

// Manifest finds an available manifest by its key.
func (r Release) Manifest(key string) (manifest.Manifest, bool) {
	if r.shelf == nil {
		return manifest.Manifest{}, false
	}
	read, ok := r.shelf.byKey[key]
	if !ok {
		return manifest.Manifest{}, false
	}
	m, err := read()
	return m, err == nil
}
