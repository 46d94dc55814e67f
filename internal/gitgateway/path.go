package gitgateway

import (
	"regexp"
	"strings"

	"countersign/internal/fault"
)

// Address is what a request of git is for.
type Address struct {
	Connection string
	Repository string // "owner/name", as written
	Service    Service
	Advertises bool // it asks what there is; else it is the exchange itself
}

// addressShape is every path that is served. A workspace writes its remotes with or without .git, and git puts what it replaces in front
// of what is left, so that a second .git can stand at the end; no repository's name ends in one.
var addressShape = regexp.MustCompile(`^([a-z][a-z0-9-]{2,40})/([A-Za-z0-9][A-Za-z0-9._-]{0,99})/([A-Za-z0-9][A-Za-z0-9._-]{0,99}?)\.git(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

// ReadAddress reads the raw path behind /gateway/git/ and the query of a request. What is not git's smart protocol is refused in words.
func ReadAddress(raw, query string) (Address, error) {
	if strings.Contains(raw, "/info/lfs/") || strings.HasSuffix(raw, "/info/lfs") {
		return Address{}, refuse(fault.InvalidArguments, "Git LFS is not served: its files travel by other addresses with credentials of their own.", "Work without LFS files: set GIT_LFS_SKIP_SMUDGE=1, and push no LFS objects.")
	}
	m := addressShape.FindStringSubmatch(raw)
	if m == nil || strings.Contains(raw, "..") || strings.HasSuffix(m[3], ".git") {
		return Address{}, refuse(fault.InvalidArguments, "This address is none of git's smart protocol.", "Use the git remote of the gateway configuration with an unmodified git.")
	}
	a := Address{Connection: m[1], Repository: m[2] + "/" + m[3], Advertises: m[4] == "info/refs", Service: Service(m[4])}
	if !a.Advertises {
		return a, nil
	}
	switch query {
	case "service=git-upload-pack":
		a.Service = UploadPack
	case "service=git-receive-pack":
		a.Service = ReceivePack
	default:
		return Address{}, refuse(fault.InvalidArguments, "Only git's smart protocol is served.", "Use an unmodified git of version 2.20 or newer.")
	}
	return a, nil
}

// Fail is how a fetch is told, in place of its answer, that there is none.
func Fail(words string) []byte { return appendPkt(nil, "ERR "+Clip(oneLine(words), 4000)) }
