package egress

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// An answer's head is read strictly: lines end in CRLF, a name is a token and stands before its colon, nothing is folded, and there is
// one way only in which the body can end. What net/http and a proxy in between could read differently is refused, not guessed.

// Bounds of one answer beyond the size of its head.
const (
	maxFields        = 256
	maxInformational = 5
)

// head is an answer before its body.
type head struct {
	status  int
	words   string // the status line after the version
	old     bool   // HTTP/1.0
	header  http.Header
	length  int64 // of the body; -1 where no header says it
	chunked bool
	closes  bool // the other side keeps the connection no longer
}

// parseHead reads a head with all its lines, the empty one included.
func parseHead(lines []byte) (head, error) {
	text := string(lines) // one copy, of which names and values are parts
	line, rest, ok := strings.Cut(text, "\r\n")
	h := head{length: -1}
	if !ok || !h.statusLine(line) {
		return head{}, errMalformed
	}
	n := strings.Count(rest, "\r\n") - 1 // the last line is the empty one
	if n < 0 || n > maxFields {
		return head{}, errMalformed
	}
	h.header = make(http.Header, n)
	values := make([]string, n)
	for i := range n {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := field(line)
		if !ok {
			return head{}, errMalformed
		}
		if before := h.header[name]; before != nil {
			h.header[name] = append(before, value)
			continue
		}
		values[i] = value
		h.header[name] = values[i : i+1 : i+1]
	}
	if rest != "\r\n" || !h.framing() {
		return head{}, errMalformed
	}
	return h, nil
}

// statusLine reads HTTP/1.1 200 and perhaps a reason.
func (h *head) statusLine(line string) bool {
	version, rest, ok := strings.Cut(line, " ")
	if !ok || version != "HTTP/1.1" && version != "HTTP/1.0" || len(rest) < 3 || len(rest) > 3 && rest[3] != ' ' {
		return false
	}
	for i := range 3 {
		if rest[i] < '0' || rest[i] > '9' {
			return false
		}
		h.status = h.status*10 + int(rest[i]-'0')
	}
	h.old, h.words = version == "HTTP/1.0", rest
	return h.status >= 100 && printed(rest)
}

// field splits a line of a header. A line that begins with white space would continue the one before it.
func field(line string) (name, value string, ok bool) {
	colon := strings.IndexByte(line, ':')
	if colon <= 0 {
		return "", "", false
	}
	for i := range colon {
		if !tokenByte[line[i]] {
			return "", "", false
		}
	}
	value = strings.Trim(line[colon+1:], " \t")
	return textproto.CanonicalMIMEHeaderKey(line[:colon]), value, printed(value)
}

func printed(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// tokenByte are the bytes of a name (RFC 9110).
var tokenByte = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// framing finds out how the body ends. Two ways at once, or one said twice, is how one answer is passed off as two.
func (h *head) framing() bool {
	lengths, encodings := h.header["Content-Length"], h.header["Transfer-Encoding"]
	if len(lengths)+len(encodings) > 1 {
		return false
	}
	if len(lengths) == 1 {
		if h.length = decimal(lengths[0]); h.length < 0 {
			return false
		}
	}
	if len(encodings) == 1 {
		if h.chunked = strings.EqualFold(encodings[0], "chunked"); !h.chunked || h.old {
			return false
		}
	}
	h.closes = h.old
	for _, v := range h.header["Connection"] {
		for option := range strings.SplitSeq(v, ",") {
			h.closes = h.closes || strings.EqualFold(strings.Trim(option, " \t"), "close")
		}
	}
	return true
}

// decimal is a length; -1 where it is none.
func decimal(s string) int64 {
	if s == "" || len(s) > 18 {
		return -1
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n
}

// bodiless reports whether an answer has no body, whatever its headers say.
func (h *head) bodiless(method string) bool {
	return method == http.MethodHead || h.status == http.StatusNoContent || h.status == http.StatusNotModified
}

// headEnd looks for the end of a head in b, of which the first seen bytes were looked at before. It is the length of the head, or 0
// while that has not come. A line end that is no CRLF, or a beginning that is no answer, is refused at once and not waited on.
func headEnd(b []byte, seen int) (int, error) {
	const version = "HTTP/1."
	if n := min(len(b), len(version)); string(b[:n]) != version[:n] {
		return 0, errMalformed
	}
	for i := seen; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0, nil
		}
		i += n + 1
		if i < 2 || b[i-2] != '\r' {
			return 0, errMalformed
		}
		if i >= 4 && b[i-3] == '\n' {
			return i, nil
		}
	}
}
