package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// caller is an agent's side of HTTP/1.1 on one kept connection, as cheap as can be: what it costs is in every figure.
type caller struct {
	conn net.Conn
	in   *bufio.Reader
	head []byte // of every request, up to the length of its body
	out  []byte
	body []byte // of the last answer
}

// dial opens a connection for posts to an address.
func dial(address string, header ...string) (*caller, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, 5*time.Second)
	if err != nil {
		return nil, err
	}
	head := "POST " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	for _, h := range header {
		head += h + "\r\n"
	}
	return &caller{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), head: []byte(head + "Content-Length: ")}, nil
}

func (c *caller) close() { _ = c.conn.Close() }

var errStatus = errors.New("the answer is no success")

// post sends a message and reads its answer into c.body, which the next post overwrites.
func (c *caller) post(message []byte) error {
	c.out = append(c.out[:0], c.head...)
	c.out = strconv.AppendInt(c.out, int64(len(message)), 10)
	c.out = append(append(c.out, "\r\n\r\n"...), message...)
	if err := c.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	ok := bytes.HasPrefix(line, []byte("HTTP/1.1 2"))
	status := string(bytes.TrimSpace(line))
	size := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); len(name) == len("content-length") && strings.EqualFold(string(name), "content-length") {
			if size, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if cap(c.body) < size {
		c.body = make([]byte, size)
	}
	c.body = c.body[:size]
	if _, err := io.ReadFull(c.in, c.body); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s: %.200s", errStatus, status, c.body)
	}
	return nil
}

// call is a tools/call.
func call(tool, message string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"message":"` + message + `"}}}`)
}

// sixtyFive is an argument of the usual size.
var sixtyFive = strings.Repeat("m", 65-len(`{"message":""}`))

// target is something that can be asked, by several at once.
type target struct {
	name  string
	pid   int // whose CPU is counted; 0: nobody's
	begin func(worker int) (ask func(n int) error, end func(), err error)
}

// posts is a target that is sent the same message again and again; holds is what each answer must contain.
func posts(name string, pid int, address, holds string, header []string, messages ...[]byte) target {
	return target{name: name, pid: pid, begin: func(int) (func(int) error, func(), error) {
		c, err := dial(address, header...)
		if err != nil {
			return nil, nil, err
		}
		ask := func(n int) error {
			for _, m := range messages {
				if err := c.post(m); err != nil {
					return err
				}
			}
			if !bytes.Contains(c.body[:min(len(c.body), 4<<10)], []byte(holds)) {
				return fmt.Errorf("%s answered %.300s", name, c.body)
			}
			return nil
		}
		return ask, c.close, nil
	}}
}
