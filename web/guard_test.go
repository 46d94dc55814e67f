package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"countersign/db/dbtest/scene"
	"countersign/internal/identity"
	"countersign/internal/servicetoken"
	"countersign/web"
)

// address fills a route's pattern with ids that belong to nobody.
func address(pattern string) string {
	return strings.NewReplacer(":link", strings.Repeat("x", 43), ":digest", "sha256:"+strings.Repeat("0", 64), ":id", "nobody", ":name", "nothing", ":connection", "none-aaaaaa", ":key", "none-aaaaaa", ":integration", "none", "*", "x").Replace(pattern)
}

// TestEveryRouteRefusesEveryRoleItMust asks every route of the table as nobody and as each role, and compares with the role's rights.
func TestEveryRouteRefusesEveryRoleItMust(t *testing.T) {
	s := newSite(t)
	nobody := s.browser()
	browsers := map[identity.Role]*browser{}
	for role, p := range s.People {
		browsers[role] = s.as(p.Email)
	}
	ask := func(b *browser, r web.Route) page {
		if r.Method == http.MethodGet {
			return b.get(address(r.Path))
		}
		return b.post(address(r.Path))
	}
	checked := 0
	for _, r := range web.Routes(s.handlers(s.server.URL)) {
		if r.Guard().Right == "" {
			continue
		}
		checked++
		if p := ask(nobody, r); p.StatusCode != http.StatusSeeOther || !strings.HasPrefix(p.Header.Get("Location"), "/sign-in") {
			t.Errorf("%s %s as nobody: %d %s", r.Method, r.Path, p.StatusCode, p.Header.Get("Location"))
		}
		for role, b := range browsers {
			p := ask(b, r)
			may := s.People[role].May(r.Guard().Right)
			if refused := p.StatusCode == http.StatusForbidden; refused == may {
				t.Errorf("%s %s as %s: %d, may %t", r.Method, r.Path, role, p.StatusCode, may)
			}
			if p.StatusCode >= 500 {
				t.Errorf("%s %s as %s: %d\n%s", r.Method, r.Path, role, p.StatusCode, excerpt(p.body))
			}
		}
	}
	if checked < 40 {
		t.Fatalf("only %d routes were asked", checked)
	}
}

func TestEveryRouteNamesItsGuard(t *testing.T) {
	s := newEmptySite(t)
	seen := map[string]bool{}
	for _, r := range web.Routes(s.handlers("http://x")) {
		if r.Guard().String() == "nobody" {
			t.Errorf("%s %s has no guard", r.Method, r.Path)
		}
		if public := r.Guard().Public; public && !slices.Contains([]string{"/sign-in", "/sign-out", "/join/:link", "/api/openapi.yaml"}, r.Path) {
			t.Errorf("%s %s is public", r.Method, r.Path)
		}
		if key := r.Method + " " + r.Path; seen[key] {
			t.Errorf("%s stands twice", key)
		} else {
			seen[key] = true
		}
		if r.Method == http.MethodGet && r.Guard().Right == "" && strings.HasPrefix(r.Path, "/api/v1") && r.Guard().Scope == "" {
			t.Errorf("%s has no scope", r.Path)
		}
	}
}

func TestPostsFromOtherSitesAreRefused(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	for _, h := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.test"}}, {"Origin": {"null"}},
	} {
		b.header = h
		b.post("/people", "email", "x@harbor.test", "roles", "owner").is(t, http.StatusForbidden, "Sent from another site")
		b.post("/sign-in", "email", "owner@harbor.test", "password", scene.Password).is(t, http.StatusForbidden)
		b.post("/sign-out").is(t, http.StatusForbidden)
	}
	b.header = http.Header{}
	b.get("/people").is(t, http.StatusOK).lacks(t, "x@harbor.test")
	for _, h := range []http.Header{{"Sec-Fetch-Site": {"same-origin"}}, {"Origin": {s.server.URL}}, {}} {
		b.header = h
		b.post("/settings/theme", "theme", "dark").goes(t, "/settings")
	}
	b.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
	b.get("/people").is(t, http.StatusOK) // a link from elsewhere may lead here; it changes nothing
}

func TestFormsAreBounded(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	big := "name=" + strings.Repeat("x", 5<<20)
	form := "application/x-www-form-urlencoded"
	b.send("/people", form, big).is(t, http.StatusRequestEntityTooLarge, "larger than this address takes")
	b.send("/sign-in", form, big).is(t, http.StatusRequestEntityTooLarge)
	b.send("/people", "application/json", `{"email":"x@harbor.test"}`).is(t, http.StatusUnsupportedMediaType)
	b.send("/people", "multipart/form-data; boundary=x", "--x--").is(t, http.StatusUnsupportedMediaType)
	b.send("/people", form, "email=%ff%fe").is(t, http.StatusUnprocessableEntity, "not text")
	b.send("/people", form, "email=a%00b@harbor.test&roles=member").is(t, http.StatusUnprocessableEntity, "not text")
	b.send("/people", form, "email=%zz").is(t, http.StatusUnprocessableEntity)
	b.get("/audit?actor=%ff").is(t, http.StatusUnprocessableEntity)
	b.get("/audit?actor=a%00").is(t, http.StatusUnprocessableEntity)
	b.get("/people/%00").is(t, http.StatusNotFound)
	b.get("/people/%ff").is(t, http.StatusNotFound)

	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/people", &endless{left: 5 << 20})
	r.Header.Set("Content-Type", form)
	b.do(r).is(t, http.StatusRequestEntityTooLarge) // without a length in front
}

// endless is a body of unknown length.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'x'
	}
	e.left -= len(p)
	return len(p), nil
}

func TestOnlyOwnNamesAreAnswered(t *testing.T) {
	s := newSite(t)
	ask := func(host, path string) int {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+path, nil)
		r.Host = host
		return s.browser().do(r).StatusCode
	}
	port := s.server.URL[strings.LastIndex(s.server.URL, ":"):]
	for host, want := range map[string]int{
		"127.0.0.1" + port: 200, "localhost" + port: 200, "LOCALHOST" + port: 200, "[::1]" + port: 200,
		"evil.test" + port: 421, "127.0.0.1": 421, "evil.test": 421, "127.0.0.1" + port + ".evil.test": 421,
	} {
		if got := ask(host, "/sign-in"); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
	if got := ask("10.0.0.7:8080", "/healthz"); got != 200 {
		t.Errorf("probe by address: %d", got)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	for _, path := range []string{"/", "/sign-in", "/nowhere", "/api/v1/runs/x", "/healthz", "/people"} {
		h := b.get(path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if !strings.HasPrefix(h.Get("X-Request-Id"), "req_") {
			t.Errorf("%s: request id %q", path, h.Get("X-Request-Id"))
		}
	}
	b.header.Set("X-Request-Id", "forged")
	if got := b.get("/healthz").Header.Get("X-Request-Id"); got == "forged" {
		t.Error("a caller chose the request id")
	}
}

func TestHttpsMakesTheCookieBoundToTheHost(t *testing.T) {
	s := newSite(t)
	config := s.config("https://countersign.example")
	handlers := s.handlers("https://countersign.example")
	config.Sessions = sessionsOver(s, true)
	handlers.Doors.Sessions = config.Sessions
	h, err := web.New(config, handlers)
	s.Must(err)
	r := httptest.NewRequest(http.MethodPost, "https://countersign.example/sign-in", strings.NewReader("email=owner%40harbor.test&password="+strings.ReplaceAll(scene.Password, " ", "+")))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	c := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(c) != 1 || c[0].Name != "__Host-countersign" || !c[0].Secure || c[0].Domain != "" || c[0].Path != "/" {
		t.Fatalf("%d %+v", w.Code, c)
	}
	if w.Header().Get("Strict-Transport-Security") == "" {
		t.Error("no Strict-Transport-Security")
	}
}

func TestProbesAndMetrics(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	b.get("/healthz").is(t, http.StatusOK)
	b.get("/readyz").is(t, http.StatusOK)
	s.ready = func(context.Context) error { return errors.New("the key file is at /secret/place") }
	b.get("/readyz").is(t, http.StatusServiceUnavailable).lacks(t, "secret")
	b.get("/people/per_supersecret").is(t, http.StatusSeeOther)
	b.get("/metrics").is(t, http.StatusOK, `countersign_http_requests_total{method="GET",route="/people/:id",status="303"}`).lacks(t, "supersecret")
	b.header.Set("X-Forwarded-For", "203.0.113.9")
	b.get("/metrics").is(t, http.StatusForbidden)
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	s := newSite(t)
	s.browser().get("/nowhere").is(t, http.StatusNotFound, "Not found", `class="door"`)
	b := s.as("member@harbor.test")
	b.get("/nowhere").is(t, http.StatusNotFound, "Not found", `class="rail"`)
	b.post("/audit/export").is(t, http.StatusMethodNotAllowed)
	b.get("/sign-out").is(t, http.StatusMethodNotAllowed)
	b.get("/people/").is(t, http.StatusNotFound)
	p := s.browser().get("/api/v1/nothing").is(t, http.StatusNotFound, `"code":"not_found"`)
	if kind := p.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Errorf("content type %q", kind)
	}
}

func TestApiAsksForTheScopeOfTheTable(t *testing.T) {
	s := newSite(t)
	value := func(scopes ...servicetoken.Scope) string {
		_, v := s.Token("test", scopes...)
		return v
	}
	for _, r := range web.Routes(s.handlers(s.server.URL)) {
		scope := r.Guard().Scope
		if scope == "" {
			continue
		}
		ask := func(token string) page {
			req, _ := http.NewRequestWithContext(t.Context(), r.Method, s.server.URL+address(r.Path), strings.NewReader("{}"))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Sec-Fetch-Site", "cross-site") // a program is no browser: only its token counts
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			return s.browser().do(req)
		}
		ask("").is(t, http.StatusUnauthorized, `"code":"unauthenticated"`)
		ask("cst_made-up").is(t, http.StatusUnauthorized)
		ask(value(others(scope)...)).is(t, http.StatusForbidden, string(scope))
		if got := ask(value(scope)).StatusCode; got == 401 || got == 403 || got >= 500 {
			t.Errorf("%s %s with %s: %d", r.Method, r.Path, scope, got)
		}
	}
}
