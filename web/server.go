package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"countersign/internal/fault"
	"countersign/static"
	"countersign/views"
	"countersign/web/admin"
	"countersign/web/answer"
)

// server is what the fences and guards share.
type server struct {
	config Config
	public *url.URL
	names  names
	origin *http.CrossOriginProtection
	meter  meter
}

// New builds the server. It refuses a public address that is not an origin.
func New(config Config, pages Handlers) (http.Handler, error) {
	public, err := publicURL(config.PublicURL)
	if err != nil {
		return nil, err
	}
	origin, err := crossOrigin(public)
	if err != nil {
		return nil, err
	}
	if config.Metrics == nil {
		config.Metrics = prometheus.NewRegistry()
	}
	s := &server{config: config, public: public, names: allowedNames(public, config.Listen), origin: origin, meter: newMeter(config.Metrics)}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = echo.ExtractIPDirect() // the default trusts X-Forwarded-For of anybody
	e.HTTPErrorHandler = s.answerError
	e.Pre(s.headers, s.record, s.recovered, s.addressed)
	for _, route := range append(Routes(pages), s.own()...) {
		s.add(e, route)
	}
	return e, nil
}

// own are the routes that need the server itself.
func (s *server) own() []Route {
	return []Route{
		{http.MethodGet, static.Prefix + "*", plain(static.Handler())},
		{http.MethodGet, "/healthz", plain(http.HandlerFunc(alive))},
		{http.MethodGet, "/readyz", plain(http.HandlerFunc(s.ready))},
		{http.MethodGet, "/metrics", plain(metrics(s.config.Metrics))},
	}
}

// add mounts a route; whatever answers GET answers HEAD.
func (s *server) add(e *echo.Echo, r Route) {
	h := r.answer.handle(s)
	switch r.Method {
	case Any:
		e.Any(r.Path, h)
	case http.MethodGet:
		e.GET(r.Path, h)
		e.HEAD(r.Path, h)
	default:
		e.Add(r.Method, r.Path, h)
	}
}

// answerError answers what no page has answered: unknown addresses, refusals of the fences, and our own defects. Programs get JSON,
// people a page; with navigation where they are signed in.
func (s *server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	r := c.Request()
	if forPrograms(r.URL.Path) {
		answer.JSON(c.Response(), r, err)
		return
	}
	f := answer.Of(err)
	// Only an unknown address is worth finding out who asks: the fences have refused everything else before that.
	if f.Kind == fault.NotFound && s.names[strings.ToLower(r.Host)] {
		if current, ok, err := s.config.Sessions.Load(r); err == nil && ok {
			_ = s.failed(s.request(c, current), f)
			return
		}
	}
	answer.Log(r.Context(), f, trace(c))
	c.Response().Header().Set(echo.HeaderContentType, "text/html; charset=utf-8")
	c.Response().WriteHeader(answer.Status(f))
	_ = views.ErrorDoor(admin.Theme(r), answer.View(f, trace(c))).Render(r.Context(), c.Response())
}

func forPrograms(path string) bool {
	return strings.HasPrefix(path, "/api/") || path == "/gateway" || strings.HasPrefix(path, "/gateway/")
}
