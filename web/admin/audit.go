package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/views"
	"countersign/views/ui"
)

// Audit are the pages of the trail: filter, verify, export.
type Audit struct {
	Trail    audit.Reader
	Verifier Verifier

	mu     sync.Mutex
	checks map[identity.OrgID]views.ChainCheck // the last walk of each chain by this server
}

// Verifier walks an organization's chain from its first entry. A chain that does not hold is a *audit.Break as the error; sealed is how
// many entries the chain holds, pending how many wait for their seal.
type Verifier interface {
	Verify(ctx context.Context, org identity.OrgID) (sealed, pending int64, err error)
}

// perPage is how many entries one page of the ledger shows.
const perPage = 100

// List is one page of the trail.
func (a *Audit) List(r *Request) error {
	typed, filter := readFilter(r.QueryParams())
	if len(typed.Errors) > 0 {
		return a.show(r, http.StatusUnprocessableEntity, views.AuditView{Filter: typed})
	}
	filter.Limit = perPage + 1
	entries, err := a.Trail.Entries(r.Ctx(), r.Org(), filter)
	if err != nil {
		return err
	}
	v := views.AuditView{Filter: typed, Entries: entries}
	if len(entries) > perPage {
		v.Entries = entries[:perPage]
		v.Pager.Next = auditAddress("/audit", typed, v.Entries[perPage-1].ID)
	}
	if filter.Before != 0 {
		v.Pager.First = auditAddress("/audit", typed, 0)
	}
	return a.show(r, http.StatusOK, v)
}

func (a *Audit) show(r *Request, status int, v views.AuditView) error {
	a.mu.Lock()
	if c, ok := a.checks[r.Org()]; ok {
		v.Check = &c
	}
	a.mu.Unlock()
	if n := len(v.Entries); n > 0 {
		v.Pager.Words = ui.Count(n, "entry", "entries")
	}
	v.Export = auditAddress("/audit/export", v.Filter, 0)
	return r.Show(status, views.AuditPage(r.Frame("Audit", "audit"), v))
}

// Verify walks the chain and shows what was found on top of the ledger.
func (a *Audit) Verify(r *Request) error {
	check, err := a.walk(r)
	if err != nil {
		return err
	}
	a.mu.Lock()
	if a.checks == nil {
		a.checks = map[identity.OrgID]views.ChainCheck{}
	}
	a.checks[r.Org()] = check
	a.mu.Unlock()
	return r.Redirect(http.StatusSeeOther, "/audit")
}

func (a *Audit) walk(r *Request) (views.ChainCheck, error) {
	sealed, pending, err := a.Verifier.Verify(r.Ctx(), r.Org())
	var broken *audit.Break
	if err != nil && !errors.As(err, &broken) {
		return views.ChainCheck{}, err
	}
	return views.ChainCheck{At: time.Now(), Sealed: sealed, Pending: pending, Break: broken}, nil
}

// readFilter reads the filter of an address. A part that cannot be read is said beside its field and filters nothing.
func readFilter(q url.Values) (views.AuditFilter, audit.Filter) {
	typed := views.AuditFilter{
		Actor: bounded200(q.Get("actor")), Event: bounded200(q.Get("event")), Object: bounded200(q.Get("object")),
		From: bounded200(q.Get("from")), Until: bounded200(q.Get("until")), Errors: map[string]string{},
	}
	f := audit.Filter{Actor: typed.Actor, Event: typed.Event, Object: typed.Object}
	var err error
	if typed.From != "" {
		if f.From, err = time.Parse(time.DateOnly, typed.From); err != nil {
			typed.Errors["from"] = notADay(typed.From)
		}
	}
	if typed.Until != "" {
		if f.Until, err = time.Parse(time.DateOnly, typed.Until); err != nil {
			typed.Errors["until"] = notADay(typed.Until)
		}
		f.Until = f.Until.AddDate(0, 0, 1) // the day itself is meant
	}
	if before, err := strconv.ParseInt(q.Get("before"), 10, 64); err == nil && before > 0 {
		f.Before = before
	}
	return typed, f
}

func notADay(typed string) string {
	return "“" + typed + "” is not a day. Write it as 2026-11-30."
}

// bounded200 trims a filter; nothing it could match is longer.
func bounded200(s string) string {
	if s = strings.TrimSpace(s); len(s) > 200 {
		return ""
	}
	return s
}

// auditAddress is the address of a page of this filter.
func auditAddress(path string, f views.AuditFilter, before int64) string {
	q := url.Values{}
	for name, value := range map[string]string{"actor": f.Actor, "event": f.Event, "object": f.Object, "from": f.From, "until": f.Until} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

var errFilter = fault.New(fault.Invalid, fault.CodeInvalid, "The filter cannot be read.", "Correct it on the audit page and export from there.")
