package egress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func operator(t *testing.T, raw string) Destination {
	t.Helper()
	d, err := Operator(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// send posts a body and reads the answer whole.
func send(t *testing.T, ctx context.Context, c *http.Client, url string) (string, Record, error) {
	t.Helper()
	ctx, watch := Observe(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("x=1"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k1") // what makes net/http replay a POST
	resp, err := c.Do(req)
	if err != nil {
		return "", watch.Record(), err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), watch.Record(), err
}

func both(t *testing.T, d Destination, o Options, run func(t *testing.T, c *http.Client)) {
	t.Run("reads", func(t *testing.T) { run(t, Client(d, o)) })
	t.Run("writes", func(t *testing.T) { run(t, Dispatch(d, o)) })
}

func TestARequestIsRecorded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "hello")
	}))
	defer srv.Close()
	both(t, operator(t, srv.URL), Options{}, func(t *testing.T, c *http.Client) {
		body, r, err := send(t, t.Context(), c, srv.URL)
		if err != nil || body != "hello" {
			t.Fatal(body, err)
		}
		if !r.Watched || r.Status != 201 || !r.Complete || r.BytesRead != 5 || r.BytesWritten == 0 || r.Failure != "" || r.StartedAt.IsZero() || r.FirstByteAt.IsZero() || r.EndedAt.IsZero() {
			t.Errorf("recorded %+v", r)
		}
	})
}

func TestOtherOriginsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	var hits atomic.Int64
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	srv, other := httptest.NewServer(h), httptest.NewServer(h)
	defer srv.Close()
	defer other.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	both(t, operator(t, srv.URL), Options{}, func(t *testing.T, c *http.Client) {
		for _, url := range []string{other.URL, "http://localhost:" + port, "https" + strings.TrimPrefix(srv.URL, "http"), "http://127.0.0.1/", strings.Replace(srv.URL, "://", "://u:p@", 1)} {
			_, r, err := send(t, t.Context(), c, url)
			if !errors.Is(err, ErrRefused) || r.Failure != Refused || r.BytesWritten != 0 {
				t.Errorf("%s: %v %+v", url, err, r)
			}
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		req.Host = "other.example"
		if _, err := c.Do(req); !errors.Is(err, ErrRefused) {
			t.Errorf("another Host: %v", err)
		}
	})
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
	if _, _, err := send(t, t.Context(), Client(Destination{}, Options{}), srv.URL); !errors.Is(err, ErrRefused) {
		t.Errorf("the zero destination: %v", err)
	}
}

// straying is a credential that takes the request along.
type straying struct{ to string }

func (s straying) Edit(r *http.Request) error {
	r.URL.Host, r.Host = s.to, s.to
	return nil
}
func (straying) Body(b io.Reader) io.Reader { return b }
func (straying) Header(http.Header)         {}

// What a credential does to a request cannot send it elsewhere: the origin is looked at again afterwards.
func TestACredentialTakesNoRequestElsewhere(t *testing.T) {
	var hits atomic.Int64
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	srv, other := httptest.NewServer(h), httptest.NewServer(h)
	defer srv.Close()
	defer other.Close()
	both(t, operator(t, srv.URL), Options{Editor: straying{strings.TrimPrefix(other.URL, "http://")}}, func(t *testing.T, c *http.Client) {
		if _, r, err := send(t, t.Context(), c, srv.URL); !errors.Is(err, ErrRefused) || r.BytesWritten != 0 {
			t.Errorf("%v %+v", err, r)
		}
	})
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
}

func TestAPublicNameThatPointsInwardIsRefused(t *testing.T) {
	// The rule at the dial itself, without a resolver that lies: what the dialer is given is checked again.
	for _, a := range []string{"127.0.0.1:443", "[::1]:443", "169.254.169.254:443", "10.0.0.1:443", "[::ffff:127.0.0.1]:443", "garbage"} {
		if err := checkDialled(t.Context(), "tcp", a, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", a, err)
		}
	}
	d := Destination{url: "https://localhost/", scheme: "https", host: "localhost", port: "443"} // as if the rule at save time had failed
	both(t, d, Options{}, func(t *testing.T, c *http.Client) {
		_, r, err := send(t, t.Context(), c, "https://localhost/")
		if !errors.Is(err, ErrRefused) || r.Failure != Refused || r.BytesWritten != 0 {
			t.Errorf("%v %+v", err, r)
		}
	})
}

// Below the guard the rule stands again: a dialer knows one server.
func TestADialerKnowsOneServer(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	d := dialer{operator(t, "http://127.0.0.1:1")}
	if c, err := d.plain(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "http://")); !errors.Is(err, ErrRefused) {
		t.Errorf("%v %v", c, err)
	}
}

// An error is logged. What an upstream could have written into it is not in it any more, and its cause still is.
func TestAnErrorQuotesNoUpstream(t *testing.T) {
	for _, cause := range []error{nil, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		said := fmt.Errorf("malformed header %q: %w", "Authorization: Bearer canary", cause)
		got := hushed(said)
		if strings.Contains(got.Error(), "canary") || cause != nil && !errors.Is(got, cause) {
			t.Errorf("%v becomes %v", said, got)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	both(t, operator(t, srv.URL), Options{}, func(t *testing.T, c *http.Client) {
		before := hits.Load()
		_, r, err := send(t, t.Context(), c, srv.URL)
		if err != nil || r.Status != 307 || hits.Load()-before != 1 {
			t.Errorf("%v %+v after %d requests", err, r, hits.Load()-before)
		}
	})
}

func TestAnswersAreBounded(t *testing.T) {
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				_, _ = z.Write(zeros)
			}
			_ = z.Close()
		case "/exact":
			_, _ = w.Write(zeros[:1<<16])
		case "/headers":
			w.Header().Set("X-Large", strings.Repeat("h", 128<<10))
		}
	}))
	defer srv.Close()
	both(t, operator(t, srv.URL), Options{MaxBytes: 1 << 16}, func(t *testing.T, c *http.Client) {
		for _, path := range []string{"/endless", "/bomb"} {
			body, r, err := send(t, t.Context(), c, srv.URL+path)
			if !errors.Is(err, ErrTooLarge) || r.Failure != Oversized || r.Complete || len(body) > 1<<16 || r.Status != 200 {
				t.Errorf("%s: %d bytes, %v, %+v", path, len(body), err, r)
			}
		}
		if body, r, err := send(t, t.Context(), c, srv.URL+"/exact"); err != nil || len(body) != 1<<16 || !r.Complete {
			t.Errorf("an answer of exactly the bound: %d bytes, %v, %+v", len(body), err, r)
		}
		if _, r, err := send(t, t.Context(), c, srv.URL+"/headers"); err == nil || r.Status != 0 {
			t.Errorf("endless headers: %v %+v", err, r)
		}
	})
}

// raw serves every connection with a function that has read one request.
func raw(t *testing.T, serve func(n int64, c net.Conn)) (url string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					serve(requests.Add(1), c)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), requests
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestAWriteIsNeverReplayed(t *testing.T) {
	// The server answers the first request and cuts every later one after having read it, as a load balancer that recycles
	// kept connections does. With net/http alone a POST with an Idempotency-Key is then sent twice.
	url, requests := raw(t, func(n int64, c net.Conn) {
		if n == 1 {
			_, _ = io.WriteString(c, okAnswer)
			return
		}
		_ = c.Close()
	})
	c := Dispatch(operator(t, url), Options{})
	if _, _, err := send(t, t.Context(), c, url); err != nil {
		t.Fatal(err)
	}
	_, r, err := send(t, t.Context(), c, url)
	if err == nil || r.Failure != Broken || r.BytesWritten == 0 || r.Status != 0 {
		t.Errorf("%v %+v", err, r)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("two requests arrived %d times", n)
	}
}

func TestWaysForAnAnswerToBeLostAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		serve   func(c net.Conn)
		failure Failure
		status  int
	}{
		"reset":  {func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, Broken, 0},
		"closed": {func(c net.Conn) { _ = c.Close() }, Broken, 0},
		"truncated": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
			_ = c.Close()
		}, Broken, 200},
		"half chunk": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
			_ = c.Close()
		}, Broken, 200},
		"not HTTP": {func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9\r\n"); _ = c.Close() }, Broken, 0},
		"silence":  {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, TimedOut, 0},
		"half a body and silence": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
			_, _ = io.Copy(io.Discard, c)
		}, TimedOut, 200},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := raw(t, func(_ int64, c net.Conn) { test.serve(c) })
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, r, err := send(t, ctx, Dispatch(operator(t, url), Options{}), url)
			if err == nil || r.Failure != test.failure || r.Status != test.status || r.Complete || r.BytesWritten == 0 {
				t.Errorf("%v %+v", err, r)
			}
		})
	}
}

func TestErrorsQuoteNothingOfAnUpstream(t *testing.T) {
	const canary = "canary-of-the-upstream"
	for _, answer := range []string{
		canary + "\r\n", "HTTP/1.1 " + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n", "HTTP/" + canary + " 200 OK\r\n\r\n",
	} {
		url, _ := raw(t, func(_ int64, c net.Conn) { _, _ = io.WriteString(c, answer); _ = c.Close() })
		both(t, operator(t, url), Options{}, func(t *testing.T, c *http.Client) {
			_, r, err := send(t, t.Context(), c, url)
			if err == nil || strings.Contains(err.Error(), canary) || r.Failure != Broken {
				t.Errorf("%q: %v %+v", answer, err, r)
			}
		})
	}
}

func TestNothingSentIsProven(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	_ = closed.Close()
	untrusted := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") }))
	untrusted.Config.ErrorLog = nil
	defer untrusted.Close()
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	for url, want := range map[string]Failure{nobody: Undialled, untrusted.URL: Untrusted, old.URL: Untrusted, "http://name.invalid/": Unresolved} {
		_, r, err := send(t, t.Context(), Dispatch(operator(t, url), Options{}), url)
		if err == nil || r.Failure != want || r.BytesWritten != 0 || r.Status != 0 {
			t.Errorf("%s: %v %+v, want %s", url, err, r, want)
		}
	}
}

func TestNothingIsSentAfterTheSendDeadline(t *testing.T) {
	url, requests := raw(t, func(_ int64, c net.Conn) { _, _ = io.WriteString(c, okAnswer) })
	c := Dispatch(operator(t, url), Options{})
	_, r, err := send(t, SendBefore(t.Context(), time.Now().Add(-time.Millisecond)), c, url)
	if err == nil || r.Failure != TimedOut || r.BytesWritten != 0 || requests.Load() != 0 {
		t.Errorf("%v %+v; %d arrived", err, r, requests.Load())
	}
	if _, r, err = send(t, SendBefore(t.Context(), time.Now().Add(time.Minute)), c, url); err != nil || r.BytesWritten == 0 {
		t.Errorf("in time: %v %+v", err, r)
	}
}

func TestAStragglingWriterCannotWriteAfterTheEnd(t *testing.T) {
	w := new(Watch)
	w.start()
	if err := w.admit(3, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.seal(TimedOut)
	if err := w.admit(4, time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Error("a writer was let through")
	}
	w.complete()
	if r := w.Record(); r.BytesWritten != 3 || r.Complete || r.Failure != TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestReadsKeepConnectionsAndWritesDoNot(t *testing.T) {
	var opened atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	d := operator(t, srv.URL)
	a, b, w := Client(d, Options{}), Client(d, Options{}), Dispatch(d, Options{})
	for _, step := range []struct {
		c    *http.Client
		want int64
	}{{a, 1}, {a, 1}, {b, 2}, {a, 2}, {w, 3}, {w, 4}} {
		if _, _, err := send(t, t.Context(), step.c, srv.URL); err != nil || opened.Load() != step.want {
			t.Fatalf("%v: %d connections, want %d", err, opened.Load(), step.want)
		}
	}
}

// editor puts a mark on requests and takes it out of answers.
type editor struct{ refuse error }

func (e editor) Edit(r *http.Request) error { r.Header.Set("Authorization", "mark"); return e.refuse }

func (e editor) Body(b io.Reader) io.Reader {
	all, err := io.ReadAll(b)
	return io.MultiReader(strings.NewReader(strings.ReplaceAll(string(all), "mark", "----")), errReader{err})
}
func (e editor) Header(h http.Header) { h.Del("X-Echo") }

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	return 0, io.EOF
}

func TestTheEditorSeesEveryExchange(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = fmt.Fprint(w, r.Header.Get("Authorization"), " ", r.Header.Get("X-Static"))
	}))
	defer srv.Close()
	d := operator(t, srv.URL)
	both(t, d, Options{Editor: editor{}, Headers: map[string]string{"X-Static": "s"}}, func(t *testing.T, c *http.Client) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if string(body) != "---- s" || resp.Header.Get("X-Echo") != "" || req.Header.Get("Authorization") != "" {
			t.Errorf("%q %v %v", body, resp.Header, req.Header)
		}
	})
	no := errors.New("no")
	both(t, d, Options{Editor: editor{refuse: no}}, func(t *testing.T, c *http.Client) {
		if _, r, err := send(t, t.Context(), c, srv.URL); !errors.Is(err, no) || r.BytesWritten != 0 || r.Failure != Refused {
			t.Errorf("%v %+v", err, r)
		}
	})
}
