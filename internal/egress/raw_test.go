package egress

import (
	"errors"
	"net"
	"testing"
)

// Servers are learned from records and from other servers; one that is slipped in is refused before its name is looked up.
func TestOnlyServersOfTheSameDomainAreDialled(t *testing.T) {
	for typed, cases := range map[string]map[string]bool{
		"mongodb://db1.shop.example:27017": {
			"db1.shop.example:27017": true, "db2.shop.example:27018": true, "db.evil.example:27017": false, "shop.example:27017": false, "127.0.0.1:27017": false,
			"db1.shop.example:22": false, "db1.shop.example.evil.example:27017": false, "db1.shop.example.:27017": false, "[::1]:27017": false, "localhost:27017": false, "/tmp/mongodb-27017.sock": false,
		},
		"mongodb+srv://cluster0.ab12c.mongodb.net": {"cluster0-shard-00-00.ab12c.mongodb.net:27017": true, "cluster0-shard-00-00.zz99z.mongodb.net:27017": false},
		"mongodb://shop.co.uk:27017":               {"shop.co.uk:27017": true, "evil.co.uk:27017": false},
	} {
		d, err := Database(typed)
		if err != nil {
			t.Fatal(err)
		}
		r := Through(d)
		for address, want := range cases {
			if r.ours(address) != want {
				t.Errorf("%s for %s: want %t", address, typed, want)
			}
			if want {
				continue
			}
			if _, err := r.DialContext(t.Context(), "tcp", address); !errors.Is(err, ErrRefused) {
				t.Errorf("%s for %s: %v", address, typed, err)
			}
		}
		if _, err := r.DialContext(t.Context(), "unix", "db1.shop.example:27017"); !errors.Is(err, ErrRefused) {
			t.Error("a socket file is dialled")
		}
	}
}

// An operator's endpoint is one server, whatever that server says of others.
func TestAnOperatorsDatabaseIsOneServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := Operator("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Through(d).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := Through(d).DialContext(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	if d, err = Operator("https://" + l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_ = c.Close()
		}
	}()
	if _, err := Through(d).DialContext(t.Context(), "tcp", l.Addr().String()); FailureOf(err) != Broken && FailureOf(err) != Untrusted {
		t.Errorf("without TLS it is %v", err)
	}
}
