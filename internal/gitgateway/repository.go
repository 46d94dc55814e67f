package gitgateway

import (
	"regexp"
	"strings"
)

// Pinned is a repository of a connection as it was first met: the name a person gave, GitHub's number, which it keeps for ever, and the name
// it has now where that is another one.
type Pinned struct {
	Name string // "owner/name" in lower case
	ID   int64
	Now  string // empty: still Name
}

var repositoryShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9._-]{1,100}$`)

// IsCommit reports whether s is the full id of a commit.
func IsCommit(s string) bool { return isOID(s) && s != Zero }

// IsRepository reports whether s is the name of a repository with its owner. Names that others answered are judged by it before they become
// part of an address.
func IsRepository(s string) bool {
	_, name, _ := strings.Cut(s, "/")
	return repositoryShape.MatchString(s) && name != "." && name != ".."
}
