package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// kept is a client's pool after one request, and the connection in it.
func kept(t *testing.T) (*http.Client, string, *pool) {
	t.Helper()
	url, _ := visits(t, always(okAnswer))
	c := Client(operator(t, url), Options{})
	if _, _, err := send(t, t.Context(), c, url); err != nil {
		t.Fatal(err)
	}
	l := c.Transport.(*guard).wire.pool
	if len(l.idle) != 1 {
		t.Fatalf("%d connections are kept", len(l.idle))
	}
	return c, url, l
}

func closed(p *pipe) bool { return errors.Is(p.SetDeadline(time.Time{}), net.ErrClosed) }

func TestWhatNobodyUsesIsClosed(t *testing.T) {
	_, _, l := kept(t)
	p := l.idle[0]
	l.expire()
	if len(l.idle) != 1 || closed(p) || l.timer == nil {
		t.Error("a connection was closed before its time")
	}
	p.idle = time.Now().Add(-idleTimeout)
	l.expire()
	if len(l.idle) != 0 || !closed(p) || l.timer != nil {
		t.Error("a connection that nobody used is kept")
	}
}

func TestAnOldConnectionDoesNotServe(t *testing.T) {
	c, url, l := kept(t)
	p := l.idle[0]
	p.idle = time.Now().Add(-idleTimeout) // the timer is late
	if _, _, err := send(t, t.Context(), c, url); err != nil || !closed(p) {
		t.Errorf("%v; closed: %t", err, closed(p))
	}
}

func TestClosingGivesBackEverything(t *testing.T) {
	c, url, l := kept(t)
	p := l.idle[0]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req) // on the connection
	if err != nil {
		t.Fatal(err)
	}
	c.CloseIdleConnections()
	if closed(p) {
		t.Error("a connection in use was closed")
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
		t.Errorf("%q %v", body, err)
	}
	_ = resp.Body.Close()
	if !closed(p) || len(l.idle) != 0 {
		t.Error("a connection from before is kept after")
	}
	if _, _, err := send(t, t.Context(), c, url); err != nil || len(l.idle) != 1 {
		t.Errorf("%v, %d kept", err, len(l.idle))
	}
	p = l.idle[0]
	c.CloseIdleConnections()
	if !closed(p) || len(l.idle) != 0 || l.timer != nil {
		t.Error("an idle connection outlived the closing")
	}
}

func TestPlacesAreBounded(t *testing.T) {
	l := newPool()
	soon, never := time.Now().Add(time.Millisecond), time.Now().Add(time.Hour)
	for range maxConns {
		if err := l.enter(t.Context(), never); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.enter(t.Context(), soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one too many: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.enter(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	go l.leave()
	if err := l.enter(t.Context(), never); err != nil {
		t.Errorf("after one left: %v", err)
	}
}

// TestPlacesAreGivenBack uses up every way in which an exchange ends.
func TestPlacesAreGivenBack(t *testing.T) {
	url, _ := visits(t, func(n int64, c net.Conn, in *bufio.Reader) {
		for heard(in) {
			_, _ = io.WriteString(c, []string{okAnswer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "nonsense", "HTTP/1.1 204 No Content\r\n\r\n"}[n%4])
			if n%2 == 1 {
				return
			}
		}
	})
	c := Client(operator(t, url), Options{Timeout: 50 * time.Millisecond})
	for range 12 {
		_, _, _ = send(t, t.Context(), c, url) // however it ends
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, _ = send(t, ctx, c, url)
	nobody := Client(operator(t, "http://127.0.0.1:1"), Options{})
	_, _, _ = send(t, t.Context(), nobody, "http://127.0.0.1:1")
	for _, c := range []*http.Client{c, nobody} {
		if n := len(c.Transport.(*guard).wire.pool.slots); n != 0 {
			t.Errorf("%d places are taken by nobody", n)
		}
	}
}

// TestTLSHidesNothingBehindAnAnswer sends an answer and more in one record, of which the answer is read alone.
func TestTLSHidesNothingBehindAnAnswer(t *testing.T) {
	for _, behind := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"} {
		said := make(chan struct{})
		server := httptest.NewUnstartedServer(nil)
		server.StartTLS() // for its certificate
		certificate := server.TLS.Certificates
		server.Close()
		ours, theirs := connected(t)
		go func() {
			s := tls.Server(theirs, &tls.Config{Certificates: certificate, MinVersion: tls.VersionTLS12})
			_, _ = io.WriteString(s, "ok"+behind)
			close(said)
			_, _ = io.Copy(io.Discard, s)
		}()
		p := newPipe(tls.Client(ours, &tls.Config{InsecureSkipVerify: true}))
		p.watch = new(Watch)
		var b [2]byte
		if _, err := io.ReadFull(p, b[:]); err != nil || string(b[:]) != "ok" {
			t.Fatal(err)
		}
		<-said
		if quiet := p.quiet(time.Now().Add(time.Minute)); quiet != (behind == "") {
			t.Errorf("with %q behind: quiet %t", behind, quiet)
		}
		_ = p.Close()
	}
}

func connected(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}
