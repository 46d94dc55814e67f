package mongotest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/internal/provider/direct/directtest"
)

// slowness is how long a slow answer takes.
const slowness = 200 * time.Millisecond

// Effect is one line of the journal: a command that the server carried out, with its collection.
type Effect struct{ Command, Collection string }

// Door stands before the server. It passes every message as it is, except where a fault is armed, and answers for the one command that
// FerretDB does not know whole: what the user may do.
type Door struct {
	URL        string // as an operator's endpoint
	Privileges bson.A // of the user, as connectionStatus lists them

	server   string
	mu       sync.Mutex
	armed    map[string]directtest.Mode
	journal  []Effect
	requests []string
	gone     chan struct{}
}

func open(t testing.TB, server string) *Door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{URL: "http://" + l.Addr().String(), server: server, armed: map[string]directtest.Mode{}, gone: make(chan struct{})}
	d.Privileges = Grants("shop", "find", "insert", "update", "remove", "listCollections", "listIndexes", "collStats", "dbStats", "killCursors")
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { d.serve(c) })
		}
	})
	t.Cleanup(func() { close(d.gone); _ = l.Close(); serving.Wait() })
	return d
}

// Grants is one entry of a user's privileges on a database.
func Grants(database string, actions ...string) bson.A {
	return bson.A{bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: database}, {Key: "collection", Value: ""}}}, {Key: "actions", Value: actions}}}
}

// Break arms one fault for the next time a command comes.
func (d *Door) Break(command string, m directtest.Mode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed[command] = m
}

// Mend disarms every fault.
func (d *Door) Mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.armed)
}

// Effects are the effects of one command, or all where it is empty.
func (d *Door) Effects(command string) []Effect {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.journal), func(e Effect) bool { return command != "" && e.Command != command })
}

// Requests are the commands asked for so far, without those by which a driver keeps a connection.
func (d *Door) Requests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.requests)
}

// keeping are the commands of a driver's own.
var keeping = []string{"", "hello", "isMaster", "ismaster", "saslStart", "saslContinue", "ping", "endSessions"}

func (d *Door) take(command string) directtest.Mode {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, command)
	m := d.armed[command]
	delete(d.armed, command)
	return m
}

var errReset = errors.New("reset")

// serve is one connection of a client, with one to the server for it.
func (d *Door) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", d.server)
	if err != nil {
		return
	}
	defer s.Close()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-d.gone:
			_ = c.Close()
			_ = s.Close()
		case <-ended:
		}
	}()
	for {
		asked, err := message(c)
		if err != nil {
			return
		}
		if err := d.pass(c, s, asked); err != nil {
			if tcp, ok := c.(*net.TCPConn); ok && errors.Is(err, errReset) {
				_ = tcp.SetLinger(0)
			}
			return
		}
	}
}

// pass brings one message to the server and its answer back, or does what is armed.
func (d *Door) pass(c, s net.Conn, asked []byte) error {
	command, body := read(asked)
	mode := directtest.Mode("")
	if !slices.Contains(keeping, command) {
		mode = d.take(command)
	}
	switch mode {
	case directtest.Hang:
		<-d.gone
		return errReset
	case directtest.Reset:
		return errReset
	case directtest.Reject:
		return send(c, asked, bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 121}, {Key: "errmsg", Value: "Document failed validation"}}}}})
	}
	if command == "connectionStatus" {
		return send(c, asked, bson.D{{Key: "authInfo", Value: bson.D{{Key: "authenticatedUserPrivileges", Value: d.Privileges}}}, {Key: "ok", Value: 1.0}})
	}
	if command == "distinct" {
		asked = untimed(asked, body)
	}
	if _, err := s.Write(asked); err != nil {
		return err
	}
	answer, err := message(s)
	if err != nil {
		return err
	}
	d.note(command, body, answer)
	return d.answer(c, asked, answer, mode)
}

func (d *Door) answer(c net.Conn, asked, answer []byte, mode directtest.Mode) error {
	switch mode {
	case directtest.ApplyThenHang:
		<-d.gone
		return errReset
	case directtest.ApplyThenReset:
		return errReset
	case directtest.ApplyThen500: // a server that stops after it has done the work
		return send(c, asked, bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 11600}, {Key: "codeName", Value: "InterruptedAtShutdown"}, {Key: "errmsg", Value: "interrupted at shutdown"}})
	case directtest.ApplyThenTruncate:
		_, _ = c.Write(answer[:len(answer)/2])
		return errReset
	case directtest.Slow:
		select {
		case <-time.After(slowness):
		case <-d.gone:
		}
	}
	_, err := c.Write(answer)
	return err
}

// note writes down what the server says it did.
func (d *Door) note(command string, body bson.Raw, answer []byte) {
	if !slices.Contains([]string{"insert", "update", "delete"}, command) {
		return
	}
	_, reply := read(answer)
	n, _ := reply.Lookup("n").AsInt64OK()
	if _, err := reply.LookupErr("writeErrors"); err == nil || n == 0 {
		return
	}
	collection, _ := body.Lookup(command).StringValueOK()
	d.mu.Lock()
	defer d.mu.Unlock()
	for range n {
		d.journal = append(d.journal, Effect{command, collection})
	}
}

// message reads one message of the wire protocol.
func message(from io.Reader) ([]byte, error) {
	head := make([]byte, 16)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head)
	if n < 16 || n > 48<<20 {
		return nil, errReset
	}
	all := make([]byte, n)
	copy(all, head)
	_, err := io.ReadFull(from, all[16:])
	return all, err
}

// read is the document of an OP_MSG and the command it names.
func read(m []byte) (string, bson.Raw) {
	if len(m) < 26 || binary.LittleEndian.Uint32(m[12:]) != 2013 || m[20] != 0 {
		return "", nil
	}
	body := bson.Raw(m[21:])
	if n := int(binary.LittleEndian.Uint32(body)); n >= 5 && n <= len(body) {
		body = body[:n]
	}
	first, err := body.IndexErr(0)
	if err != nil {
		return "", body
	}
	return first.Key(), body
}

// untimed is a message without the member that FerretDB does not know of this one command; MongoDB takes it with every command.
func untimed(asked []byte, body bson.Raw) []byte {
	var doc, kept bson.D
	if bson.Unmarshal(body, &doc) != nil {
		return asked
	}
	for _, e := range doc {
		if e.Key != "maxTimeMS" {
			kept = append(kept, e)
		}
	}
	raw, err := bson.Marshal(kept)
	if err != nil {
		return asked
	}
	m := append(slices.Clone(asked[:21]), raw...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	return m
}

// send answers a message with a document.
func send(c net.Conn, asked []byte, doc bson.D) error {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return err
	}
	m := make([]byte, 21, 21+len(raw))
	binary.LittleEndian.PutUint32(m, uint32(21+len(raw)))
	copy(m[8:12], asked[4:8]) // which message is answered
	binary.LittleEndian.PutUint32(m[12:], 2013)
	_, err = c.Write(append(m, raw...))
	return err
}
