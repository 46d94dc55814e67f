package egress

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// A request is put together whole before a connection is looked for, so that it is handed over by one write: what is counted as written
// is then all of it or nothing.

var errUnwritable = errors.New("the request cannot be written as HTTP")

// agentName is how requests name their sender that do not say it themselves; some services answer nobody who is not named.
const agentName = "Countersign"

// keptRequest is the largest memory of a request worth keeping, in bytes.
const keptRequest = 64 << 10

var requests = sync.Pool{New: func() any { return new(rendered) }}

// rendered is a request as it is sent. Its memory is cleared before it serves again: the credential stood in it.
type rendered struct{ bytes []byte }

func (q *rendered) release() {
	if cap(q.bytes) > keptRequest {
		return
	}
	clear(q.bytes)
	q.bytes = q.bytes[:0]
	requests.Put(q)
}

// framed are the headers that say how a request is framed, which is decided here alone.
func framed(name string) bool {
	switch name {
	case "Host", "Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Keep-Alive", "Proxy-Connection":
		return true
	}
	return false
}

// render writes a request with its body. Zipped says that a compressed answer was offered to be taken.
func render(r *http.Request, last bool) (q *rendered, zipped bool, err error) {
	q = requests.Get().(*rendered)
	if err = q.head(r); err == nil {
		zipped = acceptsZip(r)
		if zipped {
			q.bytes = append(q.bytes, "Accept-Encoding: gzip\r\n"...)
		}
		if last {
			q.bytes = append(q.bytes, "Connection: close\r\n"...)
		}
		err = q.body(r)
	}
	if err != nil {
		q.release()
		return nil, false, err
	}
	return q, zipped, nil
}

// acceptsZip reports whether compression may be ours alone: the caller has said nothing about it and is sent the plain answer.
func acceptsZip(r *http.Request) bool {
	return r.Method != http.MethodHead && r.Header["Accept-Encoding"] == nil && r.Header["Range"] == nil
}

func (q *rendered) head(r *http.Request) error {
	host, target := r.Host, r.URL.RequestURI()
	if host == "" {
		host = r.URL.Host
	}
	if !httpguts.ValidHeaderFieldName(r.Method) || !httpguts.ValidHostHeader(host) || host == "" || !visible(target) {
		return errUnwritable
	}
	b := append(append(append(q.bytes, r.Method...), ' '), target...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	for name, values := range r.Header {
		if framed(http.CanonicalHeaderKey(name)) {
			continue
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return errUnwritable
			}
			b = append(append(append(append(b, name...), ": "...), strings.Trim(v, " \t")...), "\r\n"...)
		}
	}
	if r.Header["User-Agent"] == nil {
		b = append(b, "User-Agent: "+agentName+"\r\n"...)
	}
	q.bytes = b
	return nil
}

// visible reports whether a request's target holds nothing that would end it.
func visible(target string) bool {
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return false
		}
	}
	return true
}

func (q *rendered) body(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		if r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
			q.bytes = append(q.bytes, "Content-Length: 0\r\n"...)
		}
		q.bytes = append(q.bytes, "\r\n"...)
		return nil
	}
	if r.ContentLength <= 0 { // not known before it was read
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		q.length(int64(len(body)))
		q.bytes = append(q.bytes, body...)
		return nil
	}
	q.length(r.ContentLength)
	at := len(q.bytes)
	q.bytes = append(q.bytes, make([]byte, r.ContentLength)...)
	if _, err := io.ReadFull(r.Body, q.bytes[at:]); err != nil {
		return err
	}
	var more [1]byte
	if n, err := r.Body.Read(more[:]); n > 0 || err == nil {
		return errUnwritable // longer than it said
	}
	return nil
}

func (q *rendered) length(n int64) {
	q.bytes = append(strconv.AppendInt(append(q.bytes, "Content-Length: "...), n, 10), "\r\n\r\n"...)
}
