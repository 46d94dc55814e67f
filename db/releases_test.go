package db

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"countersign/catalog"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/registry"
	"countersign/internal/release"
)

func builtRelease(t *testing.T) release.Release {
	t.Helper()
	r, err := release.Build(catalog.Files(), registry.Trusted())
	must(t, err)
	return r
}

// smaller is the catalog without some of its files: another release.
func smaller(t *testing.T, whole release.Release) release.Release {
	t.Helper()
	files := fstest.MapFS{}
	for _, f := range whole.Files()[1:] {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	r, err := release.Build(files, registry.Trusted())
	must(t, err)
	return r
}

func TestAReleaseReadsBackByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	s := NewReleases(w.DB, registry.Trusted())
	want := builtRelease(t)
	_, err := s.Current(ctx)
	isFault(t, err, fault.CodeNotFound)
	if created, err := s.Insert(ctx, want); err != nil || !created {
		t.Fatalf("got %v, %v", created, err)
	}
	got, err := NewReleases(w.DB, registry.Trusted()).Current(ctx)
	must(t, err)
	same := func(a, b release.File) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }
	if got.Digest() != want.Digest() || !slices.EqualFunc(got.Files(), want.Files(), same) || len(got.Manifests()) != len(want.Manifests()) {
		t.Fatalf("got %s, want %s", got.Digest(), want.Digest())
	}
	_, err = s.ByDigest(ctx, release.Digest("sha256:"+strings.Repeat("0", 64)))
	isFault(t, err, fault.CodeNotFound)
	_, err = s.ByDigest(ctx, "\x00")
	isFault(t, err, fault.CodeNotFound)
}

func TestPublishingAgainMakesAReleaseCurrentAndAddsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	s := NewReleases(w.DB, registry.Trusted())
	org, _ := w.newOrg(t, "acme")
	w.newOrg(t, "other")
	one := builtRelease(t)
	two := smaller(t, one)
	for i, step := range []struct {
		insert  release.Release
		created bool
		entries int // in each organization's trail, about releases
	}{{one, true, 1}, {one, false, 1}, {two, true, 2}, {one, false, 3}} {
		created, err := s.Insert(ctx, step.insert)
		if err != nil || created != step.created {
			t.Fatalf("step %d: created %v, %v", i, created, err)
		}
		current, err := s.Current(ctx)
		must(t, err)
		if current.Digest() != step.insert.Digest() {
			t.Fatalf("step %d: another release is current", i)
		}
		if n := w.count(t, "SELECT count(*) FROM audit_entries WHERE event = $1 AND org_id = $2", audit.ReleasePublished, string(org.ID)); n != step.entries {
			t.Fatalf("step %d: %d entries", i, n)
		}
	}
	all, err := s.All(ctx)
	must(t, err)
	if len(all) != 2 || all[0].Digest != two.Digest() || all[0].Current || !all[1].Current || all[1].Files != len(one.Files()) {
		t.Fatalf("got %+v", all)
	}
}

func TestPublishingAtOncePublishesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := NewReleases(w.DB, registry.Trusted())
	r := builtRelease(t)
	var wg sync.WaitGroup
	created, errs := make([]bool, 6), make([]error, 6)
	for i := range created {
		wg.Go(func() { created[i], errs[i] = s.Insert(t.Context(), r) })
	}
	wg.Wait()
	for _, err := range errs {
		must(t, err)
	}
	if n := len(slices.DeleteFunc(created, func(c bool) bool { return !c })); n != 1 {
		t.Fatalf("created %d times", n)
	}
}

func TestAReleaseNeverChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	r := builtRelease(t)
	if _, err := NewReleases(w.DB, registry.Trusted()).Insert(ctx, r); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		"UPDATE releases SET file_count = 0", "DELETE FROM releases", "TRUNCATE releases CASCADE", "UPDATE release_files SET data = 'x'",
		"DELETE FROM release_files", "TRUNCATE release_files", "INSERT INTO release_files (digest, name, data) SELECT digest, 'late.toml', 'x' FROM releases",
	} {
		if _, err := w.super.Exec(ctx, change); err == nil || !strings.Contains(err.Error(), "23000") {
			t.Errorf("%s by the superuser: got %v, want the trigger's refusal", change, err)
		}
	}
	// Past the triggers: the name no longer fits, and nothing of it is used.
	w.asSuper(t, "UPDATE release_files SET data = data || '\\x0a' WHERE name = (SELECT min(name) FROM release_files)")
	_, err := NewReleases(w.DB, registry.Trusted()).ByDigest(ctx, r.Digest())
	isFault(t, err, fault.CodeInternal)
}
