package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"countersign/internal/fault"
)

// The schemes of destinations that are no HTTP: a list of servers, or a name whose SRV record lists them.
const (
	databaseScheme = "mongodb"
	databaseSRV    = "mongodb+srv"
	databasePort   = "27017"
	maxServers     = 50
)

// Database is the rule for the servers of a database, written scheme://host:port,host:port without a user, a path or options. It is
// Public for a protocol that is not HTTP: names only, public ones, and TLS on every connection.
func Database(raw string) (Destination, error) {
	scheme, list, ok := strings.Cut(raw, "://")
	if !ok || (scheme != databaseScheme && scheme != databaseSRV) {
		return Destination{}, fault.Field("url", "The address must start with mongodb:// or mongodb+srv://.")
	}
	servers := strings.Split(list, ",")
	if len(servers) > maxServers || scheme == databaseSRV && len(servers) != 1 {
		return Destination{}, fault.Field("url", "The address names too many servers.")
	}
	for i, s := range servers {
		host, port, err := server(s, scheme == databaseSRV)
		if err != nil {
			return Destination{}, err
		}
		servers[i] = host
		if scheme == databaseScheme {
			servers[i] = net.JoinHostPort(host, port)
		}
	}
	slices.Sort(servers)
	servers = slices.Compact(servers)
	host, port, err := net.SplitHostPort(servers[0])
	if err != nil {
		host, port = servers[0], databasePort
	}
	return Destination{url: scheme + "://" + strings.Join(servers, ","), scheme: scheme, host: host, port: port}, nil
}

// server holds one server to the rule for names.
func server(s string, srv bool) (host, port string, err error) {
	host, port = strings.ToLower(strings.TrimSuffix(s, ".")), databasePort
	if h, p, found := strings.Cut(host, ":"); found {
		host, port = h, p
	}
	why := nameSentence(host)
	n, bad := strconv.Atoi(port)
	switch {
	case srv && strings.Contains(s, ":"):
		why = "A mongodb+srv:// address names no port: the record has the ports."
	case bad != nil || n < 1024 || n > 65535 || strconv.Itoa(n) != port:
		why = "A database listens on a port from 1024 to 65535."
	case srv && strings.Count(host, ".") < 2:
		why = "A mongodb+srv:// address has at least three parts, like cluster0.example.mongodb.net."
	}
	if why != "" {
		return "", "", fault.Field("url", why)
	}
	return host, port, nil
}

// Login is what authenticates where a protocol cannot be authorised by editing a request: the driver itself has to know the password. It
// takes the password out of answers again. Egress does not know what it holds.
type Login interface {
	Present(use func(user, password string))
	Option(name string) string
	Redact([]byte) []byte
}

// Raw opens connections of one destination for a driver that speaks a protocol of its own. Each is TLS, verified for the name that was
// asked for, unless the operator's endpoints file says http. It is used where net/http cannot be.
type Raw struct{ destination Destination }

// Through makes the Raw of a destination.
func Through(d Destination) *Raw { return &Raw{d} }

// One is the single server that an operator's own endpoint leads to.
func (r *Raw) One() (server string, ok bool) {
	return net.JoinHostPort(r.destination.host, r.destination.port), r.destination.operator
}

// Servers are the servers to begin with, and what else the record of the name says. The driver looks nothing up itself: it would ask the
// system's resolver and believe the answer.
func (r *Raw) Servers(ctx context.Context) (servers []string, options url.Values, err error) {
	_, list, _ := strings.Cut(r.destination.url, "://")
	if r.destination.scheme != databaseSRV {
		return strings.Split(list, ","), nil, nil
	}
	_, records, err := resolver.LookupSRV(ctx, "mongodb", "tcp", list)
	if err != nil {
		return nil, nil, err
	}
	for _, rec := range records[:min(len(records), maxServers)] {
		at := net.JoinHostPort(strings.ToLower(strings.TrimSuffix(rec.Target, ".")), strconv.Itoa(int(rec.Port)))
		if !r.ours(at) {
			return nil, nil, ErrRefused
		}
		servers = append(servers, at)
	}
	if texts, err := resolver.LookupTXT(ctx, list); err == nil && len(texts) == 1 {
		options, _ = url.ParseQuery(texts[0])
	}
	return servers, options, nil
}

// ours reports whether a server that a record or the other servers name may belong to this destination: it has a public name in the domain
// of one that a person typed. Anything else is a server that somebody slipped in.
func (r *Raw) ours(address string) bool {
	host, port, err := server(address, false)
	if err != nil {
		return false
	}
	_, list, _ := strings.Cut(r.destination.url, "://")
	for typed := range strings.SplitSeq(list, ",") {
		if typed == net.JoinHostPort(host, port) {
			return true
		}
		name, _, _ := strings.Cut(typed, ":")
		_, domain, _ := strings.Cut(name, ".")
		if everybodys, _ := publicsuffix.PublicSuffix(domain); domain != everybodys && strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// DialContext opens a connection to a server of the destination. A driver learns servers while it runs, so this is where each of them
// meets the rule, every time.
func (r *Raw) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if one, only := r.One(); only {
		if address != one || !strings.HasPrefix(network, "tcp") {
			return nil, ErrRefused
		}
		raw, err := (&net.Dialer{Timeout: dialTimeout, Resolver: resolver}).DialContext(ctx, "tcp", address)
		if err != nil || r.destination.scheme == "http" {
			return raw, err
		}
		return secured(ctx, raw, r.destination.host)
	}
	if !strings.HasPrefix(network, "tcp") || !r.ours(address) {
		return nil, ErrRefused
	}
	host, port, err := server(address, false)
	if err != nil {
		return nil, ErrRefused
	}
	addresses, err := publicAddresses(ctx, host)
	if err != nil {
		return nil, err
	}
	raw, err := dialAny(ctx, addresses, port)
	if err != nil {
		return nil, err
	}
	return secured(ctx, raw, host)
}

func secured(ctx context.Context, raw net.Conn, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	c := tls.Client(raw, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, handshakeError{err}
	}
	return c, nil
}

// FailureOf says what went wrong on a connection.
func FailureOf(err error) Failure {
	if err == nil {
		return ""
	}
	return failureOf(err)
}
