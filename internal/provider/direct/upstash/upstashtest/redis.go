package upstashtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Redis starts a Redis of its own and answers where it listens: a redis-server where this machine has one, else miniredis, which behaves
// the same in what the tests here ask.
func Redis(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return miniredis.RunT(t).Addr()
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = free.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() { // drained to its end, or the server would block
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "Ready to accept connections") {
				ready <- true
			}
		}
		close(ready)
	}()
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	select {
	case up := <-ready:
		if !up {
			t.Fatal("redis-server ended")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("redis-server is not ready")
	}
	return address
}

// line is one connection that speaks RESP.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(address string) (*line, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn)}, nil
}

// refusal is an error of Redis.
type refusal string

func (r refusal) Error() string { return string(r) }

// do runs one command. A refusal is an error; null is nil.
func (l *line) do(words ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(l.conn, b.String()); err != nil {
		return nil, err
	}
	return l.reply()
}

func (l *line) reply() (any, error) {
	head, err := l.in.ReadString('\n')
	if err != nil || len(head) < 3 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	rest := strings.TrimRight(head[1:], "\r\n")
	switch head[0] {
	case '+':
		return rest, nil
	case '-':
		return nil, refusal(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 {
		return nil, err
	}
	if head[0] == '$' {
		text := make([]byte, n+2)
		_, err := io.ReadFull(l.in, text)
		return string(text[:n]), err
	}
	out := make([]any, n)
	for i := range out {
		var no refusal
		out[i], err = l.reply()
		if errors.As(err, &no) {
			out[i] = no
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}
