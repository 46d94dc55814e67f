package gitgateway

import (
	"bufio"
	"errors"
	"io"
	"strconv"
)

// Bounds of one pkt-line, header included.
const (
	maxPkt     = 65520
	pktHeader  = 4
	maxPayload = maxPkt - pktHeader
)

// pktKind tells data from the lines without any.
type pktKind uint8

const (
	pktData      pktKind = iota
	pktFlush             // 0000
	pktDelim             // 0001
	pktEnd               // 0002
	pktMalformed         // not lower-case hex, or a length that no pkt-line has
)

var errPkt = errors.New("not a pkt-line")

// readPkt reads one pkt-line. Git takes upper-case hex too; here it is malformed, so that every line has one spelling.
func readPkt(r io.Reader) (pktKind, []byte, error) {
	var head [pktHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return pktMalformed, nil, err
	}
	n := 0
	for _, c := range head {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		default:
			return pktMalformed, nil, errPkt
		}
	}
	switch {
	case n == 0:
		return pktFlush, nil, nil
	case n == 1:
		return pktDelim, nil, nil
	case n == 2:
		return pktEnd, nil, nil
	case n <= pktHeader || n > maxPkt:
		return pktMalformed, nil, errPkt
	}
	line := make([]byte, n-pktHeader)
	if _, err := io.ReadFull(r, line); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return pktMalformed, nil, err
	}
	return pktData, line, nil
}

// appendPkt adds a data line of at most maxPayload bytes.
func appendPkt(out []byte, payload string) []byte {
	const digits = "0123456789abcdef"
	n := len(payload) + pktHeader
	out = append(out, digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15])
	return append(out, payload...)
}

func appendFlush(out []byte) []byte { return append(out, "0000"...) }

func appendDelim(out []byte) []byte { return append(out, "0001"...) }

// The channels of a side band.
const (
	bandData     = 1
	bandProgress = 2
	bandError    = 3
)

// sideband reads the data channel of a side-band stream, and hands what is said on the others to tell.
type sideband struct {
	in   *bufio.Reader
	left []byte
	tell func(band byte, text []byte)
	err  error
}

// Read implements io.Reader. The end is the flush of the stream; an end without one is unexpected.
func (s *sideband) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		kind, line, err := readPkt(s.in)
		switch {
		case err != nil:
			s.err = err
			if errors.Is(err, io.EOF) {
				s.err = io.ErrUnexpectedEOF
			}
		case kind == pktFlush || kind == pktEnd:
			s.err = io.EOF
		case kind != pktData:
			s.err = errPkt
		case line[0] == bandData:
			s.left = line[1:]
		case line[0] == bandProgress || line[0] == bandError:
			if s.tell != nil {
				s.tell(line[0], line[1:])
			}
			if line[0] == bandError {
				s.err = errors.New("the server ended the stream with an error")
			}
		default:
			s.err = errors.New("channel " + strconv.Itoa(int(line[0])) + " of a side band")
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}
