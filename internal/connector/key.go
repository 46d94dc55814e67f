// Package connector owns the immutable connector key: the name by which people, agents and the preferences document refer to one
// connection for ever. A key is generated once, never derived from a display name that may change, and never reused.
package connector

import (
	"crypto/rand"
	"strings"

	"countersign/internal/fault"
)

// Key looks like "sandbox-crm-k4x7qa": the integration's name, shortened to 20 characters, and six random ones. It holds no
// underscore, so that the first "__" of a gateway tool name always splits key from tool.
type Key string

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
	if !shaped(s) {
		return "", fault.Absent("connection")
	}
	return Key(s), nil
}

// shaped reports whether s is ^[a-z][a-z0-9-]{0,19}-[a-z2-7]{6}$. Every call of a tool asks, so it is no regular expression.
func shaped(s string) bool {
	const random = 6
	dash := len(s) - random - 1
	if dash < 1 || dash > 20 || s[dash] != '-' || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range dash {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	for i := dash + 1; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// String returns the key as text.
func (k Key) String() string { return string(k) }
