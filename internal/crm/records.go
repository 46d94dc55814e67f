package crm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"countersign/internal/fault"
)

// Amounts are whole cents, dates are YYYY-MM-DD, times are UTC.
type (
	contact struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		Email     string    `json:"email"`
		Phone     string    `json:"phone,omitempty"`
		Title     string    `json:"title,omitempty"`
		Company   string    `json:"company"`
		Owner     string    `json:"owner,omitempty"`
		CreatedAt time.Time `json:"created_at"`
		Invoices  []invoice `json:"invoices"`
	}
	invoice struct {
		ID          string `json:"id"`
		Number      string `json:"number"`
		AmountCents int64  `json:"amount_cents"`
		Currency    string `json:"currency"`
		Status      string `json:"status"` // paid, open or overdue
		IssuedOn    string `json:"issued_on"`
		DueOn       string `json:"due_on"`
	}
	deal struct {
		ID          string `json:"id"`
		ContactID   string `json:"contact_id"`
		Name        string `json:"name"`
		AmountCents int64  `json:"amount_cents"`
		Currency    string `json:"currency"`
		Stage       string `json:"stage"`
	}
	refund struct {
		ID          string    `json:"id"`
		ContactID   string    `json:"contact_id"`
		AmountCents int64     `json:"amount_cents"`
		Currency    string    `json:"currency"`
		Reason      string    `json:"reason,omitempty"`
		At          time.Time `json:"at"`
	}
	note struct {
		ID        string    `json:"id"`
		ContactID string    `json:"contact_id"`
		Text      string    `json:"text"`
		At        time.Time `json:"at"`
	}
	// summary is a contact as lists show it.
	summary struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Email   string `json:"email"`
		Company string `json:"company"`
	}
)

// stages is the pipeline, in order.
var stages = []string{"lead", "qualified", "proposal", "negotiation", "won", "lost"}

// records is everything the CRM knows, each list in id order. It is not safe for concurrent use; the book's lock covers it.
type records struct {
	Contacts []contact `json:"contacts"`
	Deals    []deal    `json:"deals"`
	Refunds  []refund  `json:"refunds"`
	Notes    []note    `json:"notes"`

	issued map[string]int // ids handed out since the seed, by prefix: an id is never used again, even after a deletion
}

//go:embed seed.json
var seed []byte

// seeded returns the records every fresh or reset CRM starts from, the same each time.
func seeded() *records {
	r := &records{issued: map[string]int{}}
	if err := json.Unmarshal(seed, r); err != nil {
		panic("crm: the built-in seed does not parse: " + err.Error())
	}
	return r
}

// firstFree is the first number of each prefix that the seed leaves free.
var firstFree = map[string]int{"c_": 1013, "r_": 3002, "n_": 4004}

func (r *records) nextID(prefix string) string {
	n := firstFree[prefix] + r.issued[prefix]
	r.issued[prefix]++
	return fmt.Sprintf("%s%d", prefix, n)
}

func (r *records) contact(id string) (*contact, error) {
	i := slices.IndexFunc(r.Contacts, func(c contact) bool { return c.ID == id })
	if i < 0 {
		return nil, fault.New(fault.NotFound, fault.CodeNotFound, "There is no contact "+quoted(id)+".", "Find its id with contacts_search.")
	}
	return &r.Contacts[i], nil
}

func (r *records) deal(id string) (*deal, error) {
	i := slices.IndexFunc(r.Deals, func(d deal) bool { return d.ID == id })
	if i < 0 {
		return nil, fault.New(fault.NotFound, fault.CodeNotFound, "There is no deal "+quoted(id)+".", "contacts_get lists the deals of a contact.")
	}
	return &r.Deals[i], nil
}

func (c contact) summary() summary {
	return summary{ID: c.ID, Name: c.Name, Email: c.Email, Company: c.Company}
}

// quoted is an id as an error message repeats it: bounded, and without control characters.
func quoted(id string) string {
	if len(id) > 40 {
		id = id[:40]
	}
	return fmt.Sprintf("%q", id)
}

// of returns the items that belong to a contact; never nil, so that JSON shows an empty list.
func of[T any](items []T, owner func(T) string, id string) []T {
	out := []T{}
	for _, it := range items {
		if owner(it) == id {
			out = append(out, it)
		}
	}
	return out
}
