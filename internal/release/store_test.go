package release_test

import (
	"context"
	"errors"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/registry"
	"countersign/internal/release"
)

// memory is a Store as the contract asks: raw files by digest, newest published is current.
type memory struct {
	files map[release.Digest][]release.File
	order []release.Digest
	broke error
}

func (m *memory) Insert(_ context.Context, r release.Release) (bool, error) {
	if m.broke != nil {
		return false, m.broke
	}
	_, there := m.files[r.Digest()]
	m.files[r.Digest()] = r.Files()
	m.order = append(m.order, r.Digest())
	return !there, nil
}

func (m *memory) Current(ctx context.Context) (release.Release, error) {
	if m.broke != nil {
		return release.Release{}, m.broke
	}
	if len(m.order) == 0 {
		return release.Release{}, fault.Absent("release")
	}
	return m.ByDigest(ctx, m.order[len(m.order)-1])
}

func (m *memory) ByDigest(_ context.Context, d release.Digest) (release.Release, error) {
	files, ok := m.files[d]
	if !ok {
		return release.Release{}, fault.Absent("release")
	}
	return release.Load(d, files, registry.Trusted())
}

func (m *memory) All(context.Context) ([]release.Summary, error) { return nil, nil }

func TestPublishIsNamedByItsBytes(t *testing.T) {
	ctx, s, reg := t.Context(), &memory{files: map[release.Digest][]release.File{}}, registry.Trusted()
	one := folder("one.toml", desk("one", "One"))
	first, err := release.Publish(ctx, s, one, reg)
	if err != nil || !first.Created || len(first.Changes.Added) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := release.Publish(ctx, s, one, reg)
	if err != nil || again.Created || again.Digest != first.Digest || !again.Changes.None() {
		t.Errorf("the same bytes: %+v, %v", again, err)
	}
	two := folder("one.toml", desk("one", "One"), "two.toml", desk("two", "Two"))
	if c, err := release.Compare(ctx, s, two, reg); err != nil || len(c.Added) != 1 || c.Added[0].Key != "two" {
		t.Errorf("compare: %+v, %v", c, err)
	}
	if len(s.files) != 1 {
		t.Error("comparing published something")
	}
	second, err := release.Publish(ctx, s, two, reg)
	if err != nil || !second.Created || second.Digest == first.Digest {
		t.Errorf("%+v, %v", second, err)
	}
	back, err := release.Publish(ctx, s, one, reg)
	if err != nil || back.Created || len(back.Changes.Removed) != 1 {
		t.Errorf("going back: %+v, %v", back, err)
	}
	if r, err := s.Current(ctx); err != nil || r.Digest() != first.Digest {
		t.Errorf("%s, %v", r.Digest(), err)
	}
}

func TestPublishRefusesABadCatalogAndABrokenStore(t *testing.T) {
	ctx, s, reg := t.Context(), &memory{files: map[release.Digest][]release.File{}}, registry.Trusted()
	if _, err := release.Publish(ctx, s, folder("one.toml", desk("two", "One")), reg); err == nil || len(s.order) != 0 {
		t.Errorf("a bad catalog: %v", err)
	}
	s.broke = errors.New("connection lost")
	if _, err := release.Publish(ctx, s, folder("one.toml", desk("one", "One")), reg); !errors.Is(err, s.broke) {
		t.Errorf("a broken store was taken for an empty one: %v", err)
	}
	if _, err := release.Compare(ctx, s, folder("one.toml", desk("one", "One")), reg); !errors.Is(err, s.broke) {
		t.Errorf("a broken store was taken for an empty one: %v", err)
	}
}
