package preferences

import (
	"slices"
	"strconv"

	"countersign/internal/connector"
)

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

// inOrder sorts by lines: headers were read before values.
func (d *Document) inOrder() {
	slices.SortStableFunc(d.Connectors, func(a, b Connector) int { return a.Line - b.Line })
	slices.SortStableFunc(d.Departments, func(a, b Department) int { return a.Line - b.Line })
	slices.SortStableFunc(d.Workflows, func(a, b Workflow) int { return a.Line - b.Line })
	for _, dep := range d.Departments {
		slices.SortStableFunc(dep.Meanings, func(a, b Meaning) int { return a.Line - b.Line })
	}
}
