package schema

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
)

// node is one compiled schema. A nil *node in a field means that the word is absent.
type node struct {
	never bool // the schema "false"
	ref   *node

	types    []string
	enum     []any
	isConst  bool
	constant any

	multipleOf             *big.Rat
	minimum, maximum       *big.Rat
	aboveMinimum           *big.Rat // exclusiveMinimum
	belowMaximum           *big.Rat // exclusiveMaximum
	minLength, maxLength   *int
	pattern                *pattern
	minItems, maxItems     *int
	unique                 bool
	prefix                 []*node
	items                  *node // of those after prefix
	contains               *node
	minContains            *int
	maxContains            *int
	minProps, maxProps     *int
	required               []string
	properties             map[string]*node
	patterned              []patterned
	additional             *node
	names                  *node
	dependentRequired      map[string][]string
	dependent              map[string]*node
	allOf, anyOf, oneOf    []*node
	not, when, then, other *node
}

type patterned struct {
	pattern *pattern
	node    *node
}

// compiler turns the schemas of one document into nodes, each once, by its JSON pointer.
type compiler struct {
	document any
	nodes    map[string]*node
	regexps  int
	old      bool // draft-07 or older: words beside $ref do not count
}

var errUnreadable = errors.New("Its input schema cannot be read.")

func (c *compiler) node(at string, source any) (*node, error) {
	if n, ok := c.nodes[at]; ok {
		return n, nil
	}
	if len(c.nodes) >= maxNodes {
		return nil, errors.New("Its input schema is too large to be checked against.")
	}
	n := &node{}
	c.nodes[at] = n
	switch s := source.(type) {
	case bool:
		n.never = !s
		return n, nil
	case map[string]any:
		return n, c.words(n, at, s)
	}
	return nil, errUnreadable
}

func (c *compiler) words(n *node, at string, s map[string]any) error {
	if draft, _ := s["$schema"].(string); at == "" && strings.Contains(draft, "draft-0") {
		c.old = true
	}
	for _, word := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := s[word]; ok {
			return errors.New("Its input schema uses “" + word + "”, which cannot be checked.")
		}
	}
	if id, ok := s["$id"].(string); ok && at != "" && !strings.HasPrefix(id, "#") {
		return errors.New("Its input schema holds another schema document, which cannot be checked.")
	}
	if ref, ok := s["$ref"]; ok {
		if err := c.refer(n, ref); err != nil || c.old {
			return err
		}
	}
	for _, read := range []func(*node, string, map[string]any) error{c.values, c.numbers, c.texts, c.arrays, c.objects, c.combined} {
		if err := read(n, at, s); err != nil {
			return err
		}
	}
	return nil
}

// refer follows a reference inside the document. One that leads out would make this server fetch an address an upstream chose.
func (c *compiler) refer(n *node, ref any) error {
	text, _ := ref.(string)
	fragment, ok := strings.CutPrefix(text, "#")
	if !ok {
		return errors.New("Its input schema refers to another document, which is never fetched.")
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return errUnreadable
	}
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return errors.New("Its input schema uses a named anchor, which cannot be checked.")
	}
	target := c.document
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch t := target.(type) {
		case map[string]any:
			target, ok = t[part]
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(t); ok {
				target = t[i]
			}
		default:
			ok = false
		}
		if !ok {
			return errors.New("Its input schema refers to a part of itself that is not there.")
		}
	}
	n.ref, err = c.node(pointer, target)
	return err
}

func pointer(at string, parts ...string) string {
	for _, p := range parts {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
	}
	return at
}

func (c *compiler) one(at, word string, s map[string]any) (*node, error) {
	source, ok := s[word]
	if !ok {
		return nil, nil
	}
	return c.node(pointer(at, word), source)
}

func (c *compiler) list(at, word string, s map[string]any) ([]*node, error) {
	source, ok := s[word]
	if !ok {
		return nil, nil
	}
	items, ok := source.([]any)
	if !ok {
		return nil, errUnreadable
	}
	nodes := make([]*node, len(items))
	for i, item := range items {
		var err error
		if nodes[i], err = c.node(pointer(at, word, strconv.Itoa(i)), item); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (c *compiler) byName(at, word string, s map[string]any) (map[string]*node, error) {
	source, ok := s[word]
	if !ok {
		return nil, nil
	}
	members, ok := source.(map[string]any)
	if !ok {
		return nil, errUnreadable
	}
	nodes := make(map[string]*node, len(members))
	for name, member := range members {
		var err error
		if nodes[name], err = c.node(pointer(at, word, name), member); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// regexp reads a pattern; nil where Go cannot read it, since a look-ahead would make a popular kind of schema unusable.
func (c *compiler) regexp(source any) (*pattern, error) {
	text, ok := source.(string)
	if c.regexps++; !ok || c.regexps > maxRegexps {
		return nil, errUnreadable
	}
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return nil, nil //nolint:nilnil // an unreadable pattern is no rule, see the package comment
	}
	return &pattern{text: text}, nil
}

// pattern is compiled when it is first asked. Most never are: a connection lists hundreds of tools, of which an agent calls a few, and a
// compiled pattern takes a thousand times the memory of its text.
type pattern struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

func (p *pattern) matches(s string) bool {
	p.once.Do(func() { p.re = regexp.MustCompile(p.text) }) // it was parsed as this does
	return p.re.MatchString(s)
}

func texts(source any) ([]string, error) {
	items, ok := source.([]any)
	if !ok {
		return nil, errUnreadable
	}
	out := make([]string, len(items))
	for i, item := range items {
		if out[i], ok = item.(string); !ok {
			return nil, errUnreadable
		}
	}
	return out, nil
}

func count(s map[string]any, word string, into **int) error {
	source, ok := s[word]
	if !ok {
		return nil
	}
	n, _ := source.(json.Number)
	r, ok := rational(n)
	if !ok || !r.IsInt() || r.Sign() < 0 {
		return errUnreadable
	}
	i := int(^uint(0) >> 1) // a larger bound than any argument can reach
	if r.Num().IsInt64() {
		i = int(r.Num().Int64())
	}
	*into = &i
	return nil
}

func counts(s map[string]any, into map[string]**int) error {
	for word, p := range into {
		if err := count(s, word, p); err != nil {
			return err
		}
	}
	return nil
}
