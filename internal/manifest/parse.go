package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"countersign/internal/fault"
	"countersign/internal/registry"
	"countersign/internal/unseen"
)

// MaxSize bounds one file, in bytes. The largest real one is a tenth of it.
const MaxSize = 64 << 10

// file is what a catalog file holds: a manifest, and its tools by name.
type file struct {
	Manifest
	Tools map[string]ToolPolicy `toml:"tools"`
}

// Parse reads one catalog file. Name is its path, used for the key rule and in sentences. The error is a fault.List with every
// violation found, in file order, each one saying file, line, what is wrong and what to do.
func Parse(name string, data []byte, reg registry.Table) (Manifest, error) {
	c := &check{file: name, reg: reg}
	if c.text(data); len(c.faults) > 0 {
		return Manifest{}, c.err()
	}
	c.secretLines(data)
	if !c.decode(data) {
		return Manifest{}, c.err()
	}
	for _, rule := range rules {
		rule(c)
	}
	if err := c.err(); err != nil {
		return Manifest{}, err
	}
	return c.m, nil
}

// KeyOf is the key a file must carry: its name without folder and .toml.
func KeyOf(name string) string { return strings.TrimSuffix(path.Base(name), ".toml") }

// check collects what is wrong with one file.
type check struct {
	file   string
	reg    registry.Table
	m      Manifest
	index  index
	faults fault.List
	rows   []int // of each fault, for the final order
}

// at adds a fault about a field; its line is that of the field, or of the closest table around it when it is missing.
func (c *check) at(path, what, next string) { c.row(c.index.line(path), path, what, next) }

func (c *check) row(line int, path, what, next string) {
	f := fault.New(fault.Invalid, fault.CodeInvalid, unseen.Shown(fmt.Sprintf("%s:%d: %s", c.file, line, what)), next)
	f.Field = path
	c.faults, c.rows = append(c.faults, f), append(c.rows, line)
}

// err is every fault in file order, without repetitions.
func (c *check) err() error {
	order := make([]int, len(c.faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.rows[a] - c.rows[b] })
	var out fault.List
	seen := map[string]bool{}
	for _, i := range order {
		if !seen[c.faults[i].What] {
			seen[c.faults[i].What] = true
			out = append(out, c.faults[i])
		}
	}
	return out.Err()
}

// text refuses what a person reviewing the file would not see as it is.
func (c *check) text(data []byte) {
	switch {
	case len(data) > MaxSize:
		c.row(1, "", fmt.Sprintf("The file has %d bytes; a manifest has at most %d.", len(data), MaxSize), "Shorten its texts; a manifest describes one integration.")
	case !utf8.Valid(data):
		line := 1
		for i := 0; i < len(data); {
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			i += n
		}
		c.row(line, "", "The file is not UTF-8 here.", "Save it as UTF-8.")
	default:
		for i, l := range strings.Split(string(data), "\n") {
			c.seen(i+1, strings.TrimSuffix(l, "\r"))
		}
	}
}

// texts refuses the same in what the file means: "\u200b" is as invisible as the character itself.
func (c *check) texts() {
	for _, t := range c.index.texts {
		c.seen(t.line, strings.ReplaceAll(strings.ReplaceAll(t.text, "\r\n", " "), "\n", " "))
		c.secretIn(t.text, t.line)
	}
	for _, k := range c.index.keys {
		c.seen(k.line, k.segments[len(k.segments)-1])
		c.secretIn(k.segments[len(k.segments)-1], k.line)
	}
}

func (c *check) seen(line int, text string) {
	text = strings.ReplaceAll(text, "\t", " ")
	if at := strings.IndexFunc(text, unseen.Is); at >= 0 {
		r, _ := utf8.DecodeRuneInString(text[at:])
		c.row(line, "", "The line holds the invisible character "+unseen.Point(r)+", so a reviewer would not read what the server reads.", "Remove it.")
	}
}

// decode turns bytes into the manifest and its line index. It reports whether the rules can judge the result.
func (c *check) decode(data []byte) bool {
	var any map[string]any
	if err := toml.Unmarshal(data, &any); err != nil {
		c.syntax(err)
		return false
	}
	c.index = indexOf(data)
	c.keys()
	c.texts()
	if c.has(unknownKey) {
		return false
	}
	var f file
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&f); err != nil {
		c.syntax(err)
		return false
	}
	c.m = f.Manifest
	for name, p := range f.Tools {
		p.Name = name
		c.m.Tools = append(c.m.Tools, p)
	}
	slices.SortFunc(c.m.Tools, func(a, b ToolPolicy) int {
		if d := c.index.line(toolPath(a.Name)) - c.index.line(toolPath(b.Name)); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return true
}

// syntax turns a TOML error into a fault.
func (c *check) syntax(err error) {
	const next = "catalog/README.md shows every field with its form."
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		c.row(1, "", "This is not a manifest: "+strings.TrimPrefix(err.Error(), "toml: ")+".", next)
		return
	}
	row, _ := bad.Position()
	path, what := strings.Join(bad.Key(), "."), strings.TrimPrefix(bad.Error(), "toml: ")
	if wrote, wanted, ok := wrongSort(what); ok {
		subject := "“" + path + "”"
		if s := shapeAt(bad.Key()); s != nil && s.fields != nil {
			subject = "A value in " + subject // go-toml names the table an inline value stands in
		}
		c.row(row, path, subject+" is "+wrote+" here; it must be "+wanted+".", next)
		return
	}
	c.row(row, path, "This is not valid here: "+what+".", next)
}

// mismatch is how go-toml says that a value has the wrong sort, with names of our structs that say nothing to an author.
var mismatch = regexp.MustCompile(`(?i)(?:decode|assign|store|unmarshal)[a-z ]* toml ([a-z ]+?) (?:in|into|to) .*?(?:type )?([A-Za-z0-9_.*\[\]]+)$`)

func wrongSort(what string) (wrote, wanted string, ok bool) {
	m := mismatch.FindStringSubmatch(what)
	if m == nil {
		return "", "", false
	}
	switch t := m[2]; {
	case t == "bool":
		wanted = "true or false, without quotes"
	case strings.HasPrefix(t, "int"):
		wanted = "a whole number, without quotes"
	case strings.HasPrefix(t, "[]"):
		wanted = "a list"
	case strings.Contains(t, "Effect"), strings.Contains(t, "Kind"), strings.Contains(t, "Key"), t == "string", strings.Contains(t, "Contract"), strings.Contains(t, "Category"):
		wanted = "a text in quotes"
	default:
		wanted = "a table"
	}
	return "a TOML " + m[1], wanted, true
}
