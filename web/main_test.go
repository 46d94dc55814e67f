package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"

	"countersign/web"
	"countersign/web/admin"
)

// journal is what the server logs while the tests run.
var journal = &log{}

type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewJSONHandler(journal, nil)))
	os.Exit(m.Run())
}

func TestTheAccessLogHoldsNothingThatWasSent(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	b.header.Set("User-Agent", "canary-agent")
	b.get("/sign-in?to=/canary-query")
	b.get("/join/canary-link")
	b.get("/canary-path")
	b.post("/sign-in", "email", "canary-mail@harbor.test", "password", "canary-password")
	r, _ := http.NewRequestWithContext(t.Context(), "CANARYMETHOD", s.server.URL+"/", nil)
	b.do(r)
	text := strings.ToLower(journal.text())
	if i := strings.Index(text, "canary"); i >= 0 {
		t.Fatalf("the log holds …%s", text[max(0, i-200):min(len(text), i+60)])
	}
	for _, want := range []string{`"route":"/join/:link"`, `"method":"other"`, `"status":422`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

func TestAPanicIsAConstantPage(t *testing.T) {
	s := newSite(t)
	origin := "http://127.0.0.1:1"
	handlers := s.handlers(origin)
	handlers.Overview = nil
	handlers.Audit = &admin.Audit{} // without its parts: every page of it panics
	h, err := web.New(s.config(origin), handlers)
	s.Must(err)
	in := s.as("auditor@harbor.test")
	u := in.server.URL
	req := httptest.NewRequest(http.MethodGet, origin+"/audit", nil)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
	for _, c := range in.http.Jar.Cookies(r.URL) {
		req.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "Something went wrong on our side.") || strings.Contains(w.Body.String(), "nil pointer") {
		t.Fatalf("%d %s", w.Code, w.Body.String())
	}
	if !strings.Contains(w.Body.String(), w.Header().Get(echo.HeaderXRequestID)) {
		t.Error("the page does not name the request")
	}
}

func TestThePublicAddressMustBeAnOrigin(t *testing.T) {
	s := newEmptySite(t)
	for _, bad := range []string{"", "countersign.example", "ftp://x", "https://x/path", "https://x/", "https://u:p@x", "https://x?y", "https://"} {
		if _, err := web.New(s.config(bad), web.Handlers{}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
