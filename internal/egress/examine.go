package egress

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Part is a part of the way to a destination.
type Part string

// The parts, in the order in which a connection meets them.
const (
	AtName    Part = "name"    // its name has an address
	AtAddress Part = "address" // every address is one that may be dialled, and one of them answers
	AtTLS     Part = "tls"     // it proves to be who it is called
)

// Way is what was met on the way to a destination.
type Way struct {
	Stopped Part      // where it ended; empty where nothing stood in the way
	Failure Failure   // how
	Plain   bool      // it leads over plain HTTP, which only an operator can have said
	Until   time.Time // when the certificate ends
}

// Examine goes to a destination as every request does, by the same rules, and sends nothing. A database is several servers, which its
// connection finds itself: there is no way of its own to examine.
func Examine(ctx context.Context, d Destination) Way {
	dial := dialer{d}
	raw, err := dial.plain(ctx, "tcp", net.JoinHostPort(d.host, d.port))
	if err != nil {
		w := Way{Stopped: AtAddress, Failure: failureOf(err)}
		if w.Failure == Unresolved {
			w.Stopped = AtName
		}
		return w
	}
	if d.scheme != "https" {
		_ = raw.Close()
		return Way{Plain: true}
	}
	c, err := dial.shake(ctx, raw)
	if err != nil {
		return Way{Stopped: AtTLS, Failure: failureOf(err)}
	}
	defer func() { _ = c.Close() }()
	return Way{Until: c.ConnectionState().PeerCertificates[0].NotAfter}
}

// shake proves who is at the other end, or closes it.
func (d dialer) shake(ctx context.Context, raw net.Conn) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	c := tls.Client(raw, &tls.Config{ServerName: d.destination.host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, handshakeError{err}
	}
	return c, nil
}
