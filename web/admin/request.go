// Package admin owns the pages of the admin app: it reads a form, asks one thing of the domain, and shows a view. It never decides
// what a person may do beyond asking for the route's right, never touches SQL, and takes the organization from the session alone.
package admin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/views/layout"
	"countersign/views/ui"
	"countersign/web/session"
)

// Page answers one request of a signed-in person who has the route's right. An error becomes an answer in web/errors.go.
type Page func(*Request) error

// Chrome finds what stands around every page: counts for the navigation, the freeze. It never fails a page: what cannot be read is
// left out.
type Chrome interface {
	Viewer(ctx context.Context, s session.Session) layout.Viewer
}

// Request is one request of a signed-in person.
type Request struct {
	echo.Context
	Session session.Session
	Browser []byte // names the session of this browser in the store; of no use to anybody else
	Chrome  Chrome
	flash   func(layout.Flash) error // keeps words for the next page
}

// NewRequest is made by the route's guard.
func NewRequest(c echo.Context, s session.Session, chrome Chrome, flash func(layout.Flash) error) *Request {
	return &Request{Context: c, Session: s, Chrome: chrome, flash: flash}
}

// Ctx is the request's context.
func (r *Request) Ctx() context.Context { return r.Request().Context() }

// Org is the organization of the session: the only place a page may take it from.
func (r *Request) Org() identity.OrgID { return r.Session.Org.ID }

// Person is who is signed in.
func (r *Request) Person() identity.Person { return r.Session.Person }

// Entry starts the audit entry of something this person does.
func (r *Request) Entry(event audit.Event, kind, id string, facts ...audit.Fact) audit.Entry {
	return audit.Entry{Org: r.Org(), Actor: audit.Person(r.Person()), Event: event, Object: audit.Object{Kind: kind, ID: id}, Facts: facts}
}

// Frame is the page around a page; current is the id of its navigation entry.
func (r *Request) Frame(title, current string) layout.Frame {
	f := layout.Frame{Title: title, Current: current, Viewer: r.Chrome.Viewer(r.Ctx(), r.Session), Theme: Theme(r.Request())}
	f.Freeze = frozenWords(f.Viewer.Freezes)
	if flash, ok := decodeFlash(r.Session.Flash); ok {
		f.Flash = &flash
	}
	return f
}

// Theme is the visitor's choice, kept in a cookie that holds nothing else; empty means: as the system says.
func Theme(r *http.Request) string {
	c, err := r.Cookie("theme")
	if err != nil || (c.Value != "light" && c.Value != "dark") {
		return ""
	}
	return c.Value
}

// Swaps reports whether htmx asked for a fragment to swap in rather than a whole page.
func (r *Request) Swaps() bool {
	h := r.Request().Header
	return h.Get("HX-Request") == "true" && h.Get("HX-Request-Type") != "full" && h.Get("HX-Boosted") != "true"
}

// Show renders a view.
func (r *Request) Show(status int, c templ.Component) error {
	r.Response().Header().Set(echo.HeaderContentType, "text/html; charset=utf-8")
	r.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	r.Response().WriteHeader(status)
	return c.Render(r.Ctx(), r.Response())
}

// Done ends a post: the words are said on the page that comes next.
func (r *Request) Done(tone ui.Tone, words, path string) error {
	if err := r.flash(layout.Flash{Tone: tone, Text: words}); err != nil {
		slog.WarnContext(r.Ctx(), "flash not kept", "error", err) // the change itself is done; losing its notice must not look like failure
	}
	return r.Redirect(http.StatusSeeOther, path)
}

// Problems splits an error into what belongs beside single fields and reports whether the form should come back with it. Anything
// else than bad input or a changed world is the error page's.
func Problems(err error) (fields map[string]string, whole *fault.Error, form bool) {
	list, isList := err.(fault.List)
	if !isList {
		f, ok := fault.As(err)
		if !ok || (f.Kind != fault.Invalid && f.Kind != fault.Conflict) {
			return nil, nil, false
		}
		list = fault.List{f}
	}
	fields = map[string]string{}
	for _, f := range list {
		switch {
		case f.Field == "" && whole == nil:
			whole = f
		case f.Field != "" && fields[f.Field] == "":
			fields[f.Field] = f.Error()
		}
	}
	return fields, whole, true
}
