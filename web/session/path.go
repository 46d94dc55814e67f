package session

import (
	"net/url"
	"strings"
)

// maxPath bounds what sign-in carries along.
const maxPath = 1024

// OwnPath returns where to go after signing in, or "/" for anything that is not plainly a path of this server. A browser reads
// "//host", "/\host" and "/<tab>/host" as another host, so all of these are refused rather than repaired.
func OwnPath(to string) string {
	if len(to) > maxPath || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\#") {
		return "/"
	}
	if strings.ContainsFunc(to, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
		return "/"
	}
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") || strings.ContainsAny(u.Path, "\\") {
		return "/"
	}
	if u.Path == "/sign-in" || u.Path == "/sign-out" {
		return "/"
	}
	return to
}
