package directtest

import (
	"io/fs"
	"slices"
	"testing"

	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Agrees compares what a provider declares in code with what the catalog says of it in words, tool by tool.
func Agrees(t *testing.T, p *direct.Provider, catalog fs.FS, file string) manifest.Manifest {
	t.Helper()
	raw, err := fs.ReadFile(catalog, file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(file, raw, registry.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range p.Declared() {
		reviewed, ok := m.Policy(tool.Name)
		if !ok {
			t.Errorf("%s is not in %s", tool.Name, file)
			continue
		}
		agree(t, m, tool, reviewed)
	}
	if len(m.Tools) != len(p.Declared()) {
		t.Errorf("%s has %d tools, the code has %d", file, len(m.Tools), len(p.Declared()))
	}
	return m
}

func agree(t *testing.T, m manifest.Manifest, tool direct.Tool, reviewed manifest.ToolPolicy) {
	t.Helper()
	if reviewed.Effect != tool.Effect() || reviewed.Destructive != tool.Destructive {
		t.Errorf("%s is %s (destructive %t) in the catalog and %s (%t) in code", tool.Name, reviewed.Effect, reviewed.Destructive, tool.Effect(), tool.Destructive)
	}
	for _, a := range reviewed.Arguments {
		if _, ok := tool.Input.Fields[a]; !ok {
			t.Errorf("%s has no argument %s", tool.Name, a)
		}
	}
	for _, a := range reviewed.Placeholders() {
		if !slices.Contains(tool.Input.Required, a) {
			t.Errorf("the sentence of %s shows %s, which a call may leave out", tool.Name, a)
		}
	}
	money := ""
	if reviewed.Money != nil {
		money = reviewed.Money.Argument
	}
	if money != tool.Money {
		t.Errorf("the money of %s is %q in the catalog and %q in code", tool.Name, money, tool.Money)
	}
	if tool.Effect() == policy.Consequential && tool.Resource != "" && (reviewed.Resource == nil || reviewed.Resource.Argument != tool.Resource) {
		t.Errorf("%s acts upon %s, which the catalog does not say", tool.Name, tool.Resource)
	}
	if reviewed.Probe != nil {
		t.Errorf("%s has a probe in the catalog; its own code looks", tool.Name)
	}
	for _, l := range reviewed.LookUps {
		looked := slices.IndexFunc(m.Tools, func(p manifest.ToolPolicy) bool { return p.Name == l.Tool })
		if looked < 0 {
			t.Errorf("%s is looked up with %s, which is not there", tool.Name, l.Tool)
		}
	}
}
