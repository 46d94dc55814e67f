package mongodb

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"countersign/internal/action"
	"countersign/internal/egress"
)

var errTwice = errors.New("the same write was about to be sent a second time")

// watch sees what really goes over the connections of one write. Whatever the driver does when something breaks, the command that has the
// effect passes here once, and not after its moment.
type watch struct {
	raw      *egress.Raw
	deadline time.Time // until when it may leave; zero: any time

	mu                        sync.Mutex
	sent                      bool // the command was handed to a connection
	written, read             int64
	started, firstByte, ended time.Time
	failure                   egress.Failure
}

// DialContext implements the driver's dialer.
func (w *watch) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.raw.DialContext(ctx, network, address)
	if err != nil {
		w.note(func() { w.failure = egress.FailureOf(err) })
		return nil, err
	}
	return &watched{Conn: c, watch: w}, nil
}

func (w *watch) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// admit lets the command out once.
func (w *watch) admit(n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.sent:
		return errTwice
	case !w.deadline.IsZero() && !time.Now().Before(w.deadline):
		return egress.ErrLate
	}
	w.sent, w.written, w.started = true, int64(n), time.Now()
	return nil
}

func (w *watch) seen() (evidence action.Evidence, sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return action.Evidence{StartedAt: w.started, FirstByteAt: w.firstByte, EndedAt: w.ended, BytesWritten: w.written, BytesRead: w.read, Transport: string(w.failure)}, w.sent
}

// watched is one connection. The driver asks servers for their state over others of them, which carry no effect.
type watched struct {
	net.Conn
	watch  *watch
	effect bool // the command went over this one
}

// Write implements net.Conn. The driver writes one message whole.
func (c *watched) Write(p []byte) (int, error) {
	if changes(p) {
		if err := c.watch.admit(len(p)); err != nil {
			return 0, err
		}
		c.watch.note(func() { c.effect = true })
	}
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *watched) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.watch.note(func() {
		if !c.effect {
			return
		}
		c.watch.ended = time.Now()
		if n > 0 && c.watch.firstByte.IsZero() {
			c.watch.firstByte = c.watch.ended
		}
		c.watch.read += int64(n)
		if err != nil {
			c.watch.failure = egress.FailureOf(err)
		}
	})
	return n, err
}

// opMessage is the code of OP_MSG, in which every command travels. Nothing is compressed: no compressor is offered to the servers.
const opMessage = 2013

// changes reports whether a message is a command with an effect: the first member of a command's document is its name.
func changes(p []byte) bool {
	const header, flags, kind, length, kindOf = 16, 4, 1, 4, 1
	at := header + flags + kind + length + kindOf
	if len(p) <= at || binary.LittleEndian.Uint32(p[12:16]) != opMessage || p[header+flags] != 0 {
		return false
	}
	for i := at; i < len(p) && i < at+64; i++ {
		if p[i] == 0 {
			name := string(p[at:i])
			return name == "insert" || name == "update" || name == "delete"
		}
	}
	return false
}
