package analytics_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/catalog"
	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct/analytics"
	"countersign/internal/provider/direct/analytics/analyticstest"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/provider/providertest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

var google = analytics.New()

func call(tool, arguments string) provider.Call {
	return provider.Call{Tool: tool, Arguments: json.RawMessage(arguments)}
}

func at(t *testing.T, v *analyticstest.Vendor, url string, s provider.Settings) *provider.Conn {
	t.Helper()
	place := func(raw string) egress.Destination {
		d, err := egress.Operator(raw)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, err := credential.NewAccount(secret.New(v.Key), place(v.TokenURL), []string{analyticstest.Scope}, place(url))
	if err != nil {
		t.Fatal(err)
	}
	return directtest.Connect(t, s, map[registry.Role]directtest.At{registry.Data: {URL: url, Editor: a}, registry.Admin: {URL: url, Editor: a}})
}

func connect(t *testing.T, v *analyticstest.Vendor, s provider.Settings) *provider.Conn {
	t.Helper()
	return at(t, v, v.URL, s)
}

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	if m := directtest.Agrees(t, google, catalog.Files(), "google-analytics.toml"); m.Runtime != analytics.Key || strings.Join(m.AccountScopes(), " ") != analyticstest.Scope {
		t.Errorf("the catalog has runtime %s and scopes %v", m.Runtime, m.AccountScopes())
	}
}

func TestTheExam(t *testing.T) {
	v, gone := analyticstest.New(t), analyticstest.New(t)
	gone.Disable()
	providertest.Run(t, &providertest.World{
		Provider: google,
		Connect:  func(t *testing.T, s provider.Settings) *provider.Conn { return connect(t, v, s) },
		Dead: func(t *testing.T) *provider.Conn {
			return at(t, v, directtest.Nowhere(t), provider.Settings{Timeout: time.Second})
		},
		Revoked:  func(t *testing.T) *provider.Conn { return connect(t, gone, provider.Settings{}) },
		Secret:   analyticstest.Token,
		Read:     call("get_property", `{"property_id":"1001"}`),
		Large:    call("run_report", `{"property_id":"1001","dimensions":["country"],"metrics":["activeUsers"],"date_ranges":[{"start_date":"7daysAgo","end_date":"today"}],"limit":400}`),
		Requests: func() int { return len(v.Requests()) },
		Break:    func(_ *testing.T, tool string, m providertest.Fault) { v.Break(tool, directtest.Mode(m)) },
		Restore:  func(*testing.T) { v.Mend() },
		Faults:   directtest.Faults,
	})
}

type told struct {
	text       string
	structured map[string]any
	failed     bool
}

func read(t *testing.T, c *provider.Conn, tool, arguments string) (told, error) {
	t.Helper()
	r, err := google.Read(t.Context(), c, call(tool, arguments))
	if err != nil {
		return told{}, err
	}
	var out struct {
		Content           []struct{ Text string }
		StructuredContent map[string]any
		IsError           bool
	}
	if err := json.Unmarshal(r.Raw, &out); err != nil {
		t.Fatal(err)
	}
	return told{out.Content[0].Text, out.StructuredContent, out.IsError}, nil
}

func TestAReportIsATable(t *testing.T) {
	v := analyticstest.New(t)
	c := connect(t, v, provider.Settings{})
	first, err := read(t, c, "run_report", `{"property_id":"1001","dimensions":["country"],"metrics":["activeUsers"],"date_ranges":[{"start_date":"7daysAgo","end_date":"today"}],"limit":3}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"country | activeUsers\n--- | ---\nCountry number 0 with a long name | 400\n", "3 of 400 rows; the rest begins at offset 3.", "Sampled: 500 of 1000", "left out to protect them"} {
		if !strings.Contains(first.text, want) {
			t.Errorf("the text does not say %q:\n%s", want, first.text)
		}
	}
	quota, _ := first.structured["quota"].(map[string]any)
	if first.structured["next_offset"] != 3.0 || first.structured["row_count"] != 400.0 || len(first.structured["rows"].([]any)) != 3 || quota["tokensPerDay"] != 199_990.0 {
		t.Errorf("%v", first.structured)
	}
	last, err := read(t, c, "run_report", `{"property_id":"1001","dimensions":["country"],"metrics":["activeUsers"],"date_ranges":[{"start_date":"7daysAgo","end_date":"today"}],"limit":3,"offset":399}`)
	if err != nil || len(last.structured["rows"].([]any)) != 1 || last.structured["next_offset"] != nil {
		t.Errorf("%v %v", last, err)
	}
	both, err := read(t, c, "batch_run_reports", `{"property_id":"1001","requests":[{"metrics":["activeUsers"],"dimensions":["country"],"limit":1,"date_ranges":[{"start_date":"today","end_date":"today"}]},{"metrics":["sessions"],"dimensions":["date"],"limit":1,"date_ranges":[{"start_date":"today","end_date":"today"}]}]}`)
	if err != nil || !strings.Contains(both.text, "Report 1\ncountry") || !strings.Contains(both.text, "Report 2\ndate") {
		t.Errorf("%v %v", both, err)
	}
	if n := v.Exchanged.Load(); n != 1 {
		t.Errorf("the key was exchanged %d times", n)
	}
}

func TestNothingOfAnotherPropertyIsReachable(t *testing.T) {
	v := analyticstest.New(t)
	fenced := connect(t, v, provider.Settings{Resources: map[string]string{analytics.PropertySetting: "1001"}})
	metrics := `"metrics":["activeUsers"],"date_ranges":[{"start_date":"today","end_date":"today"}]`
	needs := map[string]string{"run_report": metrics, "run_realtime_report": `"metrics":["activeUsers"]`, "run_pivot_report": metrics + `,"pivots":[{}]`, "batch_run_reports": `"requests":[{` + metrics + `}]`}
	for _, tool := range google.Declared() {
		if tool.Resource == "" {
			continue
		}
		rest := needs[tool.Name]
		own := "{" + rest + "}"
		if rest != "" {
			rest = "," + rest
		}
		if got, err := read(t, fenced, tool.Name, `{"property_id":"1002"`+rest+`}`); !fault.Is(err, fault.OutsideResource) {
			t.Errorf("%s of the other property: %v %v", tool.Name, got, err)
		}
		if got, err := read(t, fenced, tool.Name, own); err != nil || got.failed {
			t.Errorf("%s of the own property: %v %v", tool.Name, got, err)
		}
		if _, err := read(t, connect(t, v, provider.Settings{}), tool.Name, own); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s of no property: %v", tool.Name, err)
		}
	}
	got, err := read(t, fenced, "list_account_summaries", `{}`)
	if err != nil || strings.Contains(got.text, "1002") || !strings.Contains(got.text, "properties/1001") {
		t.Errorf("%v %v", got, err)
	}
}

func TestErrorsAndPagesAreSaidInWords(t *testing.T) {
	v := analyticstest.New(t)
	c := connect(t, v, provider.Settings{})
	for arguments, want := range map[string]string{
		`{"property_id":"9999"}`: "PERMISSION_DENIED: User does not have sufficient permissions",
	} {
		if got, err := read(t, c, "get_property", arguments); err != nil || !got.failed || !strings.Contains(got.text, want) {
			t.Errorf("%v %v", got, err)
		}
	}
	got, err := read(t, c, "run_report", `{"property_id":"1001","metrics":["noSuchMetric"],"date_ranges":[{"start_date":"today","end_date":"today"}]}`)
	if err != nil || !got.failed || !strings.Contains(got.text, "INVALID_ARGUMENT: Field noSuchMetric") {
		t.Errorf("%v %v", got, err)
	}
	v.Break("get_property", directtest.Limit)
	if _, err := read(t, c, "get_property", `{"property_id":"1001"}`); fault.Of(err).Kind != fault.Limited {
		t.Errorf("%v", err)
	}
	seen, arguments := 0, `{"page_size":1}`
	for range 2 {
		page, err := read(t, c, "list_account_summaries", arguments)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(page.structured["items"].([]any))
		arguments = fmt.Sprintf(`{"page_size":1,"cursor":%q}`, page.structured["next_cursor"])
	}
	if seen != 2 {
		t.Errorf("%d items on two pages", seen)
	}
	found, err := read(t, c, "get_metadata", `{"property_id":"1001","search":"geo"}`)
	if err != nil || len(found.structured["dimensions"].([]any)) != 0 {
		t.Errorf("%v %v", found, err)
	}
}
