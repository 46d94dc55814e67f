package gh_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/provider"
	"countersign/internal/provider/cli/gh"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/registry"
)

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	p := gh.New(t.TempDir())
	if m := directtest.Agrees(t, p.Provider, catalog.Files(), "gh.toml"); m.Runtime != gh.Key {
		t.Errorf("the catalog's runtime is %s", m.Runtime)
	}
}

// Nobody ships gh with this server: until an operator has built it, connections say how, and nothing else is run in its place.
func TestWithoutTheProgramItSaysHowToBuildIt(t *testing.T) {
	p := gh.New(t.TempDir())
	url := directtest.Nowhere(t)
	c := directtest.Connect(t, provider.Settings{}, map[registry.Role]directtest.At{registry.API: {URL: url, Editor: directtest.Bearer(t, url, "github_pat_0123456789")}})
	_, err := p.Test(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "go build -trimpath") {
		t.Errorf("%v", err)
	}
	o := p.Execute(t.Context(), c, provider.Call{Tool: "runs_rerun", Arguments: json.RawMessage(`{"repo":"acme/web","run":"7"}`)})
	if o.Kind() != action.OutcomeFailed || o.Evidence().BytesWritten != 0 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
}
