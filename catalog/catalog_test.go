package catalog_test

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"

	"countersign/catalog"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/release"
)

// whole is the catalog, checked once for all tests.
var whole = sync.OnceValues(func() (release.Release, error) { return release.Build(catalog.Files(), registry.Trusted()) })

func built(t *testing.T) release.Release {
	t.Helper()
	r, err := whole()
	if err != nil {
		t.Fatalf("the catalog does not pass its own check:\n%v", err)
	}
	return r
}

func TestEveryManifestPassesTheCheck(t *testing.T) {
	r := built(t)
	for _, key := range []string{"sandbox-crm", "context7", "exa", "firecrawl", "microsoft-learn", "deepwiki", "cloudflare-docs"} {
		if _, ok := r.Manifest(key); !ok {
			t.Errorf("the catalog has no %s", key)
		}
	}
}

// A runtime nobody describes is trust nobody needs.
func TestEveryRuntimeHasAManifest(t *testing.T) {
	var used []registry.Key
	for _, m := range built(t).Manifests() {
		used = append(used, m.Runtime)
	}
	for _, k := range registry.Trusted().Keys() {
		if !slices.Contains(used, k) {
			t.Errorf("no manifest uses the runtime %s", k)
		}
	}
}

// What a review relies on must be there: tool names, argument names, and the vendor's own hints where it has them.
func TestSandboxCRMReviewMatchesItsDefinitions(t *testing.T) {
	raw, err := os.ReadFile("../internal/crm/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools []struct {
		Name        string
		InputSchema struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		Annotations struct {
			ReadOnlyHint    *bool
			DestructiveHint *bool
		}
	}
	if err := json.Unmarshal(raw, &tools); err != nil {
		t.Fatal(err)
	}
	m, _ := built(t).Manifest("sandbox-crm")
	for _, tool := range tools {
		p, reviewed := m.Policy(tool.Name)
		if tool.Name == "notes_add" {
			if reviewed {
				t.Error("notes_add stands for what nobody has reviewed")
			}
			continue
		}
		if !reviewed {
			t.Errorf("%s is not reviewed", tool.Name)
			continue
		}
		for _, a := range p.Arguments {
			if _, ok := tool.InputSchema.Properties[a]; !ok {
				t.Errorf("%s has no argument %s", tool.Name, a)
			}
		}
		for _, a := range p.Placeholders() {
			if !slices.Contains(tool.InputSchema.Required, a) {
				t.Errorf("the sentence of %s shows %s, which a call may leave out", tool.Name, a)
			}
		}
		if hint := tool.Annotations.ReadOnlyHint; hint != nil && *hint != (p.Effect == policy.Read) {
			t.Errorf("%s is reviewed as %s and annotated readOnlyHint %t", tool.Name, p.Effect, *hint)
		}
		if hint := tool.Annotations.DestructiveHint; (hint != nil && *hint) != p.Destructive {
			t.Errorf("%s is reviewed as destructive %t", tool.Name, p.Destructive)
		}
	}
	if len(m.Tools) != len(tools)-1 {
		t.Errorf("%d tools are reviewed, the CRM has %d besides notes_add", len(m.Tools), len(tools)-1)
	}
}
