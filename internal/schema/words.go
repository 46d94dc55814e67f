package schema

import (
	"encoding/json"
	"math/big"
	"slices"
)

var kinds = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

func (c *compiler) values(n *node, _ string, s map[string]any) error {
	switch t := s["type"].(type) {
	case nil:
	case string:
		n.types = []string{t}
	default:
		var err error
		if n.types, err = texts(t); err != nil {
			return err
		}
	}
	for _, t := range n.types {
		if !slices.Contains(kinds, t) {
			return errUnreadable
		}
	}
	if source, ok := s["enum"]; ok {
		if n.enum, ok = source.([]any); !ok {
			return errUnreadable
		}
	}
	n.constant, n.isConst = s["const"]
	return nil
}

func (c *compiler) numbers(n *node, _ string, s map[string]any) error {
	for word, into := range map[string]**big.Rat{"multipleOf": &n.multipleOf, "minimum": &n.minimum, "maximum": &n.maximum} {
		if err := number(s, word, into); err != nil {
			return err
		}
	}
	if n.multipleOf != nil && n.multipleOf.Sign() <= 0 {
		return errUnreadable
	}
	if err := exclusive(s, "exclusiveMinimum", &n.minimum, &n.aboveMinimum); err != nil {
		return err
	}
	return exclusive(s, "exclusiveMaximum", &n.maximum, &n.belowMaximum)
}

// exclusive reads a bound, or, as draft-04 wrote it, that the other bound is one.
func exclusive(s map[string]any, word string, inclusive, into **big.Rat) error {
	if isBound, ok := s[word].(bool); ok {
		if isBound {
			*inclusive, *into = nil, *inclusive
		}
		return nil
	}
	return number(s, word, into)
}

func number(s map[string]any, word string, into **big.Rat) error {
	source, ok := s[word]
	if !ok {
		return nil
	}
	n, _ := source.(json.Number)
	if *into, ok = rational(n); !ok {
		return errUnreadable
	}
	return nil
}

func (c *compiler) texts(n *node, _ string, s map[string]any) error {
	if err := counts(s, map[string]**int{"minLength": &n.minLength, "maxLength": &n.maxLength}); err != nil {
		return err
	}
	if source, ok := s["pattern"]; ok {
		var err error
		if n.pattern, err = c.regexp(source); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) arrays(n *node, at string, s map[string]any) error {
	n.unique, _ = s["uniqueItems"].(bool)
	err := counts(s, map[string]**int{"minItems": &n.minItems, "maxItems": &n.maxItems, "minContains": &n.minContains, "maxContains": &n.maxContains})
	if err != nil {
		return err
	}
	prefix, rest := "prefixItems", "items"
	if _, ok := s["items"].([]any); ok { // as draft-07 wrote it
		prefix, rest = "items", "additionalItems"
	}
	if n.prefix, err = c.list(at, prefix, s); err != nil {
		return err
	}
	if n.items, err = c.one(at, rest, s); err != nil {
		return err
	}
	n.contains, err = c.one(at, "contains", s)
	return err
}

func (c *compiler) objects(n *node, at string, s map[string]any) error {
	err := counts(s, map[string]**int{"minProperties": &n.minProps, "maxProperties": &n.maxProps})
	if err != nil {
		return err
	}
	if source, ok := s["required"]; ok {
		if n.required, err = texts(source); err != nil {
			return err
		}
	}
	if n.properties, err = c.byName(at, "properties", s); err != nil {
		return err
	}
	if n.additional, err = c.one(at, "additionalProperties", s); err != nil {
		return err
	}
	if n.names, err = c.one(at, "propertyNames", s); err != nil {
		return err
	}
	if err = c.patterns(n, at, s); err != nil {
		return err
	}
	return c.dependencies(n, at, s)
}

// patterns reads patternProperties. Which members belong to an unreadable pattern nobody here can tell, so then additionalProperties
// must not speak either.
func (c *compiler) patterns(n *node, at string, s map[string]any) error {
	nodes, err := c.byName(at, "patternProperties", s)
	if err != nil {
		return err
	}
	for text, member := range nodes {
		re, err := c.regexp(text)
		if err != nil {
			return err
		}
		if re == nil {
			n.additional = nil
			continue
		}
		n.patterned = append(n.patterned, patterned{re, member})
	}
	return nil
}

func (c *compiler) dependencies(n *node, at string, s map[string]any) error {
	n.dependentRequired, n.dependent = map[string][]string{}, map[string]*node{}
	for _, word := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		source, ok := s[word]
		if !ok {
			continue
		}
		members, ok := source.(map[string]any)
		if !ok {
			return errUnreadable
		}
		for name, member := range members {
			if names, err := texts(member); err == nil && word != "dependentSchemas" {
				n.dependentRequired[name] = append(n.dependentRequired[name], names...)
				continue
			}
			sub, err := c.node(pointer(at, word, name), member)
			if err != nil {
				return err
			}
			n.dependent[name] = sub
		}
	}
	return nil
}

func (c *compiler) combined(n *node, at string, s map[string]any) error {
	var err error
	for word, into := range map[string]*[]*node{"allOf": &n.allOf, "anyOf": &n.anyOf, "oneOf": &n.oneOf} {
		if *into, err = c.list(at, word, s); err != nil {
			return err
		}
	}
	for word, into := range map[string]**node{"not": &n.not, "if": &n.when, "then": &n.then, "else": &n.other} {
		if *into, err = c.one(at, word, s); err != nil {
			return err
		}
	}
	return nil
}
