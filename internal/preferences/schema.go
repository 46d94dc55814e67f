package preferences

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"countersign/internal/connector"
	"countersign/internal/unseen"
)

// reading walks through an outline and holds it to the schema.
type reading struct {
	*outline
	doc       Document
	found     Findings
	versioned bool
	told      map[string]bool
}

func (r *reading) at(line int, what string, args ...any) {
	r.found = append(r.found, Finding{line, fmt.Sprintf(what, args...)})
}

// once says a thing about a name the first time it stands wrong.
func (r *reading) once(line int, what string, args ...any) {
	text := fmt.Sprintf(what, args...)
	if r.told == nil {
		r.told = map[string]bool{}
	}
	if !r.told[text] {
		r.told[text] = true
		r.found = append(r.found, Finding{line, text})
	}
}

func (r *reading) read() {
	for _, h := range r.headers {
		if h.array {
			r.at(h.line, "[[%s]] is a list of tables; there are none here. Write it in single brackets.", pathText(h.path))
			continue
		}
		if r.table(h.path, h.line) {
			r.touch(h.path, h.line)
		}
	}
	for _, l := range r.leaves {
		switch {
		case len(l.path) == 1 && l.path[0] == "version":
			r.version(l)
		case l.kind == unstable.InlineTable:
			if r.table(l.path, l.line) {
				r.touch(l.path, l.line)
			}
		default:
			r.leaf(l)
		}
	}
	if !r.versioned {
		r.at(1, "The document does not say its version. Begin it with version = 3.")
	}
	r.doc.inOrder()
	r.bounds()
}

// inOrder sorts by lines: headers were read before values.
func (d *Document) inOrder() {
	slices.SortStableFunc(d.Connectors, func(a, b Connector) int { return a.Line - b.Line })
	slices.SortStableFunc(d.Departments, func(a, b Department) int { return a.Line - b.Line })
	slices.SortStableFunc(d.Workflows, func(a, b Workflow) int { return a.Line - b.Line })
	for _, dep := range d.Departments {
		slices.SortStableFunc(dep.Meanings, func(a, b Meaning) int { return a.Line - b.Line })
	}
}

func (r *reading) version(l leaf) {
	r.versioned = true
	if l.kind != unstable.Integer || l.text != "3" {
		r.at(l.line, "The version is %s; this is version = 3, a number without quotes.", r.text[l.value.from:l.value.to])
	}
}

const (
	ofConnector  = "purpose, vocabulary, defaults and avoid"
	ofDocument   = "version, connectors, departments and workflows"
	elsewhere    = " What a connection may do is set on its page and never here."
	exampleOfKey = "sandbox-crm-k4x7qa"
)

// settings are names that somebody may expect to have an effect.
var settings = []string{"mode", "access", "tools", "state", "enabled", "disabled", "active", "retired", "credential", "credentials", "token", "url", "scopes", "permission", "permissions", "allow", "deny", "budget", "approvers", "approval", "autonomous", "read_only", "resources", "profile", "command", "env"}

func (r *reading) unknown(line int, name, whose, has string) {
	more := ""
	if slices.Contains(settings, strings.ToLower(name)) {
		more = elsewhere
	}
	r.once(line, "%s has no “%s”; it has %s.%s", whose, name, has, more)
}

// table holds the path of a table to the schema, and reports whether it fits.
func (r *reading) table(path []string, line int) bool {
	switch root := path[0]; {
	case !slices.Contains([]string{"connectors", "departments", "workflows"}, root):
		if root == "version" {
			r.once(line, "The version is a number: version = 3.")
		} else {
			r.unknown(line, root, "A document", ofDocument)
		}
		return false
	case len(path) == 1:
		return true
	case root == "connectors":
		return r.key(path[1], line) && r.connectorTable(path, line)
	case root == "departments":
		return r.name(path[1], "department", line) && r.departmentTable(path, line)
	}
	if !r.name(path[1], "workflow", line) {
		return false
	}
	if len(path) > 2 {
		if path[2] == "uses" {
			r.once(line, "The workflow “%s” uses a list of keys: uses = [\"%s\"].", path[1], exampleOfKey)
		} else {
			r.unknown(line, path[2], "A workflow", "uses alone")
		}
		return false
	}
	return true
}

func (r *reading) connectorTable(path []string, line int) bool {
	switch {
	case len(path) == 2:
		return true
	case path[2] == "purpose":
		r.once(line, "The purpose of %s is one text, in quotes.", path[1])
	case path[2] == "avoid":
		r.once(line, "What to avoid at %s is a list of texts: avoid = [\"…\"].", path[1])
	case path[2] != "vocabulary" && path[2] != "defaults":
		r.unknown(line, path[2], "A connector", ofConnector)
	case len(path) == 3:
		return true
	default:
		r.once(line, "“%s” in the %s of %s is one text, in quotes.", path[3], path[2], path[1])
	}
	return false
}

func (r *reading) departmentTable(path []string, line int) bool {
	switch {
	case len(path) == 2:
		return true
	case path[2] != "connectors":
		r.unknown(line, path[2], "A department", "connectors alone")
	case len(path) == 3:
		return true
	case !r.key(path[3], line):
	case len(path) == 4:
		return true
	case path[4] == "meaning":
		r.once(line, "The meaning of %s is one text, in quotes.", path[3])
	default:
		r.unknown(line, path[4], "A connector of a department", "meaning alone")
	}
	return false
}

const noKey = "“%s” is no connector key. A connection's page shows its key, which looks like %s."

func isKey(s string) bool {
	_, err := connector.Parse(s)
	return err == nil
}

func (r *reading) key(s string, line int) bool {
	if !isKey(s) {
		r.once(line, noKey, short(s), exampleOfKey)
		return false
	}
	return true
}

func (r *reading) name(s, noun string, line int) bool {
	switch _, hidden := unseen.InProse(s); {
	case hidden || strings.TrimSpace(s) != s || s == "":
		r.once(line, "The name of a %s is visible text without blanks around it.", noun)
	case len(s) > MaxName:
		r.once(line, "The name of a %s may have %d bytes; this one has %d.", noun, MaxName, len(s))
	default:
		return true
	}
	return false
}

func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// leaf reads one value.
func (r *reading) leaf(l leaf) {
	n := len(l.path)
	// The table it stands in was judged where it was opened; a dotted key opens it here.
	if n == 1 {
		if slices.Contains([]string{"connectors", "departments", "workflows"}, l.path[0]) {
			r.at(l.line, "“%s” is a table: [%s.…].", l.path[0], l.path[0])
		} else {
			r.unknown(l.line, l.path[0], "A document", ofDocument)
		}
		return
	}
	if !r.table(l.path[:n-1], l.line) {
		return
	}
	r.touch(l.path[:n-1], l.line)
	switch l.path[0] {
	case "connectors":
		r.ofConnector(l)
	case "departments":
		r.ofDepartment(l)
	default:
		r.ofWorkflow(l)
	}
}

func (r *reading) ofConnector(l leaf) {
	n := len(l.path)
	if n == 2 {
		if r.key(l.path[1], l.line) {
			r.at(l.line, "%s is a table with %s.", l.path[1], ofConnector)
		}
		return
	}
	c := r.connector(l.path[1], l.line)
	switch field := l.path[2]; {
	case n == 4:
		r.term(c, field, l)
	case field == "purpose":
		c.Purpose = r.words(l, "The purpose of "+l.path[1])
	case field == "avoid":
		c.Avoid = r.texts(l, "What to avoid at "+l.path[1])
	case field == "vocabulary" || field == "defaults":
		r.at(l.line, "The %s of %s are names with their texts: [connectors.%s.%s], then one name = \"text\" a line.", field, l.path[1], l.path[1], field)
	default:
		r.unknown(l.line, field, "A connector", ofConnector)
	}
}

func (r *reading) term(c *Connector, field string, l leaf) {
	name := l.path[3]
	if !r.name(name, "term", l.line) {
		return
	}
	t := Term{name, r.words(l, fmt.Sprintf("“%s” in the %s of %s", name, field, l.path[1]))}
	if field == "vocabulary" {
		c.Vocabulary = append(c.Vocabulary, t)
	} else {
		c.Defaults = append(c.Defaults, t)
	}
}

func (r *reading) ofDepartment(l leaf) {
	switch n := len(l.path); {
	case n == 2:
		if r.name(l.path[1], "department", l.line) {
			r.at(l.line, "The department “%s” is a table with connectors.", l.path[1])
		}
	case n == 3 && l.path[2] == "connectors":
		r.at(l.line, "The connectors of a department are tables: [departments.%s.connectors.%s].", keyText(l.path[1]), exampleOfKey)
	case n == 3:
		r.unknown(l.line, l.path[2], "A department", "connectors alone")
	case n == 4:
		if r.key(l.path[3], l.line) {
			r.at(l.line, "%s is a table with its meaning: [departments.%s.connectors.%s].", l.path[3], keyText(l.path[1]), l.path[3])
		}
	case l.path[4] == "meaning":
		r.meaning(l).Words = r.words(l, "The meaning of "+l.path[3])
	default:
		r.unknown(l.line, l.path[4], "A connector of a department", "meaning alone")
	}
}

func (r *reading) ofWorkflow(l leaf) {
	if len(l.path) == 2 {
		if r.name(l.path[1], "workflow", l.line) {
			r.at(l.line, "The workflow “%s” is a table: [workflows.%s], then uses = [\"%s\"].", l.path[1], keyText(l.path[1]), exampleOfKey)
		}
		return
	}
	if l.path[2] != "uses" {
		r.unknown(l.line, l.path[2], "A workflow", "uses alone")
		return
	}
	w := r.workflow(l.path[1], l.line)
	if l.kind != unstable.Array {
		r.at(l.line, "The workflow “%s” uses a list of keys: uses = [\"%s\"].", l.path[1], exampleOfKey)
		return
	}
	for _, item := range l.items {
		switch key := connector.Key(item.text); {
		case item.kind != unstable.String:
			r.at(l.line, "The workflow “%s” uses keys, each in quotes.", l.path[1])
		case !isKey(item.text):
			r.at(item.line, noKey, short(item.text), exampleOfKey)
		case slices.Contains(w.Uses, key):
			r.at(item.line, "The workflow “%s” names %s twice.", l.path[1], key)
		default:
			w.Uses = append(w.Uses, key)
		}
	}
}

// words reads a text that somebody is to read.
func (r *reading) words(l leaf, what string) string {
	if l.kind != unstable.String {
		r.at(l.line, "%s is a text, in quotes.", what)
		return ""
	}
	return r.prose(l.text, l.line, what)
}

func (r *reading) prose(s string, line int, what string) string {
	hidden, bad := unseen.InProse(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))
	switch {
	case strings.TrimSpace(s) == "":
		r.at(line, "%s is empty. Write it, or leave it out.", what)
	case len(s) > MaxWords:
		r.at(line, "%s may have %d bytes; it has %d.", what, MaxWords, len(s))
	case bad:
		r.at(line, "%s", invisible(hidden))
	default:
		return s
	}
	return ""
}

func (r *reading) texts(l leaf, what string) (out []string) {
	if l.kind != unstable.Array {
		r.at(l.line, "%s is a list of texts: [\"…\"].", what)
		return nil
	}
	for _, item := range l.items {
		if item.kind != unstable.String {
			r.at(l.line, "%s is a list of texts, each in quotes.", what)
			return nil
		}
		if s := r.prose(item.text, item.line, what); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// touch notes what a table names, so that it is known in the order of the text even where nothing is said of it.
func (r *reading) touch(path []string, line int) {
	switch {
	case len(path) < 2:
	case path[0] == "connectors":
		r.connector(path[1], line)
	case path[0] == "workflows":
		r.workflow(path[1], line)
	case len(path) >= 4:
		r.meaning(leaf{path: path, line: line})
	default:
		r.department(path[1], line)
	}
}

func (r *reading) connector(key string, line int) *Connector {
	for i := range r.doc.Connectors {
		if c := &r.doc.Connectors[i]; c.Key.String() == key {
			c.Line = min(c.Line, line)
			return c
		}
	}
	r.doc.Connectors = append(r.doc.Connectors, Connector{Key: connector.Key(key), Line: line})
	return &r.doc.Connectors[len(r.doc.Connectors)-1]
}

func (r *reading) department(name string, line int) *Department {
	for i := range r.doc.Departments {
		if d := &r.doc.Departments[i]; d.Name == name {
			d.Line = min(d.Line, line)
			return d
		}
	}
	r.doc.Departments = append(r.doc.Departments, Department{Name: name, Line: line})
	return &r.doc.Departments[len(r.doc.Departments)-1]
}

func (r *reading) meaning(l leaf) *Meaning {
	d := r.department(l.path[1], l.line)
	for i := range d.Meanings {
		if m := &d.Meanings[i]; m.Key.String() == l.path[3] {
			m.Line = min(m.Line, l.line)
			return m
		}
	}
	d.Meanings = append(d.Meanings, Meaning{Key: connector.Key(l.path[3]), Line: l.line})
	return &d.Meanings[len(d.Meanings)-1]
}

func (r *reading) workflow(name string, line int) *Workflow {
	for i := range r.doc.Workflows {
		if w := &r.doc.Workflows[i]; w.Name == name {
			w.Line = min(w.Line, line)
			return w
		}
	}
	r.doc.Workflows = append(r.doc.Workflows, Workflow{Name: name, Line: line})
	return &r.doc.Workflows[len(r.doc.Workflows)-1]
}

// bounds holds the document to the numbers it may have.
func (r *reading) bounds() {
	most := func(n, limit, line int, what string) {
		if n > limit {
			r.at(line, "%s may be %s; there are %d.", what, strconv.Itoa(limit), n)
		}
	}
	most(len(r.doc.Connectors), MaxConnectors, 0, "The connectors")
	most(len(r.doc.Departments), MaxDepartments, 0, "The departments")
	most(len(r.doc.Workflows), MaxWorkflows, 0, "The workflows")
	for _, c := range r.doc.Connectors {
		most(len(c.Vocabulary), MaxTerms, c.Line, "The names in the vocabulary of "+c.Key.String())
		most(len(c.Defaults), MaxTerms, c.Line, "The defaults of "+c.Key.String())
		most(len(c.Avoid), MaxTerms, c.Line, "The things to avoid at "+c.Key.String())
	}
	for _, d := range r.doc.Departments {
		most(len(d.Meanings), MaxMeanings, d.Line, "The connectors of the department “"+d.Name+"”")
	}
	for _, w := range r.doc.Workflows {
		most(len(w.Uses), MaxUses, w.Line, "The connectors of the workflow “"+w.Name+"”")
	}
}
