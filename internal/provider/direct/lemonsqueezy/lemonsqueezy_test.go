package lemonsqueezy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/provider/direct/lemonsqueezy"
	"countersign/internal/provider/direct/lemonsqueezy/lemontest"
	"countersign/internal/provider/providertest"
	"countersign/internal/registry"
)

var lemon = lemonsqueezy.New()

func connect(t *testing.T, v *lemontest.Vendor, s provider.Settings) *provider.Conn {
	t.Helper()
	return at(t, v.URL, lemontest.Key, s)
}

func at(t *testing.T, url, key string, s provider.Settings) *provider.Conn {
	t.Helper()
	return directtest.Connect(t, s, map[registry.Role]directtest.At{registry.MCP: {URL: url, Editor: directtest.Bearer(t, url, key)}})
}

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	m := directtest.Agrees(t, lemon, catalog.Files(), "lemonsqueezy.toml")
	if m.Runtime != lemonsqueezy.Key {
		t.Errorf("the catalog's runtime is %s", m.Runtime)
	}
}

func call(tool, arguments string) provider.Call {
	return provider.Call{Tool: tool, Arguments: json.RawMessage(arguments), Action: "act_1"}
}

func TestTheExam(t *testing.T) {
	v := lemontest.New(t)
	for i := range 200 {
		v.Put("customers", fmt.Sprint(5000+i), map[string]any{"store_id": "1", "name": strings.Repeat("Ada Verne ", 20), "email": fmt.Sprintf("ada%d@harbor.example", i)})
	}
	providertest.Run(t, &providertest.World{
		Provider: lemon,
		Connect:  func(t *testing.T, s provider.Settings) *provider.Conn { return connect(t, v, s) },
		Dead: func(t *testing.T) *provider.Conn {
			return at(t, directtest.Nowhere(t), lemontest.Key, provider.Settings{Timeout: time.Second})
		},
		Revoked: func(t *testing.T) *provider.Conn { return at(t, v.URL, "another-key", provider.Settings{}) },
		Secret:  lemontest.Key,
		Read:    call("get_user", `{}`), Write: call("refund_order", `{"id":"31","amount":100,"currency":"EUR"}`), Large: call("list_customers", `{"page_size":100}`),
		Requests: func() int { return len(v.Requests()) },
		Applied:  func(*testing.T) int { return len(v.Effects("refund_order")) },
		Break:    func(_ *testing.T, tool string, m providertest.Fault) { v.Break(tool, directtest.Mode(m)) },
		Restore:  func(*testing.T) { v.Mend(); v.Leave(300) },
		Faults:   directtest.Faults, Truncated: action.OutcomeSucceeded,
	})
}

func read(t *testing.T, c *provider.Conn, tool, arguments string) (map[string]any, error) {
	t.Helper()
	r, err := lemon.Read(t.Context(), c, call(tool, arguments))
	if err != nil {
		return nil, err
	}
	var out struct {
		Content           []struct{ Text string }
		StructuredContent map[string]any
		IsError           bool
	}
	if err := json.Unmarshal(r.Raw, &out); err != nil {
		t.Fatal(err)
	}
	if out.IsError {
		return nil, fmt.Errorf("%s", out.Content[0].Text)
	}
	return out.StructuredContent, nil
}

func TestAListGoesOnAtItsCursor(t *testing.T) {
	v := lemontest.New(t)
	for i := range 7 {
		v.Put("customers", fmt.Sprint(5000+i), map[string]any{"store_id": "1", "email": fmt.Sprintf("c%d@harbor.example", i)})
	}
	c, seen, arguments := connect(t, v, provider.Settings{}), 0, `{"page_size":3}`
	for pages := 1; ; pages++ {
		page, err := read(t, c, "list_customers", arguments)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(page["items"].([]any))
		next, more := page["next_cursor"]
		if !more {
			if pages != 3 || seen != 7 || page["total"].(float64) != 7 {
				t.Errorf("%d items on %d pages: %v", seen, pages, page)
			}
			return
		}
		arguments = fmt.Sprintf(`{"cursor":%q}`, next)
	}
}

func TestAnErrorIsSaidInWords(t *testing.T) {
	v := lemontest.New(t)
	_, err := read(t, connect(t, v, provider.Settings{}), "get_order", `{"id":"404"}`)
	if err == nil || !strings.Contains(err.Error(), "HTTP 404") || !strings.Contains(err.Error(), "The related resource does not exist.") {
		t.Errorf("%v", err)
	}
	o := lemon.Execute(t.Context(), connect(t, v, provider.Settings{}), call("create_discount", `{"store_id":"1","name":"w","code":"WELCOME1","amount":10,"amount_type":"percent"}`))
	if o.Kind() != action.OutcomeFailed || !strings.Contains(string(o.Result()), "The code has already been taken. (code)") {
		t.Errorf("%s %s", o.Kind(), o.Result())
	}
}

// The vendor keeps no store fence: each of these would be answered.
func TestNothingOfAnotherStoreIsReachable(t *testing.T) {
	v := lemontest.New(t)
	fenced := connect(t, v, provider.Settings{Resources: map[string]string{lemonsqueezy.StoreSetting: "1"}})
	for tool, arguments := range map[string]string{
		"get_order": `{"id":"32"}`, "get_variant": `{"id":"22"}`, "get_subscription_item": `{"id":"52"}`, "get_store": `{"id":"2"}`, "list_orders": `{"store_id":"2"}`,
		"list_variants": `{"product_id":"12"}`, "get_subscription_item_usage": `{"id":"52"}`, "list_usage_records": `{"subscription_item_id":"52"}`,
	} {
		if got, err := read(t, fenced, tool, arguments); !fault.Is(err, fault.OutsideResource) {
			t.Errorf("%s of the other store: %v %v", tool, got, err)
		}
	}
	for tool, arguments := range map[string]string{
		"refund_order": `{"id":"32","amount":100,"currency":"EUR"}`, "cancel_subscription": `{"id":"42"}`, "delete_discount": `{"id":"72"}`, "update_license_key": `{"id":"82","disabled":true}`,
		"create_discount": `{"store_id":"2","name":"w","code":"OTHER","amount":10,"amount_type":"percent"}`, "create_checkout": `{"store_id":"1","variant_id":"22"}`,
		"create_usage_record": `{"subscription_item_id":"52","quantity":1,"action":"increment"}`, "update_subscription_item": `{"id":"52","quantity":9}`,
		"generate_order_invoice": `{"id":"32","name":"A"}`, "update_webhook": `{"id":"92","url":"https://a.example.com"}`,
	} {
		if o := lemon.Execute(t.Context(), fenced, call(tool, arguments)); o.Kind() != action.OutcomeFailed || o.Code() != fault.OutsideResource {
			t.Errorf("%s of the other store: %s %s", tool, o.Kind(), o.Sentence())
		}
	}
	if e := v.Effects(""); len(e) != 0 {
		t.Errorf("applied: %v", e)
	}
	if _, err := read(t, fenced, "list_variants", `{}`); !fault.Is(err, fault.InvalidArguments) {
		t.Errorf("a list without the store's filter: %v", err)
	}
	for tool, arguments := range map[string]string{"get_order": `{"id":"31"}`, "get_variant": `{"id":"21"}`, "list_variants": `{"product_id":"11"}`} {
		if _, err := read(t, fenced, tool, arguments); err != nil {
			t.Errorf("%s of the own store: %v", tool, err)
		}
	}
	stores, err := read(t, fenced, "list_stores", `{}`)
	if err != nil || len(stores["items"].([]any)) != 1 || stores["total"].(float64) != 1 {
		t.Errorf("%v %v", stores, err)
	}
	orders, err := read(t, fenced, "list_orders", `{}`)
	if err != nil || len(orders["items"].([]any)) != 1 {
		t.Errorf("%v %v", orders, err)
	}
}

func TestARefundThatDoesNotFitIsNotSent(t *testing.T) {
	v := lemontest.New(t)
	c := connect(t, v, provider.Settings{})
	for name, arguments := range map[string]string{
		"another currency": `{"id":"31","amount":100,"currency":"USD"}`, "more than was paid": `{"id":"31","amount":1000001,"currency":"EUR"}`,
		"no amount": `{"id":"31","currency":"EUR"}`, "no currency": `{"id":"31","amount":100}`, "nothing": `{"id":"31","amount":0,"currency":"EUR"}`,
	} {
		if o := lemon.Execute(t.Context(), c, call("refund_order", arguments)); o.Kind() != action.OutcomeFailed || o.Evidence().BytesWritten != 0 {
			t.Errorf("%s: %s %s", name, o.Kind(), o.Sentence())
		}
	}
	for _, operation := range v.Requests() {
		if operation == "refund_order" {
			t.Error("a refund was asked for")
		}
	}
}

func TestAWebhooksSecretIsNotShown(t *testing.T) {
	v := lemontest.New(t)
	got, err := read(t, connect(t, v, provider.Settings{}), "get_webhook", `{"id":"91"}`)
	if err != nil || got["url"] == nil || got["secret"] != nil {
		t.Errorf("%v %v", got, err)
	}
}

// What a lost call comes to, and what the look at the vendor says of it, with the effect there and without.
func TestLostCallsAreLookedFor(t *testing.T) {
	for tool, arguments := range map[string]string{
		"refund_order": `{"id":"31","amount":100,"currency":"EUR"}`, "refund_subscription_invoice": `{"id":"61","amount":100,"currency":"EUR"}`,
		"cancel_subscription": `{"id":"41"}`, "update_subscription": `{"id":"41","billing_anchor":9}`, "update_subscription_item": `{"id":"51","quantity":4}`,
		"create_discount": `{"store_id":"1","name":"w","code":"AUTUMN","amount":10,"amount_type":"percent"}`, "delete_discount": `{"id":"71"}`,
		"update_license_key": `{"id":"81","disabled":true,"expires_at":"2027-01-01T00:00:00Z"}`, "create_customer": `{"store_id":"1","name":"Ada","email":"new@harbor.example"}`,
		"create_checkout": `{"store_id":"1","variant_id":"21"}`, "create_webhook": `{"store_id":"1","url":"https://new.example.com","events":["order_created"]}`,
		"update_webhook": `{"id":"91","url":"https://new.example.com"}`, "delete_webhook": `{"id":"91"}`, "create_usage_record": `{"subscription_item_id":"51","quantity":3,"action":"increment"}`,
	} {
		for mode, want := range map[directtest.Mode]provider.Sight{directtest.ApplyThenReset: provider.Applied, directtest.Reset: provider.Absent} {
			t.Run(tool+" "+string(mode), func(t *testing.T) {
				v := lemontest.New(t)
				c := connect(t, v, provider.Settings{})
				v.Break(tool, mode)
				o := lemon.Execute(t.Context(), c, call(tool, arguments))
				if o.Kind() != action.OutcomeUncertain {
					t.Fatalf("%s: %s", o.Kind(), o.Sentence())
				}
				if tool == "create_usage_record" && want == provider.Absent {
					want = provider.Unseen // an increment that is sent twice is billed twice
				}
				if !lemon.CanReconcile(call(tool, arguments)) {
					t.Fatal("nothing is looked for")
				}
				s, err := lemon.Reconcile(t.Context(), c, call(tool, arguments), o.Evidence())
				if err != nil || s.Sight != want || s.Sentence == "" || s.Final {
					t.Errorf("%+v %v, want %s", s, err, want)
				}
				forgotten, err := lemon.Reconcile(t.Context(), c, call(tool, arguments), action.Evidence{})
				if err != nil || forgotten.Sight == provider.Applied && tool != "create_checkout" {
					t.Errorf("without what was seen before: %+v %v", forgotten, err)
				}
			})
		}
	}
}

// Somebody else's equal change must not pass for the call's.
func TestAStateThatWasSoBeforeProvesNothing(t *testing.T) {
	v := lemontest.New(t)
	v.Put("license-keys", "81", map[string]any{"store_id": "1", "disabled": true})
	c := connect(t, v, provider.Settings{})
	v.Break("update_license_key", directtest.Reset)
	lost := call("update_license_key", `{"id":"81","disabled":true}`)
	o := lemon.Execute(t.Context(), c, lost)
	if s, err := lemon.Reconcile(t.Context(), c, lost, o.Evidence()); err != nil || s.Sight != provider.Unseen {
		t.Errorf("%+v %v", s, err)
	}
}

func TestReadsLeaveRoomForEffects(t *testing.T) {
	v := lemontest.New(t)
	c := connect(t, v, provider.Settings{})
	v.Leave(11)
	reader := provider.Call{Tool: "get_user"}
	if _, err := lemon.Read(t.Context(), c, reader); err != nil { // it learns the vendor's figure
		t.Fatal(err)
	}
	before := len(v.Requests())
	if _, err := lemon.Read(t.Context(), c, reader); !fault.Is(err, fault.UpstreamError) || fault.Of(err).Kind != fault.Limited {
		t.Errorf("%v", err)
	}
	if len(v.Requests()) != before {
		t.Error("a request was sent all the same")
	}
	if o := lemon.Execute(t.Context(), c, call("refund_order", `{"id":"31","amount":100,"currency":"EUR"}`)); o.Kind() != action.OutcomeSucceeded {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
}

func TestAnAnswerThatLimitsIsDefinite(t *testing.T) {
	v := lemontest.New(t)
	v.Break("refund_order", directtest.Limit)
	o := lemon.Execute(t.Context(), connect(t, v, provider.Settings{}), call("refund_order", `{"id":"31","amount":100,"currency":"EUR"}`))
	if o.Kind() != action.OutcomeFailed || len(v.Effects("")) != 0 {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
}
