package admin

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/secret"
	"countersign/views"
	"countersign/web/session"
)

// Invited shows what an invitation or a password link asks for. Looking does not use it up: mail scanners open links too.
func (d *Doors) Invited(c echo.Context) error {
	a, gone, err := d.invitee(c)
	if err != nil {
		return err
	}
	if gone {
		return showGone(c)
	}
	return showDoor(c, http.StatusOK, views.Invitation(invitationView(c, a)))
}

// Join uses the link up, sets the password and signs the person in.
func (d *Doors) Join(c echo.Context) error {
	a, gone, err := d.invitee(c)
	if err != nil {
		return err
	}
	if gone {
		return showGone(c)
	}
	name, hash, err := joinForm(c, a)
	if err == nil {
		err = d.Invitations.AcceptInvitation(c.Request().Context(), people.HashLink(c.Param("link")), name, hash, joinEntry(a, name))
	}
	if fault.Is(err, fault.CodeNotFound) {
		return showGone(c)
	}
	if fields, whole, form := Problems(err); err != nil && form {
		v := invitationView(c, a)
		v.NameError, v.PasswordError = fields["name"], fields["password"]
		if whole != nil {
			v.Error, v.Next = whole.What, whole.Next
		}
		return showDoor(c, http.StatusUnprocessableEntity, views.Invitation(v))
	}
	if err != nil {
		return err
	}
	if name != "" {
		a.Person.Name = name
	}
	return d.letIn(c, a, a.Person.Email, c.RealIP())
}

// showGone says that a link leads nowhere any more, and not why.
func showGone(c echo.Context) error {
	return showDoor(c, http.StatusGone, views.Invitation(views.InvitationView{Gone: true, Theme: Theme(c.Request())}))
}

// invitee finds the account behind the link; gone says that the link is used, withdrawn, too old or never was.
func (d *Doors) invitee(c echo.Context) (a people.Account, gone bool, err error) {
	a, err = d.Invitations.Invitee(c.Request().Context(), people.HashLink(c.Param("link")))
	if f, ok := fault.As(err); ok && f.Kind == fault.NotFound {
		return people.Account{}, true, nil
	}
	return a, err == nil && !a.Person.Active, err
}

// joinForm reads the form: a name from who is new, a password from everybody.
func joinForm(c echo.Context, a people.Account) (name, hash string, err error) {
	var faults fault.List
	if a.PasswordHash == "" {
		name = strings.TrimSpace(c.Request().PostFormValue("name"))
		if name == "" || utf8.RuneCountInString(name) > 100 {
			faults = append(faults, fault.Field("name", "A name of 1 to 100 characters is needed."))
		}
	}
	err = bounded(c.Request().Context(), func() (err error) {
		hash, err = people.HashPassword(secret.New(c.Request().PostFormValue("password")))
		return err
	})
	if f, ok := fault.As(err); ok {
		faults = append(faults, f)
	} else if err != nil {
		return "", "", err
	}
	return name, hash, faults.Err()
}

func joinEntry(a people.Account, name string) audit.Entry {
	event, person := audit.PersonJoined, a.Person
	if a.PasswordHash != "" {
		event = audit.PasswordSet
	}
	if name != "" {
		person.Name = name
	}
	return audit.Entry{Org: a.Org.ID, Actor: audit.Person(person), Event: event, Object: personObject(person)}
}

func invitationView(c echo.Context, a people.Account) views.InvitationView {
	name := c.Request().PostFormValue("name")
	if name == "" {
		name = a.Person.Name
	}
	return views.InvitationView{
		Action: "/join/" + c.Param("link"), Email: a.Person.Email, OrgName: a.Org.Name, Roles: RoleWords(a.Person.Roles),
		Name: name, Reset: a.PasswordHash != "", Theme: Theme(c.Request()),
	}
}

// RoleWords is roles as people say them: "owner", "approver and auditor".
func RoleWords(roles []identity.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	switch n := len(words); n {
	case 0:
		return "nobody yet"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// showDoor renders a page of somebody who is not signed in.
func showDoor(c echo.Context, status int, page templ.Component) error {
	c.Response().Header().Set(echo.HeaderContentType, "text/html; charset=utf-8")
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	c.Response().WriteHeader(status)
	return page.Render(c.Request().Context(), c.Response())
}

var _ Attempts = session.Store(nil)
