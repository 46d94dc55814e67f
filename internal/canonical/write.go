package canonical

import "slices"

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
