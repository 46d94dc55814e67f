package credential

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"countersign/internal/fault"
)

// taken are headers with a meaning of their own that are written for every request, or that servers and proxies act on.
var taken = []string{"Www-Authenticate", "Last-Event-Id", "User-Agent", "Referer", "Date", "X-Real-Ip", "X-Http-Method-Override", "Traceparent", "Tracestate"}

// CheckNamed says what is wrong with a header name that a person typed for a credential.
func CheckNamed(name string) error {
	canonical := http.CanonicalHeaderKey(name)
	refuse := func(sentence string) error { return fault.Field("header", sentence) }
	switch {
	case name == "":
		return refuse("The header has no name; the server's documentation says which it wants, like X-Api-Key.")
	case len(name) > 64 || !httpguts.ValidHeaderFieldName(name):
		return refuse("This is not the name of a header: letters, digits and dashes alone, at most 64, without a colon.")
	case canonical == "Authorization":
		return refuse("The header Authorization is that of a bearer token; choose “With a bearer token” instead.")
	case canonical == "Cookie" || canonical == "Cookie2" || canonical == "Set-Cookie":
		return refuse("A credential may not travel in a cookie: cookies belong to a browser's session, which no connection has.")
	case strings.HasPrefix(canonical, "Mcp-"):
		return refuse("Headers that begin with Mcp- belong to the protocol itself and are written for each call.")
	case steers(canonical), strings.HasPrefix(canonical, "Proxy-"), strings.HasPrefix(canonical, "Sec-"), strings.HasPrefix(canonical, "Content-"),
		strings.HasPrefix(canonical, "Accept-"), strings.HasPrefix(canonical, "Access-Control-"), strings.HasPrefix(canonical, "If-"), slices.Contains(taken, canonical):
		return refuse("The header " + canonical + " decides where a request goes or how it is read; a credential needs one of its own, like X-Api-Key.")
	}
	return nil
}
