package crm

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"countersign/internal/fault"
)

// operation is what a built-in tool does to the records. It runs under the book's lock. An operation that returns an error has
// changed nothing.
type operation struct {
	effect bool // journaled when it succeeds, whatever the tool's present definition claims
	run    func(r *records, args json.RawMessage, now time.Time) (any, error)
}

// operations are the tools that touch the records. The two that only take time or space, wait and report_export, are in slowly.go.
var operations = map[string]operation{
	"contacts_search": {run: contactsSearch},
	"contacts_get":    {run: contactsGet},
	"contacts_list":   {run: contactsList},
	"contacts_create": {run: contactsCreate, effect: true},
	"contacts_update": {run: contactsUpdate, effect: true},
	"deals_move":      {run: dealsMove, effect: true},
	"contacts_delete": {run: contactsDelete, effect: true},
	"refund_issue":    {run: refundIssue, effect: true},
	"notes_add":       {run: notesAdd, effect: true},
}

// decode reads arguments leniently: whether an unknown one is allowed is the definition's business, which a test may have changed.
func decode[T any](args json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(args, &v); err != nil {
		return v, invalid("The arguments do not have the shape this tool takes.")
	}
	return v, nil
}

func invalid(what string) error {
	return fault.New(fault.Invalid, fault.InvalidArguments, what, "See the tool's input schema.")
}

func contactsSearch(r *records, args json.RawMessage, _ time.Time) (any, error) {
	in, err := decode[struct {
		Query string `json:"query"`
		Limit *int   `json:"limit"`
	}](args)
	if err != nil {
		return nil, err
	}
	limit, err := limited(in.Limit, 20)
	if err != nil {
		return nil, err
	}
	query, found := strings.ToLower(in.Query), []summary{}
	for _, c := range r.Contacts {
		if strings.Contains(strings.ToLower(c.Name+"\n"+c.Email+"\n"+c.Company), query) {
			found = append(found, c.summary())
		}
	}
	return map[string]any{"contacts": found[:min(limit, len(found))], "total": len(found)}, nil
}

func limited(given *int, otherwise int) (int, error) {
	if given == nil {
		return otherwise, nil
	}
	if *given < 1 || *given > 100 {
		return 0, invalid("limit is between 1 and 100.")
	}
	return *given, nil
}

func contactsGet(r *records, args json.RawMessage, _ time.Time) (any, error) {
	c, err := chosen(r, args)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"contact": *c,
		"deals":   of(r.Deals, func(d deal) string { return d.ContactID }, c.ID),
		"refunds": of(r.Refunds, func(f refund) string { return f.ContactID }, c.ID),
		"notes":   of(r.Notes, func(n note) string { return n.ContactID }, c.ID),
	}, nil
}

// chosen is the contact that contact_id names.
func chosen(r *records, args json.RawMessage) (*contact, error) {
	in, err := decode[struct {
		ContactID string `json:"contact_id"`
	}](args)
	if err != nil {
		return nil, err
	}
	return r.contact(in.ContactID)
}

func contactsList(r *records, args json.RawMessage, _ time.Time) (any, error) {
	in, err := decode[struct {
		Limit  *int   `json:"limit"`
		Cursor string `json:"cursor"`
	}](args)
	if err != nil {
		return nil, err
	}
	limit, err := limited(in.Limit, 50)
	if err != nil {
		return nil, err
	}
	from := 0
	if in.Cursor != "" {
		// The cursor is the last id of the page before.
		i := slices.IndexFunc(r.Contacts, func(c contact) bool { return c.ID == in.Cursor })
		if i < 0 {
			return nil, invalid("cursor does not name a page; the contact it stood at may have been deleted.")
		}
		from = i + 1
	}
	page := []summary{}
	for _, c := range r.Contacts[from:min(from+limit, len(r.Contacts))] {
		page = append(page, c.summary())
	}
	out := map[string]any{"contacts": page}
	if from+limit < len(r.Contacts) {
		out["next_cursor"] = page[len(page)-1].ID
	}
	return out, nil
}

// fields are the parts of a contact a caller may set; nil leaves one as it is.
type fields struct {
	Name    *string `json:"name"`
	Email   *string `json:"email"`
	Phone   *string `json:"phone"`
	Title   *string `json:"title"`
	Company *string `json:"company"`
	Owner   *string `json:"owner"`
}

func (f fields) check() error {
	if f.Name != nil && strings.TrimSpace(*f.Name) == "" {
		return invalid("name is empty.")
	}
	if f.Email != nil {
		local, domain, ok := strings.Cut(*f.Email, "@")
		if !ok || local == "" || domain == "" || strings.ContainsAny(*f.Email, " \t\r\n") {
			return invalid("email is not an email address.")
		}
	}
	return nil
}

// apply sets what is given and reports how many fields that was.
func (f fields) apply(c *contact) int {
	set := 0
	for _, one := range []struct {
		from *string
		to   *string
	}{{f.Name, &c.Name}, {f.Email, &c.Email}, {f.Phone, &c.Phone}, {f.Title, &c.Title}, {f.Company, &c.Company}, {f.Owner, &c.Owner}} {
		if one.from != nil {
			*one.to = *one.from
			set++
		}
	}
	return set
}

// contactsCreate accepts an email that is already there: a call that arrives twice must show twice in the journal, not be absorbed
// by a uniqueness rule.
func contactsCreate(r *records, args json.RawMessage, now time.Time) (any, error) {
	in, err := decode[fields](args)
	if err != nil {
		return nil, err
	}
	if in.Name == nil || in.Email == nil {
		return nil, invalid("name and email are required.")
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	c := contact{ID: r.nextID("c_"), CreatedAt: now, Invoices: []invoice{}}
	in.apply(&c)
	r.Contacts = append(r.Contacts, c)
	return map[string]any{"contact": c}, nil
}

func contactsUpdate(r *records, args json.RawMessage, _ time.Time) (any, error) {
	c, err := chosen(r, args)
	if err != nil {
		return nil, err
	}
	in, err := decode[fields](args)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.apply(c) == 0 {
		return nil, invalid("No field to change is given.")
	}
	return map[string]any{"contact": *c}, nil
}

func dealsMove(r *records, args json.RawMessage, _ time.Time) (any, error) {
	in, err := decode[struct {
		DealID string `json:"deal_id"`
		Stage  string `json:"stage"`
	}](args)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(stages, in.Stage) {
		return nil, invalid("stage is one of " + strings.Join(stages, ", ") + ".")
	}
	d, err := r.deal(in.DealID)
	if err != nil {
		return nil, err
	}
	before := d.Stage
	d.Stage = in.Stage
	return map[string]any{"deal": *d, "previous_stage": before}, nil
}

func contactsDelete(r *records, args json.RawMessage, _ time.Time) (any, error) {
	c, err := chosen(r, args)
	if err != nil {
		return nil, err
	}
	id := c.ID
	r.Contacts = slices.DeleteFunc(r.Contacts, func(c contact) bool { return c.ID == id })
	r.Deals = slices.DeleteFunc(r.Deals, func(d deal) bool { return d.ContactID == id })
	r.Notes = slices.DeleteFunc(r.Notes, func(n note) bool { return n.ContactID == id })
	return map[string]any{"deleted": id}, nil
}

// refundIssue pays again when it is called again, and asks for no earlier payment: the sandbox exists to show duplicates.
func refundIssue(r *records, args json.RawMessage, now time.Time) (any, error) {
	in, err := decode[struct {
		ContactID   string `json:"contact_id"`
		AmountCents int64  `json:"amount_cents"`
		Reason      string `json:"reason"`
	}](args)
	if err != nil {
		return nil, err
	}
	if in.AmountCents < 1 {
		return nil, invalid("amount_cents is a whole number of cents above zero.")
	}
	c, err := r.contact(in.ContactID)
	if err != nil {
		return nil, err
	}
	f := refund{ID: r.nextID("r_"), ContactID: c.ID, AmountCents: in.AmountCents, Currency: "EUR", Reason: in.Reason, At: now}
	r.Refunds = append(r.Refunds, f)
	return map[string]any{"refund": f}, nil
}

func notesAdd(r *records, args json.RawMessage, now time.Time) (any, error) {
	in, err := decode[struct {
		ContactID string `json:"contact_id"`
		Text      string `json:"text"`
	}](args)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Text) == "" {
		return nil, invalid("text is empty.")
	}
	c, err := r.contact(in.ContactID)
	if err != nil {
		return nil, err
	}
	n := note{ID: r.nextID("n_"), ContactID: c.ID, Text: in.Text, At: now}
	r.Notes = append(r.Notes, n)
	return map[string]any{"note": n}, nil
}
