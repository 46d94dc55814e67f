package catalog_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"countersign/internal/connector"
	"countersign/internal/egress"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/mcpclient"
	"countersign/internal/registry"
)

// listed is the tool list of a vendor's published package, as the package itself answered it: names and annotations.
type listed struct {
	Package     string
	Integration string // of the catalog; empty: it has none, and nothing is reviewed
	Tools       []json.RawMessage
}

// judged counts what becomes of a list.
type judged struct{ reads, effects, destructive int }

// rightly is what was found right by reading each list.
var rightly = map[string]judged{
	"@circleci/mcp-server-circleci@0.20.0":  {reads: 0, effects: 13, destructive: 5}, // nothing is annotated as a read, so nothing is one
	"@hubspot/mcp-server@0.4.0":             {reads: 14, effects: 7},
	"@mondaydotcomorg/monday-api-mcp@3.3.0": {reads: 31, effects: 61, destructive: 12},
	"@neondatabase/mcp-server-neon@0.3.7":   {reads: 5, effects: 11, destructive: 5},
	"@notionhq/notion-mcp-server@2.5.2":     {reads: 12, effects: 12, destructive: 12},
	"@postman/postman-mcp-server@2.13.0":    {reads: 19, effects: 23, destructive: 6},
	"@sentry/mcp-server@0.36.0":             {reads: 16, effects: 6, destructive: 2},
	"@upstash/context7-mcp":                 {reads: 2},
	"exa-mcp-server":                        {reads: 2},
	"firecrawl-mcp":                         {reads: 15, effects: 11, destructive: 4},
	"mongodb-mcp-server@3.0.4":              {reads: 18, effects: 9, destructive: 6},
	"tavily-mcp@0.2.22":                     {reads: 3, effects: 2},
}

// The reviews that overrule a vendor's own annotations, and nothing else may. The first say nothing of what is a read, the second call
// something a read that is none.
var (
	vouchedFor = []string{
		"describe_branch", "describe_project", "describe_table_schema", "get_database_tables", "list_projects", // Neon annotates nothing
		"tavily_extract", "tavily_map", "tavily_search", // nor does Tavily
	}
	mistrusted = []string{
		"getEnvironment",            // answers an environment with its secrets
		"link_board_items_workflow", // leads into linking
		"submit_bug_or_feature_request",
	}
)

// TestMeasuredVendorsAreClassified serves the real tool lists of twelve vendors' packages over HTTP, reads them as any connection's, and
// judges each tool by the catalog's review, or by its annotation where there is none.
func TestMeasuredVendorsAreClassified(t *testing.T) {
	raw, err := os.ReadFile("testdata/measured-tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var vouched, doubted []string
	got := map[string]judged{}
	for _, l := range all {
		m, _ := built(t).Manifest(l.Integration)
		var n judged
		for _, d := range observed(t, l) {
			e := policy.Evidence{Annotations: d.Annotations, Origin: policy.CatalogVendor}
			if p, ok := m.Policy(d.Name); ok {
				e.Review = p.Review()
			}
			c := policy.Classify(e)
			switch says := d.Annotations.ReadOnly == policy.HintTrue && d.Annotations.Destructive != policy.HintTrue; {
			case c.Effect == policy.Read && d.Annotations.ReadOnly == policy.HintFalse:
				t.Errorf("%s: %s counts as a read although its vendor says that it writes", l.Package, d.Name)
			case c.Effect == policy.Read && !says:
				vouched = append(vouched, d.Name)
			case c.Effect != policy.Read && says:
				doubted = append(doubted, d.Name)
			}
			if c.Effect != policy.Read && d.Annotations.Destructive == policy.HintTrue && !c.Destructive {
				t.Errorf("%s: %s is destructive by its vendor's own words, and not by ours", l.Package, d.Name)
			}
			switch {
			case c.Effect == policy.Read:
				n.reads++
			case c.Destructive:
				n.destructive++
				n.effects++
			default:
				n.effects++
			}
		}
		got[l.Package] = n
	}
	for name, want := range rightly {
		if got[name] != want {
			t.Errorf("%s is judged %+v, want %+v", name, got[name], want)
		}
		delete(got, name)
	}
	for name, n := range got {
		t.Errorf("%s is judged %+v, and nobody said what is right", name, n)
	}
	for what, pair := range map[string][2][]string{"vouched for": {vouched, vouchedFor}, "mistrusted": {doubted, mistrusted}} {
		slices.Sort(pair[0])
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s are %q, want %q", what, pair[0], pair[1])
		}
	}
}

// observed serves a list and reads it with the one client there is.
func observed(t *testing.T, l listed) []provider.Definition {
	t.Helper()
	tools := make([]map[string]json.RawMessage, len(l.Tools))
	for i, raw := range l.Tools {
		if err := json.Unmarshal(raw, &tools[i]); err != nil {
			t.Fatal(err)
		}
		tools[i]["inputSchema"] = json.RawMessage(`{"type":"object"}`)
	}
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := map[string]any{"supportedVersions": []string{"2026-07-28"}, "capabilities": map[string]any{"tools": map[string]any{}}, "resultType": "complete"}
		if q.Method == "tools/list" {
			result = map[string]any{"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": q.ID, "result": result})
	}))
	t.Cleanup(vendor.Close)
	d, err := egress.Operator(vendor.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	c := provider.NewConn("org_1", connector.NewKey("measured"), provider.Settings{}, map[registry.Role]provider.Target{registry.MCP: {Destination: d}})
	t.Cleanup(c.Close)
	found, err := mcpclient.New("test").Tools(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", l.Package, err)
	}
	if len(found) != len(l.Tools) {
		t.Errorf("%s offers %d tools, and %d are read", l.Package, len(l.Tools), len(found))
	}
	for _, f := range found {
		if f.Problem != "" {
			t.Errorf("%s: %s cannot be used: %s", l.Package, f.Name, f.Problem)
		}
	}
	return found
}
