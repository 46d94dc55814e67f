package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unknownKey marks the faults after which the file is not judged further: its words would be read as something they are not.
const unknownKey = "?"

// shape is one place of a file: the fields a table may have (nil for a value), or the one shape of every entry of a free table.
type shape struct {
	fields map[string]*shape
	each   *shape // names are free, entries are not: [tools.<name>]
	free   bool   // everything below is data: probe arguments
	list   bool   // there may be several: [[auth]]
}

// fileShape is read off the structs, so that a field cannot exist in one place only.
var fileShape = shapeOf(reflect.TypeFor[file]())

func shapeOf(t reflect.Type) *shape {
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.Slice:
		s := *shapeOf(t.Elem())
		s.list = true
		return &s
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return &shape{free: true}
		}
		return &shape{each: shapeOf(t.Elem())}
	case reflect.Struct:
		s := &shape{fields: map[string]*shape{}}
		for _, f := range reflect.VisibleFields(t) {
			if tag := f.Tag.Get("toml"); tag != "" && tag != "-" {
				s.fields[tag] = shapeOf(f.Type)
			}
		}
		return s
	}
	return &shape{}
}

// FieldPaths lists every field a file may have, sorted: "key", "setup.fields.name", "tools.<name>.effect". A table whose content is
// data ends in ".<argument>".
func FieldPaths() []string {
	var out []string
	var walk func(s *shape, path string)
	walk = func(s *shape, path string) {
		switch {
		case s.each != nil:
			walk(s.each, path+".<name>")
		case s.free:
			out = append(out, path+".<argument>")
		case s.fields == nil:
			out = append(out, path)
		}
		for name, f := range s.fields {
			walk(f, strings.TrimPrefix(path+"."+name, "."))
		}
	}
	walk(fileShape, "")
	slices.Sort(out)
	return out
}

// executable names what a manifest might try to say about running or reaching something. Each is refused with the reason instead
// of "unknown", because whoever wrote it expected it to work.
var executable = []string{
	"command", "commands", "cmd", "args", "argv", "exec", "executable", "binary", "bin", "script", "shell", "run", "entrypoint",
	"package", "packages", "module", "npm", "npx", "pip", "uvx", "image", "docker", "container",
	"path", "cwd", "workdir", "working_directory", "file",
	"env", "environment", "env_vars", "envs",
	"url", "uri", "endpoint", "endpoints", "host", "address", "base_url", "server_url", "headers", "proxy", "token_url", "authorize_url",
}

// keys judges every key of the file against its shape. go-toml matches field names without regard to case; this does not, so that
// "Effect" and "effect" cannot both be there.
func (c *check) keys() {
	for _, k := range c.index.keys {
		s := fileShape
		for i, segment := range k.segments {
			if s.free {
				break
			}
			if s.each != nil {
				s = s.each
				continue
			}
			next, ok := s.fields[segment]
			if !ok {
				if i == len(k.segments)-1 { // deeper keys repeat what the first said
					c.unknown(k, segment, s)
				}
				break
			}
			s = next
			if i == len(k.segments)-1 && s.list && s.fields != nil && c.index.holds(k.path+".") {
				c.row(k.line, unknownKey, "“"+k.path+"” is a single table; there may be several.", "Write [["+strings.Join(k.segments, ".")+"]].")
			}
		}
	}
}

// shapeAt is the shape of a path of bare segments; nil when there is none.
func shapeAt(segments []string) *shape {
	s := fileShape
	for _, segment := range segments {
		switch {
		case s.each != nil:
			s = s.each
		case s.fields[segment] != nil:
			s = s.fields[segment]
		default:
			return nil
		}
	}
	return s
}

func (c *check) unknown(k keyAt, segment string, s *shape) {
	if slices.Contains(executable, strings.ToLower(segment)) {
		c.row(k.line, unknownKey, "“"+k.path+"” would say what to run or where to send; a catalog must not be able to make the server do either.",
			"Remove it: what may be executed or called is Go, in internal/registry/table.go, and “runtime” names its key.")
		return
	}
	next := "Remove it; catalog/README.md lists every field."
	if near := nearest(segment, s); near != "" {
		next = "Write “" + near + "” if that is what was meant; catalog/README.md lists every field."
	}
	c.row(k.line, unknownKey, "“"+k.path+"” is not a field of a manifest.", next)
}

// has reports whether a fault of this path was found.
func (c *check) has(path string) bool {
	for _, f := range c.faults {
		if f.Field == path {
			return true
		}
	}
	return false
}

// nearest is the field one or two slips away from what was written, or nothing.
func nearest(word string, s *shape) string {
	return closest(strings.ToLower(word), slices.Collect(maps.Keys(s.fields)))
}

// closest is the one of several words that is one or two slips away from what was written, or nothing.
func closest(word string, among []string) string {
	best, found := 3, ""
	for _, name := range among {
		if d := distance(word, name); d < best || d == best && found != "" && name < found {
			best, found = d, name
		}
	}
	if best >= len(word) {
		return ""
	}
	return found
}

// distance is the Levenshtein distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
