package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
)

// A message is read by one walk over its bytes, which accepts exactly what canonical.Check accepts (a test holds the two together) and
// keeps arguments as they are: building them as values, only to hand them on, would be most of the cost of a call.

// maxDepth is how deeply arrays and objects of a message may nest.
const maxDepth = 64

var (
	errSyntax = errors.New("it is no JSON text")
	errTwice  = errors.New("a member name occurs twice in one object")
	errDeep   = errors.New("it is nested too deeply")
	errText   = errors.New("a string is not valid text")
)

// fields are the members of one object in the order of the text, their names with escapes resolved.
type fields []field

type field struct{ name, value []byte }

func (f fields) get(name string) (json.RawMessage, bool) {
	for i := range f {
		if string(f[i].name) == name {
			return f[i].value, true
		}
	}
	return nil, false
}

func (f fields) text(name string) (string, bool) {
	raw, _ := f.get(name)
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// object reads one JSON object whole, and nothing after it. Ok is false where the text is good but no object.
func object(raw []byte) (members fields, ok bool, err error) {
	s := scanner{b: raw}
	if s.space(); s.peek() != '{' {
		err = s.value()
	} else {
		members, err = s.object()
		ok = true
	}
	if s.space(); err == nil && s.at != len(s.b) {
		err = errSyntax
	}
	return members, ok && err == nil, err
}

type scanner struct {
	b     []byte
	at    int
	depth int
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

func (s *scanner) peek() byte {
	if s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

// value walks over one value.
func (s *scanner) value() error {
	s.space()
	switch c := s.peek(); {
	case c == '{':
		_, err := s.object()
		return err
	case c == '[':
		return s.array()
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, w := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.b[s.at:], []byte(w)) {
			s.at += len(w)
			return nil
		}
	}
	return errSyntax
}

// enter begins an array or object and says whether it is empty.
func (s *scanner) enter(end byte) (empty bool, err error) {
	if s.depth++; s.depth > maxDepth {
		return false, errDeep
	}
	s.at++
	if s.space(); s.peek() == end {
		s.at++
		s.depth--
		return true, nil
	}
	return false, nil
}

// more goes on to the next item, or leaves.
func (s *scanner) more(end byte) (bool, error) {
	s.space()
	switch s.peek() {
	case ',':
		s.at++
		return true, nil
	case end:
		s.at++
		s.depth--
		return false, nil
	}
	return false, errSyntax
}

func (s *scanner) array() error {
	empty, err := s.enter(']')
	for more := !empty; more && err == nil; {
		if err = s.value(); err == nil {
			more, err = s.more(']')
		}
	}
	return err
}

func (s *scanner) object() (fields, error) {
	members := make(fields, 0, 8) // most objects are small
	empty, err := s.enter('}')
	for more := !empty; more && err == nil; {
		var f field
		if s.space(); s.peek() != '"' {
			return nil, errSyntax
		}
		if f.name, err = s.text(); err != nil {
			return nil, err
		}
		if s.space(); s.peek() != ':' {
			return nil, errSyntax
		}
		s.at++
		s.space()
		start := s.at
		if err = s.value(); err != nil {
			return nil, err
		}
		f.value = s.b[start:s.at]
		members = append(members, f)
		more, err = s.more('}')
	}
	if err != nil {
		return nil, err
	}
	return members, members.unique()
}

// unique refuses a name that occurs twice: which of the two counts depends on the reader, so that this gateway could check one and the
// upstream obey the other.
func (f fields) unique() error {
	if len(f) > 16 {
		names := make([][]byte, len(f))
		for i := range f {
			names[i] = f[i].name
		}
		slices.SortFunc(names, bytes.Compare)
		for i := 1; i < len(names); i++ {
			if bytes.Equal(names[i], names[i-1]) {
				return errTwice
			}
		}
		return nil
	}
	for i := range f {
		for j := range i {
			if bytes.Equal(f[i].name, f[j].name) {
				return errTwice
			}
		}
	}
	return nil
}

// text walks over a string and returns what it says; without escapes that is a part of the source.
func (s *scanner) text() ([]byte, error) {
	s.at++
	start, escaped, ascii := s.at, false, true
	for s.at < len(s.b) {
		switch c := s.b[s.at]; {
		case c == '"':
			inner := s.b[start:s.at]
			s.at++
			if !ascii && !utf8.Valid(inner) {
				return nil, errText
			}
			if escaped {
				return unescaped(s.b[start-1 : s.at])
			}
			return inner, nil
		case c == '\\':
			escaped = true
			s.at += 2
		case c < 0x20:
			return nil, errText
		default:
			ascii = ascii && c < utf8.RuneSelf
			s.at++
		}
	}
	return nil, errSyntax
}

// unescaped resolves the escapes of a quoted string, and refuses half of a surrogate pair, for which decoders put something else.
func unescaped(quoted []byte) ([]byte, error) {
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		return nil, errSyntax
	}
	for rest := quoted; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return []byte(out), nil
		}
		if rest[i+1] != 'u' {
			rest = rest[i+2:]
			continue
		}
		switch unit := rest[i+2 : i+6]; {
		case !surrogate(unit, "89abAB"):
			rest = rest[i+6:]
			if surrogate(unit, "cdefCDEF") {
				return nil, errText
			}
		case len(rest) < i+12 || rest[i+6] != '\\' || rest[i+7] != 'u' || !surrogate(rest[i+8:i+12], "cdefCDEF"):
			return nil, errText
		default:
			rest = rest[i+12:]
		}
	}
}

// surrogate reports whether four hexadecimal digits are D8…DB or DC…DF with what follows.
func surrogate(unit []byte, second string) bool {
	return (unit[0] == 'd' || unit[0] == 'D') && bytes.IndexByte([]byte(second), unit[1]) >= 0
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return errSyntax
	}
	if s.peek() == '.' {
		s.at++
		if !s.digits() {
			return errSyntax
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return errSyntax
		}
	}
	if c := s.peek(); c >= '0' && c <= '9' {
		return errSyntax
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.b) && s.b[s.at] >= '0' && s.b[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}
