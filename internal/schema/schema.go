// Package schema owns checking an agent's arguments against the input schema that an upstream wrote. Both sides are strangers: it
// fetches nothing, follows only references inside the schema, and spends a bounded amount of work on one check, so that neither a
// schema that refers to itself nor an argument nested for the purpose can keep a processor busy or exhaust a stack. It never changes
// arguments, fills in no defaults, and its sentences quote no argument value.
//
// It reads JSON Schema 2020-12 and the draft-07 words still in use. Formats and the unevaluated* words are not checked, nor a pattern
// that Go's regular expressions cannot read (look-ahead): that makes the check looser than the upstream's own, never different.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"countersign/internal/fault"
)

// Bounds of one schema and one check.
const (
	maxSource  = 256 << 10
	maxNodes   = 20_000
	maxRegexps = 1_000
	maxWork    = 1_000_000
	maxNested  = 1_000 // schemas within schemas at one time; an argument nests 64 deep
)

// Schema is a compiled input schema. It is immutable and safe for concurrent use.
type Schema struct{ root *node }

// Compile reads a schema. The error is one sentence about the schema that ends with a full stop.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > maxSource {
		return nil, errors.New("Its input schema is larger than " + strconv.Itoa(maxSource>>10) + " KiB.")
	}
	document, err := decode(raw)
	if err != nil {
		return nil, errors.New("Its input schema is not one JSON value.")
	}
	c := compiler{document: document, nodes: map[string]*node{}}
	root, err := c.node("", document)
	if err != nil {
		return nil, err
	}
	if endless(c.nodes) {
		return nil, errors.New("Its input schema refers to itself without end.")
	}
	return &Schema{root}, nil
}

// endless reports a schema that asks itself about the very same value: checking anything against it would never end.
func endless(nodes map[string]*node) bool {
	const open, done = 1, 2
	seen := make(map[*node]int, len(nodes))
	var visit func(*node) bool
	visit = func(n *node) bool {
		switch seen[n] {
		case open:
			return true
		case done:
			return false
		}
		seen[n] = open
		for _, next := range n.ofSameValue() {
			if visit(next) {
				return true
			}
		}
		seen[n] = done
		return false
	}
	for _, n := range nodes {
		if visit(n) {
			return true
		}
	}
	return false
}

// ofSameValue are the schemas that judge the same value as n, rather than a part of it.
func (n *node) ofSameValue() []*node {
	next := slices.Concat(n.allOf, n.anyOf, n.oneOf, slices.Collect(maps.Values(n.dependent)))
	for _, one := range []*node{n.ref, n.not, n.when, n.then, n.other} {
		if one != nil {
			next = append(next, one)
		}
	}
	return next
}

// Check judges one JSON object. The fault is Invalid with the code invalid_arguments; it names the place and the rule.
func (s *Schema) Check(arguments []byte) error {
	value, err := decode(arguments)
	if err != nil {
		return refuse("The arguments are not one JSON value.")
	}
	return s.Judge(value)
}

// Judge is Check for arguments that were read already, with numbers as json.Number.
func (s *Schema) Judge(value any) error {
	if _, ok := value.(map[string]any); !ok {
		return refuse("The arguments are not a JSON object.")
	}
	c := check{work: maxWork}
	broken := c.value(s.root, value)
	if c.over {
		return refuse("The arguments are too complex to be checked against the tool's input schema.")
	}
	if broken != nil {
		return refuse(broken.sentence())
	}
	return nil
}

func refuse(what string) error {
	return fault.New(fault.Invalid, fault.InvalidArguments, what, "Correct the arguments as the tool's input schema describes, and call again.")
}

// decode keeps numbers as written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	return v, nil
}
