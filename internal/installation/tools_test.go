package installation_test

import (
	"slices"
	"testing"
	"time"

	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func observed(tool, digest string, readOnly policy.Hint) installation.Observed {
	return installation.Observed{Tool: tool, Digest: digest, Recipe: 1, Raw: []byte(`{"name":"` + tool + `"}`), Annotations: policy.Annotations{ReadOnly: readOnly}, FirstSeen: began}
}

func connection(t *testing.T, mode policy.Mode, pins ...policy.Pinned) installation.Connection {
	t.Helper()
	s, err := policy.NewSnapshot(pins)
	if err != nil {
		t.Fatal(err)
	}
	return installation.Connection{Kind: registry.Hosted, Standing: policy.Standing{Mode: mode, Snapshot: s}}
}

func find(t *testing.T, tools []installation.Tool, name string) installation.Tool {
	t.Helper()
	i := slices.IndexFunc(tools, func(x installation.Tool) bool { return x.Tool == name })
	if i < 0 {
		t.Fatalf("%s is not listed", name)
	}
	return tools[i]
}

func TestWhatIsListedIsLaidOverWhatIsGranted(t *testing.T) {
	m := manifest.Manifest{Tools: []manifest.ToolPolicy{{Name: "refund", Effect: policy.Consequential, Destructive: true, Sentence: "Refund {amount}"}}}
	c := connection(t, policy.AskUserOnWrite, policy.Pinned{Tool: "list", Digest: "d1", Recipe: 1, Effect: policy.Read},
		policy.Pinned{Tool: "moved", Digest: "old", Recipe: 1, Effect: policy.Read}, policy.Pinned{Tool: "gone", Digest: "d4", Recipe: 1, Effect: policy.Consequential})
	late := observed("late", "d5", policy.HintTrue)
	late.FirstSeen = began.Add(time.Hour)
	listed := []installation.Observed{observed("list", "d1", policy.HintTrue), observed("moved", "new", policy.HintTrue), observed("refund", "d3", policy.HintTrue), late}
	tools := installation.Merge(c, listed, nil, m)

	if x := find(t, tools, "list"); x.Pinned == nil || x.Held || !x.Listed || x.Class.Effect != policy.Read {
		t.Errorf("an unchanged tool: %+v", x)
	}
	if x := find(t, tools, "moved"); !x.Held || x.Candidate().Eligible(policy.AccessFull) {
		t.Errorf("a changed tool is not held back: %+v", x)
	}
	if x := find(t, tools, "refund"); x.Class.Effect != policy.Consequential || !x.Class.Destructive || x.Sentence == "" || x.New {
		t.Errorf("the review does not outrank the hint: %+v", x)
	}
	if x := find(t, tools, "late"); !x.New || x.Pinned != nil {
		t.Errorf("a tool that appeared later is not new, or is granted: %+v", x)
	}
	if x := find(t, tools, "gone"); x.Listed || x.Candidate().Problem == "" || x.Pinned == nil {
		t.Errorf("a tool that is not listed any more: %+v", x)
	}
	if got := installation.Selects(tools, policy.ReadOnly); !slices.Equal(got, []string{"late", "list"}) {
		t.Errorf("read only selects %v", got)
	}
	if got := installation.Selects(tools, policy.Autonomous); !slices.Equal(got, []string{"late", "list", "refund"}) {
		t.Errorf("autonomous selects %v", got)
	}
	if held := installation.HeldBack(tools); len(held) != 1 || held[0].Tool != "moved" {
		t.Errorf("held back: %+v", held)
	}
	if names := installation.HeldNames(c, listed); !slices.Equal(names, []string{"moved"}) {
		t.Errorf("held back by name: %v", names)
	}
}

func TestACustomRemotesHintIsNotTrusted(t *testing.T) {
	c := connection(t, policy.ReadOnly)
	c.Kind = registry.Remote
	tools := installation.Merge(c, []installation.Observed{observed("list", "d1", policy.HintTrue)}, nil, manifest.Manifest{})
	if x := find(t, tools, "list"); x.Class.Effect != policy.Consequential {
		t.Errorf("got %+v", x.Class)
	}
}

func TestACallStaysWithinTheConnectionsResource(t *testing.T) {
	m := manifest.Manifest{Tools: []manifest.ToolPolicy{{Name: "query", Resource: &manifest.ResourceArgument{Argument: "project", Setting: "project"}}, {Name: "free"}}}
	bound := installation.Connection{Settings: map[string]string{"project": "42"}}
	for _, c := range []struct {
		sentence, tool, arguments string
		inside                    bool
	}{
		{"the same text", "query", `{"project":"42"}`, true},
		{"the same number", "query", `{"project":42}`, true},
		{"another project", "query", `{"project":"43"}`, false},
		{"no project", "query", `{}`, false},
		{"nothing", "query", `{"project":null}`, false},
		{"a list that holds it", "query", `{"project":["42"]}`, false},
		{"the same with a space", "query", `{"project":"42 "}`, false},
		{"arguments that are no object", "query", `[]`, false},
		{"a tool without a bound", "free", `{"project":"43"}`, true},
	} {
		if why := installation.Outside(m, bound, nil, c.tool, []byte(c.arguments)); (why == "") != c.inside {
			t.Errorf("%s: %q", c.sentence, why)
		}
	}
	if why := installation.Outside(m, installation.Connection{}, nil, "query", []byte(`{"project":"43"}`)); why != "" {
		t.Errorf("a connection without the setting: %q", why)
	}
}

func TestAnAddressComesFromTheRegistryOrTheOperator(t *testing.T) {
	table := registry.Trusted()
	if _, err := installation.DestinationOf(table, "sandbox_crm.v1"); err == nil {
		t.Error("a runtime without an address has one")
	}
	if _, err := installation.DestinationOf(table, "nobody.v1"); !fault.Is(err, fault.ConnectionUnavailable) {
		t.Errorf("an unknown runtime: %v", err)
	}
	d, err := installation.DestinationOf(table, "context7.v1")
	if err != nil || d.Overridden() {
		t.Errorf("a public runtime: %v", err)
	}
	moved, err := table.NewOverride("sandbox_crm.v1", "http://127.0.0.1:1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := installation.DestinationOf(table.With(moved), "sandbox_crm.v1"); err != nil || !d.Overridden() || d.URL() != "http://127.0.0.1:1/mcp" {
		t.Errorf("a moved runtime: %v, %v", d, err)
	}
}
