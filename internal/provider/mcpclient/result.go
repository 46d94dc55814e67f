package mcpclient

import (
	"bytes"
	"encoding/json"

	"countersign/internal/provider"
)

type flag uint8

const (
	flagFalse flag = iota // false, null or absent
	flagTrue
	flagOdd // anything else: not a success
)

// toolResult is a tool result as spans of the answer.
type toolResult struct {
	size       int
	items      [][]byte // of content
	structured []byte   // nil: none
	errorFlag  flag
	kind       []byte // resultType, quoted; nil: none
	clean      bool   // nothing unwanted is in it
	odd        bool   // JSON, but not a tool result
}

// result walks the result of any answer and notes what a tool result consists of, in the one walk that checks the text.
func (s *scanner) result(r *toolResult) ([]byte, error) {
	if s.next() != '{' {
		r.odd = true
		return s.value()
	}
	start := s.at
	var seen [4]bool
	once := func(i int) { r.odd, seen[i] = r.odd || seen[i], true }
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "content":
			once(0)
			return s.content(r)
		case "structuredContent":
			once(1)
			if r.structured, err = s.value(); string(r.structured) == "null" {
				r.structured = nil
			}
		case "isError":
			once(2)
			var value []byte
			value, err = s.value()
			r.errorFlag = flagOf(value)
		case "resultType":
			once(3)
			r.kind, err = s.value()
		default:
			err = s.skip()
		}
		return err
	})
	r.size = s.at - start
	return s.b[start:s.at], err
}

func (s *scanner) content(r *toolResult) error {
	switch s.next() {
	case '[':
		return s.elements(func(item []byte) error {
			r.odd = r.odd || item[0] != '{'
			r.items = append(r.items, item)
			return nil
		})
	case 'n': // null is as good as absent
	default:
		r.odd = true
	}
	return s.skip()
}

// checked returns the tool result without what an agent must not see, or says that it is none.
func (a *answer) checked() (toolResult, error) {
	r := a.tool
	if r.odd {
		return r, errAnswer
	}
	if r.clean {
		return r, nil
	}
	for i, item := range r.items {
		var err error
		if r.items[i], err = cleanItem(item); err != nil {
			return r, err
		}
	}
	return r, nil
}

func flagOf(value []byte) flag {
	switch string(value) {
	case "true":
		return flagTrue
	case "false", "null":
		return flagFalse
	}
	return flagOdd
}

// final reports whether this is the result itself and not a question back or a handle of unfinished work.
func (r toolResult) final() bool { return r.kind == nil || string(r.kind) == `"complete"` }

// unwanted are the members that do not reach an agent: _meta is a channel past the reviewed definition, and icons are addresses
// that a client would fetch.
func unwanted(key []byte) bool { return string(key) == "_meta" || string(key) == "icons" }

// cleanItem drops what is unwanted from a content item and from the resource embedded in it.
func cleanItem(item []byte) ([]byte, error) {
	return rebuild(item, func(key, value []byte) ([]byte, error) {
		switch {
		case unwanted(key):
			return nil, nil
		case string(key) == "resource" && value[0] == '{':
			return rebuild(value, func(key, value []byte) ([]byte, error) {
				if unwanted(key) {
					return nil, nil
				}
				return value, nil
			})
		}
		return value, nil
	})
}

// rebuild writes an object again with other values; nil leaves a member out.
func rebuild(object []byte, change func(key, value []byte) ([]byte, error)) ([]byte, error) {
	out := append(make([]byte, 0, len(object)), '{')
	err := members(object, func(key, value []byte) error {
		value, err := change(key, value)
		if err != nil || value == nil {
			return err
		}
		name, err := json.Marshal(string(key))
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
		return nil
	})
	return append(out, '}'), err
}

// text is the text of the result, for the reviewed patterns of definite errors.
func (r toolResult) text() string {
	var b bytes.Buffer
	for _, item := range r.items {
		if t, ok := textOf(item); ok {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(t)
		}
	}
	return b.String()
}

func textOf(item []byte) (string, bool) {
	var kind, text []byte
	_ = members(item, func(key, value []byte) error {
		switch string(key) {
		case "type":
			kind = value
		case "text":
			text = value
		}
		return nil
	})
	if string(kind) != `"text"` {
		return "", false
	}
	var s string
	return s, json.Unmarshal(text, &s) == nil
}

// deliver writes the result anew from what an agent may see, in at most limit bytes.
func (r toolResult) deliver(limit int) (provider.Result, error) {
	out := provider.Result{IsError: r.errorFlag != flagFalse, Size: r.size}
	if r.length() > limit {
		bounded, err := r.within(limit)
		if err != nil {
			return out, err
		}
		r, out.Bounded = bounded, true
	}
	out.Raw = r.write()
	return out, nil
}

// frame is what write adds around items and structured content, at most.
const frame = len(`{"content":[],"structuredContent":,"isError":true}`)

func (r toolResult) length() int {
	n := frame + len(r.structured) + len(r.items)
	for _, item := range r.items {
		n += len(item)
	}
	return n
}

func (r toolResult) write() json.RawMessage {
	out := append(make([]byte, 0, r.length()), `{"content":[`...)
	for i, item := range r.items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, ']')
	if r.structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.structured...)
	}
	if r.errorFlag != flagFalse {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}')
}
