package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"countersign/internal/fault"
)

// ErrRefused is the one answer to everything that is not allowed out. It does not say which rule refused, because the difference
// would map a private network.
var ErrRefused = fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This destination is not allowed.",
	"Use the public HTTPS address of the service; the operator's server log says more.")

// ErrTooLarge ends an answer at its bound.
var ErrTooLarge = fault.New(fault.TooLarge, fault.ResultTooLarge, "The provider's answer is larger than allowed.", "Ask for less at once.")

// Editor is what a credential does to an exchange. Egress does not know what it holds. Edit authorises an outgoing request, or
// refuses to; Body and Header take out of an answer what must not come back.
type Editor interface {
	Edit(*http.Request) error
	Body(io.Reader) io.Reader
	Header(http.Header)
}

// Options of a client. The zero value is an unauthorised client with the default bounds.
type Options struct {
	Editor   Editor
	Headers  map[string]string // static and public, set on every request before the Editor
	Timeout  time.Duration     // whole exchange, answer included; 0 means DefaultTimeout
	MaxBytes int64             // of an answer's body after decompression; 0 means DefaultMaxBytes
}

// Default bounds.
const (
	DefaultTimeout  = 60 * time.Second
	DefaultMaxBytes = 8 << 20
	maxHeaderBytes  = 64 << 10
	maxConns        = 256
	maxIdle         = 64
	idleTimeout     = 60 * time.Second
	dialTimeout     = 5 * time.Second
	tlsTimeout      = 10 * time.Second
)

// Client builds the client for reads: connections are kept and reused, by this client alone. Make one per connection of an
// organization, never one for several: a connection opened for one must not carry another's request.
func Client(d Destination, o Options) *http.Client {
	t := newTransport(d)
	t.MaxIdleConnsPerHost, t.IdleConnTimeout, t.MaxConnsPerHost = maxIdle, idleTimeout, maxConns
	t.DialContext = dialer{d}.plain
	t.DialTLSContext = dialer{d}.tls
	return newClient(d, o, pooled{t})
}

// Dispatch builds the client for writes. Each request travels on a fresh connection of its own and is written at most once:
// net/http would replay a POST that carries an Idempotency-Key when a reused connection breaks. What happened is told by Observe.
func Dispatch(d Destination, o Options) *http.Client {
	return newClient(d, o, single{d})
}

func newClient(d Destination, o Options, wire http.RoundTripper) *http.Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return &http.Client{
		Transport: &guard{destination: d, options: o, wire: wire},
		Timeout:   o.Timeout,
		// A redirect would carry custom headers, and bodies on 307 and 308, to wherever the upstream points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// newTransport holds what every connection has in common. HTTP/2 stays off (no ForceAttemptHTTP2): its client resends a request
// by itself after GOAWAY or REFUSED_STREAM.
func newTransport(d Destination) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// pooled sends over kept connections.
type pooled struct{ transport *http.Transport }

// RoundTrip implements http.RoundTripper. On a shared connection bytes cannot be told apart, so a request that was given a
// connection counts as begun.
func (p pooled) RoundTrip(r *http.Request) (*http.Response, error) {
	if w, ok := r.Context().Value(watchKey{}).(*Watch); ok {
		r = r.WithContext(traced(r.Context(), w))
	}
	return p.transport.RoundTrip(r)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the transport.
func (p pooled) CloseIdleConnections() { p.transport.CloseIdleConnections() }

// single sends each request over a transport of its own, so that no connection, and no replay, can be shared.
type single struct{ destination Destination }

// RoundTrip implements http.RoundTripper.
func (s single) RoundTrip(r *http.Request) (*http.Response, error) {
	w := watchOf(r.Context())
	deadline, _ := r.Context().Value(sendKey{}).(time.Time)
	wrap := func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return &watchedConn{Conn: c, watch: w, deadline: deadline}, nil
	}
	t := newTransport(s.destination)
	t.DisableKeepAlives = true
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return wrap(dialer(s).plain(ctx, network, addr))
	}
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return wrap(dialer(s).tls(ctx, network, addr))
	}
	r.GetBody = nil
	return t.RoundTrip(r)
}

type sendKey struct{}

// SendBefore sets the absolute moment after which a dispatch may not begin to write. A worker that was stopped and wakes up after
// its lease has ended must find out at the connection itself, not before it.
func SendBefore(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, sendKey{}, t)
}

var errLate = errors.New("the moment until which this request might be sent has passed")

// watchedConn counts what is handed to the connection, above TLS, before it is written, so that a count of zero is proof.
type watchedConn struct {
	net.Conn
	watch    *Watch
	deadline time.Time
}

// Write implements net.Conn.
func (c *watchedConn) Write(b []byte) (int, error) {
	if err := c.watch.admit(len(b), c.deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.watch.firstByte()
	}
	return n, err
}
