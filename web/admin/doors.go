package admin

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/secret"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/session"
)

// Doors are the pages of somebody who is not signed in: signing in, an invitation, signing out.
type Doors struct {
	Directory   people.Directory
	Invitations people.Invitations
	Attempts    Attempts
	Trail       Trail
	Sessions    *session.Keeper
}

// Attempts bounds how often a sign-in may be tried; session.Store implements it.
type Attempts interface {
	SignInAttempt(ctx context.Context, account, address string) (wait time.Duration, err error)
	SignInSucceeded(ctx context.Context, account, address string) error
}

// Trail writes entries about what changed nothing else, such as a refused sign-in.
type Trail interface {
	Record(ctx context.Context, e audit.Entry) error
}

// refusalTakes is the least time a refused sign-in takes. An account that exists costs one audit entry more than one that does not;
// below this floor nobody can measure that.
const refusalTakes = 250 * time.Millisecond

// hashing bounds the memory that sign-ins can take: each password check needs 19 MiB.
var hashing = make(chan struct{}, 4)

// bounded runs f when one of the few places for password hashing is free.
func bounded(ctx context.Context, f func() error) error {
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Form shows the sign-in form, or the command that makes the first organization. Who is signed in already goes on.
func (d *Doors) Form(c echo.Context) error {
	to := session.OwnPath(c.QueryParam("to"))
	if _, ok, err := d.Sessions.Load(c.Request()); err != nil {
		return err
	} else if ok {
		return c.Redirect(http.StatusSeeOther, to)
	}
	any, err := d.Directory.AnyOrganization(c.Request().Context())
	if err != nil {
		return err
	}
	return showDoor(c, http.StatusOK, views.SignIn(views.SignInView{To: carried(to), Theme: Theme(c.Request()), NoOrg: !any}))
}

// SignIn checks email and password. Every refusal reads the same and takes the same.
func (d *Doors) SignIn(c echo.Context) error {
	ctx, began := c.Request().Context(), time.Now()
	email, address := signInName(c.Request().PostFormValue("email")), c.RealIP()
	wait, err := d.Attempts.SignInAttempt(ctx, email, address)
	if err != nil {
		return err
	}
	if wait > 0 {
		return d.tooOften(c, wait)
	}
	account, err := d.account(ctx, email)
	if err != nil {
		return err
	}
	password := secret.New(c.Request().PostFormValue("password"))
	err = bounded(ctx, func() error { return people.Verify(account, password) })
	switch {
	case err == nil:
		return d.letIn(c, account, email, address)
	case fault.Is(err, fault.CodeUnauthenticated):
		return d.refuse(c, account, began)
	}
	return err
}

// signInName is the address as accounts are kept. What cannot be an address matches none, and is not kept at its full length.
func signInName(typed string) string {
	email, err := identity.NormalizeEmail(typed)
	if err != nil {
		return ""
	}
	return email
}

// account finds who signs in; nobody is a zero account, which costs the same to check.
func (d *Doors) account(ctx context.Context, email string) (people.Account, error) {
	a, err := d.Directory.AccountByEmail(ctx, email)
	if f, ok := fault.As(err); ok && f.Kind == fault.NotFound {
		return people.Account{}, nil
	}
	return a, err
}

func (d *Doors) letIn(c echo.Context, a people.Account, email, address string) error {
	if err := d.Attempts.SignInSucceeded(c.Request().Context(), email, address); err != nil {
		return err
	}
	e := audit.Entry{
		Org: a.Org.ID, Actor: audit.Person(a.Person), Event: audit.SignedIn, Object: personObject(a.Person),
		Facts: []audit.Fact{{Name: "address", Value: address}},
	}
	if err := d.Sessions.SignIn(c.Response(), c.Request(), session.Session{Person: a.Person, Org: a.Org}, e); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, session.OwnPath(c.Request().PostFormValue("to")))
}

func (d *Doors) refuse(c echo.Context, a people.Account, began time.Time) error {
	ctx := c.Request().Context()
	if a.Person.ID != "" {
		e := audit.Entry{
			Org: a.Org.ID, Actor: audit.System("sign-in"), Event: audit.SignInRefused, Object: personObject(a.Person),
			Facts: []audit.Fact{{Name: "address", Value: c.RealIP()}},
		}
		if err := d.Trail.Record(ctx, e); err != nil {
			return err
		}
	}
	floor := time.NewTimer(time.Until(began.Add(refusalTakes)))
	defer floor.Stop()
	select {
	case <-floor.C:
	case <-ctx.Done():
	}
	return d.again(c, http.StatusUnprocessableEntity, people.SignInRefused.What, people.SignInRefused.Next)
}

func (d *Doors) tooOften(c echo.Context, wait time.Duration) error {
	c.Response().Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	f := tooManyTries(wait)
	return d.again(c, http.StatusTooManyRequests, f.What, f.Next)
}

// tooManyTries says how long to wait, rounded up so that a try at that time is not refused again.
func tooManyTries(wait time.Duration) *fault.Error {
	minutes := int((wait + time.Minute - 1) / time.Minute)
	return fault.New(fault.Limited, fault.CodeLimited, "Too many tries.", "Wait "+ui.Count(minutes, "minute", "minutes")+", then try again.")
}

// again is the form once more, with the address that was typed and without the password.
func (d *Doors) again(c echo.Context, status int, what, next string) error {
	email := strings.TrimSpace(c.Request().PostFormValue("email"))
	if len(email) > 254 {
		email = ""
	}
	return showDoor(c, status, views.SignIn(views.SignInView{
		Email: email, Error: what, Next: next,
		To: carried(session.OwnPath(c.Request().PostFormValue("to"))), Theme: Theme(c.Request()),
	}))
}

// carried leaves out the way that needs no carrying.
func carried(to string) string {
	if to == "/" {
		return ""
	}
	return to
}

// SignOut ends the session; without one it leads to the same place, so that a second press does no harm.
func (d *Doors) SignOut(c echo.Context) error {
	err := d.Sessions.SignOut(c.Response(), c.Request(), func(s session.Session) audit.Entry {
		return audit.Entry{Org: s.Org.ID, Actor: audit.Person(s.Person), Event: audit.SignedOut, Object: personObject(s.Person)}
	})
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/sign-in")
}

func personObject(p identity.Person) audit.Object {
	return audit.Object{Kind: "person", ID: string(p.ID)}
}
