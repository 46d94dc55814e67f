package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// wire sends requests over connections to the one destination, by a client of HTTP/1.1 that is our own: one write, one goroutine, the
// caller's, and no second sending that nobody asked for. It knows neither redirects nor proxies nor other origins.
type wire struct {
	dialer  dialer
	timeout time.Duration // of a whole exchange
	pool    *pool         // nil: each request has a connection of its own
}

// exchange is one request and its answer on a connection.
type exchange struct {
	wire  *wire
	pipe  *pipe
	ctx   context.Context
	stop  func() bool // ends the watch over ctx; nil where ctx never ends
	ended atomic.Bool // by the proper end of the answer, by an error, or because nobody wants the rest
	keep  bool        // the connection may serve again after the proper end
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	q, zipped, err := render(r, w.pool == nil || r.Close)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	defer q.release()
	deadline := time.Now().Add(w.timeout)
	if d, ok := r.Context().Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	resp, again, err := w.try(r, q.bytes, deadline, false)
	if err != nil && again && (r.Body == nil || r.Body == http.NoBody) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		// A kept connection that the other side had meanwhile closed. What may have an effect is never sent a second time, by anybody.
		resp, _, err = w.try(r, q.bytes, deadline, true)
	}
	if err == nil && zipped && resp.Header.Get("Content-Encoding") == "gzip" && resp.Body != http.NoBody {
		resp.Body = &unzipped{body: resp.Body}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	return resp, err
}

// try sends a request once. Again says that it broke on a kept connection before anything of an answer had come.
func (w *wire) try(r *http.Request, q []byte, deadline time.Time, fresh bool) (resp *http.Response, again bool, err error) {
	p, err := w.connection(r.Context(), deadline, fresh)
	if err != nil {
		return nil, false, err
	}
	p.watch, p.heard = watchOf(r.Context()), false
	x := &exchange{wire: w, pipe: p, ctx: r.Context()}
	if x.ctx.Done() != nil {
		x.stop = context.AfterFunc(x.ctx, func() { _ = p.SetDeadline(longAgo) })
	}
	before, _ := x.ctx.Value(sendKey{}).(time.Time)
	sent := p.send(q, before)
	if sent != nil && p.watch.Record().BytesWritten == 0 {
		return nil, false, x.over(sent)
	}
	h, err := p.answer(r) // also after a broken write: a service that refuses a request early may have said so
	if err != nil {
		if sent != nil {
			err = sent
		}
		err = x.over(err)
		return nil, p.reused && !p.heard && !isTimeout(err) && x.ctx.Err() == nil, err
	}
	x.keep = w.pool != nil && sent == nil && !h.closes && !r.Close
	return x.response(r, h), false, nil
}

// connection is a kept one, or a new one.
func (w *wire) connection(ctx context.Context, deadline time.Time, fresh bool) (*pipe, error) {
	if w.pool != nil {
		if err := w.pool.enter(ctx, deadline); err != nil {
			return nil, err
		}
		if p := w.pool.take(deadline, fresh); p != nil {
			return p, nil
		}
	}
	p, err := w.open(ctx, deadline)
	if err != nil && w.pool != nil {
		w.pool.leave()
	}
	return p, err
}

func (w *wire) open(ctx context.Context, deadline time.Time) (*pipe, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	epoch := 0
	if w.pool != nil {
		epoch = w.pool.now()
	}
	p, err := w.dialer.open(ctx)
	if err != nil {
		return nil, err
	}
	p.epoch = epoch
	if err := p.SetDeadline(deadline); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// response makes of a head what callers of net/http know.
func (x *exchange) response(r *http.Request, h head) *http.Response {
	resp := &http.Response{
		Status: h.words, StatusCode: h.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h.header, ContentLength: h.length, Close: h.closes, Request: r,
	}
	if h.old {
		resp.Proto, resp.ProtoMinor = "HTTP/1.0", 0
	}
	if h.bodiless(r.Method) && r.Method != http.MethodHead {
		resp.ContentLength = 0
	}
	switch {
	case h.bodiless(r.Method), h.length == 0:
		_ = x.over(io.EOF)
		resp.Body = http.NoBody
	case h.chunked:
		resp.Body = &body{exchange: x, chunked: true}
	case h.length > 0:
		resp.Body = &body{exchange: x, left: h.length}
	default:
		x.keep = false
		resp.Body = &body{exchange: x, left: endless}
	}
	return resp
}

// over ends the exchange with what ended its reading: io.EOF is the proper end of the answer. It returns the error to tell: where the
// caller's context ended, that is why the connection broke.
func (x *exchange) over(err error) error {
	if !x.ended.CompareAndSwap(false, true) {
		return err
	}
	watched := x.stop == nil || x.stop()
	if err == io.EOF && watched && x.keep && x.pipe.from == x.pipe.to {
		x.wire.pool.put(x.pipe)
	} else {
		_ = x.pipe.Close() // nothing more is asked of it
	}
	x.left()
	if err == io.EOF {
		return err
	}
	if cause := x.ctx.Err(); cause != nil {
		return cause
	}
	return err
}

// abandon ends the exchange because nobody wants the rest of the answer.
func (x *exchange) abandon() {
	if !x.ended.CompareAndSwap(false, true) {
		return
	}
	if x.stop != nil {
		x.stop()
	}
	_ = x.pipe.Close()
	x.left()
}

func (x *exchange) left() {
	if x.wire.pool != nil {
		x.wire.pool.leave()
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the pool.
func (w *wire) CloseIdleConnections() {
	if w.pool != nil {
		w.pool.clear()
	}
}
