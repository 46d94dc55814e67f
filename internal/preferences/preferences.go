// Package preferences owns the Context V3 document of an organization, preferences.toml: what its connections mean to people, to
// departments and to workflows, under the immutable connector keys. It holds words and nothing else: it never knows a connection, no
// state of one follows from it, and nothing it says grants, lifts or changes anything.
package preferences

import (
	"context"
	"slices"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/identity"
)

// The bounds of a document.
const (
	MaxBytes       = 128 << 10 // of the whole text
	MaxConnectors  = 500
	MaxDepartments = 100
	MaxMeanings    = 500 // of one department
	MaxWorkflows   = 200
	MaxUses        = 50   // of one workflow
	MaxTerms       = 100  // of a vocabulary, of defaults, of what is to be avoided
	MaxWords       = 4000 // bytes of one text
	MaxName        = 80   // bytes of a term, a department or a workflow
)

// Nothing is the document that says nothing.
const Nothing = "version = 3\n"

// Document is a parsed text: everything in the order in which it is first named.
type Document struct {
	Connectors  []Connector
	Departments []Department
	Workflows   []Workflow
}

// Connector is what one connection means to the whole organization. Line is where the document first names it.
type Connector struct {
	Key        connector.Key
	Line       int
	Purpose    string   // what it is for
	Vocabulary []Term   // what people call things there
	Defaults   []Term   // what to choose where nobody says
	Avoid      []string // what not to do there
}

// Term is one name and what it stands for.
type Term struct{ Name, Means string }

// Empty reports whether nothing is said of the connector.
func (c Connector) Empty() bool {
	return c.Purpose == "" && len(c.Vocabulary) == 0 && len(c.Defaults) == 0 && len(c.Avoid) == 0
}

// Department is what connections mean to one department. A profile names the department it belongs to.
type Department struct {
	Name     string
	Line     int
	Meanings []Meaning
}

// Meaning is what one connection means to a department.
type Meaning struct {
	Key   connector.Key
	Line  int
	Words string
}

// Workflow is a way of working and the connections it uses.
type Workflow struct {
	Name string
	Line int
	Uses []connector.Key
}

// Connector is what the document says of a key; all but the key is zero where it says nothing.
func (d Document) Connector(key connector.Key) Connector {
	if i := slices.IndexFunc(d.Connectors, func(c Connector) bool { return c.Key == key }); i >= 0 {
		return d.Connectors[i]
	}
	return Connector{Key: key}
}

// Means is what the departments say of a key, by department.
func (d Document) Means(key connector.Key) []Term {
	var out []Term
	for _, dep := range d.Departments {
		for _, m := range dep.Meanings {
			if m.Key == key && m.Words != "" {
				out = append(out, Term{dep.Name, m.Words})
			}
		}
	}
	return out
}

// UsedIn names the workflows that use a key.
func (d Document) UsedIn(key connector.Key) []string {
	var out []string
	for _, w := range d.Workflows {
		if slices.Contains(w.Uses, key) {
			out = append(out, w.Name)
		}
	}
	return out
}

// How says in which way a revision came to be.
type How string

// The ways.
const (
	Written  How = "written"  // in the editor
	Filled   How = "filled"   // in the form of one connection
	Restored How = "restored" // from an earlier revision
	Pushed   How = "pushed"   // by the command, from a file
)

// Revision is the document as it was saved once. Number 0 is that of an organization that has written nothing yet.
type Revision struct {
	Org     identity.OrgID
	Number  int
	Text    string // empty in a list
	Bytes   int
	How     How
	By      audit.Actor
	SavedAt time.Time
}

// Edition is a text that is to become the next revision, if Base is still the newest one.
type Edition struct {
	Org  identity.OrgID
	Base int
	Text string
	How  How
	By   audit.Actor
	From int // the revision that is restored, where one is
}

// Store keeps revisions; none is ever changed or removed. SaveContext refuses what Parse finds wrong, answers a stale fault where
// another revision was saved since Base, and answers Base itself where the text is the same.
type Store interface {
	Context(ctx context.Context, org identity.OrgID) (Revision, error)
	ContextRevision(ctx context.Context, org identity.OrgID, number int) (Revision, error)
	ContextRevisions(ctx context.Context, org identity.OrgID, before, limit int) ([]Revision, error) // newest first; before 0: all
	SaveContext(ctx context.Context, e Edition) (Revision, error)
}
