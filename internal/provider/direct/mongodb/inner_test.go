package mongodb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func message(t *testing.T, command bson.D) []byte {
	t.Helper()
	raw, err := bson.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	m := make([]byte, 21, 21+len(raw))
	binary.LittleEndian.PutUint32(m, uint32(21+len(raw)))
	binary.LittleEndian.PutUint32(m[12:], opMessage)
	return append(m, raw...)
}

// Whatever the driver does, a command with an effect passes once.
func TestACommandWithAnEffectPassesOnce(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	arrived := make(chan []byte, 8)
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := theirs.Read(b)
			if err != nil {
				return
			}
			arrived <- bytes.Clone(b[:n])
		}
	}()
	w := &watch{}
	first, second := &watched{Conn: ours, watch: w}, &watched{Conn: ours, watch: w}
	for _, harmless := range []bson.D{{{Key: "hello", Value: 1}}, {{Key: "find", Value: "insert"}}, {{Key: "saslStart", Value: 1}, {Key: "insert", Value: "x"}}} {
		if _, err := first.Write(message(t, harmless)); err != nil {
			t.Fatal(err)
		}
		<-arrived
	}
	if _, sent := w.seen(); sent {
		t.Error("a command without an effect counts as one")
	}
	m := message(t, bson.D{{Key: "update", Value: "customers"}})
	if _, err := first.Write(m); err != nil {
		t.Fatal(err)
	}
	<-arrived
	for _, c := range []*watched{first, second} {
		for _, name := range []string{"update", "insert", "delete"} {
			if _, err := c.Write(message(t, bson.D{{Key: name, Value: "customers"}})); !errors.Is(err, errTwice) {
				t.Errorf("%s passes a second time: %v", name, err)
			}
		}
	}
	if e, sent := w.seen(); !sent || e.BytesWritten != int64(len(m)) || len(arrived) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestWhatAUserMayDoBeyondIsSaid(t *testing.T) {
	on := func(db, collection string, actions ...string) (p privilege) {
		p.Resource.DB, p.Resource.Collection, p.Actions = db, collection, actions
		return p
	}
	cluster := privilege{Actions: []string{"listDatabases", "shutdown"}}
	cluster.Resource.Cluster = true
	for name, c := range map[string]struct {
		list []privilege
		says []string
	}{
		"exactly enough":     {[]privilege{on("shop", "", "find", "insert", "update", "remove", "listCollections", "listIndexes", "dbStats")}, []string{"no more"}},
		"reading alone":      {[]privilege{on("shop", "", "find")}, []string{"only read"}},
		"the role readWrite": {[]privilege{on("shop", "", "find", "insert", "dropCollection", "createIndex"), on("shop", "system.js", "find", "insert")}, []string{"createIndex, dropCollection"}},
		"another database":   {[]privilege{on("shop", "", "find", "insert"), on("payroll", "", "find")}, []string{"also reaches payroll"}},
		"every database":     {[]privilege{on("", "", "find", "insert")}, []string{"change every database"}},
		"reading everything": {[]privilege{on("", "", "find")}, []string{"read every database", "only read"}},
		"the cluster":        {[]privilege{on("shop", "", "find", "insert"), cluster}, []string{"whole cluster: shutdown"}},
		"nothing is known":   {nil, []string{"does not say"}},
	} {
		got := strings.Join(words(c.list, "shop"), " ")
		for _, want := range c.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
