package preferences

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"countersign/internal/connector"
	"countersign/internal/fault"
)

// With is the text with another connector in it: what is said of its key becomes want, and every other value, every comment and the
// order stay. Where the text is written in a way that allows no such edit, it is refused and a person edits the text.
func With(text string, want Connector) (string, error) {
	if text == "" {
		text = Nothing
	}
	before, _, found := parse(text)
	if err := found.Err(); err != nil {
		return "", err
	}
	have := before.Connector(want.Key)
	e := editing{text: text, root: []string{"connectors", want.Key.String()}}
	e.one("purpose", have.Purpose, want.Purpose, func(oneLine bool) string {
		if oneLine {
			return quote(want.Purpose)
		}
		return quoteLines(want.Purpose)
	})
	e.terms("vocabulary", have.Vocabulary, want.Vocabulary)
	e.terms("defaults", have.Defaults, want.Defaults)
	e.one("avoid", strings.Join(have.Avoid, "\x00"), strings.Join(want.Avoid, "\x00"), func(oneLine bool) string { return list(want.Avoid, oneLine) })
	if e.stuck || !kept(text, e.text, before, want) {
		return "", checked(e.text, want.Key)
	}
	return e.text, nil
}

// checked says why an edit did not come out: because of what was to be written, or of how the text is written.
func checked(text string, key connector.Key) error {
	if _, found := Parse(text); len(found) > 0 {
		var what Findings
		for _, f := range found {
			what = append(what, Finding{What: f.What}) // of a text nobody has seen: its lines would mislead
		}
		return what.Err()
	}
	f := fault.Field("text", "The document writes “"+key.String()+"” in a way that the form cannot change without losing something.")
	f.Next = "Change the text itself, on the page Context."
	return f
}

// kept reports whether an edit did what it was to do, and nothing else.
func kept(before, after string, old Document, want Connector) bool {
	now, o, found := parse(after)
	if len(found) > 0 {
		return false
	}
	counts := map[string]int{}
	for _, c := range o.remarks {
		counts[c.text]++
	}
	past := outlineOf(before)
	for _, c := range past.remarks {
		if counts[c.text]--; counts[c.text] < 0 {
			return false
		}
	}
	return reflect.DeepEqual(meaningOf(now), meaningOf(old.replacing(want)))
}

func (d Document) replacing(want Connector) Document {
	d.Connectors = slices.Clone(d.Connectors)
	i := slices.IndexFunc(d.Connectors, func(c Connector) bool { return c.Key == want.Key })
	switch {
	case i >= 0:
		d.Connectors[i] = want
	case !want.Empty():
		d.Connectors = append(d.Connectors, want)
	}
	return d
}

// meaningOf is what a document says, apart from where: terms have no order.
func meaningOf(d Document) map[string]any {
	m := map[string]any{}
	for _, c := range d.Connectors {
		if !c.Empty() {
			m["connectors\x00"+c.Key.String()] = []any{c.Purpose, termMap(c.Vocabulary), termMap(c.Defaults), append([]string{}, c.Avoid...)}
		}
	}
	for _, dep := range d.Departments {
		words := map[connector.Key]string{}
		for _, x := range dep.Meanings {
			words[x.Key] = x.Words
		}
		m["departments\x00"+dep.Name] = words
	}
	for _, w := range d.Workflows {
		m["workflows\x00"+w.Name] = append([]connector.Key{}, w.Uses...)
	}
	return m
}

func termMap(terms []Term) map[string]string {
	m := map[string]string{}
	for _, t := range terms {
		m[t.Name] = t.Means
	}
	return m
}

// editing changes a text one value at a time and reads it anew each time.
type editing struct {
	text  string
	root  []string
	stuck bool
}

func (e *editing) one(field, have, want string, write func(oneLine bool) string) {
	if have == want {
		return
	}
	path := append(slices.Clone(e.root), field)
	if want == "" {
		e.remove(path)
		return
	}
	e.set(path, write)
}

func (e *editing) terms(field string, have, want []Term) {
	old, next := termMap(have), termMap(want)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, stays := next[name]; !stays {
			e.remove(append(slices.Clone(e.root), field, name))
		}
	}
	for _, t := range want {
		if before, there := old[t.Name]; !there || before != t.Means {
			e.set(append(slices.Clone(e.root), field, t.Name), func(oneLine bool) string {
				if oneLine {
					return quote(t.Means)
				}
				return quoteLines(t.Means)
			})
		}
	}
}

// set writes a value where one stands, or in the table it belongs to as the text writes it.
func (e *editing) set(path []string, write func(oneLine bool) string) {
	o := outlineOf(e.text)
	if l, there := o.find(path); there {
		e.replace(o, l, l.value, write(l.inline()))
		return
	}
	for n := len(path) - 1; n > 0; n-- {
		if e.insert(o, path, n, write) {
			return
		}
	}
	e.text = strings.TrimRight(e.text, "\n") + "\n\n[" + pathText(path[:len(path)-1]) + "]\n" + keyText(path[len(path)-1]) + " = " + write(false) + "\n"
}

// insert writes a value into the table path[:n], however that is written: inside braces, under a header, or by dotted keys.
func (e *editing) insert(o outline, path []string, n int, write func(oneLine bool) string) bool {
	table, rest := path[:n], path[n:]
	if l, there := o.find(table); there && l.kind == unstable.InlineTable {
		e.intoBraces(o, l, pathText(rest)+" = "+write(true))
		return true
	}
	if i := slices.IndexFunc(o.headers, func(h header) bool { return slices.Equal(h.path, table) }); i >= 0 {
		if len(rest) == 1 {
			e.insertLine(o.lastOf(i), pathText(rest)+" = "+write(false))
			return true
		}
		e.insertSection(o, table, path, write)
		return true
	}
	// Dotted keys under the header of a larger table, or under none.
	for i := len(o.leaves) - 1; i >= 0; i-- {
		l := o.leaves[i]
		if base := o.base(l.section); !l.inline() && len(base) < n && hasPrefix(l.path, table) {
			e.insertLine(l.top.to, pathText(path[len(base):])+" = "+write(false))
			return true
		}
	}
	if slices.ContainsFunc(o.headers, func(h header) bool { return hasPrefix(h.path, table) }) {
		e.insertSection(o, table, path, write)
		return true
	}
	return false
}

func (o *outline) base(section int) []string {
	if section < 0 {
		return nil
	}
	return o.headers[section].path
}

// lastOf is the end of the last value under a header, or of the header itself.
func (o *outline) lastOf(section int) int {
	at := o.headers[section].whole.to
	for _, l := range o.leaves {
		if l.section == section {
			at = max(at, l.top.to)
		}
	}
	return at
}

// insertSection opens a table of its own behind the last section of the table it belongs to.
func (e *editing) insertSection(o outline, table, path []string, write func(bool) string) {
	last := 0
	for i, h := range o.headers {
		if hasPrefix(h.path, table) {
			last = i
		}
	}
	name, key := path[:len(path)-1], path[len(path)-1]
	e.insertLine(o.lastOf(last), "\n["+pathText(name)+"]\n"+keyText(key)+" = "+write(false))
}

// insertLine writes a line behind the one in which an offset stands, and behind the comment beside it.
func (e *editing) insertLine(at int, line string) {
	end := strings.IndexByte(e.text[at:], '\n')
	if end < 0 {
		e.text += "\n" + line + "\n"
		return
	}
	at += end + 1
	e.text = e.text[:at] + line + "\n" + e.text[at:]
}

// intoBraces writes a value into an inline table, behind its last one.
func (e *editing) intoBraces(o outline, table leaf, value string) {
	last := -1
	for _, l := range o.leaves {
		if l.whole.within(table.value) && l.whole != table.whole {
			last = max(last, l.whole.to)
		}
	}
	if last < 0 {
		at := table.value.from + 1
		e.text = e.text[:at] + " " + value + " " + strings.TrimLeft(e.text[at:], " ")
		return
	}
	e.text = e.text[:last] + ", " + value + e.text[last:]
}

// replace writes something else in a range, keeps the comments of the range above the expression, and says where the range begins now.
func (e *editing) replace(o outline, l leaf, s span, with string) int {
	start := o.lines[o.line(l.top.from)-1]
	above := ""
	for _, c := range o.remarks {
		if c.at.within(s) {
			above += e.text[start:l.top.from] + c.text + "\n"
		}
	}
	e.text = e.text[:start] + above + e.text[start:s.from] + with + e.text[s.to:]
	return s.from + len(above)
}

// remove takes a value away. A comment beside it stays, on a line of its own.
func (e *editing) remove(path []string) {
	o := outlineOf(e.text)
	l, there := o.find(path)
	if !there {
		e.stuck = true
		return
	}
	if l.inline() {
		e.replace(o, l, e.withComma(l.whole), "")
		return
	}
	at := e.replace(o, l, l.whole, "")
	start := strings.LastIndexByte(e.text[:at], '\n') + 1
	line, rest, _ := strings.Cut(e.text[at:], "\n")
	if line = strings.TrimLeft(line, " \t"); line != "" {
		line += "\n"
	}
	e.text = e.text[:start] + line + rest
}

// withComma is the range of a value in an inline table with the comma that goes with it.
func (e *editing) withComma(s span) span {
	const blank = " \t\n"
	after := e.text[s.to:]
	if rest := strings.TrimLeft(after, blank); strings.HasPrefix(rest, ",") {
		return span{s.from, s.to + len(after) - len(rest) + 1}
	}
	if before := strings.TrimRight(e.text[:s.from], blank); strings.HasSuffix(before, ",") {
		return span{len(before) - 1, s.to}
	}
	return s
}
