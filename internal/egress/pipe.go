package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// pipe is one open connection to the destination. No goroutine belongs to it: whoever exchanges a request for an answer reads and writes,
// and the deadline of the exchange is that of the connection.
type pipe struct {
	net.Conn
	raw   syscall.RawConn // below TLS; nil where there is none to look at
	look  func(fd uintptr) bool
	alive bool // what look found

	in       []byte // read from the connection
	from, to int    // the part of in that nobody has used

	watch  *Watch // of the exchange under way
	heard  bool   // something of its answer has come
	reused bool
	epoch  int       // of the pool, when it was opened
	idle   time.Time // since when
}

// firstRead is the memory a connection begins with; a head or chunk line that needs more makes it grow up to its bound.
const firstRead = 4 << 10

func newPipe(c net.Conn) *pipe {
	p := &pipe{Conn: c}
	lower := c
	if t, ok := c.(*tls.Conn); ok {
		lower = t.NetConn()
	}
	if s, ok := lower.(syscall.Conn); ok {
		p.raw, _ = s.SyscallConn() // without it nobody looks, and a connection serves once
	}
	p.look = func(fd uintptr) bool {
		var b [1]byte
		n, err := syscall.Read(int(fd), b[:])
		p.alive = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
		return true // in no case wait
	}
	return p
}

// quiet reports whether nothing has come since the last answer ended: neither the end of the connection nor bytes that nobody asked
// for, which the next request would take for its answer. It leaves the connection with the deadline.
func (p *pipe) quiet(deadline time.Time) bool {
	if p.raw == nil || p.from != p.to || p.secretly() || p.SetDeadline(deadline) != nil {
		return false
	}
	p.alive = false
	return p.raw.Read(p.look) == nil && p.alive
}

// secretly reports whether TLS holds bytes back that were deciphered with the last answer. Past its deadline a read gives what is there
// and waits for nothing.
func (p *pipe) secretly() bool {
	c, ok := p.Conn.(*tls.Conn)
	if !ok {
		return false
	}
	if c.SetReadDeadline(longAgo) != nil {
		return true
	}
	var b [1]byte
	n, err := c.Read(b[:])
	return n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}

// longAgo as a deadline ends at once what is under way.
var longAgo = time.Unix(1, 0)

// send writes a request by one write.
func (p *pipe) send(b []byte, before time.Time) error {
	if err := p.watch.admit(len(b), before); err != nil {
		return err
	}
	_, err := p.Write(b)
	return err
}

// receive reads from the connection and tells the record.
func (p *pipe) receive(b []byte) (int, error) {
	n, err := p.Read(b)
	if n > 0 && !p.heard {
		p.heard = true
		p.watch.firstByte()
	}
	return n, err
}

// fill reads more behind what was not used yet, in at most limit bytes of memory.
func (p *pipe) fill(limit int) error {
	if p.from > 0 {
		p.to = copy(p.in, p.in[p.from:p.to])
		p.from = 0
	}
	if p.to == len(p.in) {
		if p.to >= limit {
			return errMalformed
		}
		p.in = append(make([]byte, 0, min(limit, max(firstRead, 2*len(p.in)))), p.in...)
		p.in = p.in[:cap(p.in)]
	}
	n, err := p.receive(p.in[p.to:])
	p.to += n
	if n > 0 {
		return nil // what is wrong beyond it is met by the next one
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// within is an error inside of what had begun: there the end of the connection is no proper end.
func within(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// answer reads heads until that of the answer itself has come.
func (p *pipe) answer(r *http.Request) (head, error) {
	room := maxHeaderBytes
	for range maxInformational + 1 {
		n, err := p.headLength(room)
		if err != nil {
			return head{}, err
		}
		h, err := parseHead(p.in[p.from : p.from+n])
		if err != nil {
			return head{}, err
		}
		p.from, room = p.from+n, room-n
		if h.status >= 200 {
			return h, nil
		}
		if h.status == http.StatusSwitchingProtocols {
			return head{}, errMalformed
		}
	}
	return head{}, errMalformed
}

// headLength reads until a whole head is there.
func (p *pipe) headLength(room int) (int, error) {
	seen := 0
	for {
		n, err := headEnd(p.in[p.from:p.to], seen)
		if n > room || p.to-p.from >= room && n == 0 {
			return 0, errMalformed
		}
		if n > 0 || err != nil {
			return n, err
		}
		seen = p.to - p.from
		if err := p.fill(maxHeaderBytes); err != nil {
			return 0, within(err)
		}
	}
}

// open dials the destination by its rule.
func (d dialer) open(ctx context.Context) (*pipe, error) {
	address := net.JoinHostPort(d.destination.host, d.destination.port)
	dial := d.plain
	if d.destination.scheme == "https" {
		dial = d.tls
	}
	c, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newPipe(c), nil
}
