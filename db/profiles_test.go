package db

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/profile"
)

var saved = note(audit.ProfileSaved, "profile", "engineering")

func TestAProfileReadsBackAsItWasSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Profiles{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	p := profile.Profile{Org: org.ID, Name: "engineering", Department: "eng", Budget: 7, Uses: []profile.Use{
		{Connection: "z-last-aaaaaa", Mode: policy.Modes[0], Tools: []string{"b", "a"}},
		{Connection: "a-first-bbbbbb"},                   // all that the connection grants
		{Connection: "m-none-cccccc", Tools: []string{}}, // no tool at all
	}}
	must(t, s.SaveProfile(ctx, p, saved))
	must(t, s.SaveProfile(ctx, profile.Profile{Org: org.ID, Name: "support"}, saved))
	got, err := s.Profile(ctx, org.ID, "engineering")
	must(t, err)
	if got.Version == 0 {
		t.Fatal("it has no version")
	}
	p.Version = got.Version
	if diff := cmp.Diff(p, got); diff != "" {
		t.Fatal(diff)
	}
	p.Uses = p.Uses[1:]
	must(t, s.SaveProfile(ctx, p, saved))
	got, err = s.Profile(ctx, org.ID, "engineering")
	must(t, err)
	p.Version = got.Version
	if diff := cmp.Diff(p, got); diff != "" {
		t.Fatal(diff)
	}
	all, err := s.Profiles(ctx, org.ID)
	must(t, err)
	if len(all) != 2 || cmp.Diff(all[0], got) != "" || all[1].Name != "support" {
		t.Fatalf("got %+v", all)
	}
	isFault(t, s.SaveProfile(ctx, profile.Profile{Org: org.ID, Name: "engineering"}, saved), fault.CodeConflict)
	isField(t, s.SaveProfile(ctx, profile.Profile{Org: org.ID, Name: "Not a name"}, saved), "name")
	_, err = s.Profile(ctx, org.ID, "nobody\x00")
	isFault(t, err, fault.CodeNotFound)
}

func TestOfTwoWhoSaveTheSameVersionOneIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Profiles{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	must(t, s.SaveProfile(ctx, profile.Profile{Org: org.ID, Name: "engineering"}, saved))
	for range 10 {
		seen, err := s.Profile(ctx, org.ID, "engineering")
		must(t, err)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			mine := seen
			mine.Budget = i + 1
			wg.Go(func() { errs[i] = s.SaveProfile(ctx, mine, saved) })
		}
		wg.Wait()
		now, err := s.Profile(ctx, org.ID, "engineering")
		must(t, err)
		won := 0
		for i, err := range errs {
			if err != nil {
				isFault(t, err, fault.CodeStale)
				continue
			}
			if won++; now.Budget != i+1 {
				t.Fatalf("budget %d is stored, but the save of %d succeeded", now.Budget, i+1)
			}
		}
		if won != 1 || now.Version <= seen.Version {
			t.Fatalf("%d saves of one version succeeded; version %d after %d", won, now.Version, seen.Version)
		}
	}
	if n := w.count(t, "SELECT count(*) FROM audit_entries WHERE event = $1", audit.ProfileSaved); n != 11 {
		t.Fatalf("11 saves left %d entries", n)
	}
}

func TestAProfileMadeAgainIsNotTheOneAnOldPageShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ctx := Profiles{w.DB}, t.Context()
	org, _ := w.newOrg(t, "acme")
	other, _ := w.newOrg(t, "other")
	removed := note(audit.ProfileRemoved, "profile", "engineering")
	must(t, s.SaveProfile(ctx, profile.Profile{Org: org.ID, Name: "engineering"}, saved))
	old, err := s.Profile(ctx, org.ID, "engineering")
	must(t, err)
	isFault(t, s.RemoveProfile(ctx, other.ID, "engineering", old.Version, removed), fault.CodeNotFound)
	isFault(t, s.RemoveProfile(ctx, org.ID, "engineering", old.Version+1, removed), fault.CodeStale)
	must(t, s.RemoveProfile(ctx, org.ID, "engineering", old.Version, removed))
	isFault(t, s.SaveProfile(ctx, old, saved), fault.CodeNotFound)
	must(t, s.SaveProfile(ctx, profile.Profile{Org: org.ID, Name: "engineering", Budget: 1}, saved))
	isFault(t, s.SaveProfile(ctx, old, saved), fault.CodeStale)
	isFault(t, s.RemoveProfile(ctx, org.ID, "engineering", old.Version, removed), fault.CodeStale)
	foreign := old
	foreign.Org = other.ID
	isFault(t, s.SaveProfile(ctx, foreign, saved), fault.CodeNotFound)
	if all, err := s.Profiles(ctx, other.ID); err != nil || len(all) != 0 {
		t.Fatalf("got %+v, %v", all, err)
	}
}
