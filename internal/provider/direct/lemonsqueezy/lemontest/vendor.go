// Package lemontest owns a Lemon Squeezy for tests: a real HTTP server with the vendor's published shapes, errors, pages and limits, a
// journal of what it did, and the faults of directtest. It keeps its state in memory and knows nothing of who asks.
package lemontest

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"countersign/internal/provider/direct/directtest"
)

// Key is the one API key it takes.
const Key = "lemon-test-0123456789abcdefghij"

const media = "application/vnd.api+json"

// Vendor is the server with its objects.
type Vendor struct {
	*directtest.Server
	mu        sync.Mutex
	objects   map[string]map[string]map[string]any // by plural and id: attributes
	next      int
	remaining int
}

// New starts one with two stores, of which the first has an order, a subscription with a metered item, and a discount.
func New(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{objects: map[string]map[string]map[string]any{}, next: 1000, remaining: 300}
	v.Server = (&directtest.Server{Name: operation, Refuse: refuse, Next: v}).Start(t)
	for _, s := range []string{"1", "2"} {
		v.Put("stores", s, map[string]any{"name": "Harbor " + s, "currency": "EUR"})
		v.Put("products", "1"+s, map[string]any{"store_id": s, "name": "Course"})
		v.Put("variants", "2"+s, map[string]any{"product_id": "1" + s, "name": "Default", "status": "published"})
		v.Put("orders", "3"+s, order(s))
		v.Put("subscriptions", "4"+s, map[string]any{"store_id": s, "status": "active", "cancelled": false, "ends_at": nil, "variant_id": 21, "billing_anchor": 7})
		v.Put("subscription-items", "5"+s, map[string]any{"subscription_id": "4" + s, "quantity": 1, "is_usage_based": true})
		v.Put("subscription-invoices", "6"+s, order(s))
		v.Put("discounts", "7"+s, map[string]any{"store_id": s, "code": "WELCOME" + s, "amount": 10, "amount_type": "percent"})
		v.Put("license-keys", "8"+s, map[string]any{"store_id": s, "key": "aaaa-bbbb", "activation_limit": 3, "disabled": false, "expires_at": nil})
		v.Put("webhooks", "9"+s, map[string]any{"store_id": s, "url": "https://hooks.example.com/" + s, "events": []string{"order_created"}, "secret": "whsec"})
	}
	return v
}

func order(store string) map[string]any {
	return map[string]any{
		"store_id": store, "user_name": "Ada Verne", "user_email": "ada@harbor.example", "currency": "EUR", "total": 1_000_000, "total_formatted": "€10,000.00",
		"status": "paid", "refunded": false, "refunded_amount": 0, "refunded_at": nil,
	}
}

// Put sets an object.
func (v *Vendor) Put(plural, id string, attributes map[string]any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.objects[plural] == nil {
		v.objects[plural] = map[string]map[string]any{}
	}
	v.objects[plural][id] = attributes
}

// Get is a copy of an object; nil where there is none.
func (v *Vendor) Get(plural, id string) map[string]any {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.objects[plural][id])
}

// Leave sets how many requests of the minute are left.
func (v *Vendor) Leave(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remaining = n
}

var paths = regexp.MustCompile(`^/([a-z-]+)(?:/([A-Za-z0-9]+))?(?:/([a-z-]+))?$`)

// operation names a request as the tools are named.
func operation(r *http.Request) string {
	m := paths.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return r.URL.Path
	}
	plural := strings.ReplaceAll(m[1], "-", "_")
	singular := strings.TrimSuffix(plural, "s")
	switch {
	case m[3] == "refund":
		return "refund_" + singular
	case m[3] != "":
		return m[3] + " of " + singular
	case r.Method == http.MethodGet && m[2] == "":
		return "list_" + plural
	case r.Method == http.MethodGet:
		return "get_" + singular
	case r.Method == http.MethodPost:
		return "create_" + singular
	case r.Method == http.MethodPatch:
		return "update_" + singular
	case m[1] == "subscriptions":
		return "cancel_" + singular
	}
	return "delete_" + singular
}

func refuse(w http.ResponseWriter, status int) {
	if status == http.StatusTooManyRequests {
		w.Header().Set("X-Ratelimit-Remaining", "0")
	}
	fail(w, status, http.StatusText(status), "The given data was invalid.", "")
}

func fail(w http.ResponseWriter, status int, title, detail, pointer string) {
	e := map[string]any{"status": strconv.Itoa(status), "title": title, "detail": detail}
	if pointer != "" {
		e["source"] = map[string]string{"pointer": pointer}
	}
	directtest.JSON(w, media, status, map[string]any{"jsonapi": map[string]string{"version": "1.0"}, "errors": []any{e}})
}

// ServeHTTP does the vendor's work.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w.Header().Set("X-Ratelimit-Limit", "300")
	if v.remaining = max(0, v.remaining-1); v.remaining < 200 {
		w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(v.remaining))
	}
	m := paths.FindStringSubmatch(r.URL.Path)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Key, r.Header.Get("Accept") != media:
		fail(w, http.StatusUnauthorized, "Unauthenticated.", "", "")
	case m == nil:
		fail(w, http.StatusNotFound, "Not Found", "The route could not be found.", "")
	case m[1] == "users":
		v.answer(w, http.StatusOK, "users", "1", map[string]any{"name": "Harbor", "email": "owner@harbor.example", "echo": r.Header.Get("Authorization")})
	case m[2] == "" && r.Method == http.MethodGet:
		v.list(w, r, m[1])
	case m[2] == "":
		v.create(w, r, m[1])
	case v.objects[m[1]][m[2]] == nil:
		fail(w, http.StatusNotFound, "Not Found", "The related resource does not exist.", "")
	default:
		v.object(w, r, m[1], m[2], m[3])
	}
}

func (v *Vendor) answer(w http.ResponseWriter, status int, plural, id string, attributes map[string]any) {
	directtest.JSON(w, media, status, map[string]any{
		"jsonapi": map[string]string{"version": "1.0"}, "data": map[string]any{"type": plural, "id": id, "attributes": attributes, "links": map[string]string{"self": v.URL + "/" + plural + "/" + id}},
	})
}

func (v *Vendor) list(w http.ResponseWriter, r *http.Request, plural string) {
	ids := slices.SortedFunc(maps.Keys(v.objects[plural]), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	ids = slices.DeleteFunc(ids, func(id string) bool {
		for name, values := range r.URL.Query() {
			attribute := strings.TrimSuffix(strings.TrimPrefix(name, "filter["), "]")
			if strings.HasPrefix(name, "filter[") && text(v.objects[plural][id][attribute]) != values[0] {
				return true
			}
		}
		return false
	})
	page, size := number(r, "page[number]", 1), number(r, "page[size]", 10)
	last := max(1, (len(ids)+size-1)/size)
	data := []any{}
	for _, id := range ids[min(len(ids), (page-1)*size):min(len(ids), page*size)] {
		data = append(data, map[string]any{"type": plural, "id": id, "attributes": v.objects[plural][id]})
	}
	directtest.JSON(w, media, http.StatusOK, map[string]any{
		"meta": map[string]any{"page": map[string]int{"currentPage": page, "from": (page-1)*size + 1, "lastPage": last, "perPage": size, "to": min(len(ids), page*size), "total": len(ids)}}, "data": data,
	})
}

func number(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

func text(v any) string {
	raw, _ := json.Marshal(v)
	return strings.Trim(string(raw), `"`)
}

type posted struct {
	Data struct {
		Type          string
		Attributes    map[string]any
		Relationships map[string]struct {
			Data struct{ Type, ID string }
		}
	}
}

func (v *Vendor) create(w http.ResponseWriter, r *http.Request, plural string) {
	var p posted
	if json.NewDecoder(r.Body).Decode(&p) != nil || p.Data.Type != plural || r.Header.Get("Content-Type") != media {
		fail(w, http.StatusBadRequest, "Bad Request", "The document is malformed.", "/data")
		return
	}
	for name, related := range p.Data.Relationships {
		if v.objects[related.Data.Type][related.Data.ID] == nil {
			fail(w, http.StatusUnprocessableEntity, "Unprocessable Entity", "The "+name+" field is invalid.", "/data/relationships/"+name)
			return
		}
		p.Data.Attributes[strings.ReplaceAll(name, "-", "_")+"_id"] = related.Data.ID
	}
	for _, other := range v.objects[plural] {
		if plural == "discounts" && other["code"] == p.Data.Attributes["code"] {
			fail(w, http.StatusUnprocessableEntity, "Unprocessable Entity", "The code has already been taken.", "/data/attributes/code")
			return
		}
	}
	v.next++
	id := strconv.Itoa(v.next)
	if v.objects[plural] == nil {
		v.objects[plural] = map[string]map[string]any{}
	}
	v.objects[plural][id] = p.Data.Attributes
	v.Note(operation(r), id)
	v.answer(w, http.StatusCreated, plural, id, p.Data.Attributes)
}

func (v *Vendor) object(w http.ResponseWriter, r *http.Request, plural, id, verb string) {
	at := v.objects[plural][id]
	var p posted
	_ = json.NewDecoder(r.Body).Decode(&p) // some requests have no body
	switch {
	case verb == "refund":
		amount, _ := p.Data.Attributes["amount"].(float64)
		refunded := int(amount) + asInt(at["refunded_amount"])
		if amount <= 0 || refunded > asInt(at["total"]) {
			fail(w, http.StatusUnprocessableEntity, "Unprocessable Entity", "The amount is invalid.", "/data/attributes/amount")
			return
		}
		at["refunded_amount"], at["refunded"] = refunded, refunded == asInt(at["total"])
		v.Note(operation(r), id+" "+strconv.Itoa(int(amount)))
	case verb == "generate-invoice":
		v.Note(operation(r), id)
		directtest.JSON(w, media, http.StatusOK, map[string]any{"meta": map[string]any{"urls": map[string]string{"download_invoice": "https://app.lemonsqueezy.example/my-orders/invoice"}}})
		return
	case verb == "current-usage":
		directtest.JSON(w, media, http.StatusOK, map[string]any{"meta": map[string]any{"quantity": 5, "interval_unit": "month"}})
		return
	case r.Method == http.MethodPatch:
		maps.Copy(at, p.Data.Attributes)
		v.Note(operation(r), id)
	case r.Method == http.MethodDelete && plural == "subscriptions":
		at["cancelled"], at["status"] = true, "cancelled"
		v.Note(operation(r), id)
	case r.Method == http.MethodDelete:
		delete(v.objects[plural], id)
		v.Note(operation(r), id)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	v.answer(w, http.StatusOK, plural, id, at)
}

func asInt(v any) int {
	n, _ := strconv.Atoi(text(v))
	return n
}
