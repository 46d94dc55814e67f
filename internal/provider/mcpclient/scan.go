package mcpclient

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"unicode/utf8"
)

// The answer to a call is not decoded: it is walked once, checked, and passed on as the bytes that came. Only the few members that
// decide something (result, error, isError, content) are looked at.

var errJSON = errors.New("the answer is not valid JSON")

// maxDepth bounds how deeply an answer may nest.
const maxDepth = 256

// A scanner walks one text. The first walk checks every byte; later ones over parts of the same text may trust it and only look for
// the ends of things.
type scanner struct {
	b       []byte
	at      int
	depth   int
	trusted bool
	// unwanted says that somewhere a member was met that an agent must not see.
	unwanted bool
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\r' || s.b[s.at] == '\t') {
		s.at++
	}
}

func (s *scanner) next() byte {
	s.space()
	if s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

// end reports whether nothing follows.
func (s *scanner) end() bool { return s.next() == 0 && s.at == len(s.b) }

// skip walks over one value and checks it.
func (s *scanner) skip() error {
	switch c := s.next(); {
	case c == '"':
		return s.text()
	case c == '{':
		return s.object(func([]byte) error { return s.skip() })
	case c == '[':
		return s.nested('[', ']', s.skip)
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	default:
		return s.word()
	}
}

func (s *scanner) text() error {
	if s.trusted {
		return s.trustedText()
	}
	start, ascii := s.at+1, true
	i, b := start, s.b
	for {
		n, plain := plainRun(b[i:])
		i, ascii = i+n, ascii && plain
		if i >= len(b) || b[i] < 0x20 {
			return errJSON
		}
		if b[i] == '"' {
			s.at = i + 1
			if !ascii && !utf8.Valid(b[start:i]) {
				return errJSON
			}
			return nil
		}
		if n = escapeLength(b[i:]); n == 0 {
			return errJSON
		}
		i += n
	}
}

// plainRun is how many bytes at the start of b need no attention inside a string, eight at a time: no quote, no backslash, no
// control character. Ascii is false where some of them are not.
func plainRun(b []byte) (n int, ascii bool) {
	const (
		ones = 0x0101010101010101
		tops = 0x8080808080808080
	)
	var high uint64
	for n+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & tops
		if found != 0 {
			// The lowest mark is exact; a borrow can only make false ones above it.
			k := bits.TrailingZeros64(found) / 8
			return n + k, high|w&(1<<(8*k)-1)&tops == 0
		}
		high |= w & tops
		n += 8
	}
	for n < len(b) && b[n] >= 0x20 && b[n] != '"' && b[n] != '\\' {
		high |= uint64(b[n]) & 0x80
		n++
	}
	return n, high == 0
}

func (s *scanner) trustedText() error {
	for i := s.at + 1; ; {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			return errJSON
		}
		i += n + 1
		slashes := 0
		for j := i - 2; j > s.at && s.b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			s.at = i
			return nil
		}
	}
}

func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return errJSON
	}
	if s.peek() == '.' {
		s.at++
		if !s.digits() {
			return errJSON
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return errJSON
		}
	}
	return nil
}

func (s *scanner) peek() byte {
	if s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

func (s *scanner) digits() bool {
	start := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > start
}

func (s *scanner) word() error {
	for _, w := range [...]string{"true", "false", "null"} {
		if rest := s.b[s.at:]; len(rest) >= len(w) && string(rest[:len(w)]) == w {
			s.at += len(w)
			return nil
		}
	}
	return errJSON
}

// object walks an object. Visit gets each key with its escapes resolved, and walks the value itself.
func (s *scanner) object(visit func(key []byte) error) error {
	return s.nested('{', '}', func() error {
		if s.next() != '"' {
			return errJSON
		}
		start := s.at
		if err := s.text(); err != nil {
			return err
		}
		key, err := unquote(s.b[start:s.at])
		if err != nil {
			return err
		}
		if s.next() != ':' {
			return errJSON
		}
		s.at++
		s.unwanted = s.unwanted || unwanted(key)
		return visit(key)
	})
}

// members walks an object and hands out each value as it stands.
func (s *scanner) members(visit func(key, value []byte) error) error {
	return s.object(func(key []byte) error {
		value, err := s.value()
		if err != nil {
			return err
		}
		return visit(key, value)
	})
}

// elements walks an array.
func (s *scanner) elements(visit func(value []byte) error) error {
	return s.nested('[', ']', func() error {
		value, err := s.value()
		if err != nil {
			return err
		}
		return visit(value)
	})
}

func (s *scanner) value() ([]byte, error) {
	s.space()
	start := s.at
	if err := s.skip(); err != nil {
		return nil, err
	}
	return s.b[start:s.at], nil
}

func (s *scanner) nested(open, closed byte, item func() error) error {
	if s.next() != open || s.depth >= maxDepth {
		return errJSON
	}
	s.at++
	s.depth++
	defer func() { s.depth-- }()
	if s.next() == closed {
		s.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.at++
		case closed:
			s.at++
			return nil
		default:
			return errJSON
		}
	}
}

// unquote resolves the escapes of a quoted string; the usual one without escapes costs nothing.
func unquote(quoted []byte) ([]byte, error) {
	inner := quoted[1 : len(quoted)-1]
	for _, c := range inner {
		if c == '\\' {
			var text string
			if err := json.Unmarshal(quoted, &text); err != nil {
				return nil, errJSON
			}
			return []byte(text), nil
		}
	}
	return inner, nil
}

// members walks b, which was checked before.
func members(b []byte, visit func(key, value []byte) error) error {
	s := scanner{b: b, trusted: true}
	return s.members(visit)
}

// elements walks b, which was checked before.
func elements(b []byte, visit func(value []byte) error) error {
	s := scanner{b: b, trusted: true}
	return s.elements(visit)
}
