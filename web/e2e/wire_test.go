package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/web"
)

// routes is the whole sitemap: every part of the product, as the router sees it. The handlers are empty; nothing here calls them.
func routes() []web.Route {
	var h web.Handlers
	v := reflect.ValueOf(&h).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(reflect.New(v.Field(i).Type().Elem()))
	}
	h.Gateway = &web.Gateway{MCP: http.NotFoundHandler(), Config: http.NotFoundHandler()}
	return web.Routes(h)
}

// wire is a browser without its manners: it sends whatever the test says.
type wire struct {
	url    string
	client *http.Client
}

func (s *server) wire(t *testing.T) *wire {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &wire{s.url, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn is a wire with the session of one of the sandbox's people.
func (s *server) signedIn(t *testing.T, email, password string) *wire {
	t.Helper()
	w := s.wire(t)
	got := w.form(t, "/sign-in", url.Values{"email": {email}, "password": {password}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("%s cannot sign in: %d", email, got.status)
	}
	return w
}

// got is an answer.
type got struct {
	status int
	header http.Header
	body   string
}

func (w *wire) send(t *testing.T, method, path, contentType string, body []byte, headers ...string) got {
	t.Helper()
	answer, err := w.try(t.Context(), method, path, contentType, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// try is send for whoever may not end the test: a request among others at the same time.
func (w *wire) try(ctx context.Context, method, path, contentType string, body []byte, headers ...string) (got, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return got{}, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := w.client.Do(req)
	if err != nil {
		return got{}, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return got{res.StatusCode, res.Header, string(out)}, err
}

const formType = "application/x-www-form-urlencoded"

func (w *wire) form(t *testing.T, path string, values url.Values, headers ...string) got {
	t.Helper()
	return w.send(t, http.MethodPost, path, formType, []byte(values.Encode()), headers...)
}

func (w *wire) get(t *testing.T, path string) got {
	t.Helper()
	return w.send(t, http.MethodGet, path, "", nil)
}

// clear makes sure that an answer is one of those expected, is no defect of ours, and says something to whoever reads it.
func (g got) clear(t *testing.T, what string, want ...int) {
	t.Helper()
	ok := false
	for _, status := range want {
		ok = ok || g.status == status
	}
	if !ok {
		t.Errorf("%s is answered %d, want %v: %.300s", what, g.status, want, plainText(g.body))
	}
	if g.status >= 500 {
		t.Errorf("%s broke the server: %d", what, g.status)
	}
	if g.status >= 400 && len(plainText(g.body)) < 20 {
		t.Errorf("%s is answered %d with no word why: %q", what, g.status, g.body)
	}
	for _, leak := range []string{"jackc/pgx", "SQLSTATE", "goroutine ", "runtime error", "/internal/"} {
		if strings.Contains(g.body, leak) {
			t.Errorf("%s tells about our insides: %s", what, leak)
		}
	}
}

var tags = regexp.MustCompile(`(?s)<style.*?</style>|<[^>]*>`)

func plainText(html string) string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(html, " ")), " ")
}

// volatile tables change without anybody's form: sessions, rate limits, the trail, the queue, what the upstream lists.
var volatile = regexp.MustCompile(`^(sessions|sign_in_attempts|audit_.*|river_.*|goose_.*|observed_tools|service_tokens|schema_.*)$`)

// fingerprint is every row of every table that a form or an agent could change.
func fingerprint(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname`)
	must(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	var b strings.Builder
	for _, name := range names {
		statement := `SELECT count(*)::text || coalesce(md5(string_agg(x::text, ',' ORDER BY x::text)), '') FROM ` + pgx.Identifier{name}.Sanitize() + ` x`
		if name == "service_tokens" {
			statement = `SELECT count(*)::text || count(revoked_at)::text FROM service_tokens`
		} else if volatile.MatchString(name) {
			continue
		}
		var sum string
		must(t, conn.QueryRow(t.Context(), statement).Scan(&sum))
		fmt.Fprintf(&b, "%s %s\n", name, sum)
	}
	if strings.Count(b.String(), "\n") < 12 {
		t.Fatalf("only these tables are looked at:\n%s", &b)
	}
	return b.String()
}

// changed names the tables that differ.
func changed(before, after string) (names []string) {
	was := map[string]bool{}
	for _, line := range strings.Split(before, "\n") {
		was[line] = true
	}
	for _, line := range strings.Split(after, "\n") {
		if !was[line] {
			names = append(names, line)
		}
	}
	return names
}
