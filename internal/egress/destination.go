package egress

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"countersign/internal/fault"
)

// Destination is a place that requests may go to. It is made by Public from what a person typed or the registry trusts, or by
// Operator from the operator's own file; nothing else makes one, and the zero value goes nowhere.
type Destination struct {
	url      string
	scheme   string
	host     string // lower case, without port
	port     string
	operator bool // the operator vouches for the address
}

// URL is the whole address as given.
func (d Destination) URL() string { return d.url }

// Host is the lower-case host name without a port.
func (d Destination) Host() string { return d.host }

// Origin is scheme, host and, where it is not the scheme's own, port.
func (d Destination) Origin() string {
	if d.host == "" {
		return ""
	}
	if d.scheme == databaseScheme || d.scheme == databaseSRV { // a list of servers is one place
		return d.url
	}
	host := d.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if d.port == defaultPort(d.scheme) {
		return d.scheme + "://" + host
	}
	return d.scheme + "://" + host + ":" + d.port
}

// IsZero reports whether d is the zero Destination.
func (d Destination) IsZero() bool { return d.host == "" }

// Overridden reports whether the operator vouches for this destination, so that its address may be private.
func (d Destination) Overridden() bool { return d.operator }

// Covers reports whether a URL is of this destination's origin.
func (d Destination) Covers(u *url.URL) bool {
	if d.IsZero() || u == nil || u.Opaque != "" || u.Scheme != d.scheme || strings.ToLower(u.Hostname()) != d.host {
		return false
	}
	port := u.Port()
	return port == d.port || port == "" && d.port == defaultPort(d.scheme)
}

// At is another address of the same origin, e.g. an API path; the guard on d covers it. Raw must be absolute.
func (d Destination) At(raw string) (Destination, error) {
	u, err := url.Parse(raw)
	if err != nil || OriginOf(u) != d.Origin() {
		return Destination{}, fault.Field("url", "The address is not on "+d.Origin()+".")
	}
	d.url = raw
	return d, nil
}

// Public is the rule for addresses at the time they are saved: one sentence per refusal. The rule for the addresses behind the
// name is applied at every dial.
func Public(raw string) (Destination, error) {
	u, err := parse(raw)
	if err != nil {
		return Destination{}, err
	}
	host := strings.ToLower(u.Hostname())
	if s := publicSentence(raw, u, host); s != "" {
		return Destination{}, fault.Field("url", s)
	}
	return Destination{url: raw, scheme: "https", host: host, port: "443"}, nil
}

// Operator makes a destination of an address from the operator's endpoints file. It may be private and plain HTTP: whoever can
// write that file can also change this program. Nothing a person types in a page may reach it.
func Operator(raw string) (Destination, error) {
	u, err := parse(raw)
	if err != nil {
		return Destination{}, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return Destination{}, fault.Field("url", "An operator's endpoint starts with http:// or https://.")
	}
	port := u.Port()
	if port == "" {
		port = defaultPort(u.Scheme)
	}
	return Destination{url: raw, scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: port, operator: true}, nil
}

// OriginOf is the origin of a URL in the form of Destination.Origin; empty where it has none.
func OriginOf(u *url.URL) string {
	if u == nil || u.Hostname() == "" || u.Opaque != "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = defaultPort(u.Scheme)
	}
	return Destination{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: port}.Origin()
}

// parse applies what holds for everybody: one reading only, no credential, no fragment.
func parse(raw string) (*url.URL, error) {
	for _, r := range raw {
		if r <= 0x20 || r == 0x7f || r == '\\' {
			return nil, fault.Field("url", "The address contains a space, a backslash or a control character.")
		}
		if r > 0x7e {
			return nil, fault.Field("url", "The address may hold ASCII only; write an international name in its xn-- form.")
		}
	}
	if len(raw) > 2048 {
		return nil, fault.Field("url", "The address is longer than 2048 characters.")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" || u.Hostname() == "" {
		return nil, fault.Field("url", "This is not a complete address; it looks like https://mcp.example.com/mcp.")
	}
	if u.User != nil {
		return nil, fault.Field("url", "The address contains a user name or password; credentials have their own field.")
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		return nil, fault.Field("url", "The address contains a fragment (#…), which is never sent to a server.")
	}
	if strings.HasSuffix(u.Host, ":") {
		return nil, fault.Field("url", "The address ends its host with a colon but names no port.")
	}
	return u, nil
}

// inward are names that only mean something inside a network.
var inward = []string{"localhost", "local", "internal", "svc", "cluster.local", "home.arpa", "onion", "test"}

func publicSentence(raw string, u *url.URL, host string) string {
	if !strings.HasPrefix(strings.ToLower(raw), "https://") {
		return "The address must start with https://, so that nobody on the way can read the credential."
	}
	if p := u.Port(); p != "" && p != "443" {
		return "The address must use port 443; other ports belong to things that are not public services."
	}
	return nameSentence(host)
}

// nameSentence is the rule for names of public services.
func nameSentence(host string) string {
	if isLiteral(host) {
		return "The address must name a host, not an IP address; a name can be certified and checked."
	}
	for _, name := range inward {
		if host == name || strings.HasSuffix(host, "."+name) {
			return "Names ending in ." + name + " belong to a private network; only public services can be connected."
		}
	}
	if !strings.Contains(host, ".") {
		return "The host must be a full name with a dot, like mcp.example.com."
	}
	if !wellFormed(host) {
		return "“" + host + "” is not a well-formed host name."
	}
	return ""
}

// isLiteral also finds the spellings that C resolvers read as addresses: 127.1, 2130706433, 0x7f.1. A last label that starts with
// a digit is never a top-level domain.
func isLiteral(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || net.ParseIP(host) != nil {
		return true
	}
	last := host[strings.LastIndex(strings.TrimSuffix(host, "."), ".")+1:]
	return last != "" && last[0] >= '0' && last[0] <= '9'
}

func wellFormed(host string) bool {
	if len(host) > 253 || strings.HasSuffix(host, ".") {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}

func defaultPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}
