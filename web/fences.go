package web

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"countersign/internal/fault"
	"countersign/web/answer"
)

// contentPolicy lets a page load from us and nowhere else, and run nothing that stands inside it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// headers are set before anything can answer, so that a refusal carries them too. Referrers stay on this origin: an invitation's
// address is a secret. (The stricter no-referrer would make browsers send "Origin: null" with our own forms.)
func (s *server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store")
		if s.public.Scheme == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		h.Set(echo.HeaderXRequestID, newTrace())
		return next(c)
	}
}

// newTrace is our own request id; one that a caller sends could forge a line of the log.
func newTrace() string {
	const digits, length = "abcdefghijklmnopqrstuvwxyz234567", 16
	b := append(make([]byte, 0, len("req_")+length), "req_"...)
	high, low := rand.Uint64(), rand.Uint64() // a name and no secret
	for range length / 2 {
		b = append(b, digits[high%32], digits[low%32])
		high, low = high/32, low/32
	}
	return string(b)
}

func trace(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// record writes the access log by allowlist: what is not named here (query, body, headers, the address itself) is never in it.
func (s *server) record(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err) // answers now, so that the status is known
		}
		took, status, route := time.Since(began), c.Response().Status, c.Path()
		if route == "" {
			route = "(none)"
		}
		method := knownMethod(c.Request().Method)
		s.meter.observe(method, route, status, took)
		if log := slog.Default(); log.Enabled(c.Request().Context(), slog.LevelInfo) { // a busy server may keep no access log
			log.InfoContext(c.Request().Context(), "request", "method", method, "route", route, "status", status, "ms", took.Milliseconds(), "request", trace(c))
		}
		return nil
	}
}

// knownMethod keeps words a caller made up out of the log and out of the metrics, where each would be a new series.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "OTHER"
}

// recovered turns a panic into the constant 500 answer. The stack goes to the log, never the values.
func (s *server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p) // net/http's own word for "drop this connection"
			}
			slog.ErrorContext(c.Request().Context(), "panic", "request", trace(c), "route", c.Path(), "stack", string(debug.Stack()))
			err = answer.Broken
		}()
		return next(c)
	}
}

// addressed lets in only requests to a name of ours whose path is text.
func (s *server) addressed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if p := r.URL.Path; !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
			return answer.NoSuchPage
		}
		if !s.names[strings.ToLower(r.Host)] && !isProbe(r.URL.Path) {
			return answer.Host
		}
		return next(c)
	}
}

// isProbe names the paths an orchestrator asks by address rather than by name; their answers are constant.
func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" }

// maxForm is how much a page's form may hold.
const maxForm = 1 << 20

// readForm parses a post of a page within its bounds, before any handler can see a part of it. PostgreSQL takes no NUL in a text, and a
// name that is not UTF-8 could be read as another one.
func readForm(c echo.Context) error {
	r := c.Request()
	if r.Method == http.MethodPost {
		if r.ContentLength > maxForm {
			return answer.TooLarge
		}
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); r.ContentLength != 0 && !strings.EqualFold(strings.TrimSpace(kind), echo.MIMEApplicationForm) {
			return answer.MediaType
		}
		r.Body = http.MaxBytesReader(c.Response(), r.Body, maxForm)
	}
	if err := r.ParseForm(); err != nil {
		if f := answer.Of(err); f.Kind == fault.TooLarge {
			return f
		}
		return answer.NotText.Wrap(err)
	}
	for name, values := range r.Form {
		for _, v := range append(values, name) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return answer.NotText
			}
		}
	}
	return nil
}
