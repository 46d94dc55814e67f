package lemonsqueezy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"countersign/internal/action"
	"countersign/internal/canonical"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// The vendor has no idempotency keys and its answers carry no trace of who asked, so a lost effect is looked for by what it changes. That
// tells only together with what was seen just before it was sent (Evidence.Before): a state that is as the call makes it may have been so
// all along. Where a process ended before that could be kept, only "it is as it was" can be said, and the rest is a person's to decide.

func applied(words string) (provider.Sighting, error) {
	return provider.Sighting{Sight: provider.Applied, Sentence: words}, nil
}

func absent(words string) (provider.Sighting, error) {
	return provider.Sighting{Sight: provider.Absent, Sentence: words}, nil
}

func unseen(words string) (provider.Sighting, error) {
	return provider.Sighting{Sight: provider.Unseen, Sentence: words}, nil
}

// What is noted before a write.
const (
	wasThere = "it was there"
	wasNot   = "there was none"
)

// update is a change of attributes: read back one by one. state lists those that are a state of the object; the others of the call steer
// how it is carried out.
type update struct {
	plural, singular string
	state            []string
}

// sentState are the attributes of a call that can be read back.
func (u update) sentState(a direct.Arguments) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range u.state {
		if a.Has(name) {
			out[name] = a[name]
		}
	}
	return out
}

// asItIs is a digest of the present values of what the call changes: enough to tell whether they changed, and no answer of the vendor.
func (u update) asItIs(a direct.Arguments, r resource) string {
	values := map[string]any{}
	for name := range u.sentState(a) {
		values[name] = r.Attributes[name]
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	return "state " + canonical.Digest(raw)
}

func (u update) done(a direct.Arguments, r resource) bool {
	for name, sent := range u.sentState(a) {
		if !same(sent, r.Attributes[name]) {
			return false
		}
	}
	return true
}

func (u update) lookable(a direct.Arguments) bool { return len(u.sentState(a)) > 0 }

func (u update) look(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
	r, err := fetch(ctx, l, u.plural, a.Text("id"))
	if err != nil {
		return provider.Sighting{}, err
	}
	names := slices.Sorted(maps.Keys(u.sentState(a)))
	now := u.asItIs(a, r)
	switch done := u.done(a, r); {
	case done && e.Before != "" && e.Before != now:
		return applied("The " + u.singular + " shows every value the call was to set, and did not before.")
	case done:
		return unseen("The " + u.singular + " shows the values of the call, and may have before.")
	case e.Before == now:
		return absent("The " + u.singular + " is as it was before the call.")
	}
	return unseen("The " + u.singular + " changed since, but not to what the call was to set: " + joined(names) + ".")
}

func joined(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}

// lookDeleted finds out whether an object is gone.
func lookDeleted(plural, singular string) func(context.Context, *direct.Link, direct.Arguments, action.Evidence) (provider.Sighting, error) {
	return func(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
		_, err := fetch(ctx, l, plural, a.Text("id"))
		switch {
		case direct.Is404(err) && e.Before == wasThere:
			return applied("The " + singular + " was there before the call and is gone.")
		case direct.Is404(err):
			return unseen("The " + singular + " is not there, and may not have been before.")
		case err != nil:
			return provider.Sighting{}, err
		}
		return absent("The " + singular + " is still there.")
	}
}

// lookRefund compares what is refunded now with what was before. An amount that moved by exactly the call's, while nothing equal of ours
// could be sent, is the call's.
func lookRefund(plural, singular string) func(context.Context, *direct.Link, direct.Arguments, action.Evidence) (provider.Sighting, error) {
	return func(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
		r, err := fetch(ctx, l, plural, a.Text("id"))
		if err != nil {
			return provider.Sighting{}, err
		}
		now, ok := cents(r, "refunded_amount")
		before, known := refundedBefore(e.Before)
		switch {
		case !ok:
			return unseen("The " + singular + " does not say how much of it is refunded.")
		case known && now == before+a.Int("amount", 0):
			return applied("The refunded amount of the " + singular + " grew by exactly what the call was to refund.")
		case known && now == before, !known && now == 0:
			return absent("The " + singular + " shows no refund beyond those before the call.")
		}
		return unseen("The refunded amount of the " + singular + " does not tell whether this call is part of it.")
	}
}

// lookUsage never says that a record is absent: an increment that is counted later, or in another period, looks the same as none, and
// sending it again would bill twice.
func lookUsage(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
	before, known := newestBefore(e.Before)
	found := 0
	whole, err := search(ctx, l, "usage-records", map[string]string{"subscription_item_id": a.Text("subscription_item_id")}, func(r resource) {
		if idAfter(r.ID, before) && same(a["quantity"], r.Attributes["quantity"]) && same(a["action"], r.Attributes["action"]) {
			found++
		}
	})
	switch {
	case err != nil:
		return provider.Sighting{}, err
	case known && whole && found == 1:
		return applied("Exactly one usage record like the call's is there that was not before.")
	}
	return unseen("The usage records do not tell without doubt whether this one is among them, so a person decides.")
}

// lookCreated searches a list for the one object that has the call's own value.
func lookCreated(plural, singular, attribute string) func(context.Context, *direct.Link, direct.Arguments, action.Evidence) (provider.Sighting, error) {
	return func(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
		there, whole, err := exists(ctx, l, plural, attribute, a)
		switch {
		case err != nil:
			return provider.Sighting{}, err
		case there && e.Before == wasNot:
			return applied("A " + singular + " with the call's " + attribute + " is there, and was not before.")
		case there:
			return unseen("A " + singular + " with the call's " + attribute + " is there, and may have been before.")
		case !whole:
			return unseen("There are more " + plural + " than can be looked through.")
		}
		return absent("No " + singular + " with the call's " + attribute + " is there.")
	}
}

// exists looks through the objects of a store for one with the call's value of an attribute.
func exists(ctx context.Context, l *direct.Link, plural, attribute string, a direct.Arguments) (there, whole bool, err error) {
	filters := map[string]string{"store_id": a.Text("store_id")}
	if plural == "customers" {
		filters["email"] = a.Text("email")
	}
	whole, err = search(ctx, l, plural, filters, func(r resource) { there = there || same(a[attribute], r.Attributes[attribute]) })
	return there, whole, err
}

// lookCheckout searches for the action's own id, which was sent as custom data.
func lookCheckout(ctx context.Context, l *direct.Link, a direct.Arguments, _ action.Evidence) (provider.Sighting, error) {
	if l.Action == "" {
		return unseen("The call has no marker to look for.")
	}
	there := false
	whole, err := search(ctx, l, "checkouts", map[string]string{"store_id": a.Text("store_id"), "variant_id": a.Text("variant_id")}, func(r resource) {
		data, _ := r.Attributes["checkout_data"].(map[string]any)
		custom, _ := data["custom"].(map[string]any)
		there = there || custom[marker] == l.Action
	})
	switch {
	case err != nil:
		return provider.Sighting{}, err
	case there:
		return applied("A checkout with this action's own id is there.")
	case !whole:
		return unseen("There are more checkouts than can be looked through.")
	}
	return absent("No checkout with this action's own id is there.")
}

var errNoAmount = errors.New("the object has no amounts")
