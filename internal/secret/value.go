// Package secret owns what must not be seen: Value, which prints as a placeholder in every format and refuses to be marshalled, and
// the keyset that seals values so that a sealed one opens only where it belongs (organization, connection, field, version). It
// never stores, sends or logs one, and knows nothing of databases or providers.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"

	"countersign/internal/fault"
)

// Placeholder is what a Value prints as.
const Placeholder = "[redacted]"

// Value is a secret in memory. It is empty as a zero value. The text sits behind a pointer so that printing a struct that holds a
// Value in an unexported field, where fmt calls no method, shows an address instead of the text.
type Value struct{ text *string }

// New makes a Value of s.
func New(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{text: &s}
}

// Reveal is the one way out.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.text == nil }

// Equal compares in constant time for values of equal length.
func (v Value) Equal(other Value) bool {
	return subtle.ConstantTimeCompare([]byte(v.Reveal()), []byte(other.Reveal())) == 1
}

// Fingerprint is the first 12 hex characters of the SHA-256: enough to tell two credentials apart, useless for getting one back as
// long as the secret itself is random.
func (v Value) Fingerprint() string {
	if v.IsZero() {
		return ""
	}
	sum := sha256.Sum256([]byte(v.Reveal()))
	return hex.EncodeToString(sum[:6])
}

// Last4 is the last four characters, or nothing where they would be a large part of a short secret.
func (v Value) Last4() string {
	r := []rune(v.Reveal())
	if len(r) < 16 {
		return ""
	}
	return string(r[len(r)-4:])
}

// Format implements fmt.Formatter: every verb and flag prints the placeholder.
func (v Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Placeholder) }

// String implements fmt.Stringer.
func (v Value) String() string { return Placeholder }

// GoString implements fmt.GoStringer.
func (v Value) GoString() string { return Placeholder }

// LogValue implements slog.LogValuer.
func (v Value) LogValue() slog.Value { return slog.StringValue(Placeholder) }

var errMarshal = fault.New(fault.Internal, fault.CodeInternal, "A secret was about to be written out; that is refused.", "Leave it out of what is encoded.")

// MarshalJSON refuses: a secret in JSON is a mistake, and a placeholder would hide it.
func (v Value) MarshalJSON() ([]byte, error) { return nil, errMarshal }

// MarshalText refuses, for TOML, XML, URL queries and whatever else asks.
func (v Value) MarshalText() ([]byte, error) { return nil, errMarshal }

// MarshalBinary refuses, for gob.
func (v Value) MarshalBinary() ([]byte, error) { return nil, errMarshal }
