package mongodb

import (
	"context"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// reachWithin bounds finding a server that can serve a call.
const reachWithin = 5 * time.Second

// session is the client for reads of one connection. It ends with the Conn.
type session struct {
	mu     sync.Mutex
	client *mongo.Client
	closed bool
}

// Close ends the client once what is under way has ended.
func (s *session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if c := s.client; c != nil {
		s.client = nil
		go disconnect(c)
	}
}

func disconnect(c *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), egress.DefaultTimeout)
	defer cancel()
	_ = c.Disconnect(ctx) // what it could not end in time is cut off, and there is nobody to tell
}

// reader is the connection's client for reads, made at its first use.
func reader(ctx context.Context, l *direct.Link, e provider.Endpoint) (*mongo.Client, error) {
	s := provider.Remember(l.Conn, func() *session { return &session{} })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, provider.Unreachable("The connection was closed.", context.Canceled)
	}
	if s.client == nil {
		c, err := connect(ctx, e, e.Raw, 16)
		if err != nil {
			return nil, err
		}
		s.client = c
	}
	return s.client, nil
}

// dialer opens connections; egress.Raw, or one that watches what goes over them.
type dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// connect makes a client from the parts of the connection string. The string itself is never given to the driver, which would open files,
// ask the machine for credentials and look up names for it. Connections come encrypted from the dialer, so the driver knows no TLS and
// asks no OCSP responder.
func connect(ctx context.Context, e provider.Endpoint, through dialer, pool uint64) (*mongo.Client, error) {
	o := options.Client().SetDialer(through).SetAppName("countersign").SetMaxPoolSize(pool).SetServerSelectionTimeout(reachWithin).
		SetConnectTimeout(reachWithin).SetRetryWrites(false).SetRetryReads(true).SetHeartbeatInterval(30 * time.Second).
		SetReadPreference(preference(e.Login.Option("readpreference")))
	if c := e.Login.Option("readconcernlevel"); c != "" {
		o.SetReadConcern(&readconcern.ReadConcern{Level: c})
	}
	source, set := e.Login.Option("authsource"), e.Login.Option("replicaset")
	if one, only := e.Raw.One(); only {
		o.SetHosts([]string{one}).SetDirect(true)
	} else {
		servers, record, err := e.Raw.Servers(ctx)
		if err != nil {
			return nil, provider.Unreachable("The servers of the database cannot be found.", err)
		}
		o.SetHosts(servers)
		if source == "" {
			source = record.Get("authSource")
		}
		if set == "" {
			set = record.Get("replicaSet")
		}
		if set != "" {
			o.SetReplicaSet(set)
		}
	}
	if source == "" {
		source = "admin"
	}
	e.Login.Present(func(user, password string) {
		o.SetAuth(options.Credential{AuthMechanism: e.Login.Option("authmechanism"), AuthSource: source, Username: user, Password: password, PasswordSet: true})
	})
	c, err := mongo.Connect(o)
	if err != nil {
		return nil, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The driver refuses the connection string of this connection.", provider.EnterAnother)
	}
	return c, nil
}

func preference(name string) *readpref.ReadPref {
	mode, err := readpref.ModeFromString(name)
	if err != nil {
		return readpref.Primary()
	}
	p, err := readpref.New(mode)
	if err != nil {
		return readpref.Primary()
	}
	return p
}

// concern is how sure the servers are before they say that a write is applied: a majority, unless the connection string says otherwise.
func concern(l egress.Login) bson.D {
	w := writeconcern.Majority().W
	if l.Option("w") != "" && l.Option("w") != "majority" {
		n := int32(0)
		for _, d := range l.Option("w") { // digits alone: see credential.ConnectionString
			n = n*10 + d - '0'
		}
		w = n
	}
	return bson.D{{Key: "w", Value: w}, {Key: "j", Value: true}}
}

// ask runs one command that changes nothing, and answers what the server said. The driver tells the server the context's deadline, so that
// it stops as well when nobody waits any more.
func ask(ctx context.Context, l *direct.Link, database string, command bson.D) (bson.Raw, error) {
	e, err := l.Conn.Endpoint(role)
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, l)
	defer cancel()
	c, err := reader(ctx, l, e)
	if err != nil {
		return nil, err
	}
	raw, err := c.Database(database).RunCommand(ctx, command, options.RunCmd().SetReadPreference(preference(e.Login.Option("readpreference")))).Raw()
	if err != nil {
		return nil, explained(e.Login, err)
	}
	return raw, nil
}

func within(ctx context.Context, l *direct.Link) (context.Context, context.CancelFunc) {
	timeout := l.Conn.Settings.Timeout
	if timeout <= 0 {
		timeout = egress.DefaultTimeout
	}
	return context.WithTimeout(ctx, timeout)
}
