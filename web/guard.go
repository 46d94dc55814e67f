package web

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/servicetoken"
	"countersign/views"
	"countersign/views/layout"
	"countersign/web/admin"
	"countersign/web/answer"
	"countersign/web/session"
)

// Door answers a request of somebody who need not be signed in.
type Door func(echo.Context) error

// Guard says who may use a route. Exactly one of its parts is set.
type Guard struct {
	Public bool               // anybody
	Right  identity.Right     // a signed-in person with this right
	Scope  servicetoken.Scope // a program with a service token of this scope
	Run    bool               // an agent with the token of a live run
}

// String is the guard as a word of the route table.
func (g Guard) String() string {
	switch {
	case g.Right != "":
		return "person: " + string(g.Right)
	case g.Scope != "":
		return "service token: " + string(g.Scope)
	case g.Run:
		return "run token"
	case g.Public:
		return "public"
	}
	return "nobody"
}

// answered is a guard with the handler behind it; only the functions below make one, so that a page cannot stand behind no right.
type answered struct {
	guard  Guard
	handle func(*server) echo.HandlerFunc
}

// public is a door: no session is needed, but a post must come from our own pages.
func public(d Door) answered {
	return answered{Guard{Public: true}, func(s *server) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := s.browser(c); err != nil {
				return err
			}
			return d(c)
		}
	}}
}

// plain is a public handler that is no page: files and probes. It changes nothing.
func plain(h http.Handler) answered {
	return answered{Guard{Public: true}, func(*server) echo.HandlerFunc { return echo.WrapHandler(h) }}
}

// with is a page of a signed-in person who has a right.
func with(right identity.Right, p admin.Page) answered {
	return answered{Guard{Right: right}, func(s *server) echo.HandlerFunc {
		return func(c echo.Context) error { return s.signedIn(c, right, p) }
	}}
}

// token is an endpoint of the service API; web/agent authenticates the bearer and asks for this scope.
func token(scope servicetoken.Scope, h http.Handler) answered {
	return answered{Guard{Scope: scope}, func(*server) echo.HandlerFunc { return withPathValues(h) }}
}

// runToken is an endpoint of the agent gateway; web/agent authenticates the run.
func runToken(h http.Handler) answered {
	return answered{Guard{Run: true}, func(*server) echo.HandlerFunc { return withPathValues(h) }}
}

// withPathValues hands the router's path values on in the standard library's way, so that web/agent knows no router.
func withPathValues(h http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		for i, name := range c.ParamNames() {
			c.Request().SetPathValue(name, c.ParamValues()[i])
		}
		h.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// browser is the fence of everything a browser reaches: sent by our own pages, and a form within its bounds. Endpoints with a bearer
// token stand outside: a browser adds no token by itself.
func (s *server) browser(c echo.Context) error {
	if err := s.origin.Check(c.Request()); err != nil {
		return answer.CrossSite.Wrap(err)
	}
	return readForm(c)
}

// signedIn finds the person, asks for the right, and answers with the page. A page's error keeps the navigation around it.
func (s *server) signedIn(c echo.Context, right identity.Right, p admin.Page) error {
	if err := s.origin.Check(c.Request()); err != nil {
		return answer.CrossSite.Wrap(err)
	}
	current, ok, err := s.config.Sessions.Load(c.Request())
	if err != nil {
		return err
	}
	if !ok {
		return toSignIn(c)
	}
	r := s.request(c, current)
	if !r.Person().May(right) {
		return s.failed(r, notYours(right))
	}
	if err := readForm(c); err != nil {
		return s.failed(r, err)
	}
	if err := p(r); err != nil {
		return s.failed(r, err)
	}
	return nil
}

// request wraps a request of a signed-in person. Words kept for the next page are said by the next whole page and then forgotten; a
// fragment that refreshes itself would swallow them unread.
func (s *server) request(c echo.Context, current session.Session) *admin.Request {
	r := admin.NewRequest(c, current, s.config.Chrome, func(f layout.Flash) error {
		return s.config.Sessions.Say(c.Request().Context(), c.Request(), admin.EncodeFlash(f))
	})
	r.Browser = s.config.Sessions.Hash(c.Request())
	if len(current.Flash) > 0 && c.Request().Method == http.MethodGet && !r.Swaps() {
		if err := s.config.Sessions.Say(r.Ctx(), c.Request(), nil); err != nil {
			answer.Log(r.Ctx(), answer.Of(err), trace(c))
		}
	}
	return r
}

// failed is the error page of a signed-in person.
func (s *server) failed(r *admin.Request, err error) error {
	f := answer.Of(err)
	answer.Log(r.Ctx(), f, trace(r))
	if r.Response().Committed {
		return nil
	}
	v := answer.View(f, trace(r))
	return r.Show(answer.Status(f), views.ErrorPage(r.Frame(v.Title, ""), v))
}

// notYours says which right is missing and who has it.
func notYours(right identity.Right) *fault.Error {
	who := ""
	for _, role := range identity.AllRoles {
		if (identity.Person{Active: true, Roles: []identity.Role{role}}).May(right) {
			if who != "" {
				who += " or "
			}
			who += string(role)
		}
	}
	return fault.New(fault.Forbidden, fault.CodeForbidden, "To "+string(right)+" takes the role "+who+".", "Ask an owner of your organization. Nothing was changed.")
}

// toSignIn sends a browser to the door and back to the page it wanted. A post cannot be repeated after signing in, so it comes back to
// the overview; htmx is told to leave the page, since a sign-in form inside a fragment would look like a trap.
func toSignIn(c echo.Context) error {
	target := "/sign-in"
	r := c.Request()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if to := session.OwnPath(r.URL.RequestURI()); to != "/" {
			target += "?to=" + url.QueryEscape(to)
		}
	}
	if r.Header.Get("HX-Request") == "true" {
		c.Response().Header().Set("HX-Redirect", "/sign-in")
		return c.NoContent(http.StatusUnauthorized)
	}
	return c.Redirect(http.StatusSeeOther, target)
}
