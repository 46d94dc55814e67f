package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// check is one run over one value. Work is what is left to spend; once it is spent, over is set and nothing it says counts.
type check struct {
	work   int
	nested int
	over   bool
}

// broken is a rule that a value breaks: where, from the inside out, and what the rule says.
type broken struct {
	path []string
	rule string
}

func rule(format string, args ...any) *broken { return &broken{rule: fmt.Sprintf(format, args...)} }

func (b *broken) in(part string) *broken {
	b.path = append(b.path, part)
	return b
}

func (b *broken) sentence() string {
	if len(b.path) == 0 {
		return "The arguments " + b.rule + "."
	}
	path := slices.Clone(b.path)
	slices.Reverse(path)
	where := strings.Join(path, ".")
	if len(where) > 200 {
		where = where[:200] + "…"
	}
	return "The argument “" + strings.ToValidUTF8(where, "") + "” " + b.rule + "."
}

func (c *check) spend(n int) bool {
	if c.work -= n; c.work < 0 {
		c.over = true
	}
	return !c.over
}

func (c *check) value(n *node, v any) *broken {
	if c.nested++; c.nested > maxNested {
		c.over = true
	}
	defer func() { c.nested-- }()
	if !c.spend(1) {
		return nil
	}
	if n.never {
		return rule("is not allowed")
	}
	if n.ref != nil {
		if b := c.value(n.ref, v); b != nil {
			return b
		}
	}
	if b := c.itself(n, v); b != nil {
		return b
	}
	var b *broken
	switch v := v.(type) {
	case json.Number:
		b = c.number(n, v)
	case string:
		b = c.text(n, v)
	case []any:
		b = c.array(n, v)
	case map[string]any:
		b = c.object(n, v)
	}
	if b != nil {
		return b
	}
	return c.combined(n, v)
}

func (c *check) itself(n *node, v any) *broken {
	if len(n.types) > 0 && !slices.ContainsFunc(n.types, func(t string) bool { return isA(v, t) }) {
		return rule("must be of type %s", strings.Join(n.types, " or "))
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e any) bool { return c.equal(e, v) }) {
		return rule("is not one of the values that are allowed")
	}
	if n.isConst && !c.equal(n.constant, v) {
		return rule("is not the one value that is allowed")
	}
	return nil
}

func isA(v any, kind string) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	case json.Number:
		return kind == "number" || kind == "integer" && whole(v)
	}
	return false
}

func whole(n json.Number) bool {
	if !strings.ContainsAny(string(n), ".eE") {
		return true
	}
	r, ok := rational(n)
	return ok && r.IsInt()
}

// rational reads a number exactly. One with a huge exponent would need memory by its value rather than its length, and is refused.
func rational(n json.Number) (*big.Rat, bool) {
	text := string(n)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > 400 || e < -400 {
			return nil, false
		}
	}
	if text == "" || len(text) > 1000 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func (c *check) number(n *node, v json.Number) *broken {
	if n.multipleOf == nil && n.minimum == nil && n.maximum == nil && n.aboveMinimum == nil && n.belowMaximum == nil {
		return nil
	}
	r, ok := rational(v)
	c.spend(len(v))
	switch {
	case !ok:
		return rule("is a number outside the range that can be checked")
	case n.minimum != nil && r.Cmp(n.minimum) < 0:
		return rule("must be at least %s", plain(n.minimum))
	case n.maximum != nil && r.Cmp(n.maximum) > 0:
		return rule("must be at most %s", plain(n.maximum))
	case n.aboveMinimum != nil && r.Cmp(n.aboveMinimum) <= 0:
		return rule("must be more than %s", plain(n.aboveMinimum))
	case n.belowMaximum != nil && r.Cmp(n.belowMaximum) >= 0:
		return rule("must be less than %s", plain(n.belowMaximum))
	case n.multipleOf != nil && !new(big.Rat).Quo(r, n.multipleOf).IsInt():
		return rule("must be a multiple of %s", plain(n.multipleOf))
	}
	return nil
}

func plain(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func (c *check) text(n *node, v string) *broken {
	if n.minLength != nil || n.maxLength != nil {
		c.spend(len(v) / 64)
		length := utf8.RuneCountInString(v)
		if n.minLength != nil && length < *n.minLength {
			return rule("must be at least %d characters long", *n.minLength)
		}
		if n.maxLength != nil && length > *n.maxLength {
			return rule("must be at most %d characters long", *n.maxLength)
		}
	}
	if n.pattern != nil && c.spend(1+len(v)/4) && !n.pattern.matches(v) {
		return rule("does not have the form that the schema demands")
	}
	return nil
}

func (c *check) array(n *node, v []any) *broken {
	if n.minItems != nil && len(v) < *n.minItems {
		return rule("must have at least %d items", *n.minItems)
	}
	if n.maxItems != nil && len(v) > *n.maxItems {
		return rule("must have at most %d items", *n.maxItems)
	}
	for i, item := range v {
		sub := n.items
		if i < len(n.prefix) {
			sub = n.prefix[i]
		}
		if sub == nil {
			continue
		}
		if b := c.value(sub, item); b != nil {
			return b.in(strconv.Itoa(i))
		}
	}
	if n.unique && c.repeats(v) {
		return rule("must not hold the same item twice")
	}
	return c.containing(n, v)
}

func (c *check) repeats(v []any) bool {
	for i := range v {
		for j := range i {
			if c.over || c.equal(v[i], v[j]) {
				return true
			}
		}
	}
	return false
}

func (c *check) containing(n *node, v []any) *broken {
	if n.contains == nil {
		return nil
	}
	least, found := 1, 0
	if n.minContains != nil {
		least = *n.minContains
	}
	for _, item := range v {
		if c.value(n.contains, item) == nil {
			found++
		}
	}
	if found < least || n.maxContains != nil && found > *n.maxContains {
		return rule("does not hold the items that the schema demands")
	}
	return nil
}

func (c *check) object(n *node, v map[string]any) *broken {
	for _, name := range n.required {
		if _, ok := v[name]; !ok {
			return rule("must have the member “%s”", name)
		}
	}
	if n.minProps != nil && len(v) < *n.minProps {
		return rule("must have at least %d members", *n.minProps)
	}
	if n.maxProps != nil && len(v) > *n.maxProps {
		return rule("must have at most %d members", *n.maxProps)
	}
	if n.properties == nil && n.patterned == nil && n.additional == nil && n.names == nil && len(n.dependent) == 0 && len(n.dependentRequired) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v)) { // sorted: the same arguments get the same answer
		if b := c.member(n, v, name); b != nil {
			return b
		}
	}
	return nil
}

func (c *check) member(n *node, v map[string]any, name string) *broken {
	known := false
	if sub, ok := n.properties[name]; ok {
		known = true
		if b := c.value(sub, v[name]); b != nil {
			return b.in(name)
		}
	}
	for _, p := range n.patterned {
		if c.spend(1+len(name)/4) && p.pattern.matches(name) {
			known = true
			if b := c.value(p.node, v[name]); b != nil {
				return b.in(name)
			}
		}
	}
	if !known && n.additional != nil {
		if b := c.value(n.additional, v[name]); b != nil {
			return b.in(name)
		}
	}
	if n.names != nil && c.value(n.names, name) != nil {
		return rule("has a name that is not allowed").in(name)
	}
	for _, needed := range n.dependentRequired[name] {
		if _, ok := v[needed]; !ok {
			return rule("must have the member “%s” beside “%s”", needed, name)
		}
	}
	if sub, ok := n.dependent[name]; ok {
		return c.value(sub, v)
	}
	return nil
}

func (c *check) combined(n *node, v any) *broken {
	for _, sub := range n.allOf {
		if b := c.value(sub, v); b != nil {
			return b
		}
	}
	if n.anyOf != nil && !slices.ContainsFunc(n.anyOf, func(sub *node) bool { return c.value(sub, v) == nil }) {
		return rule("fits none of the forms that are allowed")
	}
	if n.oneOf != nil {
		fits := 0
		for _, sub := range n.oneOf {
			if c.value(sub, v) == nil {
				fits++
			}
		}
		if fits != 1 {
			return rule("must fit exactly one of the forms that are allowed, and fits %d", fits)
		}
	}
	if n.not != nil && c.value(n.not, v) == nil {
		return rule("has a form that is not allowed")
	}
	if n.when == nil {
		return nil
	}
	if c.value(n.when, v) == nil {
		if n.then != nil {
			return c.value(n.then, v)
		}
	} else if n.other != nil {
		return c.value(n.other, v)
	}
	return nil
}

// equal compares as JSON Schema does: 1 and 1.0 are the same number.
func (c *check) equal(a, b any) bool {
	if !c.spend(1) {
		return false
	}
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && c.sameNumber(a, b)
	case string:
		b, ok := b.(string)
		return ok && c.spend(len(a)/64) && a == b
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, c.equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, c.equal)
	}
	return a == b
}

func (c *check) sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	c.spend(len(a) + len(b))
	x, okX := rational(a)
	y, okY := rational(b)
	return okX && okY && x.Cmp(y) == 0
}
