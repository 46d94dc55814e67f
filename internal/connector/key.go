// Package connector owns the immutable connector key: the name by which people, agents and the preferences document refer to one
// connection for ever. A key is generated once, never derived from a display name that may change, and never reused.
package connector

import (
	"crypto/rand"
	"regexp"
	"strings"

	"countersign/internal/fault"
)

// Key looks like "sandbox-crm-k4x7qa": the integration's name, shortened to 20 characters, and six random ones. It holds no
// underscore, so that the first "__" of a gateway tool name always splits key from tool.
type Key string

var shape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}-[a-z2-7]{6}$`)

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// NewKey generates a key for an integration. Integration is a manifest key: [a-z][a-z0-9-]*.
func NewKey(integration string) Key {
	base := strings.Trim(integration[:min(len(integration), 20)], "-")
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	for i := range b {
		b[i] = alphabet[b[i]%32]
	}
	return Key(base + "-" + string(b[:]))
}

// Parse accepts exactly the shape of a key.
func Parse(s string) (Key, error) {
	if !shape.MatchString(s) {
		return "", fault.Absent("connection")
	}
	return Key(s), nil
}

// String returns the key as text.
func (k Key) String() string { return string(k) }
