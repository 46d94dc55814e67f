package canonical

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// value is a parsed text: a scalar as canonical bytes, or items, or members. Exactly one is set; empty arrays and objects are
// non-nil.
type value struct {
	scalar  []byte
	items   []value
	members []member
}

type member struct {
	key   string
	value value
}

type parser struct {
	src   []byte
	at    int
	depth int
}

func (p *parser) document() (value, error) {
	v, err := p.value(0)
	if err != nil {
		return v, err
	}
	p.space()
	if p.at != len(p.src) {
		return v, refuse("There is text after the end of the JSON value.", p.at)
	}
	return v, nil
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *parser) value(depth int) (value, error) {
	p.space()
	switch c := p.peek(); {
	case c == '{' || c == '[':
		if depth >= p.depth {
			return value{}, refuse("The JSON value is nested too deeply.", p.at)
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		if quoted := p.plain(); quoted != nil {
			return value{scalar: quoted}, nil
		}
		s, err := p.text()
		return value{scalar: appendString(nil, s)}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	default:
		return p.word()
	}
}

func (p *parser) word() (value, error) {
	for _, w := range [...]string{"true", "false", "null"} {
		if rest := p.src[p.at:]; len(rest) >= len(w) && string(rest[:len(w)]) == w {
			p.at += len(w)
			return value{scalar: []byte(w)}, nil
		}
	}
	return value{}, refuse("A JSON value is expected here.", p.at)
}

// number accepts the grammar of RFC 8259 and keeps the text as written.
func (p *parser) number() (value, error) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if !p.digits() {
		return value{}, refuse("A number needs a digit here.", p.at)
	}
	if p.peek() == '.' {
		p.at++
		if !p.digits() {
			return value{}, refuse("A number needs a digit after the point.", p.at)
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return value{}, refuse("A number needs a digit in its exponent.", p.at)
		}
	}
	if c := p.peek(); c >= '0' && c <= '9' {
		return value{}, refuse("A number may not start with a zero.", start)
	}
	return value{scalar: p.src[start:p.at]}, nil
}

func (p *parser) digits() bool {
	start := p.at
	for p.peek() >= '0' && p.peek() <= '9' {
		p.at++
	}
	return p.at > start
}

func (p *parser) array(depth int) (value, error) {
	p.at++
	v := value{items: []value{}}
	if p.space(); p.peek() == ']' {
		p.at++
		return v, nil
	}
	for {
		item, err := p.value(depth)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		more, err := p.more(']')
		if err != nil || !more {
			return v, err
		}
	}
}

func (p *parser) more(end byte) (bool, error) {
	p.space()
	switch p.peek() {
	case ',':
		p.at++
		return true, nil
	case end:
		p.at++
		return false, nil
	}
	return false, refuse("A comma or “"+string(rune(end))+"” is expected here.", p.at)
}

func (p *parser) object(depth int) (value, error) {
	p.at++
	v := value{members: []member{}}
	if p.space(); p.peek() == '}' {
		p.at++
		return v, nil
	}
	for {
		p.space()
		if p.peek() != '"' {
			return v, refuse("A member name in quotes is expected here.", p.at)
		}
		key, err := p.text()
		if err != nil {
			return v, err
		}
		if p.space(); p.peek() != ':' {
			return v, refuse("A colon is expected here.", p.at)
		}
		p.at++
		item, err := p.value(depth)
		if err != nil {
			return v, err
		}
		v.members = append(v.members, member{key, item})
		more, err := p.more('}')
		if err != nil {
			return v, err
		}
		if !more {
			return v, p.order(v.members)
		}
	}
}

// order sorts members as RFC 8785 does and refuses a name that occurs twice: which of the two counts depends on the reader, so
// the approver could be shown one and the provider obey the other.
func (p *parser) order(members []member) error {
	slices.SortFunc(members, func(a, b member) int { return compare(a.key, b.key) })
	for i := 1; i < len(members); i++ {
		if members[i].key == members[i-1].key {
			return refuse("A member name occurs twice in one object.", p.at)
		}
	}
	return nil
}

// compare orders names by their UTF-16 code units. Up to the first byte that is not ASCII those are the bytes.
func compare(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] >= utf8.RuneSelf || b[i] >= utf8.RuneSelf {
			return slices.Compare(utf16.Encode([]rune(a[i:])), utf16.Encode([]rune(b[i:])))
		}
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

// plain is a string whose source is its canonical form already, quotes included, as most are; nil where it is not.
func (p *parser) plain() []byte {
	for i := p.at + 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			from := p.at
			p.at = i + 1
			return p.src[from:p.at]
		case c == '\\' || c < 0x20 || c >= utf8.RuneSelf:
			return nil
		}
	}
	return nil
}

// text reads a string and resolves its escapes.
func (p *parser) text() (string, error) {
	if quoted := p.plain(); quoted != nil {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	p.at++
	out := make([]byte, 0, 16)
	for p.at < len(p.src) {
		c := p.src[p.at]
		switch {
		case c == '"':
			p.at++
			return string(out), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < 0x20:
			return "", refuse("A control character must be escaped.", p.at)
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.at++
		default:
			r, n := utf8.DecodeRune(p.src[p.at:])
			if r == utf8.RuneError && n == 1 {
				return "", refuse("The text is not valid UTF-8.", p.at)
			}
			out = append(out, p.src[p.at:p.at+n]...)
			p.at += n
		}
	}
	return "", refuse("A string does not end.", p.at)
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape() (rune, error) {
	start := p.at
	p.at++
	c := p.peek()
	p.at++
	if r, ok := escapes[c]; ok {
		return r, nil
	}
	if c != 'u' {
		return 0, refuse("There is no such escape.", start)
	}
	r, ok := p.hex4()
	if !ok {
		return 0, refuse("An escape needs four hexadecimal digits.", start)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if p.at+1 < len(p.src) && p.src[p.at] == '\\' && p.src[p.at+1] == 'u' {
		p.at += 2
		if low, ok := p.hex4(); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full, nil
			}
		}
	}
	return 0, refuse("Half of a surrogate pair stands alone.", start)
}

func (p *parser) hex4() (rune, bool) {
	if p.at+4 > len(p.src) {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.at : p.at+4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	p.at += 4
	return r, true
}
