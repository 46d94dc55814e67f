// Package canonical owns the one canonical form of a JSON text: what is shown, hashed and sent is the same bytes. Keys are in the
// order of RFC 8785 (UTF-16 code units), strings use its shortest escapes, there is no white space, and numbers stay exactly as
// they were written, because 12345678901234567890 must not become 12345678901234567000 on its way to a provider. It refuses what
// two parsers could read differently (duplicate keys, invalid UTF-8, lone surrogates). It never interprets what a text means.
package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"countersign/internal/fault"
)

// DefaultDepth is how deeply arrays and objects may nest.
const DefaultDepth = 64

// Limits bounds one parse. The zero value means DefaultDepth and no bound on size.
type Limits struct {
	Depth int // nesting; 0 means DefaultDepth
	Bytes int // size of the source text; 0 means unbounded
}

// Canonicalize returns the canonical form of src under the default limits.
func Canonicalize(src []byte) ([]byte, error) { return Limits{}.Canonicalize(src) }

// Check reports whether src is a text that Canonicalize accepts.
func Check(src []byte) error {
	_, err := Canonicalize(src)
	return err
}

// Canonicalize returns the canonical form of src. The fault names the offset, never the text: arguments may be private.
func (l Limits) Canonicalize(src []byte) ([]byte, error) {
	root, err := l.read(src)
	if err != nil {
		return nil, err
	}
	return root.append(make([]byte, 0, len(src))), nil
}

// Object is Canonicalize for a text that must be an object, without the named top-level members.
func (l Limits) Object(src []byte, without ...string) ([]byte, error) {
	root, err := l.read(src)
	if err != nil {
		return nil, err
	}
	if root.members == nil {
		return nil, refuse("This is not a JSON object.", 0)
	}
	return root.appendObject(make([]byte, 0, len(src)), without), nil
}

// Object is Limits.Object under the default limits.
func Object(src []byte, without ...string) ([]byte, error) { return Limits{}.Object(src, without...) }

// Digest is the lower-case hex SHA-256 of b.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Decode returns what src says, as encoding/json would with numbers as written: nil, bool, json.Number, string, []any or map[string]any.
func Decode(src []byte) (any, error) {
	root, err := Limits{}.read(src)
	if err != nil {
		return nil, err
	}
	return root.decoded(), nil
}

func (l Limits) read(src []byte) (value, error) {
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	if l.Bytes > 0 && len(src) > l.Bytes {
		return value{}, fault.New(fault.TooLarge, fault.CodeTooLarge, "The JSON text is larger than "+strconv.Itoa(l.Bytes)+" bytes.", "Send less at once.")
	}
	p := parser{src: src, depth: l.Depth}
	return p.document()
}

func refuse(what string, offset int) error {
	return fault.New(fault.Invalid, fault.InvalidArguments, what+" (byte "+strconv.Itoa(offset)+")", "Send one valid JSON text.")
}
