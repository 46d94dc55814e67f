package capability

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"

	"countersign/internal/connector"
)

// MaxName is the longest tool name that every model API accepts.
const MaxName = 64

// Companion is the reserved prefix of our own tools.
const Companion = "countersign__"

const separator = "__"

var (
	unplain = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	lower32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// ShortName is a tool's name on the endpoint of its one connection: verbatim where it fits with the prefix and cannot be taken for a
// shortened one, else shortened and closed with 8 characters of its hash. The prefix counts here too, so that both endpoints agree.
func ShortName(key connector.Key, tool string) string {
	room := MaxName - len(key) - len(separator)
	if len(tool) <= room && plain(tool) && !suffixed(tool) {
		return tool
	}
	sum := sha256.Sum256([]byte(tool))
	tail := "_" + lower32.EncodeToString(sum[:])[:8]
	head := unplain.ReplaceAllString(tool, "_")
	return head[:min(len(head), room-len(tail))] + tail
}

// plain reports whether every model API accepts the characters of a name. It is asked by every call, as is the next.
func plain(tool string) bool {
	for i := range len(tool) {
		if c := tool[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return tool != ""
}

// suffixed reports whether a name ends as a shortened one does, in _ and 8 characters of base32.
func suffixed(tool string) bool {
	const length = 8
	if len(tool) <= length || tool[len(tool)-length-1] != '_' {
		return false
	}
	for _, c := range tool[len(tool)-length:] {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// Name is a tool's name on the endpoint of all connections.
func Name(key connector.Key, tool string) string {
	return key.String() + separator + ShortName(key, tool)
}

// Split takes a name of the endpoint of all connections apart. A key holds no underscore, so the first separator splits.
func Split(name string) (connector.Key, string, bool) {
	head, short, ok := strings.Cut(name, separator)
	if !ok {
		return "", "", false
	}
	key, err := connector.Parse(head)
	return key, short, err == nil
}
