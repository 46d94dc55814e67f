package egress

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"net"
	"sync/atomic"
)

// body is the rest of an answer, read by its caller straight from the connection. With its proper end the connection is given back; closed
// before, or broken, the connection is closed with it. Close may come while a read waits.
type body struct {
	exchange *exchange
	chunked  bool
	left     int64 // of the length, or of the chunk under way; endless where the end of the connection is the end
	begun    bool  // a chunk's data was read, so that a line end follows it
	err      error
}

// endless is what is left of a body without a length.
const endless = math.MaxInt64

// Bounds of what chunks say about themselves.
const (
	maxChunkLine = 256
	maxTrailers  = 8 << 10
)

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.read(p)
	if err != nil {
		b.err = b.exchange.over(err)
	}
	return n, b.err
}

func (b *body) read(p []byte) (int, error) {
	if b.chunked && b.left == 0 {
		if err := b.nextChunk(); err != nil {
			return 0, err
		}
	}
	n, err := b.exchange.pipe.data(p[:min(int64(len(p)), b.left)])
	if b.left == endless {
		return n, err
	}
	if b.left -= int64(n); b.left == 0 && !b.chunked {
		return n, io.EOF
	}
	return n, within(err)
}

// nextChunk reads up to the data of the next chunk; io.EOF when the last one, and what may follow it, has come.
func (b *body) nextChunk() error {
	pipe := b.exchange.pipe
	if b.begun {
		if _, err := pipe.line(len("\r\n")); err != nil {
			return err
		}
	}
	line, err := pipe.line(maxChunkLine)
	if err != nil {
		return err
	}
	if b.left = chunkSize(line); b.left < 0 {
		return errMalformed
	}
	if b.begun = b.left > 0; b.begun {
		return nil
	}
	for room := maxTrailers; ; { // nobody asked for them
		line, err := pipe.line(room)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
		if _, _, ok := field(string(line)); !ok {
			return errMalformed
		}
		room -= len(line) + 2
	}
}

// chunkSize reads a chunk's size, hexadecimal and perhaps followed by extensions, which nobody knows; -1 where it is none.
func chunkSize(line []byte) int64 {
	size, extension, extended := bytes.Cut(line, []byte(";"))
	if extended {
		size = bytes.TrimRight(size, " \t")
	}
	if len(size) == 0 || len(size) > 15 || !printed(string(extension)) {
		return -1
	}
	n := int64(0)
	for _, c := range size {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		n = n<<4 | int64(c)
	}
	return n
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.exchange.abandon()
	return nil
}

// data takes bytes of a body: those that came before, then straight from the connection, unless only few are wanted at a time.
func (p *pipe) data(into []byte) (int, error) {
	if p.from == p.to {
		if len(into) >= len(p.in)/2 {
			return p.receive(into)
		}
		if err := p.fill(maxHeaderBytes); err != nil {
			return 0, err
		}
	}
	n := copy(into, p.in[p.from:p.to])
	p.from += n
	return n, nil
}

// line takes a line of at most most bytes, its CRLF included, and returns it without. It holds until the next read.
func (p *pipe) line(most int) ([]byte, error) {
	for seen := 0; ; {
		waiting := p.in[p.from:p.to]
		if n := bytes.IndexByte(waiting[seen:], '\n'); n >= 0 {
			if n += seen; n+1 > most || n == 0 || waiting[n-1] != '\r' {
				return nil, errMalformed
			}
			p.from += n + 1
			return waiting[:n-1], nil
		}
		if seen = len(waiting); seen >= most {
			return nil, errMalformed
		}
		if err := p.fill(maxHeaderBytes); err != nil {
			return nil, within(err)
		}
	}
}

// unzipped is a body that came compressed because we had offered to take it so. It is opened at the first read: until then nobody may
// have waited for it.
type unzipped struct {
	body io.ReadCloser
	zip  *gzip.Reader
	err  error
	done atomic.Bool // closed, perhaps while it is read
}

// Read implements io.Reader.
func (u *unzipped) Read(p []byte) (int, error) {
	if u.done.Load() {
		return 0, net.ErrClosed
	}
	if u.zip == nil && u.err == nil {
		u.zip, u.err = gzip.NewReader(u.body)
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.zip.Read(p)
}

// Close implements io.Closer.
func (u *unzipped) Close() error {
	u.done.Store(true)
	return u.body.Close()
}
