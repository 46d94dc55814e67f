package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"countersign/db/dbtest/scene"
)

// browser is a client with cookies that shows redirects instead of following them.
type browser struct {
	*site
	http   *http.Client
	header http.Header // sent with every request
}

// page is an answer.
type page struct {
	*http.Response
	body string
}

func (s *site) browser() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, http.Header{}}
}

// as is a browser in which the person is signed in.
func (s *site) as(email string) *browser {
	s.T.Helper()
	b := s.browser()
	if p := b.post("/sign-in", "email", email, "password", scene.Password); p.StatusCode != http.StatusSeeOther {
		s.T.Fatalf("%s cannot sign in: %d", email, p.StatusCode)
	}
	return b
}

func (b *browser) do(r *http.Request) page {
	b.T.Helper()
	for name, values := range b.header {
		r.Header[name] = values
	}
	res, err := b.http.Do(r)
	b.Must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	b.Must(err)
	return page{res, string(body)}
}

func (b *browser) get(path string) page {
	b.T.Helper()
	r, err := http.NewRequestWithContext(b.T.Context(), http.MethodGet, b.server.URL+path, nil)
	b.Must(err)
	return b.do(r)
}

// post sends a form of name, value, name, value, …
func (b *browser) post(path string, pairs ...string) page {
	b.T.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.send(path, "application/x-www-form-urlencoded", form.Encode())
}

func (b *browser) send(path, kind, body string) page {
	b.T.Helper()
	r, err := http.NewRequestWithContext(b.T.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(body))
	b.Must(err)
	r.Header.Set("Content-Type", kind)
	return b.do(r)
}

// is fails unless the page has the status and holds every text.
func (p page) is(t testing.TB, status int, texts ...string) page {
	t.Helper()
	if p.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", p.Request.Method, p.Request.URL.Path, p.StatusCode, status, excerpt(p.body))
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Fatalf("%s %s: no %q in\n%s", p.Request.Method, p.Request.URL.Path, text, excerpt(p.body))
		}
	}
	return p
}

// lacks fails when the page holds one of the texts.
func (p page) lacks(t testing.TB, texts ...string) page {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			t.Fatalf("%s %s: holds %q", p.Request.Method, p.Request.URL.Path, text)
		}
	}
	return p
}

// goes fails unless the page is a redirect to the path.
func (p page) goes(t testing.TB, path string) page {
	t.Helper()
	p.is(t, http.StatusSeeOther)
	if got := p.Header.Get("Location"); got != path {
		t.Fatalf("%s %s: goes to %q, want %q", p.Request.Method, p.Request.URL.Path, got, path)
	}
	return p
}

func excerpt(body string) string {
	if i := strings.Index(body, "<main"); i >= 0 {
		body = body[i:]
	}
	return body[:min(len(body), 3000)]
}

// between is the text after from and before to, which the page must hold.
func (p page) between(t testing.TB, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(p.body, from)
	if !ok {
		t.Fatalf("no %q in\n%s", from, excerpt(p.body))
	}
	found, _, ok := strings.Cut(rest, to)
	if !ok {
		t.Fatalf("no %q after %q", to, from)
	}
	return found
}
