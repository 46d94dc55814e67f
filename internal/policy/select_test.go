package policy_test

import (
	"slices"
	"strings"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/policy"
)

var (
	read  = policy.Class{Effect: policy.Read}
	write = policy.Class{Effect: policy.Consequential}
	now   = []policy.Candidate{
		{Tool: "find", Digest: "d1", Class: read},
		{Tool: "list", Digest: "d2", Class: read},
		{Tool: "move", Digest: "d3", Class: write},
		{Tool: "odd", Digest: "d4", Class: write, Problem: "its schema cannot be read."},
		{Tool: "shifty", Digest: "d5", Class: read, Held: true},
	}
)

func granted(t *testing.T, tools ...string) policy.Snapshot {
	t.Helper()
	var pins []policy.Pinned
	for _, n := range tools {
		pins = append(pins, policy.Pinned{Tool: n, Digest: "old"})
	}
	s, err := policy.NewSnapshot(pins)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		sentence string
		now      policy.Standing
		choice   policy.Choice
		want     []string
		refusal  string
	}{
		{"the first mode selects everything eligible", policy.Standing{}, policy.Choice{Mode: policy.AskUserOnWrite}, []string{"find", "list", "move"}, ""},
		{"read only selects the reads", policy.Standing{}, policy.Choice{Mode: policy.ReadOnly}, []string{"find", "list"}, ""},
		{"a mode-only change replaces a narrower list", policy.Standing{Mode: policy.ReadOnly, Snapshot: granted(t, "find")}, policy.Choice{Mode: policy.Autonomous}, []string{"find", "list", "move"}, ""},
		{"an unchanged mode without a list changes nothing", policy.Standing{Mode: policy.ReadOnly, Snapshot: granted(t, "find")}, policy.Choice{Mode: policy.ReadOnly}, []string{"find"}, ""},
		{"an explicit list wins over the mode", policy.Standing{Mode: policy.ReadOnly, Snapshot: granted(t, "find")}, policy.Choice{Mode: policy.AskUserOnWrite, Listed: true, Tools: []string{"move"}}, []string{"move"}, ""},
		{"an explicit empty list means none", policy.Standing{Mode: policy.ReadOnly, Snapshot: granted(t, "find")}, policy.Choice{Mode: policy.AskUserOnWrite, Listed: true}, []string{}, ""},
		{"a write cannot be listed in read only", policy.Standing{}, policy.Choice{Mode: policy.ReadOnly, Listed: true, Tools: []string{"move"}}, nil, "this mode only reads"},
		{"a held-back tool refuses the save", policy.Standing{}, policy.Choice{Mode: policy.ReadOnly, Listed: true, Tools: []string{"find", "shifty"}}, nil, "held back"},
		{"an unusable tool refuses the save", policy.Standing{}, policy.Choice{Mode: policy.Autonomous, Listed: true, Tools: []string{"odd"}}, nil, "cannot be used"},
		{"an unknown tool refuses the save", policy.Standing{}, policy.Choice{Mode: policy.Autonomous, Listed: true, Tools: []string{"Find"}}, nil, "no tool"},
		{"a tool listed twice refuses the save", policy.Standing{}, policy.Choice{Mode: policy.Autonomous, Listed: true, Tools: []string{"find", "find"}}, nil, "twice"},
		{"ticks without a list are asked about", policy.Standing{Mode: policy.ReadOnly, Snapshot: granted(t, "find")}, policy.Choice{Mode: policy.ReadOnly, Tools: []string{"list"}}, nil, "every tool"},
		{"ticks equal to what is stored are no question", policy.Standing{Mode: policy.ReadOnly, Snapshot: granted(t, "find")}, policy.Choice{Mode: policy.AskUserOnWrite, Tools: []string{"find"}}, []string{"find", "list", "move"}, ""},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			got, err := policy.Select(c.now, c.choice, now)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Fatalf("got %v, want a refusal saying %q", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Snapshot.Tools(), c.want) && len(got.Snapshot.Tools())+len(c.want) > 0 {
				t.Errorf("got %v, want %v", got.Snapshot.Tools(), c.want)
			}
			if got.Mode != c.choice.Mode {
				t.Errorf("mode is %q", got.Mode)
			}
		})
	}
}

func TestDiscoveryNeverWidensASnapshot(t *testing.T) {
	before := policy.Standing{Mode: policy.Autonomous, Snapshot: granted(t, "find")}
	grown := append(slices.Clone(now), policy.Candidate{Tool: "new", Digest: "d9", Class: read})
	after, err := policy.Select(before, policy.Choice{Mode: policy.Autonomous}, grown)
	if err != nil || !after.Snapshot.Equal(before.Snapshot) {
		t.Errorf("got %v, %v", after.Snapshot.Tools(), err)
	}
}

func TestASnapshotOnlyNarrows(t *testing.T) {
	s := granted(t, "find", "list")
	if got := s.Only(func(p policy.Pinned) bool { return p.Tool != "find" }).Tools(); !slices.Equal(got, []string{"list"}) {
		t.Errorf("got %v", got)
	}
	if _, ok := s.Find("FIND"); ok {
		t.Error("names must be byte-equal")
	}
	if _, err := policy.NewSnapshot([]policy.Pinned{{Tool: "a"}, {Tool: "a"}}); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("two entries for one tool: %v", err)
	}
}

// A held-back tool has no tick to post. A form that moves only the mode must not be asked what it meant by leaving it out.
func TestATickThatCannotBePostedIsNoQuestion(t *testing.T) {
	before := policy.Standing{Mode: policy.AskUserOnWrite, Snapshot: granted(t, "find", "moved")}
	offered := []policy.Candidate{{Tool: "find", Digest: "d1", Class: read}, {Tool: "moved", Digest: "d9", Class: read, Held: true}}
	after, err := policy.Select(before, policy.Choice{Mode: policy.ReadOnly, Tools: []string{"find"}}, offered)
	if err != nil || !slices.Equal(after.Snapshot.Tools(), []string{"find"}) {
		t.Errorf("got %v, %v", after.Snapshot.Tools(), err)
	}
	if _, err := policy.Select(before, policy.Choice{Mode: policy.ReadOnly, Tools: []string{"moved"}}, offered); !fault.Is(err, fault.CodeConflict) {
		t.Errorf("other ticks than the page offered: %v", err)
	}
}

func TestTheNarrowerOfTwoModes(t *testing.T) {
	order := append([]policy.Mode{""}, policy.Modes...)
	for i, a := range order {
		for j, b := range order {
			if got := a.Within(b); got != order[min(i, j)] {
				t.Errorf("%q within %q is %q", a, b, got)
			}
		}
	}
}

// What a definition counts as may change; what is granted may not grow by it.
func TestReclassifyingTouchesOnlyTheVeryDefinitionThatIsGranted(t *testing.T) {
	pinned, err := policy.NewSnapshot([]policy.Pinned{
		{Tool: "find", Digest: "d1", Effect: policy.Consequential}, {Tool: "list", Digest: "old", Effect: policy.Read}, {Tool: "move", Digest: "d3", Effect: policy.Read},
	})
	if err != nil {
		t.Fatal(err)
	}
	offered := []policy.Candidate{
		{Tool: "find", Digest: "d1", Class: read},
		{Tool: "list", Digest: "d2", Class: write},
		{Tool: "move", Digest: "d3", Class: policy.Class{Effect: policy.Consequential, Destructive: true}},
		{Tool: "new", Digest: "d9", Class: read},
	}
	for mode, want := range map[policy.Mode][]policy.Pinned{
		policy.AskUserOnWrite: {
			{Tool: "find", Digest: "d1", Effect: policy.Read},
			{Tool: "list", Digest: "old", Effect: policy.Read},
			{Tool: "move", Digest: "d3", Effect: policy.Consequential, Destructive: true},
		},
		policy.ReadOnly: {{Tool: "find", Digest: "d1", Effect: policy.Read}, {Tool: "list", Digest: "old", Effect: policy.Read}},
	} {
		got, err := policy.Reclassify(policy.Standing{Mode: mode, Snapshot: pinned}, offered)
		if err != nil || got.Mode != mode || !slices.Equal(slices.Collect(got.Snapshot.All()), want) {
			t.Errorf("%s: %+v, %v", mode, slices.Collect(got.Snapshot.All()), err)
		}
	}
}
