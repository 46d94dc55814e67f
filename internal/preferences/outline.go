package preferences

import (
	"bytes"
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// span is a range of bytes of the text.
type span struct{ from, to int }

func (s span) within(o span) bool { return s.from >= o.from && s.to <= o.to }

// leaf is one value of the text with the place where it stands. An inline table is a leaf, and so is each value in it.
type leaf struct {
	path    []string
	kind    unstable.Kind
	text    string // of a string or number, decoded
	items   []leaf // of an array
	line    int
	whole   span // key and value
	value   span
	top     span // the expression it stands in: whole, where it is not inside an inline table
	section int  // index of its header; -1 above the first one
}

func (l leaf) inline() bool { return l.whole != l.top }

// header is a [section] of the text; comments and blank lines before the next one belong to neither.
type header struct {
	path  []string
	line  int
	whole span // the line of the header, without its comment
	array bool // [[section]]
}

// remark is a comment.
type remark struct {
	at   span
	text string
}

// deepest is how many parts of a path are kept: one more than the schema has, so that a path that goes on is known to be wrong. A text of
// endless paths would otherwise cost the square of its length.
const deepest = 6

// outline is where everything stands in a text that is well-formed TOML.
type outline struct {
	text    string
	headers []header
	leaves  []leaf
	remarks []remark
	lines   []int // offset of each line
}

func outlineOf(text string) outline {
	o := outline{text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			o.lines = append(o.lines, i+1)
		}
	}
	p := unstable.Parser{KeepComments: true}
	p.Reset([]byte(text))
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			o.section(n)
		case unstable.KeyValue:
			var base []string
			if len(o.headers) > 0 {
				base = o.headers[len(o.headers)-1].path
			}
			o.keyValue(n, base, rangeOf(n.Raw))
		}
		o.comments(n)
	}
	return o
}

func rangeOf(r unstable.Range) span { return span{int(r.Offset), int(r.Offset + r.Length)} }

// line is the number of the line an offset stands in, from 1.
func (o *outline) line(at int) int {
	i, found := slices.BinarySearch(o.lines, at)
	if found {
		return i + 1
	}
	return i
}

func (o *outline) section(n *unstable.Node) {
	path, keys := keyOf(n)
	from := bytes.LastIndexByte([]byte(o.text[:keys.from]), '[')
	if n.Kind == unstable.ArrayTable {
		from--
	}
	to := keys.to + bytes.IndexByte([]byte(o.text[keys.to:]), ']') + 1
	if n.Kind == unstable.ArrayTable {
		to++
	}
	o.headers = append(o.headers, header{path: path, line: o.line(from), whole: span{from, to}, array: n.Kind == unstable.ArrayTable})
}

// keyOf is a possibly dotted key, with the range from its first part to its last.
func keyOf(n *unstable.Node) (path []string, at span) {
	for it := n.Key(); it.Next(); {
		k := it.Node()
		if k.Kind != unstable.Key {
			break
		}
		r := rangeOf(k.Raw)
		if path == nil {
			at.from = r.from
		}
		at.to = r.to
		if len(path) < deepest {
			path = append(path, string(k.Data))
		}
	}
	return path, at
}

func (o *outline) keyValue(n *unstable.Node, base []string, top span) {
	path, key := keyOf(n)
	whole := rangeOf(n.Raw)
	// go-toml counts blanks after a value inside a table to it; they belong to the line.
	value := span{key.to, whole.to}
	for value.from < value.to && bytes.IndexByte([]byte(" \t="), o.text[value.from]) >= 0 {
		value.from++
	}
	path = slices.Concat(base, path)
	l := leaf{
		path: path[:min(len(path), deepest)], kind: n.Value().Kind, text: string(n.Value().Data), line: o.line(key.from),
		whole: whole, value: value, top: top, section: len(o.headers) - 1,
	}
	if l.kind == unstable.Array {
		l.items = o.items(n.Value())
	}
	o.leaves = append(o.leaves, l)
	if l.kind != unstable.InlineTable || len(l.path) == deepest {
		return
	}
	for it := n.Value().Children(); it.Next(); {
		if it.Node().Kind == unstable.KeyValue {
			o.keyValue(it.Node(), l.path, top)
		}
	}
}

func (o *outline) items(n *unstable.Node) []leaf {
	var out []leaf
	for it := n.Children(); it.Next(); {
		c := it.Node()
		if c.Kind == unstable.Comment {
			continue
		}
		at := rangeOf(c.Raw)
		out = append(out, leaf{kind: c.Kind, text: string(c.Data), line: o.line(at.from), whole: at})
	}
	return out
}

// comments gathers those of an expression: beside it, and inside its value.
func (o *outline) comments(n *unstable.Node) {
	for ; n != nil && n.Valid(); n = n.Next() {
		o.within(n)
	}
}

func (o *outline) within(n *unstable.Node) {
	if n.Kind == unstable.Comment {
		o.remarks = append(o.remarks, remark{rangeOf(n.Raw), string(n.Data)})
	}
	for it := n.Children(); it.Next(); {
		o.within(it.Node())
	}
}

// find is the leaf at a path.
func (o *outline) find(path []string) (leaf, bool) {
	i := slices.IndexFunc(o.leaves, func(l leaf) bool { return slices.Equal(l.path, path) })
	if i < 0 {
		return leaf{}, false
	}
	return o.leaves[i], true
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}
