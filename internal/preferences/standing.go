package preferences

import (
	"slices"

	"countersign/internal/connector"
)

// Standing is what a reader of the document knows of a key. The document itself knows nothing of it.
type Standing string

// The standings.
const (
	Unknown Standing = ""        // no connection has this key
	Present Standing = "present" // a connection has it
	Retired Standing = "retired" // a connection had it, and it is never used again
)

// Dangling says which names of a document lead nowhere. Such a name is no fault: it changes nothing, and a document may be written before
// the connection is made.
func (d Document) Dangling(standing func(connector.Key) Standing, departments []string) Findings {
	var out Findings
	at := func(key connector.Key, line int) {
		switch standing(key) {
		case Retired:
			out = append(out, Finding{line, "The connection “" + key.String() + "” is retired, and its key is never used again. Nobody is told these words."})
		case Unknown:
			out = append(out, Finding{line, "There is no connection “" + key.String() + "”. Nobody is told these words."})
		}
	}
	for _, c := range d.Connectors {
		at(c.Key, c.Line)
	}
	for _, dep := range d.Departments {
		if !slices.Contains(departments, dep.Name) {
			out = append(out, Finding{dep.Line, "No profile belongs to the department “" + dep.Name + "”. Nobody is told these words."})
		}
		for _, m := range dep.Meanings {
			at(m.Key, m.Line)
		}
	}
	for _, w := range d.Workflows {
		for _, key := range w.Uses {
			switch standing(key) {
			case Retired:
				out = append(out, Finding{w.Line, "The workflow “" + w.Name + "” uses “" + key.String() + "”, which is retired."})
			case Unknown:
				out = append(out, Finding{w.Line, "The workflow “" + w.Name + "” uses “" + key.String() + "”, which is no connection."})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return a.Line - b.Line })
	return out
}

// Starter is what an editor begins with where nothing is written: the keys to write about, each commented out.
func Starter(keys []connector.Key) string {
	text := Nothing + "\n# What connections mean here, in the words of people. It grants nothing: what a connection may do is set on its page.\n"
	for _, k := range keys {
		text += "\n# [connectors." + k.String() + "]\n# purpose = \"\"\n# avoid = []\n"
	}
	if len(keys) > 0 {
		text += "\n# [departments.support.connectors." + keys[0].String() + "]\n# meaning = \"\"\n\n# [workflows.refund]\n# uses = [\"" + keys[0].String() + "\"]\n"
	}
	return text
}
