package egress

import (
	"context"
	"net"
	"sync"
	"time"
)

// Failure is the kind of thing that went wrong below HTTP.
type Failure string

// The failures. The empty one means that the transport saw none.
const (
	Refused     Failure = "refused"     // our own rule: address, origin or authorization; nothing was dialled or sent
	Unresolved  Failure = "unresolved"  // the name has no address
	Undialled   Failure = "undialled"   // no connection
	Untrusted   Failure = "untrusted"   // TLS did not succeed
	TimedOut    Failure = "timed_out"   // our deadline
	Cancelled   Failure = "cancelled"   // the caller gave up
	Broken      Failure = "broken"      // reset, end of stream, or an answer that is not HTTP
	Oversized   Failure = "oversized"   // the answer is larger than the bound
	Interrupted Failure = "interrupted" // the answer was not read to its end
)

// Sentence is a short phrase for a person.
func (f Failure) Sentence() string {
	switch f {
	case Refused:
		return "the destination is not allowed"
	case Unresolved:
		return "its name has no address"
	case Undialled:
		return "no connection"
	case Untrusted:
		return "no trustworthy TLS connection"
	case TimedOut:
		return "no answer in time"
	case Cancelled:
		return "the call was given up"
	case Oversized:
		return "the answer is too large"
	case Interrupted:
		return "the answer was not read to its end"
	default:
		return "the connection broke"
	}
}

// Record is what the transport itself saw of one request. Outcomes of writes are classified from it, because errors of the layers
// above cannot tell "never sent" from "answer lost".
type Record struct {
	Watched      bool // the egress transport handled the request and kept this record
	StartedAt    time.Time
	FirstByteAt  time.Time
	EndedAt      time.Time
	BytesWritten int64   // of the request, above TLS, counted when handed to the connection; 0 proves that nothing was sent
	BytesRead    int64   // of the answer's body
	Status       int     // 0: no answer began
	Complete     bool    // the answer's body was read to its proper end
	Failure      Failure // empty: none
}

// Watch observes the requests that are sent with its context. Each request starts the record anew; use one watch per request
// that matters.
type Watch struct {
	mu     sync.Mutex
	r      Record
	sealed bool // the request ended without an answer: nothing may be written any more
}

type watchKey struct{}

// Observe returns a context whose next request through an egress client is recorded.
func Observe(ctx context.Context) (context.Context, *Watch) {
	w := new(Watch)
	return context.WithValue(ctx, watchKey{}, w), w
}

// Record returns what has been seen so far.
func (w *Watch) Record() Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.r
}

func watchOf(ctx context.Context) *Watch {
	w, _ := ctx.Value(watchKey{}).(*Watch)
	if w == nil {
		w = new(Watch)
	}
	return w
}

func (w *Watch) note(f func(*Record)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.r)
}

func (w *Watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.r, w.sealed = Record{Watched: true, StartedAt: time.Now()}, false
}

// admit counts n bytes that are about to be written, or forbids it: once the request has ended, a straggling writer must not
// turn a record that says "nothing was sent" into a lie, and the first byte must not leave after the deadline for sending.
func (w *Watch) admit(n int, deadline time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return net.ErrClosed
	}
	if w.r.BytesWritten == 0 && !deadline.IsZero() && !time.Now().Before(deadline) {
		return ErrLate
	}
	w.r.BytesWritten += int64(n)
	return nil
}

// seal ends a request that got no answer.
func (w *Watch) seal(f Failure) {
	w.fail(f)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sealed = true
}

func (w *Watch) firstByte() {
	w.note(func(r *Record) {
		if r.FirstByteAt.IsZero() {
			r.FirstByteAt = time.Now()
		}
	})
}

// fail keeps the first failure: what follows is its echo.
func (w *Watch) fail(f Failure) {
	w.note(func(r *Record) {
		if r.Failure == "" && !r.Complete {
			r.Failure = f
		}
		if r.EndedAt.IsZero() {
			r.EndedAt = time.Now()
		}
	})
}

func (w *Watch) complete() {
	w.note(func(r *Record) {
		if r.Failure == "" {
			r.Complete = true
		}
		if r.EndedAt.IsZero() {
			r.EndedAt = time.Now()
		}
	})
}
