package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"testing"
	"time"
)

// FuzzAnswer holds our reader to net/http's: whatever of an answer ours takes, that one takes too, and understands the same. Ours may
// refuse more, and does.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		okAnswer, okAnswer + okAnswer, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nto the end", "HTTP/1.1 200 OK\r\n\r\nto the end",
		"HTTP/1.1 100 Continue\r\n\r\n" + okAnswer, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\no\r\n01\r\nk\r\n0\r\nX-Trailer: t\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close, x\r\nx-a:  b \r\nX-A: c\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200\r\nContent-Length : 2\r\n\r\nok",
	} {
		f.Add([]byte(seed), 1, false)
		f.Add([]byte(seed), 1000, true)
	}
	f.Fuzz(func(t *testing.T, sent []byte, piece int, head bool) {
		method := http.MethodPost
		if head {
			method = http.MethodHead
		}
		r, err := http.NewRequest(method, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &script{rest: sent, piece: max(1, piece)}
		ours, body, unread, err := read(r, c)
		if err != nil {
			return
		}
		all := bufio.NewReader(bytes.NewReader(sent))
		theirs, err := http.ReadResponse(all, r)
		for err == nil && theirs.StatusCode < 200 {
			theirs, err = http.ReadResponse(all, r)
		}
		if err != nil {
			t.Fatalf("%q is taken, and is none: %v", sent, err)
		}
		want, err := io.ReadAll(theirs.Body)
		if err != nil || !bytes.Equal(body, want) || ours.StatusCode != theirs.StatusCode || ours.Status != theirs.Status || ours.ContentLength != theirs.ContentLength && len(theirs.TransferEncoding) == 0 {
			t.Fatalf("%q is taken for %d %d %q, and is %d %d %q, %v", sent, ours.StatusCode, ours.ContentLength, body, theirs.StatusCode, theirs.ContentLength, want, err)
		}
		sameHeader(t, ours.Header, theirs.Header)
		if unread != all.Buffered() || unread > 0 && !c.closed && unread > len(c.rest) || theirs.Close && !c.closed {
			t.Fatalf("%q leaves %d bytes behind, and should leave %d; closed: %t", sent, unread, all.Buffered(), c.closed)
		}
	})
}

// sameHeader compares what net/http leaves of a header; it moves what frames the body elsewhere, and makes a Cache-Control of a Pragma.
func sameHeader(t *testing.T, ours, theirs http.Header) {
	t.Helper()
	for name, values := range theirs {
		if name != "Cache-Control" && !reflect.DeepEqual(ours[name], values) {
			t.Fatalf("%s is %q, and should be %q", name, ours[name], values)
		}
	}
	for name := range ours {
		if theirs[name] == nil && name != "Transfer-Encoding" && name != "Trailer" && name != "Connection" {
			t.Fatalf("there is no %s", name)
		}
	}
}

// read reads an answer whole, and says how much of what came it left.
func read(r *http.Request, c *script) (*http.Response, []byte, int, error) {
	w := &wire{timeout: time.Minute, pool: newPool()}
	if err := w.pool.enter(context.Background(), time.Now().Add(time.Minute)); err != nil {
		return nil, nil, 0, err
	}
	p := newPipe(c)
	p.watch = new(Watch)
	x := &exchange{wire: w, pipe: p, ctx: context.Background()}
	h, err := p.answer(r)
	if err != nil {
		return nil, nil, 0, err
	}
	x.keep = !h.closes
	resp := x.response(r, h)
	body, err := io.ReadAll(resp.Body)
	return resp, body, p.to - p.from + len(c.rest), err
}

// script is a connection on which an answer comes in pieces.
type script struct {
	net.Conn
	rest   []byte
	piece  int
	closed bool
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.rest[:min(len(s.rest), s.piece)])
	s.rest = s.rest[n:]
	return n, nil
}

func (s *script) Close() error {
	s.closed = true
	return nil
}
func (s *script) SetDeadline(time.Time) error { return nil }
