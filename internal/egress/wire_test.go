package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// visits serves each connection by a function that gets its number, from 1, and a reader of what is sent on it.
func visits(t *testing.T, serve func(n int64, c net.Conn, in *bufio.Reader)) (url string, opened *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	opened = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := opened.Add(1)
			go func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String(), opened
}

// heard reads one request whole; false at the end of the connection.
func heard(in *bufio.Reader) bool {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// always answers every request of a connection with the same bytes.
func always(answer string) func(int64, net.Conn, *bufio.Reader) {
	return func(_ int64, c net.Conn, in *bufio.Reader) {
		for heard(in) {
			_, _ = io.WriteString(c, answer)
		}
	}
}

func TestAnswersThatCanBeReadInTwoWaysAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"length and chunks":     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"two lengths":           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
		"a list of lengths":     "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
		"signed length":         "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
		"negative length":       "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
		"hexadecimal length":    "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
		"empty length":          "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok",
		"length beyond numbers": "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
		"two encodings":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"an encoding twice":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"unknown encoding":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok",
		"chunks in 1.0":         "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"folded line":           "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok",
		"folded first line":     "HTTP/1.1 200 OK\r\n Content-Length: 2\r\n\r\nok",
		"space before colon":    "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
		"no name":               "HTTP/1.1 200 OK\r\n: 2\r\n\r\nok",
		"no colon":              "HTTP/1.1 200 OK\r\nContent-Length 2\r\n\r\nok",
		"bare line feed":        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
		"one bare line feed":    "HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 2\r\n\r\nok",
		"bare carriage return":  "HTTP/1.1 200 OK\r\nX-A: b\rContent-Length: 2\r\n\r\nok",
		"NUL":                   "HTTP/1.1 200 OK\r\nX-A: b\x00\r\nContent-Length: 2\r\n\r\nok",
		"another version":       "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"version of one digit":  "HTTP/1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"short status":          "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
		"long status":           "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok",
		"status under 100":      "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok",
		"another protocol":      "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nok",
		"a line before":         "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"many fields":           "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", maxFields+1) + "\r\n",
		"many informational":    strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", maxInformational+1) + okAnswer,
		"large informational":   strings.Repeat("HTTP/1.1 103 Early\r\nX-A: "+strings.Repeat("a", maxHeaderBytes/3)+"\r\n\r\n", 3) + okAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := visits(t, always(answer))
			both(t, operator(t, url), Options{Timeout: 10 * time.Second}, func(t *testing.T, c *http.Client) {
				if body, r, err := send(t, t.Context(), c, url); err == nil || r.Status != 0 || r.Failure != Broken {
					t.Errorf("%q %v %+v", body, err, r) // and not after waiting for more
				}
			})
		})
	}
}

func TestBodiesThatDoNotEndProperlyAreBroken(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, answer := range map[string]string{
		"no size":           chunked + "\r\nok\r\n0\r\n\r\n",
		"signed size":       chunked + "+2\r\nok\r\n0\r\n\r\n",
		"prefixed size":     chunked + "0x2\r\nok\r\n0\r\n\r\n",
		"size and space":    chunked + "2 \r\nok\r\n0\r\n\r\n",
		"size beyond":       chunked + "ffffffffffffffff\r\nok\r\n0\r\n\r\n",
		"size that wraps":   chunked + "10000000000000002\r\nok\r\n0\r\n\r\n",
		"longer than said":  chunked + "2\r\noki\r\n0\r\n\r\n",
		"bare line feed":    chunked + "2\nok\r\n0\r\n\r\n",
		"bare end":          chunked + "2\r\nok\n0\r\n\r\n",
		"endless extension": chunked + "2;" + strings.Repeat("x", maxChunkLine) + "\r\nok\r\n0\r\n\r\n",
		"endless trailers":  chunked + "2\r\nok\r\n0\r\n" + strings.Repeat("X-Trailer: y\r\n", maxTrailers/10) + "\r\n",
		"folded trailer":    chunked + "2\r\nok\r\n0\r\nX-A: b\r\n c\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			url, opened := visits(t, always(answer))
			c := Client(operator(t, url), Options{Timeout: 10 * time.Second})
			for n := range int64(2) {
				if _, r, err := send(t, t.Context(), c, url); err == nil || r.Complete || r.Failure != Broken || opened.Load() != n+1 {
					t.Errorf("%v %+v on connection %d", err, r, opened.Load())
				}
			}
		})
	}
}

func TestWaysForAnAnswerToEnd(t *testing.T) {
	for name, test := range map[string]struct {
		answer, body string
		kept         bool
	}{
		"length":            {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true},
		"no body":           {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true},
		"no reason":         {"HTTP/1.1 200\r\ncontent-length:2\r\n\r\nok", "ok", true},
		"204":               {"HTTP/1.1 204 No Content\r\n\r\n", "", true},
		"304 with a length": {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "", true},
		"chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x=y\r\no\r\n01 ; z\r\nk\r\n0\r\nX-Trailer: t\r\n\r\n", "ok", true},
		"informational":     {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + okAnswer, "ok", true},
		"asked to close":    {"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok", "ok", false},
		"1.0":               {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", false},
		"garbage behind":    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "ok", false},
		"garbage of chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\r\n", "ok", false},
		"garbage of a 204":  {"HTTP/1.1 204 No Content\r\n\r\nevil", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			url, opened := visits(t, always(test.answer))
			c := Client(operator(t, url), Options{})
			for range 3 {
				if body, r, err := send(t, t.Context(), c, url); err != nil || body != test.body || r.Failure != "" {
					t.Fatalf("%q %v %+v", body, err, r)
				}
			}
			if kept := opened.Load() == 1; kept != test.kept || !kept && opened.Load() != 3 {
				t.Errorf("three requests took %d connections", opened.Load())
			}
		})
	}
	t.Run("the connection's end", func(t *testing.T) {
		url, _ := visits(t, func(_ int64, c net.Conn, in *bufio.Reader) {
			if heard(in) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nok")
			}
		})
		both(t, operator(t, url), Options{}, func(t *testing.T, c *http.Client) {
			if body, r, err := send(t, t.Context(), c, url); err != nil || body != "ok" || !r.Complete {
				t.Errorf("%q %v %+v", body, err, r)
			}
		})
	})
}

func TestADripDoesNotOutlastTheDeadline(t *testing.T) {
	for name, begin := range map[string]string{"head": "HTTP/1.1 200 OK\r\nX-A: ", "body": "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n"} {
		t.Run(name, func(t *testing.T) {
			url, _ := visits(t, func(_ int64, c net.Conn, in *bufio.Reader) {
				_ = heard(in)
				_, err := io.WriteString(c, begin)
				drop := time.NewTicker(time.Millisecond)
				defer drop.Stop()
				for ; err == nil; <-drop.C {
					_, err = io.WriteString(c, "d")
				}
			})
			both(t, operator(t, url), Options{Timeout: 100 * time.Millisecond}, func(t *testing.T, c *http.Client) {
				if _, r, err := send(t, t.Context(), c, url); err == nil || r.Failure != TimedOut || r.Complete || r.FirstByteAt.IsZero() {
					t.Errorf("%v %+v", err, r)
				}
			})
		})
	}
}

// TestWhatIsSentTwice breaks a kept connection after its second request was read.
func TestWhatIsSentTwice(t *testing.T) {
	for _, test := range []struct {
		method string
		body   io.Reader
		again  bool
	}{{http.MethodGet, nil, true}, {http.MethodPost, nil, false}, {http.MethodPost, strings.NewReader("x"), false}, {http.MethodDelete, nil, false}} {
		var requests atomic.Int64
		url, opened := visits(t, func(n int64, c net.Conn, in *bufio.Reader) {
			for heard(in) {
				if requests.Add(1) == 2 {
					return
				}
				_, _ = io.WriteString(c, okAnswer)
			}
		})
		c := Client(operator(t, url), Options{})
		if _, _, err := send(t, t.Context(), c, url); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), test.method, url, test.body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k1")
		resp, err := c.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		want := int64(2)
		if test.again {
			want++
		}
		if (err == nil) != test.again || requests.Load() != want || opened.Load() != want-1 {
			t.Errorf("%s: %v after %d requests on %d connections", test.method, err, requests.Load(), opened.Load())
		}
	}
}

// A read that breaks on a connection of its own, or after some of its answer has come, has failed: only one that found its connection closed
// is asked for again.
func TestABrokenReadIsNotAskedForAgain(t *testing.T) {
	for name, broken := range map[string]struct {
		first  bool // breaks on a new connection
		answer string
	}{"a new connection": {true, ""}, "half an answer": {false, okAnswer[:20]}} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			url, _ := visits(t, func(_ int64, c net.Conn, in *bufio.Reader) {
				for heard(in) {
					if n := requests.Add(1); n == 2 || broken.first {
						_, _ = io.WriteString(c, broken.answer)
						return
					}
					_, _ = io.WriteString(c, okAnswer)
				}
			})
			c := Client(operator(t, url), Options{})
			get := func() error {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Do(req)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				return err
			}
			want := int64(1)
			if !broken.first {
				want = 2
				if err := get(); err != nil {
					t.Fatal(err)
				}
			}
			if err := get(); err == nil || requests.Load() != want {
				t.Errorf("%v after %d requests, wanted %d", err, requests.Load(), want)
			}
		})
	}
}

func TestWhatComesBetweenRequestsEndsTheConnection(t *testing.T) {
	for name, between := range map[string]func(net.Conn) error{
		"its end": func(c net.Conn) error { return c.Close() },
		"an answer nobody asked for": func(c net.Conn) error {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			now, done := make(chan struct{}), make(chan error)
			url, opened := visits(t, func(n int64, c net.Conn, in *bufio.Reader) {
				for heard(in) {
					_, _ = io.WriteString(c, okAnswer)
					if n == 1 {
						<-now
						done <- between(c)
					}
				}
			})
			c := Client(operator(t, url), Options{})
			if _, _, err := send(t, t.Context(), c, url); err != nil {
				t.Fatal(err)
			}
			close(now)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			// A POST, which is sent once: the connection was found out before anything was written on it.
			if body, r, err := send(t, t.Context(), c, url); err != nil || body != "ok" || opened.Load() != 2 {
				t.Errorf("%q %v %+v on %d connections", body, err, r, opened.Load())
			}
		})
	}
}

func TestAServiceMayAnswerBeforeItHasReadEverything(t *testing.T) {
	url, _ := visits(t, func(_ int64, c net.Conn, in *bufio.Reader) {
		_, _ = in.ReadString('\n')
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
	}) // and is closed with the rest unread, on which the write breaks
	both(t, operator(t, url), Options{}, func(t *testing.T, c *http.Client) {
		ctx, watch := Observe(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(strings.Repeat("x", 8<<20)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 413 || string(body) != "no" || !watch.Record().Complete {
			t.Errorf("%d %q %v %+v", resp.StatusCode, body, err, watch.Record())
		}
	})
}

func TestGivingUpEndsAReadThatWaits(t *testing.T) {
	url, opened := visits(t, func(n int64, c net.Conn, in *bufio.Reader) {
		for heard(in) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
		}
	})
	c := Client(operator(t, url), Options{})
	begin := func(ctx context.Context) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		return resp
	}
	read := func(resp *http.Response) <-chan error {
		failed := make(chan error, 1)
		go func() {
			_, err := resp.Body.Read(make([]byte, 1))
			failed <- err
		}()
		return failed
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp := begin(ctx)
	failed := read(resp)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gave up: %v", err)
	}
	_ = resp.Body.Close()
	resp = begin(t.Context())
	failed = read(resp)
	_ = resp.Body.Close()
	if err := <-failed; err == nil {
		t.Error("a read of a closed body succeeded")
	}
	_ = begin(t.Context()).Body.Close()
	if opened.Load() != 3 {
		t.Errorf("%d connections: one that was given up served again", opened.Load())
	}
}

// TestAnswersReachWhoAsked lets many share one client, some of which give up.
func TestAnswersReachWhoAsked(t *testing.T) {
	var open, most atomic.Int64
	url, opened := visits(t, func(n int64, c net.Conn, in *bufio.Reader) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			said, _ := io.ReadAll(r.Body)
			if len(said)%3 == 0 {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(said), said)
			} else {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(said), said)
			}
		}
	})
	c := Client(operator(t, url), Options{})
	var all sync.WaitGroup
	for who := range 32 {
		all.Go(func() {
			for n := range 100 {
				said := strings.Repeat(fmt.Sprintf("%d:%d;", who, n), 1+n*7%300)
				ctx, cancel := context.WithCancel(context.Background())
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(said))
				if n%10 == 9 {
					go cancel()
				}
				resp, err := c.Do(req)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err == nil && string(body) != said {
						t.Errorf("%d was answered %.40q for %.40q", who, body, said)
					}
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if opened.Load() >= 32*100 || most.Load() > maxConns {
		t.Errorf("%d connections, %d at one time", opened.Load(), most.Load())
	}
}
