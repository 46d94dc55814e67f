package canonical

import (
	"encoding/json"
	"slices"
)

// decoded is what a value says.
func (v value) decoded() any {
	switch {
	case v.members != nil:
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			out[m.key] = m.value.decoded()
		}
		return out
	case v.items != nil:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = item.decoded()
		}
		return out
	}
	switch v.scalar[0] {
	case '"':
		p := parser{src: v.scalar}
		s, _ := p.text() // canonical: it reads
		return s
	case 't', 'f':
		return v.scalar[0] == 't'
	case 'n':
		return nil
	}
	return json.Number(v.scalar)
}

func (v value) append(out []byte) []byte {
	switch {
	case v.members != nil:
		return v.appendObject(out, nil)
	case v.items != nil:
		out = append(out, '[')
		for i, item := range v.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.append(out)
		}
		return append(out, ']')
	default:
		return append(out, v.scalar...)
	}
}

func (v value) appendObject(out []byte, without []string) []byte {
	out = append(out, '{')
	first := true
	for _, m := range v.members {
		if slices.Contains(without, m.key) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(appendString(out, m.key), ':')
		out = m.value.append(out)
	}
	return append(out, '}')
}

const hexDigits = "0123456789abcdef"

// appendString writes s as RFC 8785 does: only what must be escaped is, in its shortest form.
func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			if c < 0x20 {
				out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			} else {
				out = append(out, c)
			}
		}
	}
	return append(out, '"')
}
