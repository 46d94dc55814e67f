package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

const defaultRows = 100

var (
	columnName = direct.Field{Type: "string", Pattern: `^[A-Za-z0-9_:.]{1,100}$`}
	dateText   = direct.Field{Type: "string", Description: "YYYY-MM-DD, today, yesterday or 7daysAgo.", Pattern: `^(\d{4}-\d{2}-\d{2}|today|yesterday|\d{1,4}daysAgo)$`}
	dimensions = direct.Field{Type: "array", Description: "What the rows are by, like country or date; get_metadata lists all.", Items: &columnName, MaxItems: 9}
	metrics    = direct.ListOf("What is counted, like activeUsers or sessions; get_metadata lists all.", columnName, 10)
	ranges     = direct.ListOf("Periods, one to four.", direct.Strict("", map[string]direct.Field{"start_date": dateText, "end_date": dateText, "name": columnName}, "start_date", "end_date"), 4)
	filter     = direct.Free("A FilterExpression of the vendor's API.")
	orders     = direct.Field{Type: "array", Description: "OrderBy objects of the vendor's API.", Items: &direct.Field{Type: "object"}, MaxItems: 10}
	rows       = direct.Number("How many rows; 100 unless given.", 1, 250_000)
	from       = direct.Number("How many rows to leave out first: the next_offset of the answer before.", 0, 1<<40)
)

// reportFields are those of one report.
var reportFields = map[string]direct.Field{
	"dimensions": dimensions, "metrics": metrics, "date_ranges": ranges, "dimension_filter": filter, "metric_filter": filter, "order_bys": orders, "limit": rows, "offset": from,
	"keep_empty_rows": direct.Truth("Also rows in which every metric is zero."), "currency_code": {Type: "string", Description: "Three letters; the property's own unless given.", Pattern: `^[A-Z]{3}$`},
}

var forProperty = direct.Object{Fields: map[string]direct.Field{"property_id": property}}

// table is what a report answers.
var tableShape = direct.Object{Fields: map[string]direct.Field{
	"columns": {Type: "array", Items: &direct.Field{Type: "string"}}, "rows": {Type: "array", Items: &direct.Field{Type: "array", Items: &direct.Field{Type: "string"}}},
	"row_count": {Type: "integer", Description: "Rows of the whole report."}, "next_offset": {Type: "integer", Description: "Give it as offset to get the rest. Absent at the end."},
	"notes": {Type: "array", Description: "What limits the figures.", Items: &direct.Field{Type: "string"}}, "quota": {Type: "object", Description: "What is left of the property's quotas."},
}, Required: []string{"columns", "rows", "row_count", "notes"}}

var report = direct.Tool{
	Name: "run_report", Title: "Run a report", Role: registry.Data, Resource: "property_id", Output: tableShape,
	Description: "Answers a report of a property as a table. Every call costs tokens of the property's quotas; the answer says what is left.",
	Input:       forProperty.With(reportFields, "metrics", "date_ranges"), Read: reading("runReport", true),
}

var realtime = direct.Tool{
	Name: "run_realtime_report", Title: "Run a report of the last half hour", Role: registry.Data, Resource: "property_id", Output: tableShape,
	Description: "Answers what happens at a property now, as a table.",
	Input: forProperty.With(map[string]direct.Field{
		"dimensions": dimensions, "metrics": metrics, "dimension_filter": filter, "metric_filter": filter, "order_bys": orders, "limit": rows,
	}, "metrics"), Read: reading("runRealtimeReport", false),
}

var pivot = direct.Tool{
	Name: "run_pivot_report", Title: "Run a pivot report", Role: registry.Data, Resource: "property_id",
	Description: "Answers a report with pivots, in the vendor's own form. Every call costs tokens of the property's quotas; the answer says what is left.",
	Input: forProperty.With(map[string]direct.Field{
		"dimensions": dimensions, "metrics": metrics, "date_ranges": ranges, "dimension_filter": filter, "metric_filter": filter,
		"pivots": direct.ListOf("Pivot objects of the vendor's API.", direct.Field{Type: "object"}, 5),
	}, "metrics", "date_ranges", "pivots"),
	Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		r, err := post(ctx, l, a, "runPivotReport", body(a, false))
		if err != nil {
			return direct.Answer{}, err
		}
		var v map[string]any
		if err := r.JSON(&v); err != nil {
			return direct.Answer{}, unreadable(err)
		}
		return direct.Answer{Structured: v}, nil
	},
}

var batch = direct.Tool{
	Name: "batch_run_reports", Title: "Run several reports", Role: registry.Data, Resource: "property_id",
	Description: "Answers up to five reports of one property, each as a table.",
	Input: forProperty.With(map[string]direct.Field{
		"requests": direct.ListOf("The reports.", direct.Strict("", reportFields, "metrics", "date_ranges"), 5),
	}, "requests"),
	Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		var asked []direct.Arguments
		if err := a.Into("requests", &asked); err != nil {
			return direct.Answer{}, err
		}
		requests := []any{}
		for _, q := range asked {
			requests = append(requests, body(q, true))
		}
		r, err := post(ctx, l, a, "batchRunReports", map[string]any{"requests": requests})
		if err != nil {
			return direct.Answer{}, err
		}
		var got struct{ Reports []answer }
		if err := r.JSON(&got); err != nil || len(got.Reports) != len(asked) {
			return direct.Answer{}, unreadable(err)
		}
		var texts []string
		tables := []any{}
		for i, one := range got.Reports {
			t := one.table(asked[i].Int("offset", 0))
			texts, tables = append(texts, fmt.Sprintf("Report %d\n%s", i+1, t.text())), append(tables, t)
		}
		return direct.Answer{Text: strings.Join(texts, "\n\n"), Structured: map[string]any{"reports": tables}}, nil
	},
}

var compatible = direct.Tool{
	Name: "check_compatibility", Title: "Check what goes together", Role: registry.Data, Resource: "property_id",
	Description: "Says which dimensions and metrics of a report go together, before it is run.",
	Input:       forProperty.With(map[string]direct.Field{"dimensions": dimensions, "metrics": {Type: "array", Items: &columnName, MaxItems: 10}}),
	Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		r, err := post(ctx, l, a, "checkCompatibility", map[string]any{"dimensions": named(a, "dimensions"), "metrics": named(a, "metrics")})
		if err != nil {
			return direct.Answer{}, err
		}
		var v map[string]any
		if err := r.JSON(&v); err != nil {
			return direct.Answer{}, unreadable(err)
		}
		return direct.Answer{Structured: v}, nil
	},
}

func post(ctx context.Context, l *direct.Link, a direct.Arguments, verb string, body any) (direct.Reply, error) {
	id, err := of(l, a)
	if err != nil {
		return direct.Reply{}, err
	}
	return l.Ask(ctx, direct.Request{Role: registry.Data, Method: http.MethodPost, Path: direct.At("/v1beta/properties/%s:"+verb, id), Body: body})
}

func reading(verb string, offsets bool) func(context.Context, *direct.Link, direct.Arguments) (direct.Answer, error) {
	return func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		q := body(a, offsets)
		if _, ok := q["limit"]; !ok {
			q["limit"] = strconv.Itoa(defaultRows)
		}
		r, err := post(ctx, l, a, verb, q)
		if err != nil {
			return direct.Answer{}, err
		}
		var got answer
		if err := r.JSON(&got); err != nil {
			return direct.Answer{}, unreadable(err)
		}
		t := got.table(a.Int("offset", 0))
		return direct.Answer{Text: t.text(), Structured: t}, nil
	}
}

// body is a report in the vendor's form, where limit and offset are texts.
func body(a direct.Arguments, limits bool) map[string]any {
	q := map[string]any{"returnPropertyQuota": true, "metrics": named(a, "metrics")}
	if a.Has("dimensions") {
		q["dimensions"] = named(a, "dimensions")
	}
	if a.Has("date_ranges") {
		var periods []map[string]string
		_ = a.Into("date_ranges", &periods) // checked against the schema
		out := []map[string]string{}
		for _, p := range periods {
			period := map[string]string{"startDate": p["start_date"], "endDate": p["end_date"]}
			if p["name"] != "" {
				period["name"] = p["name"]
			}
			out = append(out, period)
		}
		q["dateRanges"] = out
	}
	for argument, member := range map[string]string{
		"dimension_filter": "dimensionFilter", "metric_filter": "metricFilter", "order_bys": "orderBys", "keep_empty_rows": "keepEmptyRows", "currency_code": "currencyCode", "pivots": "pivots",
	} {
		if a.Has(argument) {
			q[member] = a[argument]
		}
	}
	if a.Has("limit") {
		q["limit"] = string(a["limit"])
	}
	if limits && a.Has("offset") {
		q["offset"] = string(a["offset"])
	}
	return q
}

func named(a direct.Arguments, argument string) []map[string]string {
	var names []string
	_ = a.Into(argument, &names) // checked against the schema
	out := []map[string]string{}
	for _, n := range names {
		out = append(out, map[string]string{"name": n})
	}
	return out
}

// answer is a report as the vendor gives it.
type answer struct {
	DimensionHeaders, MetricHeaders []struct{ Name string }
	Rows                            []struct{ DimensionValues, MetricValues []struct{ Value string } }
	RowCount                        int64
	Metadata                        struct {
		DataLossFromOtherRow      bool
		SubjectToThresholding     bool
		EmptyReason               string
		SamplingMetadatas         []struct{ SamplesReadCount, SamplingSpaceSize json.Number }
		SchemaRestrictionResponse struct {
			ActiveMetricRestrictions []struct{ MetricName string }
		}
	}
	PropertyQuota map[string]struct{ Consumed, Remaining int64 }
}

// table is a report as an agent gets it.
type table struct {
	Columns []string         `json:"columns"`
	Rows    [][]string       `json:"rows"`
	Count   int64            `json:"row_count"`
	Next    int64            `json:"next_offset,omitempty"`
	Notes   []string         `json:"notes"`
	Quota   map[string]int64 `json:"quota,omitempty"`
}

func (a answer) table(offset int64) table {
	t := table{Columns: []string{}, Rows: [][]string{}, Count: a.RowCount, Notes: a.notes()}
	for _, h := range append(a.DimensionHeaders, a.MetricHeaders...) {
		t.Columns = append(t.Columns, h.Name)
	}
	for _, r := range a.Rows {
		cells := []string{}
		for _, v := range append(r.DimensionValues, r.MetricValues...) {
			cells = append(cells, v.Value)
		}
		t.Rows = append(t.Rows, cells)
	}
	if seen := offset + int64(len(a.Rows)); seen < a.RowCount && len(a.Rows) > 0 {
		t.Next = seen
	}
	for name, q := range a.PropertyQuota {
		if t.Quota == nil {
			t.Quota = map[string]int64{}
		}
		t.Quota[name] = q.Remaining
	}
	return t
}

// notes are what a reader of the figures has to know.
func (a answer) notes() []string {
	out := []string{}
	m := a.Metadata
	for _, s := range m.SamplingMetadatas {
		out = append(out, "Sampled: "+s.SamplesReadCount.String()+" of "+s.SamplingSpaceSize.String()+" events were read.")
	}
	if m.SubjectToThresholding {
		out = append(out, "Rows with few users are left out to protect them.")
	}
	if m.DataLossFromOtherRow {
		out = append(out, "Some rows are summed up as (other).")
	}
	for _, r := range m.SchemaRestrictionResponse.ActiveMetricRestrictions {
		out = append(out, "The credential may not see "+r.MetricName+".")
	}
	if m.EmptyReason != "" {
		out = append(out, "Empty: "+m.EmptyReason+".")
	}
	return out
}

func (t table) text() string {
	text := direct.Table(t.Columns, t.Rows)
	if t.Next > 0 {
		text += fmt.Sprintf("\n%d of %d rows; the rest begins at offset %d.", len(t.Rows), t.Count, t.Next)
	}
	for _, n := range t.Notes {
		text += "\n" + n
	}
	return text
}
