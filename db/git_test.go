package db_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"countersign/db"
	play "countersign/db/dbtest/scene"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/policy"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
)

func TestAPackIsKeptForEveryReplica(t *testing.T) {
	s := play.New(t)
	git := db.Git{DB: s.DB}
	c := s.Install(s.Org, s.Publish())
	body := bytes.Repeat([]byte("0123456789abcdef"), 150_000) // more than two pieces
	p := gitgateway.Pack{Digest: "sha256:" + string(bytes.Repeat([]byte("a"), 64)), Bytes: int64(len(body)), Objects: 1}
	for range 2 { // keeping it again changes nothing
		s.Must(git.Keep(t.Context(), s.Org.ID, c.Key, p, "+a\x00b\n", iotest.HalfReader(bytes.NewReader(body))))
	}
	r, size, err := git.Open(t.Context(), s.Org.ID, c.Key, p.Digest)
	s.Must(err)
	got, err := io.ReadAll(r)
	if err != nil || size != p.Bytes || !bytes.Equal(got, body) {
		t.Errorf("%d bytes of %d, %v", len(got), size, err)
	}
	if diff, err := git.Diff(t.Context(), s.Org.ID, c.Key, p.Digest); err != nil || diff == "" {
		t.Errorf("%q %v", diff, err)
	}
	if _, _, err := git.Open(t.Context(), s.Other.ID, c.Key, p.Digest); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("another organization reads it: %v", err)
	}
	cut := p
	cut.Digest = "sha256:" + string(bytes.Repeat([]byte("b"), 64))
	if err := git.Keep(t.Context(), s.Org.ID, c.Key, cut, "", bytes.NewReader(body[:1<<20])); err == nil {
		t.Error("a pack that was cut off is kept")
	}
	if _, _, err := git.Open(t.Context(), s.Org.ID, c.Key, cut.Digest); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("part of it is there: %v", err)
	}
}

func TestOldPacksAreRemovedUnlessAnActionWaits(t *testing.T) {
	s := play.New(t)
	git := db.Git{DB: s.DB}
	c := s.Grant(s.Install(s.Org, s.Publish()), policy.AskUserOnWrite, nil, play.Create)
	s.Profile("engineering", 5, play.Uses(c)...)
	token, _ := s.Token("runtime", servicetoken.RunsWrite)
	l, _ := s.Mint(token, run.Order{Surface: policy.Task, Profile: "engineering", Task: "ENG-1", OnBehalfOf: "member@harbor.test"})
	keep := func(letter string) string {
		digest := "sha256:" + string(bytes.Repeat([]byte(letter), 64))
		s.Must(git.Keep(t.Context(), s.Org.ID, c.Key, gitgateway.Pack{Digest: digest, Bytes: 4}, "", bytes.NewReader([]byte("PACK"))))
		return digest
	}
	waited, idle := keep("a"), keep("b")
	s.Stage(s.Proposal(l, c, "contacts_create", `{"pack":"`+waited+`"}`))
	s.SQLAsSuper("UPDATE git_packs SET kept_at = kept_at - interval '8 days'")
	fresh := keep("c")
	s.Must(git.Sweep(t.Context()))
	for digest, kept := range map[string]bool{waited: true, idle: false, fresh: true} {
		if _, _, err := git.Open(t.Context(), s.Org.ID, c.Key, digest); (err == nil) != kept {
			t.Errorf("%s kept: %v", digest[:10], err)
		}
	}
}

func TestARepositoryIsPinnedOnce(t *testing.T) {
	s := play.New(t)
	git := db.Git{DB: s.DB}
	c := s.Install(s.Org, s.Publish())
	for _, id := range []int64{42, 42, 43} {
		if kept, err := git.Pin(t.Context(), s.Org.ID, c.Key, "acme/site", id); err != nil || kept != 42 {
			t.Errorf("pinned %d: %d %v", id, kept, err)
		}
	}
	if _, err := git.Pin(t.Context(), s.Org.ID, "sandbox-crm-zzzzzz", "acme/site", 1); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("a connection that is not there: %v", err)
	}
}
