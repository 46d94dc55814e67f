package mongodb

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// applied is a document as an update would leave it, as far as that is certain; false where the server's own rules would be needed. It is
// for the preview and for the look after a lost answer: the update itself is the server's work.
func applied(doc, u bson.D) (bson.D, bool) {
	out := clone(doc)
	for _, op := range u {
		fields, ok := op.Value.(bson.D)
		if !ok {
			return nil, false
		}
		for _, f := range fields {
			path := strings.Split(f.Key, ".")
			if out, ok = step(out, path, op.Key, f.Value); !ok {
				return nil, false
			}
		}
	}
	return out, true
}

// step applies one operator to one field. A path through a list is left to the server.
func step(doc bson.D, path []string, operator string, value any) (bson.D, bool) {
	at := -1
	for i, e := range doc {
		if e.Key == path[0] {
			at = i
		}
	}
	if len(path) > 1 {
		inside := bson.D{}
		if at >= 0 {
			var ok bool
			if inside, ok = doc[at].Value.(bson.D); !ok {
				return nil, false
			}
		} else if operator == "$unset" {
			return doc, true
		}
		changed, ok := step(clone(inside), path[1:], operator, value)
		if !ok {
			return nil, false
		}
		return put(doc, at, path[0], changed), true
	}
	if strings.HasPrefix(path[0], "$") {
		return nil, false
	}
	var was any
	if at >= 0 {
		was = doc[at].Value
	}
	return leaf(doc, at, path[0], was, operator, value)
}

func leaf(doc bson.D, at int, name string, was any, operator string, value any) (bson.D, bool) {
	switch operator {
	case "$set":
		return put(doc, at, name, value), true
	case "$unset":
		if at < 0 {
			return doc, true
		}
		return append(doc[:at:at], doc[at+1:]...), true
	case "$inc":
		if at < 0 {
			return put(doc, at, name, value), true
		}
		sum, ok := add(was, value)
		return put(doc, at, name, sum), ok
	case "$push":
		if each, ok := value.(bson.D); ok && len(each) > 0 && strings.HasPrefix(each[0].Key, "$") {
			return nil, false
		}
		list, ok := was.(bson.A)
		if at >= 0 && !ok {
			return nil, false
		}
		return put(doc, at, name, append(append(bson.A{}, list...), value)), true
	}
	return nil, false
}

func put(doc bson.D, at int, name string, value any) bson.D {
	if at < 0 {
		return append(doc, bson.E{Key: name, Value: value})
	}
	doc[at].Value = value
	return doc
}

// add adds as the server does: ints stay ints until they overflow, a long stays a long, a double wins. Decimals are left to the server.
func add(a, b any) (any, bool) {
	x, xWide, xReal, ok := number(a)
	y, yWide, yReal, ok2 := number(b)
	switch {
	case !ok || !ok2:
		return nil, false
	case xReal != nil || yReal != nil:
		return asReal(x, xReal) + asReal(y, yReal), true
	}
	sum := x + y
	if (sum > x) != (y > 0) && y != 0 {
		return nil, false // the server refuses to overflow a long
	}
	if xWide || yWide || sum > math.MaxInt32 || sum < math.MinInt32 {
		return sum, true
	}
	return int32(sum), true
}

func number(v any) (n int64, wide bool, fraction *float64, ok bool) {
	switch x := v.(type) {
	case int32:
		return int64(x), false, nil, true
	case int64:
		return x, true, nil, true
	case float64:
		return 0, false, &x, true
	}
	return 0, false, nil, false
}

func asReal(n int64, fraction *float64) float64 {
	if fraction != nil {
		return *fraction
	}
	return float64(n)
}

func clone(d bson.D) bson.D { return append(bson.D{}, d...) }

func member(d bson.D, name string) (any, bool) {
	for _, e := range d {
		if e.Key == name {
			return e.Value, true
		}
	}
	return nil, false
}
