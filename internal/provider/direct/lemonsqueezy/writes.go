package lemonsqueezy

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/provider/direct"
)

// marker is the name under which a checkout carries the action it came from.
const marker = "countersign_action"

var (
	storeID  = direct.ID("The id of the store.")
	datetime = direct.Field{Type: "string", Description: "A moment, like 2026-12-24T00:00:00Z.", Pattern: `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$`}
	address  = direct.Field{Type: "string", Description: "An https address.", Pattern: `^https://[^\s]{3,500}$`}
	email    = direct.Field{Type: "string", Description: "An e-mail address.", Pattern: `^[^\s@]+@[^\s@]+$`, MaxLength: 250}
	events   = direct.ListOf("The events it is told of.", direct.Field{Type: "string", Pattern: `^[a-z_]{3,60}$`}, 40)
)

func writes() []direct.Tool {
	out := []direct.Tool{createCustomer(), updateCustomer(), createUsage(), createDiscount(), createCheckout(), createWebhook(), updateWebhook(), updateSubscription(), updateItem(), updateKey(), cancel()}
	for _, k := range []struct{ plural, singular string }{{"orders", "order"}, {"subscription-invoices", "subscription invoice"}} {
		out = append(out, invoice(k.plural, k.singular), refund(k.plural, k.singular))
	}
	for _, k := range []struct{ plural, singular string }{{"discounts", "discount"}, {"webhooks", "webhook"}} {
		out = append(out, remove(k.plural, k.singular))
	}
	return out
}

func show(_ *direct.Link, _ direct.Arguments, r direct.Reply) direct.Answer {
	o, err := resourceOf(r)
	if err != nil {
		return direct.Answer{Text: "Applied (HTTP " + strconv.Itoa(r.Status) + ")."}
	}
	return direct.Answer{Structured: o.shown()}
}

// attributes are the arguments of a call that are attributes of the object.
func attributes(a direct.Arguments, without ...string) map[string]any {
	out := map[string]any{}
	for name, raw := range a {
		out[name] = raw
	}
	for _, name := range append(without, "id") {
		delete(out, name)
	}
	return out
}

// tool is a write that changes attributes of one object.
func (u update) tool(name, title, description string, fields map[string]direct.Field) direct.Tool {
	input := idInput(u.singular)
	return direct.Tool{
		Name: name, Title: title, Description: description, Role: role, Resource: "id", Input: input.With(fields),
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				if len(a) < 2 {
					return direct.Request{}, fault.New(fault.Invalid, fault.InvalidArguments, "The call changes nothing.", "Give at least one value to set.")
				}
				r, err := ours(ctx, l, u.plural, a.Text("id"))
				if err != nil {
					return direct.Request{}, err
				}
				return direct.Request{
					Role: role, Method: http.MethodPatch, Path: direct.At("/"+u.plural+"/%s", a.Text("id")),
					Body: document(u.plural, a.Text("id"), attributes(a), nil), Before: u.asItIs(a, r),
				}, nil
			},
			Show: show, Look: u.look, Lookable: u.lookable,
		},
	}
}

func updateCustomer() direct.Tool {
	u := update{"customers", "customer", []string{"name", "email", "city", "region", "country", "status"}}
	return u.tool("update_customer", "Change a customer", "Changes what a customer is called or where they live, or archives them.", map[string]direct.Field{
		"name": direct.Text("The full name."), "email": email, "city": direct.Text("The city."), "region": direct.Text("The region."),
		"country": {Type: "string", Description: "Two letters.", Pattern: `^[A-Z]{2}$`}, "status": direct.OneOf("“archived” takes the customer off the list.", "archived"),
	})
}

func updateSubscription() direct.Tool {
	u := update{"subscriptions", "subscription", []string{"variant_id", "pause", "cancelled", "trial_ends_at", "billing_anchor"}}
	t := u.tool("update_subscription", "Change a subscription",
		"Moves a subscription to another variant, pauses or resumes it, takes a cancellation back, or moves its trial or billing day.", map[string]direct.Field{
			"variant_id": direct.Number("The variant it moves to.", 1, 1<<40),
			"pause": {Type: "object", Description: "How collection is paused.", Properties: map[string]direct.Field{
				"mode": direct.OneOf("“void” gives no access, “free” does.", "void", "free"), "resumes_at": datetime,
			}, Required: []string{"mode"}},
			"cancelled":           direct.Truth("False takes a cancellation back before the period ends."),
			"trial_ends_at":       datetime,
			"billing_anchor":      direct.Number("The day of the month it is billed on; 0 bills now.", 0, 31),
			"invoice_immediately": direct.Truth("Bill the difference of a new variant now."),
			"disable_prorations":  direct.Truth("Charge no difference."),
		})
	return t
}

func updateItem() direct.Tool {
	u := update{"subscription-items", "subscription item", []string{"quantity"}}
	return u.tool("update_subscription_item", "Change the quantity of a subscription item", "Changes how many units a subscription is billed for.", map[string]direct.Field{
		"quantity": direct.Number("How many units.", 0, 1_000_000), "invoice_immediately": direct.Truth("Bill the difference now."), "disable_prorations": direct.Truth("Charge no difference."),
	})
}

func updateKey() direct.Tool {
	u := update{"license-keys", "license key", []string{"activation_limit", "expires_at", "disabled"}}
	return u.tool("update_license_key", "Change a license key", "Changes how often a license key may be activated, when it ends, or whether it works.", map[string]direct.Field{
		"activation_limit": direct.Number("How many activations.", 0, 1_000_000), "expires_at": datetime, "disabled": direct.Truth("True makes it stop working."),
	})
}

func updateWebhook() direct.Tool {
	u := update{"webhooks", "webhook", []string{"url", "events"}}
	return u.tool("update_webhook", "Change a webhook", "Changes where a webhook sends what happens, or which events.", map[string]direct.Field{"url": address, "events": events})
}

// inStore begins a creation: the store is the connection's.
func inStore(l *direct.Link, a direct.Arguments) error {
	if bound := l.Setting(StoreSetting); bound != "" && a.Text("store_id") != bound {
		return outside()
	}
	return nil
}

// creation is a write that makes an object, of which an attribute tells it apart.
func creation(plural, singular, attribute string, body func(direct.Arguments) (map[string]any, map[string][2]string)) *direct.Write {
	return &direct.Write{
		Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
			if err := inStore(l, a); err != nil {
				return direct.Request{}, err
			}
			before := wasThere
			there, whole, err := exists(ctx, l, plural, attribute, a)
			switch {
			case err != nil:
				return direct.Request{}, err
			case !there && whole:
				before = wasNot
			}
			values, related := body(a)
			if related == nil {
				related = map[string][2]string{}
			}
			related["store"] = [2]string{"stores", a.Text("store_id")}
			return direct.Request{Role: role, Method: http.MethodPost, Path: "/" + plural, Body: document(plural, "", values, related), Before: before}, nil
		},
		Show: show, Look: lookCreated(plural, singular, attribute),
	}
}

func createCustomer() direct.Tool {
	return direct.Tool{
		Name: "create_customer", Title: "Add a customer", Description: "Adds a customer to a store.", Role: role, Resource: "store_id",
		Input: direct.Object{Fields: map[string]direct.Field{
			"store_id": storeID, "name": direct.Text("The full name."), "email": email, "city": direct.Text("The city."), "region": direct.Text("The region."),
			"country": {Type: "string", Description: "Two letters.", Pattern: `^[A-Z]{2}$`},
		}, Required: []string{"store_id", "name", "email"}},
		Write: creation("customers", "customer", "email", func(a direct.Arguments) (map[string]any, map[string][2]string) {
			return attributes(a, "store_id"), nil
		}),
	}
}

func createDiscount() direct.Tool {
	return direct.Tool{
		Name: "create_discount", Title: "Create a discount code", Role: role, Resource: "store_id",
		Description: "Creates a discount code that customers of a store can use at once, unless starts_at says later.",
		Input: direct.Object{Fields: map[string]direct.Field{
			"store_id": storeID, "name": direct.Text("What the discount is called; customers do not see it."),
			"code":        {Type: "string", Description: "What customers type.", Pattern: `^[A-Z0-9]{3,256}$`},
			"amount":      direct.Number("Percent, or whole cents of the store's currency, as amount_type says.", 1, 100_000_000),
			"amount_type": direct.OneOf("What amount counts.", "percent", "fixed"), "duration": direct.OneOf("How long a subscription gets it.", "once", "repeating", "forever"),
			"duration_in_months": direct.Number("With “repeating”.", 1, 120), "is_limited_redemptions": direct.Truth("Whether max_redemptions counts."),
			"max_redemptions": direct.Number("How often it can be used.", 1, 1_000_000), "starts_at": datetime, "expires_at": datetime, "test_mode": direct.Truth("For test purchases."),
		}, Required: []string{"store_id", "name", "code", "amount", "amount_type"}},
		Write: creation("discounts", "discount", "code", func(a direct.Arguments) (map[string]any, map[string][2]string) {
			return attributes(a, "store_id"), nil
		}),
	}
}

func createWebhook() direct.Tool {
	return direct.Tool{
		Name: "create_webhook", Title: "Create a webhook", Role: role, Resource: "store_id",
		Description: "Makes a store send what happens to an address. Its signing secret is drawn at random and shown to nobody; a person sets another one at the vendor.",
		Input:       direct.Object{Fields: map[string]direct.Field{"store_id": storeID, "url": address, "events": events, "test_mode": direct.Truth("For test events.")}, Required: []string{"store_id", "url", "events"}},
		Write: creation("webhooks", "webhook", "url", func(a direct.Arguments) (map[string]any, map[string][2]string) {
			values := attributes(a, "store_id")
			values["secret"] = rand.Text() // the vendor asks for one of 6 to 40 characters
			return values, nil
		}),
	}
}

func createCheckout() direct.Tool {
	return direct.Tool{
		Name: "create_checkout", Title: "Create a checkout", Role: role, Resource: "store_id",
		Description: "Makes an address where somebody can buy a variant. It carries the id of the action it came from as custom data.",
		Input: direct.Object{Fields: map[string]direct.Field{
			"store_id": storeID, "variant_id": direct.ID("What is sold."), "custom_price": direct.Number("Another price, in whole cents of the store's currency.", 0, 100_000_000),
			"product_options": direct.Free("Other texts of the product; see the vendor's pages."), "checkout_options": direct.Free("What the page shows; see the vendor's pages."),
			"email": email, "name": direct.Text("The buyer's name."), "discount_code": direct.Text("A code that is filled in."), "expires_at": datetime, "test_mode": direct.Truth("For a test purchase."),
		}, Required: []string{"store_id", "variant_id"}},
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				if err := inStore(l, a); err != nil {
					return direct.Request{}, err
				}
				if err := withinID(ctx, l, "variants", a.Text("variant_id")); err != nil {
					return direct.Request{}, err
				}
				data := map[string]any{"custom": map[string]string{marker: l.Action}}
				for _, name := range []string{"email", "name", "discount_code"} {
					if a.Has(name) {
						data[name] = a[name]
					}
				}
				values := attributes(a, "store_id", "variant_id", "email", "name", "discount_code")
				values["checkout_data"] = data
				related := map[string][2]string{"store": {"stores", a.Text("store_id")}, "variant": {"variants", a.Text("variant_id")}}
				return direct.Request{Role: role, Method: http.MethodPost, Path: "/checkouts", Body: document("checkouts", "", values, related)}, nil
			},
			Show: show, Look: lookCheckout,
		},
	}
}

func remove(plural, singular string) direct.Tool {
	return direct.Tool{
		Name: "delete_" + singular, Title: "Delete a " + singular, Description: "Deletes a " + singular + " for good.", Role: role, Resource: "id",
		Destructive: true, Input: idInput(singular),
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				if _, err := ours(ctx, l, plural, a.Text("id")); err != nil {
					return direct.Request{}, err
				}
				return direct.Request{Role: role, Method: http.MethodDelete, Path: direct.At("/"+plural+"/%s", a.Text("id")), Before: wasThere}, nil
			},
			Look: lookDeleted(plural, singular),
		},
	}
}

// invoice makes an address of a document: the same call twice makes two addresses and changes nothing else.
func invoice(plural, singular string) direct.Tool {
	fields := map[string]direct.Field{}
	for name, words := range map[string]string{
		"name": "The full name or company on it.", "address": "The street.", "city": "The city.", "state": "The state or region.", "country": "Two letters.", "notes": "A note at its end.",
	} {
		fields[name] = direct.Text(words)
	}
	fields["zip_code"] = direct.Text("The postal code.")
	snaked := strings.ReplaceAll(singular, " ", "_")
	return direct.Tool{
		Name: invoiceName(snaked), Title: "Make an invoice of one " + singular, Role: role, Resource: "id",
		Description: "Makes an invoice with the given address and answers where it can be downloaded.", Input: idInput(singular).With(fields, "name"),
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				if err := withinID(ctx, l, plural, a.Text("id")); err != nil {
					return direct.Request{}, err
				}
				q := url.Values{}
				for name := range fields {
					if a.Has(name) {
						q.Set(name, a.Text(name))
					}
				}
				return direct.Request{Role: role, Method: http.MethodPost, Path: direct.At("/"+plural+"/%s/generate-invoice", a.Text("id")), Query: q}, nil
			},
		},
	}
}
