package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// index knows, for every key of a file, its line, and every decoded text with the line it stands on. Paths look like
// `setup.fields[0].name` and `tools.contacts_list.effect`; a segment that is not a bare key is quoted.
type index struct {
	lines  map[string]int
	keys   []keyAt
	texts  []textAt
	arrays map[string]int // how many tables [[path]] has so far
	starts []uint32       // offset of each line
}

type keyAt struct {
	segments []string // without list positions
	path     string
	line     int
}

type textAt struct {
	text string
	path string
	line int
}

// line of a path, or of the closest table around it; 1 when there is none.
func (x index) line(path string) int {
	for path != "" {
		if l, ok := x.lines[path]; ok {
			return l
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}

// has reports whether the file writes the field.
func (x index) has(path string) bool { _, ok := x.lines[path]; return ok }

// holds reports whether any field lies below a path prefix.
func (x index) holds(prefix string) bool {
	return slices.ContainsFunc(x.keys, func(k keyAt) bool { return strings.HasPrefix(k.path, prefix) })
}

// indexOf reads the positions out of a file that is known to be valid TOML.
func indexOf(data []byte) index {
	x := index{lines: map[string]int{}, arrays: map[string]int{}, starts: []uint32{0}}
	for i, b := range data {
		if b == '\n' {
			x.starts = append(x.starts, uint32(i+1))
		}
	}
	var p unstable.Parser
	p.Reset(data)
	var segments []string
	var path string
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			segments, path = x.header(n)
		case unstable.KeyValue:
			x.pair(n, segments, path)
		}
	}
	return x
}

// header enters [a.b] or [[a.b]] and returns where the following pairs belong.
func (x *index) header(n *unstable.Node) (segments []string, path string) {
	it := n.Key()
	for it.Next() {
		k := it.Node()
		segments = append(segments, string(k.Data))
		path = join(path, string(k.Data))
		line := x.row(k)
		x.mark(segments, path, line)
		switch {
		case n.Kind == unstable.ArrayTable && it.IsLast():
			i := x.arrays[path]
			x.arrays[path]++
			path = fmt.Sprintf("%s[%d]", path, i)
			x.lines[path] = line
		case x.arrays[path] > 0:
			path = fmt.Sprintf("%s[%d]", path, x.arrays[path]-1)
		}
	}
	return segments, path
}

func (x *index) pair(n *unstable.Node, segments []string, path string) {
	segments = append([]string(nil), segments...)
	line := 1
	for it := n.Key(); it.Next(); {
		k := it.Node()
		segments = append(segments, string(k.Data))
		path = join(path, string(k.Data))
		line = x.row(k)
		x.mark(segments, path, line)
	}
	x.value(n.Value(), segments, path, line)
}

func (x *index) value(v *unstable.Node, segments []string, path string, line int) {
	switch v.Kind {
	case unstable.String:
		if v.Raw.Length > 0 {
			line = x.row(v)
			x.lines[path] = min(line, x.lineOr(path, line))
		}
		x.texts = append(x.texts, textAt{string(v.Data), path, line})
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			x.pair(it.Node(), segments, path)
		}
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); i++ {
			x.value(it.Node(), segments, fmt.Sprintf("%s[%d]", path, i), line)
		}
	}
}

// row is the line a node starts on, from 1.
func (x *index) row(n *unstable.Node) int {
	i, found := slices.BinarySearch(x.starts, n.Raw.Offset)
	if found {
		return i + 1
	}
	return i
}

func (x *index) lineOr(path string, otherwise int) int {
	if l, ok := x.lines[path]; ok {
		return l
	}
	return otherwise
}

func (x *index) mark(segments []string, path string, line int) {
	if _, ok := x.lines[path]; !ok {
		x.lines[path] = line
		x.keys = append(x.keys, keyAt{append([]string(nil), segments...), path, line})
	}
}

// join appends a key to a path, quoted unless it is bare.
func join(path, key string) string {
	for _, r := range key {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			key = fmt.Sprintf("%q", key)
			break
		}
	}
	if key == "" {
		key = `""`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func toolPath(name string) string { return join("tools", name) }
