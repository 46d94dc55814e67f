package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"countersign/internal/egress"
	"countersign/internal/provider"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/provider/direct"
)

// What a program may ask of the server in one run. Beyond these it is a program gone wild, which would spend the vendor's patience with the
// connection's credential, or this server's memory.
const (
	maxAsked    = 1 << 20 // bytes of the body of one request
	maxHeads    = 64 << 10
	maxRequests = 200 // pages of a long list are some dozens
	maxAtOnce   = 4
)

// relay answers one run of a program. It holds the clients that carry the credential; the program holds a ticket. Of what the program asks
// it passes on what the invocation needs, at most one request with an effect among it, and it keeps what came of each.
type relay struct {
	ctx      context.Context // of the call
	stop     func()          // ends the program: what it waits for will not come
	endpoint provider.Endpoint
	ticket   string
	asks     []string // with the arguments filled in
	room     chan struct{}

	server *http.Server
	under  sync.WaitGroup
	mu     sync.Mutex
	over   bool
	asked  int
	seen   seen
}

// seen is what a relay kept.
type seen struct {
	failure error         // of the first read that came to nothing
	status  int           // of the last answer that was not good
	sent    bool          // the request with an effect was passed on
	record  egress.Record // of it
	blocked string        // what was not passed on
}

func newRelay(ctx context.Context, stop func(), e provider.Endpoint, i Invocation, a direct.Arguments) *relay {
	r := &relay{ctx: ctx, stop: stop, endpoint: e, ticket: "ticket-" + rand.Text() + rand.Text(), room: make(chan struct{}, maxAtOnce)}
	var values []string
	for _, f := range slices.Concat(i.Flags, i.Operands) {
		values = append(values, "{"+f.Argument+"}", escaped(a.Text(f.Argument)))
	}
	fill := strings.NewReplacer(values...) // in one pass: a value that looks like a place is not filled in again
	for _, ask := range i.Asks {
		r.asks = append(r.asks, fill.Replace(ask))
	}
	r.server = &http.Server{Handler: r, BaseContext: func(net.Listener) context.Context { return ctx }, ReadHeaderTimeout: sandbox.Usual.Time, MaxHeaderBytes: maxHeads}
	return r
}

// escaped is a value as it stands in a path. One of several segments, like owner/name, stays that.
func escaped(value string) string {
	parts := strings.Split(value, "/")
	for n, part := range parts {
		parts[n] = url.PathEscape(part) // of a * as well, which would be any name
	}
	return strings.Join(parts, "/")
}

// serve answers on the listener until end.
func (r *relay) serve(l net.Listener) { _ = r.server.Serve(l) }

// begin counts a request in, unless the run is over: a request that a program left behind must not be sent after its run was judged.
func (r *relay) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.under.Add(1)
	}
	return !r.over
}

// end takes no further request, waits for what is under way and answers what was seen.
func (r *relay) end() seen {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.under.Wait()
	_ = r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// ServeHTTP implements http.Handler.
func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if !r.begin() {
		return
	}
	defer r.under.Done()
	_, shown, _ := strings.Cut(q.Header.Get("Authorization"), " ")
	if subtle.ConstantTimeCompare([]byte(shown), []byte(r.ticket)) != 1 {
		http.Error(w, `{"detail":"no ticket"}`, http.StatusUnauthorized)
		return
	}
	select {
	case r.room <- struct{}{}:
		defer func() { <-r.room }()
	case <-q.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxAsked))
	if err != nil || !r.may(q) || !r.counted() {
		r.block(w, q)
		return
	}
	if q.Method == http.MethodGet {
		r.read(w, q)
		return
	}
	r.write(w, q, body)
}

// counted reports whether there is one request left.
func (r *relay) counted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.asked <= maxRequests
}

// may reports whether the invocation needs this request.
func (r *relay) may(q *http.Request) bool {
	if q.Method == http.MethodConnect {
		return false
	}
	got := strings.Split(q.URL.EscapedPath(), "/")
	for _, ask := range r.asks {
		method, path, _ := strings.Cut(ask, " ")
		path, query, asked := strings.Cut(path, "?")
		want := strings.Split(path, "/")
		if method != q.Method || len(want) != len(got) || asked && query != q.URL.RawQuery {
			continue
		}
		fits := true
		for n := range want {
			fits = fits && (want[n] == got[n] && (got[n] == "" || segment(got[n])) || want[n] == "*" && segment(got[n]))
		}
		if fits {
			return true
		}
	}
	return false
}

// segment is one name in a path, and no way out of it.
func segment(s string) bool {
	plain, err := url.PathUnescape(s)
	return err == nil && plain != "" && plain != "." && plain != ".." && !strings.ContainsAny(plain, "/\\?#")
}

func (r *relay) block(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	r.seen.blocked = q.Method + " " + provider.Printable(q.URL.EscapedPath())
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `{"message":"Countersign does not pass this request on","detail":"Countersign does not pass this request on"}`)
}

// passed are the headers of a request and of an answer that go through.
var (
	passed   = []string{"Accept", "Content-Type"}
	returned = []string{"Content-Type", "Link"}
)

func (r *relay) request(ctx context.Context, q *http.Request, body []byte) (*http.Request, error) {
	address := strings.TrimSuffix(r.endpoint.URL, "/") + q.URL.EscapedPath()
	if q.URL.RawQuery != "" {
		address += "?" + q.URL.RawQuery
	}
	var from io.Reader
	if len(body) > 0 {
		from = bytes.NewReader(body)
	}
	out, err := http.NewRequestWithContext(ctx, q.Method, address, from)
	if err != nil {
		return nil, err
	}
	for _, name := range passed {
		if v := q.Header.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	return out, nil
}

// read passes a request without an effect on. One that comes to nothing ends the program: it would only ask again.
func (r *relay) read(w http.ResponseWriter, q *http.Request) {
	out, err := r.request(q.Context(), q, nil)
	if err != nil {
		r.fail(w, err)
		return
	}
	answer, body, err := exchange(r.endpoint.Reader, out)
	if err != nil {
		r.fail(w, provider.Broken(err))
		return
	}
	if err := wrong(answer.StatusCode); err != nil {
		r.fail(w, err)
		return
	}
	r.answer(w, answer, body)
}

// write passes the one request with an effect on. It lasts as long as the call, not as long as the program, so that its record is whole.
func (r *relay) write(w http.ResponseWriter, q *http.Request, body []byte) {
	r.mu.Lock()
	again := r.seen.sent
	r.seen.sent = true
	r.mu.Unlock()
	if again {
		r.block(w, q)
		return
	}
	watched, watch := egress.Observe(r.ctx)
	out, err := r.request(watched, q, body)
	if err != nil {
		r.fail(w, err)
		return
	}
	answer, got, err := exchange(r.endpoint.Writer, out)
	r.mu.Lock()
	r.seen.record = watch.Record()
	r.mu.Unlock()
	if err != nil {
		r.stop()
		http.Error(w, `{"detail":"the answer was lost"}`, http.StatusBadGateway)
		return
	}
	r.answer(w, answer, got)
}

func exchange(client *http.Client, out *http.Request) (*http.Response, []byte, error) {
	answer, err := client.Do(out)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

func (r *relay) answer(w http.ResponseWriter, answer *http.Response, body []byte) {
	if answer.StatusCode/100 != 2 {
		r.mu.Lock()
		r.seen.status = answer.StatusCode
		r.mu.Unlock()
	}
	for _, name := range returned {
		if v := answer.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body)
}

func (r *relay) fail(w http.ResponseWriter, err error) {
	r.mu.Lock()
	if r.seen.failure == nil {
		r.seen.failure = err
	}
	r.mu.Unlock()
	r.stop()
	http.Error(w, `{"detail":"the service gave no answer"}`, http.StatusBadGateway)
}
