package preferences

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"countersign/internal/connector"
	"countersign/internal/unseen"
)

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
