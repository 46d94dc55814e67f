package preferences

import (
	"fmt"
	"slices"
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
	said      map[string]bool
}

// at says a thing about a line.
func (r *reading) at(line int, what string, args ...any) {
	r.found = append(r.found, Finding{line, told(fmt.Sprintf(what, args...))})
}

// once says a thing about a name the first time it stands wrong.
func (r *reading) once(line int, what string, args ...any) {
	text := told(fmt.Sprintf(what, args...))
	if r.said == nil {
		r.said = map[string]bool{}
	}
	if !r.said[text] {
		r.said[text] = true
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
