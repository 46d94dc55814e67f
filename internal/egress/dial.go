package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
)

// resolver is Go's own: the C library reads 127.1 and 2130706433 as loopback.
var resolver = &net.Resolver{PreferGo: true}

// maxAttempts bounds how many addresses of one name are tried.
const maxAttempts = 4

type dialer struct{ destination Destination }

type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

// plain opens a connection to the destination and to nothing else.
func (d dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != d.destination.host || port != d.destination.port {
		return nil, ErrRefused
	}
	if d.destination.operator {
		return (&net.Dialer{Timeout: dialTimeout, Resolver: resolver}).DialContext(ctx, "tcp", addr)
	}
	addresses, err := publicAddresses(ctx, host)
	if err != nil {
		return nil, err
	}
	return dialAny(ctx, addresses, port)
}

// publicAddresses refuses a whole set when one address in it is private: an attacker who controls the name would otherwise
// only have to wait for the right one to be picked.
func publicAddresses(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for i, a := range found {
		found[i] = a.Unmap()
		if !publicAddress(found[i]) {
			slog.WarnContext(ctx, "a name leads to an address that is not public; nothing was dialled", "host", host, "address", found[i].String())
			return nil, ErrRefused
		}
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return found[:min(len(found), maxAttempts)], nil
}

func dialAny(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, ControlContext: checkDialled}
	var failed error
	for _, a := range addresses {
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
		if err == nil {
			return c, nil
		}
		failed = err
		if ctx.Err() != nil || errors.Is(err, ErrRefused) {
			break
		}
	}
	return nil, failed
}

// checkDialled sees the address that is really dialled, after every look-up: there is no window for a name that changes its mind.
func checkDialled(ctx context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !publicAddress(ap.Addr()) {
		slog.WarnContext(ctx, "an address that is not public was not dialled", "address", address)
		return ErrRefused
	}
	return nil
}

func (d dialer) tls(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := d.plain(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c, err := d.shake(ctx, raw)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func failureOf(err error) Failure {
	var (
		dns       *net.DNSError
		handshake handshakeError
		op        *net.OpError
		timeout   net.Error
	)
	switch {
	case errors.Is(err, ErrRefused):
		return Refused
	case errors.Is(err, ErrTooLarge):
		return Oversized
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.As(err, &dns):
		return Unresolved
	case errors.Is(err, ErrLate), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	case errors.As(err, &handshake):
		return Untrusted
	case errors.As(err, &op) && op.Op == "dial":
		return Undialled
	default:
		return Broken
	}
}
