package release_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/release"
)

// desk is one valid catalog file; each pair of edits replaces text in it.
func desk(key, name string, edits ...string) string {
	s := strings.NewReplacer(edits...).Replace(`name = "NAME"
category = "customers"
summary = "Tickets of a desk that exists for tests."
description = "A desk with tickets, described at the length that a person needs to decide."
mark = "P"
kind = "hosted"
runtime = "sandbox_crm.v1"
why_this_kind = "The service is a hosted MCP server with annotated tools."

[[auth]]
contract = "none"

[tools.tickets_list]
effect = "read"
reviewed = "2026-11-30"
why = "Lists tickets and changes nothing."

[tools.tickets_close]
effect = "consequential"
reviewed = "2026-11-30"
why = "Closes a ticket for the customer."
arguments = ["ticket_id"]
sentence = "Close ticket {ticket_id}"

[probe]
tool = "tickets_list"
`)
	return "key = \"" + key + "\"\n" + strings.Replace(s, "NAME", name, 1)
}

// folder is a catalog folder of name, content pairs.
func folder(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

func build(t *testing.T, files fs.FS) release.Release {
	t.Helper()
	r, err := release.Build(files, registry.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBuildReadsOnlyCatalogFiles(t *testing.T) {
	plain := build(t, folder("two.toml", desk("two", "Two"), "one.toml", desk("one", "one")))
	busy := build(t, folder("two.toml", desk("two", "Two"), "one.toml", desk("one", "one"), "README.md", "# words", "embed.go", "package catalog", "old/three.toml", "not toml"))
	if plain.Digest() != busy.Digest() {
		t.Error("other files changed the digest")
	}
	var names []string
	for _, m := range busy.Manifests() {
		names = append(names, m.Name)
	}
	if strings.Join(names, " ") != "one Two" {
		t.Errorf("not in the order people read: %v", names)
	}
	if m, ok := busy.Manifest("two"); !ok || m.Name != "Two" {
		t.Errorf("%+v, %t", m, ok)
	}
	if _, ok := busy.Manifest("three"); ok {
		t.Error("a file of a folder below was read")
	}
}

func TestDigestNamesTheBytes(t *testing.T) {
	first := build(t, folder("one.toml", desk("one", "One"))).Digest()
	if _, err := release.ParseDigest(string(first)); err != nil || len(first.Short()) != 12 {
		t.Errorf("%s: %v", first, err)
	}
	for name, other := range map[string]fstest.MapFS{
		"a space":      folder("one.toml", desk("one", "One")+" "),
		"another name": folder("uno.toml", desk("uno", "One")),
		"one more":     folder("one.toml", desk("one", "One"), "two.toml", desk("two", "Two")),
	} {
		if build(t, other).Digest() == first {
			t.Errorf("%s has the same digest", name)
		}
	}
	for _, bad := range []string{"", "sha256:", "sha256:" + strings.Repeat("A", 64), strings.Repeat("a", 64), string(first) + "0", "sha256:../" + strings.Repeat("a", 61)} {
		if _, err := release.ParseDigest(bad); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("%q was taken for a digest", bad)
		}
	}
}

func TestBuildReportsEveryFile(t *testing.T) {
	_, err := release.Build(folder(
		"one.toml", desk("one", "One", `"read"`, `"safe"`),
		"two.toml", desk("three", "Two"),
		"four.toml", desk("four", "Four"),
	), registry.Trusted())
	for _, want := range []string{"one.toml:15: The effect of “tickets_list” is “safe”.", "two.toml:1: The key “three” is not the file's name."} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if strings.Contains(fmt.Sprint(err), "four.toml") {
		t.Errorf("a good file is blamed:\n%v", err)
	}
}

func TestBuildRefusesNamesThatReadAlike(t *testing.T) {
	_, err := release.Build(folder("one.toml", desk("one", "Help Desk"), "two.toml", desk("two", "help  desk")), registry.Trusted())
	if err == nil || !strings.Contains(err.Error(), "“help  desk” is also that of one.toml") && !strings.Contains(err.Error(), "“Help Desk” is also that of two.toml") {
		t.Errorf("%v", err)
	}
}

func TestBuildRefusesWhatIsNoCatalog(t *testing.T) {
	for name, files := range map[string]fs.FS{"empty": fstest.MapFS{}, "other files": folder("README.md", "x"), "not there": missing{}} {
		if _, err := release.Build(files, registry.Trusted()); err == nil {
			t.Errorf("%s was built", name)
		}
	}
	_, err := release.Build(folder("one.toml", strings.Repeat("#", manifest.MaxSize*4)), registry.Trusted())
	if err == nil || !strings.Contains(err.Error(), "a manifest has at most") {
		t.Errorf("a huge file: %v", err)
	}
}

type missing struct{}

func (missing) Open(string) (fs.File, error) { return nil, fs.ErrNotExist }

func TestLoadRoundTrip(t *testing.T) {
	r := build(t, folder("one.toml", desk("one", "One"), "two.toml", desk("two", "Two")))
	files := r.Files()
	files[0], files[1] = files[1], files[0] // a store keeps no order
	again, err := release.Load(r.Digest(), files, registry.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest() != r.Digest() || !release.Diff(r, again).None() || len(again.Unavailable()) != 0 {
		t.Errorf("a stored release came back different: %v", release.Diff(r, again).Words())
	}
	files[0].Data = append([]byte("# changed\n"), files[0].Data...)
	if _, err := release.Load(r.Digest(), files, registry.Trusted()); err == nil {
		t.Error("changed bytes were loaded under the old digest")
	}
	if _, err := release.Load(r.Digest(), files[:1], registry.Trusted()); err == nil {
		t.Error("a release with a file less was loaded")
	}
}

// A server that is newer or older than the publisher loses one integration, not the catalog.
func TestLoadKeepsGoingWithoutWhatItDoesNotAccept(t *testing.T) {
	files := []release.File{{Name: "gone.toml", Data: []byte(desk("gone", "Gone", "sandbox_crm.v1", "gone.v1"))}, {Name: "one.toml", Data: []byte(desk("one", "One"))}}
	r, err := release.Load(release.DigestOf(files), files, registry.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Manifest("one"); !ok {
		t.Error("the good manifest is hidden")
	}
	if _, ok := r.Manifest("gone"); ok {
		t.Error("an unacceptable manifest is offered")
	}
	if u := r.Unavailable(); len(u) != 1 || u[0].Key != "gone" || !strings.Contains(u[0].Why.Error(), "There is no runtime “gone.v1”") {
		t.Errorf("%+v", u)
	}
	if len(r.Files()) != 2 {
		t.Error("the raw file is lost")
	}
}

func TestList(t *testing.T) {
	got := build(t, folder("one.toml", desk("one", "One"))).List()
	if len(got) != 1 || got[0] != (release.Entry{Key: "one", Name: "One", Kind: "hosted", Auth: "none", Category: "customers", Runtime: "sandbox_crm.v1"}) {
		t.Errorf("%+v", got)
	}
}

func TestCallersCannotChangeARelease(t *testing.T) {
	r := build(t, folder("one.toml", desk("one", "One"), "two.toml", desk("two", "Two")))
	ms, files := r.Manifests(), r.Files()
	ms[0].Name, files[0].Name = "Other", "other.toml"
	if r.Manifests()[0].Name != "One" || r.Files()[0].Name != "one.toml" {
		t.Error("a caller changed the release")
	}
}
