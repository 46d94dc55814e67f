package egress

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// guard is the rule around every request: its origin, its authorization, its record and the bounds of its answer.
type guard struct {
	destination Destination
	options     Options
	wire        *wire
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	w := watchOf(r.Context())
	w.start()
	out, err := g.prepare(r)
	if err != nil {
		w.seal(Refused)
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	resp, err := g.wire.RoundTrip(out)
	if err != nil {
		w.seal(failureOf(err))
		return nil, hushed(err)
	}
	w.note(func(rec *Record) { rec.Status = resp.StatusCode })
	if g.options.Editor != nil {
		g.options.Editor.Header(resp.Header)
	}
	resp.Body = g.bound(resp.Body, w)
	return resp, nil
}

// hushed keeps the upstream's bytes out of errors, and so out of logs: net/http quotes a malformed status line or header, and a
// hostile upstream can write there the Authorization header it was just sent.
func hushed(err error) error {
	if failureOf(err) != Broken {
		return err
	}
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", Broken.Sentence(), known)
		}
	}
	return errMalformed
}

var errMalformed = errors.New("the connection broke or the answer is not HTTP")

// prepare authorises a copy of the request for the one origin this client talks to.
func (g *guard) prepare(r *http.Request) (*http.Request, error) {
	if !g.ours(r) {
		return nil, ErrRefused
	}
	out := r.WithContext(r.Context()) // a shallow copy; what an Editor may touch is copied with it
	target := *r.URL
	out.URL = &target
	if out.Header = r.Header.Clone(); out.Header == nil {
		out.Header = http.Header{}
	}
	for name, value := range g.options.Headers {
		out.Header.Set(name, value)
	}
	if g.options.Editor == nil {
		return out, nil
	}
	if err := g.options.Editor.Edit(out); err != nil {
		return nil, err
	}
	if !g.ours(out) {
		return nil, ErrRefused
	}
	return out, nil
}

func (g *guard) ours(r *http.Request) bool {
	return g.destination.Covers(r.URL) && (r.Host == "" || r.Host == r.URL.Host) && r.URL.User == nil
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the wire.
func (g *guard) CloseIdleConnections() { g.wire.CloseIdleConnections() }

func (g *guard) bound(body io.ReadCloser, w *Watch) io.ReadCloser {
	b := &boundedBody{body: body, left: g.options.MaxBytes, watch: w}
	if g.options.Editor == nil {
		return b
	}
	return filteredBody{Reader: g.options.Editor.Body(b), Closer: b}
}

type filteredBody struct {
	io.Reader
	io.Closer
}

// boundedBody reads at most its bound and tells the record how the answer ended. Transparent decompression happens below it, so
// that the bound holds for what a small compressed answer expands to.
type boundedBody struct {
	body  io.ReadCloser
	left  int64
	watch *Watch
	mu    sync.Mutex // guards ended: a body may be closed while it is read
	ended error
}

// end keeps the first ending.
func (b *boundedBody) end(err error) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil || err == nil {
		return false
	}
	b.ended = err
	return true
}

func (b *boundedBody) over() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.over(); err != nil {
		return 0, err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more than allowed, to tell "exactly the bound" from "too large"
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), ErrTooLarge
	}
	b.left -= int64(n)
	b.watch.note(func(r *Record) { r.BytesRead += int64(n) })
	if !b.end(err) {
		return n, err
	}
	if err == io.EOF { // the interface promises io.EOF itself; ErrUnexpectedEOF must not pass for it
		b.watch.complete()
	} else {
		b.watch.fail(failureOf(err))
	}
	return n, err
}

// Close implements io.Closer. An answer closed before its end was not seen whole.
func (b *boundedBody) Close() error {
	if b.end(io.ErrClosedPipe) {
		b.watch.fail(Interrupted)
	}
	return b.body.Close()
}
