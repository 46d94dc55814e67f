package catalog_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

// fewestVendors is how many services of vendors the catalog connects to.
const fewestVendors = 45

// vendors are the hosted integrations of the catalog that somebody else runs.
func vendors(t *testing.T) []manifest.Manifest {
	t.Helper()
	return slices.DeleteFunc(built(t).Manifests(), func(m manifest.Manifest) bool { return m.Kind != registry.Hosted || m.Key == "sandbox-crm" })
}

// What a person needs to decide and to connect is there for every vendor: where it comes from, what to do, what it may do, how it is
// known to work.
func TestEveryVendorIsComplete(t *testing.T) {
	all := vendors(t)
	if len(all) < fewestVendors {
		t.Errorf("the catalog has %d vendors, fewer than %d", len(all), fewestVendors)
	}
	for _, m := range all {
		if m.Docs == "" || len(m.Setup.Steps) == 0 || len(m.Tools) == 0 || m.Probe == nil {
			t.Errorf("%s: docs %t, %d steps, %d tools, probe %t", m.Key, m.Docs != "", len(m.Setup.Steps), len(m.Tools), m.Probe != nil)
		}
		if paragraphs := strings.Count(m.Description, "\n\n") + 1; paragraphs < 2 {
			t.Errorf("%s says in %d paragraph what it does; a second one says what to watch for", m.Key, paragraphs)
		}
		for _, f := range m.Setup.Fields {
			if f.Hint == "" {
				t.Errorf("%s asks for %q without a hint", m.Key, f.Label)
			}
		}
		if a, ok := m.Contract(manifest.OAuth2); ok && a.Client == manifest.RegisteredClient && len(m.Grants) == 0 {
			t.Errorf("%s asks for consent and does not say to what", m.Key)
		}
	}
}

// Two entries that look or read alike would let a person connect the wrong one.
func TestNoTwoVendorsLookAlike(t *testing.T) {
	marks, summaries := map[string]string{}, map[string]string{}
	for _, m := range built(t).Manifests() {
		if other, taken := marks[m.Mark]; taken {
			t.Errorf("%s and %s have the mark %s", m.Key, other, m.Mark)
		}
		if other, taken := summaries[m.Summary]; taken {
			t.Errorf("%s and %s have the same summary", m.Key, other)
		}
		marks[m.Mark], summaries[m.Summary] = m.Key, m.Key
	}
}

// A way to authenticate that the registry trusts and no manifest offers is trust nobody needs. The practice CRM stands behind
// whatever its operator puts in front of it.
func TestEveryTrustedWayToAuthenticateIsOffered(t *testing.T) {
	for _, m := range vendors(t) {
		entry, _ := registry.Trusted().Lookup(m.Runtime)
		if _, offered := m.Contract(manifest.OAuth2); offered != entry.OAuth {
			t.Errorf("%s: the registry takes OAuth tokens %t, the manifest offers them %t", m.Key, entry.OAuth, offered)
		}
		if a, offered := m.Contract(manifest.Token); offered != (len(entry.Credentials) == 1) || offered && !entry.Accepts(a.Header, a.Format) {
			t.Errorf("%s: the registry takes %v, the manifest offers %v", m.Key, entry.Credentials, a)
		}
	}
}

// A grant nobody needs asks a person for too much; one that a tool needs is asked for with it.
func TestEveryOptionalGrantHasAUse(t *testing.T) {
	// What these open lies in arguments, not in a tool of its own, so they are chosen by a person and by no tool.
	byHand := map[string][]string{"github-mcp": {"workflows", "projects", "gists"}, "slack": {"files", "addresses"}, "box": {"docgen"}}
	for _, m := range vendors(t) {
		needed := map[string]bool{}
		for _, p := range m.Tools {
			for _, id := range p.Needs {
				needed[id] = true
			}
		}
		for _, g := range m.Grants {
			if g.Optional && !needed[g.ID] && !slices.Contains(byHand[m.Key], g.ID) {
				t.Errorf("%s: no tool needs the grant %s", m.Key, g.ID)
			}
		}
	}
}

// What arguments decide cannot be a read, whatever a vendor says of it: tools known to do as they are told.
func TestToolsThatDoAsTheyAreToldAreConsequential(t *testing.T) {
	for key, tools := range map[string][]string{
		"stripe": {"stripe_api_write"}, "cloudflare": {"execute"}, "monday": {"all_api_write"}, "neon": {"run_sql", "run_sql_transaction", "explain_sql_statement"},
		"supabase": {"execute_sql", "confirm_cost"}, "cloudflare-bindings": {"d1_database_query"}, "sentry": {"execute_sentry_tool"}, "github-mcp": {"issue_write", "actions_run_trigger"},
		"huggingface": {"hf_jobs", "dynamic_space"}, "postman": {"runCollection"}, "google-bigquery": {"execute_sql"},
	} {
		m, _ := built(t).Manifest(key)
		for _, tool := range tools {
			if p, ok := m.Policy(tool); !ok || p.Effect != policy.Consequential {
				t.Errorf("%s/%s is reviewed %t, as %q", key, tool, ok, p.Effect)
			}
		}
	}
}

// Annotations that were found to be wrong are overruled, in both directions.
func TestWrongAnnotationsAreOverruled(t *testing.T) {
	for key, tools := range map[string]map[string]policy.Effect{
		"monday":  {"submit_bug_or_feature_request": policy.Consequential, "link_board_items_workflow": policy.Consequential},
		"tavily":  {"tavily_search": policy.Read, "tavily_extract": policy.Read, "tavily_crawl": policy.Consequential},
		"neon":    {"get_connection_string": policy.Consequential},
		"render":  {"update_web_service": policy.Consequential, "list_workspaces": policy.Read},
		"notion":  {"notion-search": policy.Read},
		"postman": {"getEnvironment": policy.Consequential}, "buildkite": {"get_job_env": policy.Consequential},
		"github-mcp": {"get_secret_scanning_alert": policy.Consequential},
	} {
		m, _ := built(t).Manifest(key)
		for _, tool := range slices.Sorted(maps.Keys(tools)) {
			if p, _ := m.Policy(tool); p.Effect != tools[tool] {
				t.Errorf("%s/%s is reviewed as %q", key, tool, p.Effect)
			}
		}
	}
}

var saysNothing = regexp.MustCompile(`(?i)^(reads?|lists?|creates?|updates?|deletes?)\.?$`)

// A review is a statement somebody can check: in words of its own, not the tool's name again.
func TestReviewsSayWhatWasSeen(t *testing.T) {
	for _, m := range built(t).Manifests() {
		for _, p := range m.Tools {
			if saysNothing.MatchString(p.Why) {
				t.Errorf("%s/%s: %q", m.Key, p.Name, p.Why)
			}
		}
	}
}
