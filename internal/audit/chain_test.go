package audit_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"countersign/internal/audit"
)

type key []byte

func (k key) MAC(data []byte) ([]byte, error) {
	h := hmac.New(sha256.New, k)
	h.Write(data)
	return h.Sum(nil), nil
}

func (k key) Verify(mac, data []byte) bool {
	want, _ := k.MAC(data)
	return hmac.Equal(mac, want)
}

func chain(t *testing.T, n int) []audit.Link {
	t.Helper()
	var links []audit.Link
	var prev []byte
	for i := range n {
		r := audit.Recorded{
			Entry: audit.Entry{
				Org: "org_1", Actor: audit.Operator, Event: audit.ActionStaged, Object: audit.Object{Kind: "action", ID: "act_1"}, Digest: "d",
				Facts: []audit.Fact{{Name: "tool", Value: "crm/refund"}, {Name: "run", Value: "run_1"}},
			},
			ID: int64(100 + i), At: time.Date(2026, 11, 30, 12, 0, i, 5000, time.UTC), Seq: int64(i + 1),
		}
		mac, err := audit.Seal(key("k"), prev, r)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, audit.Link{Seq: r.Seq, EntryID: r.ID, MAC: mac, Entry: &r})
		prev = mac
	}
	return links
}

// first walks a chain and returns the position of its break, 0 when it is whole.
func first(links []audit.Link, checkpoints ...audit.Checkpoint) int64 {
	v := audit.NewVerifier(key("k"))
	var broken *audit.Break
	for _, l := range links {
		if err := v.Next(l); errors.As(err, &broken) {
			return broken.Seq
		}
	}
	for _, c := range checkpoints {
		if err := v.End(c); errors.As(err, &broken) {
			return broken.Seq
		}
	}
	return 0
}

func TestAWholeChainVerifies(t *testing.T) {
	links := chain(t, 5)
	if at := first(links, audit.Checkpoint{Seq: 5, MAC: links[4].MAC}, audit.Checkpoint{Seq: 3, MAC: links[2].MAC}); at != 0 {
		t.Errorf("breaks at %d", at)
	}
}

func TestEveryChangeOfAnEntryBreaksTheChainThere(t *testing.T) {
	for sentence, edit := range map[string]func(*audit.Recorded){
		"another organization":        func(r *audit.Recorded) { r.Org = "org_2" },
		"another actor":               func(r *audit.Recorded) { r.Actor.ID = "per_2" },
		"another name":                func(r *audit.Recorded) { r.Actor.Name = "Mallory" },
		"another event":               func(r *audit.Recorded) { r.Event = audit.ActionApproved },
		"another object":              func(r *audit.Recorded) { r.Object.ID = "act_2" },
		"another digest":              func(r *audit.Recorded) { r.Digest = "e" },
		"a microsecond later":         func(r *audit.Recorded) { r.At = r.At.Add(time.Microsecond) },
		"another id":                  func(r *audit.Recorded) { r.ID++ },
		"a fact less":                 func(r *audit.Recorded) { r.Facts = r.Facts[:1] },
		"a fact more":                 func(r *audit.Recorded) { r.Facts = append(r.Facts, audit.Fact{}) },
		"facts the other way":         func(r *audit.Recorded) { r.Facts = []audit.Fact{r.Facts[1], r.Facts[0]} },
		"text moved to its neighbour": func(r *audit.Recorded) { r.Object.Kind, r.Object.ID = "actio", "nact_1" },
	} {
		links := chain(t, 5)
		edited := *links[2].Entry
		edited.Facts = append([]audit.Fact(nil), edited.Facts...)
		edit(&edited)
		links[2].Entry = &edited
		if at := first(links); at != 3 {
			t.Errorf("%s: breaks at %d, want 3", sentence, at)
		}
	}
}

func TestDeletionsAreNamed(t *testing.T) {
	links := chain(t, 5)
	gone := append([]audit.Link(nil), links...)
	gone[1].Entry = nil
	if at := first(gone); at != 2 {
		t.Errorf("an entry without its seal: breaks at %d", at)
	}
	if at := first(append(append([]audit.Link(nil), links[:2]...), links[3:]...)); at != 3 {
		t.Errorf("an entry with its seal: breaks at %d", at)
	}
	if at := first(links[1:]); at != 1 {
		t.Errorf("the first one: breaks at %d", at)
	}
	if at := first(links[:3], audit.Checkpoint{Seq: 5, MAC: links[4].MAC}); at != 4 {
		t.Errorf("the end: breaks at %d", at)
	}
}

func TestAChainMadeWithAnotherKeyDoesNotPass(t *testing.T) {
	v := audit.NewVerifier(key("other"))
	if err := v.Next(chain(t, 1)[0]); err == nil {
		t.Error("it passes")
	}
}
