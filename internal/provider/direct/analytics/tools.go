package analytics

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

var (
	property  = direct.Field{Type: "string", Description: "The property's number. It may be left out where the connection is limited to one.", Pattern: `^[0-9]{1,20}$`}
	pageSize  = direct.Number("How many items a page has; 50 unless given.", 1, 200)
	pageToken = direct.Field{Type: "string", Description: "The next_cursor of the page before.", MinLength: 1, MaxLength: 2000}
)

// of is the property of a call: the connection's own where it has one, and never another.
func of(l *direct.Link, a direct.Arguments) (string, error) {
	asked, bound := a.Text("property_id"), l.Setting(PropertySetting)
	switch {
	case bound != "" && asked != "" && asked != bound:
		return "", fault.New(fault.Forbidden, fault.OutsideResource, "This connection is limited to one property, and the call names another.", "Leave property_id out.")
	case bound != "":
		return bound, nil
	case asked == "":
		return "", fault.New(fault.Invalid, fault.InvalidArguments, "The call names no property.", "Give property_id; list_account_summaries shows them.")
	}
	return asked, nil
}

func tools() []direct.Tool {
	out := []direct.Tool{summaries, admin("get_property", "Get a property", "Reads name, time zone and currency of a property.", "")}
	for _, c := range []struct{ name, title, words, collection string }{
		{"list_custom_dimensions", "List custom dimensions", "Lists the custom dimensions of a property.", "customDimensions"},
		{"list_custom_metrics", "List custom metrics", "Lists the custom metrics of a property.", "customMetrics"},
		{"list_key_events", "List key events", "Lists the events of a property that count as key events.", "keyEvents"},
		{"list_data_streams", "List data streams", "Lists the web sites and apps that send to a property.", "dataStreams"},
	} {
		out = append(out, admin(c.name, c.title, c.words, c.collection))
	}
	return append(out, describe, compatible, report, realtime, pivot, batch)
}

var summaries = direct.Tool{
	Name: "list_account_summaries", Title: "List accounts and properties", Role: registry.Admin,
	Description: "Lists the accounts and properties that the credential of this connection may read; with a limit on the connection, that one property.",
	Input:       direct.Object{Fields: map[string]direct.Field{"page_size": pageSize, "cursor": pageToken}},
	Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		items, next, err := page(ctx, l, a, "/v1beta/accountSummaries", "accountSummaries")
		if err != nil {
			return direct.Answer{}, err
		}
		if bound := l.Setting(PropertySetting); bound != "" {
			items = onlyProperty(items, "properties/"+bound)
		}
		return paged(items, next), nil
	},
}

// onlyProperty leaves of the accounts what a limited connection may know of.
func onlyProperty(items []map[string]any, name string) []map[string]any {
	out := []map[string]any{}
	for _, account := range items {
		all, _ := account["propertySummaries"].([]any)
		kept := []any{}
		for _, p := range all {
			if summary, ok := p.(map[string]any); ok && summary["property"] == name {
				kept = append(kept, p)
			}
		}
		if len(kept) > 0 {
			account["propertySummaries"] = kept
			out = append(out, account)
		}
	}
	return out
}

// admin is a read of a property, or of one of its collections.
func admin(name, title, words, collection string) direct.Tool {
	fields := map[string]direct.Field{"property_id": property}
	if collection != "" {
		fields["page_size"], fields["cursor"] = pageSize, pageToken
	}
	return direct.Tool{
		Name: name, Title: title, Description: words, Role: registry.Admin, Input: direct.Object{Fields: fields}, Resource: "property_id",
		Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
			id, err := of(l, a)
			if err != nil {
				return direct.Answer{}, err
			}
			if collection != "" {
				items, next, err := page(ctx, l, a, direct.At("/v1beta/properties/%s/"+collection, id), collection)
				return paged(items, next), err
			}
			return object(ctx, l, direct.Request{Role: registry.Admin, Method: http.MethodGet, Path: direct.At("/v1beta/properties/%s", id)})
		},
	}
}

func object(ctx context.Context, l *direct.Link, q direct.Request) (direct.Answer, error) {
	r, err := l.Ask(ctx, q)
	if err != nil {
		return direct.Answer{}, err
	}
	var v map[string]any
	if err := r.JSON(&v); err != nil {
		return direct.Answer{}, unreadable(err)
	}
	return direct.Answer{Structured: v}, nil
}

func page(ctx context.Context, l *direct.Link, a direct.Arguments, path, member string) (items []map[string]any, next string, err error) {
	q := url.Values{"pageSize": {strconv.FormatInt(a.Int("page_size", 50), 10)}}
	if c := a.Text("cursor"); c != "" {
		q.Set("pageToken", c)
	}
	r, err := l.Ask(ctx, direct.Request{Role: registry.Admin, Method: http.MethodGet, Path: path, Query: q})
	if err != nil {
		return nil, "", err
	}
	var body map[string]any
	if err := r.JSON(&body); err != nil {
		return nil, "", unreadable(err)
	}
	list, _ := body[member].([]any)
	items = []map[string]any{}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			items = append(items, m)
		}
	}
	next, _ = body["nextPageToken"].(string)
	return items, next, nil
}

func paged(items []map[string]any, next string) direct.Answer {
	out := map[string]any{"items": items}
	if next != "" {
		out["next_cursor"] = next
	}
	return direct.Answer{Structured: out}
}

// describe lists what reports are made of. The vendor's answer is hundreds of entries; what matters of each is its name and meaning.
var describe = direct.Tool{
	Name: "get_metadata", Title: "What reports are made of", Role: registry.Data, Resource: "property_id",
	Description: "Lists the dimensions and metrics that reports of a property can have, custom ones included.",
	Input: direct.Object{Fields: map[string]direct.Field{
		"property_id": property, "search": direct.Text("Only those with this text in name or description."),
	}},
	Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		id, err := of(l, a)
		if err != nil {
			return direct.Answer{}, err
		}
		r, err := l.Ask(ctx, direct.Request{Role: registry.Data, Method: http.MethodGet, Path: direct.At("/v1beta/properties/%s/metadata", id)})
		if err != nil {
			return direct.Answer{}, err
		}
		var body struct{ Dimensions, Metrics []column }
		if err := r.JSON(&body); err != nil {
			return direct.Answer{}, unreadable(err)
		}
		found := map[string]any{"dimensions": matching(body.Dimensions, a.Text("search")), "metrics": matching(body.Metrics, a.Text("search"))}
		return direct.Answer{Structured: found}, nil
	},
}

// column is a dimension or a metric.
type column struct {
	APIName     string `json:"apiName"`
	UIName      string `json:"uiName"`
	Description string `json:"description"`
}

func matching(all []column, search string) []column {
	out := []column{}
	for _, c := range all {
		if strings.Contains(strings.ToLower(c.APIName+"\n"+c.UIName+"\n"+c.Description), strings.ToLower(search)) {
			out = append(out, c)
		}
	}
	return out
}
