package lemonsqueezy

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// invoiceName is "generate_order_invoice" and "generate_subscription_invoice".
func invoiceName(of string) string {
	return "generate_" + strings.TrimSuffix(of, "_invoice") + "_invoice"
}

func cents(r resource, name string) (int64, bool) {
	n, err := strconv.ParseInt(r.text(name), 10, 64)
	return n, err == nil
}

const refundedNote = "refunded_amount="

func refundedBefore(note string) (int64, bool) {
	text, ok := strings.CutPrefix(note, refundedNote)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, ok && err == nil
}

// refund always names its amount and currency: a refund without an amount is a full one at the vendor, and what nobody wrote down nobody
// has approved. Both are held to the object before anything is sent.
func refund(plural, singular string) direct.Tool {
	return direct.Tool{
		Name: "refund_" + strings.ReplaceAll(singular, " ", "_"), Title: "Refund one " + singular, Role: role, Destructive: true, Resource: "id", Money: "amount",
		Description: "Pays money of one " + singular + " back to the customer. For a full refund give the whole total.",
		Input: idInput(singular).With(map[string]direct.Field{
			"amount":   direct.Number("How much, in whole cents.", 1, 100_000_000_00),
			"currency": {Type: "string", Description: "The currency of the " + singular + ", three letters.", Pattern: `^[A-Z]{3}$`},
		}, "amount", "currency"),
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				r, err := ours(ctx, l, plural, a.Text("id"))
				if err != nil {
					return direct.Request{}, err
				}
				before, err := refundable(r, singular, a)
				if err != nil {
					return direct.Request{}, err
				}
				return direct.Request{
					Role: role, Method: http.MethodPost, Path: direct.At("/"+plural+"/%s/refund", a.Text("id")),
					Body:   document(plural, a.Text("id"), map[string]any{"amount": a["amount"]}, nil),
					Before: refundedNote + strconv.FormatInt(before, 10),
				}, nil
			},
			Show: show, Look: lookRefund(plural, singular),
		},
	}
}

// notCents are currencies whose smallest unit is not a hundredth.
var notCents = []string{"BHD", "BIF", "CLP", "DJF", "GNF", "ISK", "JOD", "JPY", "KMF", "KRW", "KWD", "OMR", "PYG", "RWF", "TND", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"}

// refundable says how much was refunded before, or why the call's refund does not fit.
func refundable(r resource, singular string, a direct.Arguments) (before int64, err error) {
	before, knowsRefunded := cents(r, "refunded_amount")
	total, knowsTotal := cents(r, "total")
	switch {
	case !knowsTotal || !knowsRefunded:
		return 0, unreadable(errNoAmount)
	case r.text("currency") != a.Text("currency"):
		return 0, fault.New(fault.Invalid, fault.InvalidArguments, "The "+singular+" is in "+provider.Printable(r.text("currency"))+", and the call refunds another currency.", "Read it again and give its own currency.")
	case slices.Contains(notCents, a.Text("currency")):
		return 0, fault.New(fault.Invalid, fault.InvalidArguments, "Refunds in "+a.Text("currency")+" are not offered here: its unit has no cents, so an approver could be shown another amount than is paid.", "Ask a person to refund it at the vendor.")
	case before+a.Int("amount", 0) > total:
		return 0, fault.New(fault.Invalid, fault.InvalidArguments, "The call would refund more than the "+singular+" has left.", "Read it again: total less refunded_amount is what is left, in cents.")
	}
	return before, nil
}

// cancel ends a subscription at the end of the paid period; until then it can be taken back.
func cancel() direct.Tool {
	return direct.Tool{
		Name: "cancel_subscription", Title: "Cancel a subscription", Role: role, Resource: "id", Destructive: true, Input: idInput("subscription"),
		Description: "Cancels a subscription. It ends with the period that is paid for; until then update_subscription can take it back.",
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				r, err := ours(ctx, l, "subscriptions", a.Text("id"))
				if err != nil {
					return direct.Request{}, err
				}
				if r.text("cancelled") == "true" {
					return direct.Request{}, fault.New(fault.Conflict, fault.CodeConflict, "The subscription is cancelled already.", "Nothing is left to do.")
				}
				return direct.Request{Role: role, Method: http.MethodDelete, Path: direct.At("/subscriptions/%s", a.Text("id")), Before: wasThere}, nil
			},
			Show: show, Look: lookCancelled,
		},
	}
}

func lookCancelled(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
	r, err := fetch(ctx, l, "subscriptions", a.Text("id"))
	switch {
	case err != nil:
		return provider.Sighting{}, err
	case r.text("cancelled") != "true":
		return absent("The subscription is not cancelled.")
	case e.Before == wasThere:
		return applied("The subscription was not cancelled before the call, and is.")
	}
	return unseen("The subscription is cancelled, and may have been before.")
}

const newestNote = "newest="

func newestBefore(note string) (string, bool) { return strings.CutPrefix(note, newestNote) }

// idAfter compares ids, which the vendor counts up.
func idAfter(id, than string) bool {
	if len(id) != len(than) {
		return len(id) > len(than)
	}
	return id > than
}

// createUsage adds to what a metered subscription is billed for, or sets it.
func createUsage() direct.Tool {
	return direct.Tool{
		Name: "create_usage_record", Title: "Record usage", Role: role, Resource: "subscription_item_id",
		Description: "Reports usage of a metered subscription item, which the customer is billed for.",
		Input: direct.Object{Fields: map[string]direct.Field{
			"subscription_item_id": direct.ID("The id of the subscription item."), "quantity": direct.Number("How many units.", 0, 1_000_000_000),
			"action": direct.OneOf("“increment” adds to what is there, “set” replaces it.", "increment", "set"),
		}, Required: []string{"subscription_item_id", "quantity", "action"}},
		Write: &direct.Write{
			Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
				item := a.Text("subscription_item_id")
				if err := withinID(ctx, l, "subscription-items", item); err != nil {
					return direct.Request{}, err
				}
				newest := ""
				whole, err := search(ctx, l, "usage-records", map[string]string{"subscription_item_id": item}, func(r resource) {
					if idAfter(r.ID, newest) {
						newest = r.ID
					}
				})
				if err != nil {
					return direct.Request{}, err
				}
				before := ""
				if whole {
					before = newestNote + newest
				}
				related := map[string][2]string{"subscription-item": {"subscription-items", item}}
				body := document("usage-records", "", attributes(a, "subscription_item_id"), related)
				return direct.Request{Role: role, Method: http.MethodPost, Path: "/usage-records", Body: body, Before: before}, nil
			},
			Show: show, Look: lookUsage,
		},
	}
}
