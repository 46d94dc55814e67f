package proof

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cutter stands between a server and PostgreSQL as a socket of its own. It reads what the server says, so that it can do the one thing no
// network would do on purpose: lose a connection exactly at a COMMIT.
type cutter struct {
	dir, real string

	mu     sync.Mutex
	armed  *cut
	heard  int // messages of the server
	alarms map[int][]chan struct{}
}

// cut is an accident that waits for the COMMIT of a transaction that ran a statement.
type cut struct {
	statement string // part of it; empty: of any transaction
	before    bool   // PostgreSQL never hears the COMMIT; else it does, and the answer is lost or held
	hold      bool   // the answer is held until release
	met       chan struct{}
	release   chan struct{}
}

const socket = ".s.PGSQL.5432"

func newCutter(t *testing.T, real string) *cutter {
	t.Helper()
	dir, err := os.MkdirTemp("", "cut")
	must(t, err)
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	must(t, err)
	c := &cutter{dir: dir, real: real, alarms: map[int][]chan struct{}{}}
	t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(dir) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

// arm makes the next fitting COMMIT an accident.
func (c *cutter) arm(statement string, before, hold bool) *cut {
	a := &cut{statement: statement, before: before, hold: hold, met: make(chan struct{}), release: make(chan struct{})}
	c.mu.Lock()
	c.armed = a
	c.mu.Unlock()
	return a
}

func (c *cutter) disarm() {
	c.mu.Lock()
	c.armed = nil
	c.mu.Unlock()
}

// after is closed when the server has said n more messages to PostgreSQL, over all its connections.
func (c *cutter) after(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	alarm := make(chan struct{})
	if n <= 0 {
		close(alarm)
		return alarm
	}
	c.alarms[c.heard+n] = append(c.alarms[c.heard+n], alarm)
	return alarm
}

func (c *cutter) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard++
	for _, alarm := range c.alarms[c.heard] {
		close(alarm)
	}
	delete(c.alarms, c.heard)
}

// meets takes the armed accident if it is for a transaction that ran these statements.
func (c *cutter) meets(ran []string) *cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.armed
	if a == nil || !strings.Contains(strings.Join(ran, "\n"), a.statement) {
		return nil
	}
	c.armed = nil
	close(a.met)
	return a
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", filepath.Join(c.real, socket))
	if err != nil {
		return
	}
	defer server.Close()
	gate := &gate{to: client}
	go func() {
		_, _ = io.Copy(gate, server)
		_ = client.Close()
	}()
	c.forward(client, server, gate)
}

// gate passes PostgreSQL's answers on, or holds them.
type gate struct {
	to io.Writer

	mu   sync.Mutex
	held chan struct{} // nil: open
	shut bool          // answers are lost
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	held, shut := g.held, g.shut
	g.mu.Unlock()
	if held != nil {
		<-held
	}
	if shut {
		return 0, io.ErrClosedPipe
	}
	return g.to.Write(b)
}

// forward copies the server's messages: a length of four bytes first, then one with a letter in front each time. Statements are known by
// the name they were prepared under.
func (c *cutter) forward(client io.Reader, server io.Writer, g *gate) {
	prepared, ran := map[string]string{}, []string(nil)
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[:4]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		if n < 0 || n > 64<<20 {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if !first {
			c.hear()
			words := strings.SplitN(string(body), "\x00", 3)
			switch {
			case head[0] == 'P':
				prepared[words[0]] = words[1]
			case head[0] == 'B' && len(ran) < 1000:
				ran = append(ran, prepared[words[1]])
			case head[0] == 'Q' && strings.EqualFold(words[0], "commit"):
				a := c.meets(ran)
				ran = nil
				if a != nil {
					if !c.accident(a, append(head, body...), server, g) {
						return
					}
					continue
				}
			case head[0] == 'Q':
				if strings.HasPrefix(strings.ToLower(words[0]), "begin") {
					ran = nil
				}
				ran = append(ran, words[0])
			}
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// accident happens at a COMMIT; it reports whether the connection goes on.
func (c *cutter) accident(a *cut, commit []byte, server io.Writer, g *gate) bool {
	if a.before {
		return false
	}
	g.mu.Lock()
	g.shut = !a.hold
	if a.hold {
		g.held = a.release
	}
	g.mu.Unlock()
	if _, err := server.Write(commit); err != nil || !a.hold {
		// PostgreSQL commits although nobody hears it: what was written to its socket before the end is still read.
		return false
	}
	<-a.release
	g.mu.Lock()
	g.held = nil
	g.mu.Unlock()
	return true
}
