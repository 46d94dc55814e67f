package lemonsqueezy

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/provider/direct"
)

// kind is one kind of object that can be listed and read.
type kind struct {
	singular, plural string // "order-item", "order-items"
	title            string // "order items"
	filters          []string
	above            string // with a store fence, the filter that has to be there: the list has none for the store
}

var kinds = []kind{
	{"store", "stores", "stores", nil, ""},
	{"customer", "customers", "customers", []string{"store_id", "email"}, ""},
	{"product", "products", "products", []string{"store_id"}, ""},
	{"variant", "variants", "variants", []string{"product_id", "status"}, "product_id"},
	{"price", "prices", "prices", []string{"variant_id"}, "variant_id"},
	{"file", "files", "files", []string{"variant_id"}, "variant_id"},
	{"order", "orders", "orders", []string{"store_id", "user_email"}, ""},
	{"order-item", "order-items", "order items", []string{"order_id", "product_id", "variant_id"}, "order_id"},
	{"subscription", "subscriptions", "subscriptions", []string{"store_id", "order_id", "order_item_id", "product_id", "variant_id", "user_email", "status"}, ""},
	{"subscription-invoice", "subscription-invoices", "subscription invoices", []string{"store_id", "status", "refunded", "subscription_id"}, ""},
	{"subscription-item", "subscription-items", "subscription items", []string{"subscription_id", "price_id"}, "subscription_id"},
	{"usage-record", "usage-records", "usage records", []string{"subscription_item_id"}, "subscription_item_id"},
	{"discount", "discounts", "discounts", []string{"store_id"}, ""},
	{"discount-redemption", "discount-redemptions", "discount redemptions", []string{"discount_id", "order_id"}, "discount_id"},
	{"license-key", "license-keys", "license keys", []string{"store_id", "order_id", "order_item_id", "product_id", "status"}, ""},
	{"license-key-instance", "license-key-instances", "license key instances", []string{"license_key_id"}, "license_key_id"},
	{"checkout", "checkouts", "checkouts", []string{"store_id", "variant_id"}, ""},
	{"webhook", "webhooks", "webhooks", []string{"store_id"}, ""},
}

// pluralOf is the kind that an id argument or filter names: order_item_id names order-items.
func pluralOf(argument string) string {
	singular := strings.ReplaceAll(strings.TrimSuffix(argument, "_id"), "_", "-")
	for _, k := range kinds {
		if k.singular == singular {
			return k.plural
		}
	}
	return ""
}

func snake(s string) string { return strings.ReplaceAll(s, "-", "_") }

var cursorShape = regexp.MustCompile(`^p([1-9][0-9]{0,5})s([1-9][0-9]{0,2})$`)

const pageSize = 25

var listing = direct.Object{Fields: map[string]direct.Field{
	"items":       {Type: "array", Items: &direct.Field{Type: "object"}},
	"total":       {Type: "integer"},
	"next_cursor": {Type: "string", Description: "Give it as cursor to get the next page. Absent on the last one."},
}, Required: []string{"items", "total"}}

func (k kind) list() direct.Tool {
	fields := map[string]direct.Field{
		"cursor":    {Type: "string", Description: "The next_cursor of the page before.", Pattern: cursorShape.String()},
		"page_size": direct.Number("How many items a page has; 25 unless given. A cursor keeps the size it was made with.", 1, 100),
	}
	for _, f := range k.filters {
		fields[f] = filterField(f)
	}
	return direct.Tool{
		Name: "list_" + snake(k.plural), Title: "List " + k.title, Role: role, Output: listing,
		Description: "Lists " + k.title + " of Lemon Squeezy, a page at a time. Amounts are whole cents of the currency beside them.",
		Input:       direct.Object{Fields: fields},
		Read:        k.readList,
	}
}

func filterField(name string) direct.Field {
	switch {
	case strings.HasSuffix(name, "_id"):
		return direct.ID("Only those of this " + strings.ReplaceAll(strings.TrimSuffix(name, "_id"), "_", " ") + ".")
	case name == "refunded":
		return direct.Truth("Only those that were refunded, or only those that were not.")
	}
	return direct.Text("Only those with this " + strings.ReplaceAll(name, "_", " ") + ".")
}

func (k kind) readList(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	page, size := int64(1), a.Int("page_size", pageSize)
	if m := cursorShape.FindStringSubmatch(a.Text("cursor")); m != nil {
		page, _ = strconv.ParseInt(m[1], 10, 64) // at most six digits
		size, _ = strconv.ParseInt(m[2], 10, 64)
	}
	filters := map[string]string{}
	for _, f := range k.filters {
		if a.Has(f) {
			filters[f] = strings.Trim(string(a[f]), `"`)
			if t := a.Text(f); t != "" {
				filters[f] = t
			}
		}
	}
	if err := k.fence(ctx, l, filters); err != nil {
		return direct.Answer{}, err
	}
	found, err := k.page(ctx, l, filters, page, size)
	if err != nil {
		return direct.Answer{}, err
	}
	items := []map[string]any{}
	for _, r := range found.Data {
		if bound := l.Setting(StoreSetting); k.plural == "stores" && bound != "" && r.ID != bound {
			found.Meta.Page.Total--
			continue
		}
		items = append(items, r.shown())
	}
	out := map[string]any{"items": items, "total": found.Meta.Page.Total}
	if found.Meta.Page.CurrentPage < found.Meta.Page.LastPage {
		out["next_cursor"] = "p" + strconv.FormatInt(page+1, 10) + "s" + strconv.FormatInt(size, 10)
	}
	return direct.Answer{Structured: out}, nil
}

// fence keeps a list within the connection's store: by the vendor's filter where it has one, else by looking at what the call names.
func (k kind) fence(ctx context.Context, l *direct.Link, filters map[string]string) error {
	bound := l.Setting(StoreSetting)
	switch {
	case bound == "" || k.plural == "stores":
		return nil
	case filters["store_id"] != "" && filters["store_id"] != bound:
		return outside()
	case slices.Contains(k.filters, "store_id"):
		filters["store_id"] = bound
		return nil
	case filters[k.above] == "":
		return fault.New(fault.Invalid, fault.InvalidArguments, "This connection is limited to one store, and "+k.title+" can only be listed of one "+strings.ReplaceAll(strings.TrimSuffix(k.above, "_id"), "_", " ")+".", "Give "+k.above+".")
	}
	return withinID(ctx, l, pluralOf(k.above), filters[k.above])
}

func (k kind) page(ctx context.Context, l *direct.Link, filters map[string]string, page, size int64) (many, error) {
	q := url.Values{"page[number]": {strconv.FormatInt(page, 10)}, "page[size]": {strconv.FormatInt(size, 10)}}
	for _, f := range slices.Sorted(maps.Keys(filters)) {
		q.Set("filter["+f+"]", filters[f])
	}
	r, err := l.Ask(ctx, direct.Request{Role: role, Method: http.MethodGet, Path: "/" + k.plural, Query: q})
	if err != nil {
		return many{}, err
	}
	var found many
	if err := r.JSON(&found); err != nil || found.Data == nil {
		return many{}, unreadable(err)
	}
	return found, nil
}

// maxPages bounds a search through a list that has no filter for what is looked for.
const maxPages = 20

// search goes through a list until it has seen all of it; whole is false where it is longer than that.
func search(ctx context.Context, l *direct.Link, plural string, filters map[string]string, see func(resource)) (whole bool, err error) {
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.plural == plural })]
	for page := int64(1); page <= maxPages; page++ {
		found, err := k.page(ctx, l, filters, page, 100)
		if err != nil {
			return false, err
		}
		for _, r := range found.Data {
			see(r)
		}
		if found.Meta.Page.CurrentPage >= found.Meta.Page.LastPage {
			return true, nil
		}
	}
	return false, nil
}

func idInput(of string) direct.Object {
	return direct.Object{Fields: map[string]direct.Field{"id": direct.ID("The id of the " + of + ".")}, Required: []string{"id"}}
}

func (k kind) get() direct.Tool {
	words := strings.ReplaceAll(k.singular, "-", " ")
	return direct.Tool{
		Name: "get_" + snake(k.singular), Title: "Get one " + words, Role: role, Input: idInput(words), Resource: "id",
		Description: "Reads one " + words + " of Lemon Squeezy. Amounts are whole cents of the currency beside them.",
		Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
			r, err := ours(ctx, l, k.plural, a.Text("id"))
			if err != nil {
				return direct.Answer{}, err
			}
			return direct.Answer{Structured: r.shown()}, nil
		},
	}
}

var me = direct.Tool{
	Name: "get_user", Title: "Whose key this is", Role: role,
	Description: "Reads the account that the key of this connection belongs to.",
	Read: func(ctx context.Context, l *direct.Link, _ direct.Arguments) (direct.Answer, error) {
		r, err := fetch(ctx, l, "users", "me")
		if err != nil {
			return direct.Answer{}, err
		}
		return direct.Answer{Structured: r.shown()}, nil
	},
}

var currentUsage = direct.Tool{
	Name: "get_subscription_item_usage", Title: "Usage of a subscription item now", Role: role, Input: idInput("subscription item"), Resource: "id",
	Description: "Reads how much of a metered subscription item was used in the present period.",
	Read: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
		if err := withinID(ctx, l, "subscription-items", a.Text("id")); err != nil {
			return direct.Answer{}, err
		}
		r, err := l.Ask(ctx, direct.Request{Role: role, Method: http.MethodGet, Path: direct.At("/subscription-items/%s/current-usage", a.Text("id"))})
		if err != nil {
			return direct.Answer{}, err
		}
		var body struct{ Meta map[string]any }
		if err := r.JSON(&body); err != nil || body.Meta == nil {
			return direct.Answer{}, unreadable(err)
		}
		return direct.Answer{Structured: body.Meta}, nil
	},
}
