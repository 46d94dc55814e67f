package profile_test

import (
	"slices"
	"testing"

	"countersign/internal/policy"
	"countersign/internal/profile"
)

func standing(t *testing.T, mode policy.Mode, tools ...string) policy.Standing {
	t.Helper()
	var pins []policy.Pinned
	for _, n := range tools {
		pins = append(pins, policy.Pinned{Tool: n})
	}
	s, err := policy.NewSnapshot(pins)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Standing{Mode: mode, Snapshot: s}
}

func TestAProfileOnlyNarrows(t *testing.T) {
	for _, c := range []struct {
		sentence string
		use      profile.Use
		mode     policy.Mode
		want     policy.Mode
		tools    []string
	}{
		{"it leaves alone what it does not name", profile.Use{}, policy.Autonomous, policy.Autonomous, []string{"a", "b"}},
		{"a narrower mode applies", profile.Use{Mode: policy.ReadOnly}, policy.Autonomous, policy.ReadOnly, []string{"a", "b"}},
		{"a wider mode does not", profile.Use{Mode: policy.Autonomous}, policy.AskUserOnWrite, policy.AskUserOnWrite, []string{"a", "b"}},
		{"no mode chosen stays none", profile.Use{Mode: policy.ReadOnly}, "", "", []string{"a", "b"}},
		{"named tools are all there is", profile.Use{Tools: []string{"b"}}, policy.ReadOnly, policy.ReadOnly, []string{"b"}},
		{"a tool that is not granted is not granted by naming it", profile.Use{Tools: []string{"b", "c"}}, policy.ReadOnly, policy.ReadOnly, []string{"b"}},
		{"an empty list is none", profile.Use{Tools: []string{}}, policy.ReadOnly, policy.ReadOnly, []string{}},
	} {
		got := c.use.Narrow(standing(t, c.mode, "a", "b"))
		if got.Mode != c.want || !slices.Equal(got.Snapshot.Tools(), c.tools) {
			t.Errorf("%s: got %q and %v", c.sentence, got.Mode, got.Snapshot.Tools())
		}
	}
}

func TestWhatIsWrongWithAProfile(t *testing.T) {
	fine := profile.Profile{Name: "support", Budget: 5, Uses: []profile.Use{{Connection: "crm-abcdef"}}}
	if err := fine.Check(); err != nil {
		t.Fatal(err)
	}
	for sentence, spoil := range map[string]func(*profile.Profile){
		"a name with a space":     func(p *profile.Profile) { p.Name = "my support" },
		"no name":                 func(p *profile.Profile) { p.Name = "" },
		"a budget below nothing":  func(p *profile.Profile) { p.Budget = -1 },
		"a budget without bound":  func(p *profile.Profile) { p.Budget = 1 << 30 },
		"a connection used twice": func(p *profile.Profile) { p.Uses = append(p.Uses, p.Uses[0]) },
	} {
		p := fine
		p.Uses = slices.Clone(fine.Uses)
		spoil(&p)
		if p.Check() == nil {
			t.Errorf("%s is accepted", sentence)
		}
	}
}
