package lemonsqueezy

import (
	"context"

	"countersign/internal/fault"
	"countersign/internal/provider/direct"
)

// parent is where the way to an object's store goes on: the attribute that names the next object, and that object's kind. An object that
// names its store itself has none.
var parent = map[string]struct{ attribute, plural string }{
	"variants":              {"product_id", "products"},
	"prices":                {"variant_id", "variants"},
	"files":                 {"variant_id", "variants"},
	"order-items":           {"order_id", "orders"},
	"subscription-items":    {"subscription_id", "subscriptions"},
	"usage-records":         {"subscription_item_id", "subscription-items"},
	"discount-redemptions":  {"discount_id", "discounts"},
	"license-key-instances": {"license_key_id", "license-keys"},
}

// hops bounds the way to a store; the longest is usage record, item, subscription, store.
const hops = 4

// store finds the store of an object.
func store(ctx context.Context, l *direct.Link, plural string, r resource) (string, error) {
	for range hops {
		if plural == "stores" {
			return r.ID, nil
		}
		if id := r.text("store_id"); id != "" {
			return id, nil
		}
		next, ok := parent[plural]
		if !ok || r.text(next.attribute) == "" {
			return "", nil
		}
		up, err := fetch(ctx, l, next.plural, r.text(next.attribute))
		if err != nil {
			return "", err
		}
		plural, r = next.plural, up
	}
	return "", nil
}

// within holds an object to the connection's store. What does not say whose it is is outside: fail closed.
func within(ctx context.Context, l *direct.Link, plural string, r resource) error {
	bound := l.Setting(StoreSetting)
	if bound == "" {
		return nil
	}
	found, err := store(ctx, l, plural, r)
	if err != nil {
		return err
	}
	if found != bound {
		return outside()
	}
	return nil
}

// withinID is within for an object of which only the id is known.
func withinID(ctx context.Context, l *direct.Link, plural, id string) error {
	if l.Setting(StoreSetting) == "" {
		return nil
	}
	r, err := fetch(ctx, l, plural, id)
	if err != nil {
		return err
	}
	return within(ctx, l, plural, r)
}

// ours fetches an object and holds it to the store.
func ours(ctx context.Context, l *direct.Link, plural, id string) (resource, error) {
	r, err := fetch(ctx, l, plural, id)
	if err != nil {
		return r, err
	}
	return r, within(ctx, l, plural, r)
}

func outside() error {
	return fault.New(fault.Forbidden, fault.OutsideResource, "This connection is limited to one store, and the call touches another.", "Ask for something of the connection's own store.")
}
