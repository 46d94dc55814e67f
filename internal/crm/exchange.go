package crm

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// exchange ties a tool call to the HTTP request it came in: the protocol edge decides what happens to the records, the exchange
// what happens to the connection.
type exchange struct {
	headers []string        // names of the request's headers, sorted
	gone    <-chan struct{} // closed when the caller has left

	mu      sync.Mutex
	broken  *arming         // what to do instead of answering
	cleared <-chan struct{} // closed by a reset
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// breakWith asks for a broken answer; the first of several calls in one request decides.
func (x *exchange) breakWith(a *arming, cleared <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == nil {
		x.broken, x.cleared = a, cleared
	}
}

func (x *exchange) breakage() (*arming, <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broken, x.cleared
}

// serveMCP lets the protocol edge write into memory and then decides what of it reaches the caller. The edge gets a context that
// does not end with the connection: whether an effect happens must not depend on when a caller hangs up.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{headers: slices.Sorted(maps.Keys(r.Header)), gone: r.Context().Done()}
	answer := &recording{header: http.Header{}}
	ctx := context.WithValue(context.WithoutCancel(r.Context()), exchangeKey{}, x)
	s.protocol.ServeHTTP(answer, r.WithContext(ctx))

	a, cleared := x.breakage()
	if a == nil {
		answer.replay(w)
		return
	}
	switch a.mode {
	case applyThenHang, hang:
		s.hold(x, a.delay, cleared)
		sever(w, false)
	case applyThen500:
		sentence(w, http.StatusInternalServerError, "Internal error.")
	case applyThenTruncate:
		truncate(w, answer)
	default: // applyThenReset, reset, lateApply
		sever(w, true)
	}
}

// hold keeps the connection open without a byte until the caller leaves, the sandbox is reset or stopped, or limit (if any) ends.
func (s *Server) hold(x *exchange, limit time.Duration, cleared <-chan struct{}) {
	var end <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		end = t.C
	}
	select {
	case <-x.gone:
	case <-cleared:
	case <-s.stopped:
	case <-end:
	}
}

// sever ends the connection without an answer: with a TCP reset, as a crashed or overloaded peer does, or in an orderly way.
func sever(w http.ResponseWriter, abruptly bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // nothing to take over, as in HTTP/2: net/http drops the stream without an answer
	}
	if tcp, ok := conn.(*net.TCPConn); ok && abruptly {
		_ = tcp.SetLinger(0) // makes Close send RST in place of FIN
	}
	_ = conn.Close()
}

// truncate announces the whole answer, sends half of it and closes.
func truncate(w http.ResponseWriter, answer *recording) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second)) // a peer that does not read must not keep this goroutine
	body := answer.body.Bytes()
	if len(body) == 0 {
		body = []byte(" ")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", answer.header.Get("Content-Type"), len(body))
	b.Write(body[:len(body)/2])
	_, _ = conn.Write(b.Bytes())
}

// recording is an answer that has not been sent.
type recording struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recording) Header() http.Header { return a.header }

func (a *recording) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *recording) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush does nothing: the whole answer is replayed at once.
func (a *recording) Flush() {}

func (a *recording) replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(max(a.status, http.StatusOK))
	_, _ = w.Write(a.body.Bytes())
}
