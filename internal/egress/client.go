package egress

import (
	"context"
	"errors"
	"io"
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
func Client(d Destination, o Options) *http.Client { return newClient(d, o, newPool()) }

// Dispatch builds the client for writes. Each request travels on a fresh connection of its own and is written at most once. What
// happened is told by Observe.
func Dispatch(d Destination, o Options) *http.Client { return newClient(d, o, nil) }

func newClient(d Destination, o Options, kept *pool) *http.Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return &http.Client{
		Transport: &guard{destination: d, options: o, wire: &wire{dialer{d}, o.Timeout, kept}},
		// A redirect would carry custom headers, and bodies on 307 and 308, to wherever the upstream points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type sendKey struct{}

// SendBefore sets the absolute moment after which a dispatch may not begin to write. A worker that was stopped and wakes up after
// its lease has ended must find out at the connection itself, not before it.
func SendBefore(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, sendKey{}, t)
}

// SendDeadline is the moment that SendBefore set.
func SendDeadline(ctx context.Context) (time.Time, bool) {
	t, ok := ctx.Value(sendKey{}).(time.Time)
	return t, ok && !t.IsZero()
}

// ErrLate is the failure of a write whose moment has passed.
var ErrLate = errors.New("the moment until which this request might be sent has passed")
