package mcpclient

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// message is one JSON-RPC message to send. Params is the body of the params object without braces; empty for none.
type message struct {
	method  string
	name    string // of the tool, for tools/call
	params  []byte
	headers map[string]string
	notify  bool // a notification: no id, no answer
}

// answer is what came back, whatever its status.
type answer struct {
	status    int
	session   string // as given with an initialize answer
	challenge string // WWW-Authenticate
	result    []byte // the result as it came; nil if there is none
	tool      toolResult
	failure   *rpcError
	buffer    *bytes.Buffer // the memory of result and tool, if it is to be used again
}

// buffers holds the memory of answers between reads.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keptBuffer is the largest buffer worth keeping.
const keptBuffer = 1 << 20

// release gives the memory of the answer back. After it neither the result nor a part of it may be used.
func (a *answer) release() {
	if a.buffer != nil && a.buffer.Cap() <= keptBuffer {
		a.buffer.Reset()
		buffers.Put(a.buffer)
	}
	a.buffer, a.result, a.tool = nil, nil, toolResult{}
}

// rpcError is a JSON-RPC error. The message is the upstream's text and as untrusted as a result.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// The codes that decide something. From -32020 on they are the protocol's own.
const (
	codeParse          = -32700
	codeRequest        = -32600
	codeMethod         = -32601
	codeParams         = -32602
	codeHeaderMismatch = -32020
	codeVersion        = -32022
)

// errAnswer is an answer with a good status that is not what the protocol promises.
var errAnswer = errors.New("the answer is not one JSON-RPC response to this request")

// drainLimit is how long an event stream may take to end after its answer, for its connection to be kept.
const drainLimit = 20 * time.Millisecond

// post sends one message and reads its answer. The error is about the exchange itself: with it, what is known of the answer's
// status is in the answer.
func (l link) post(ctx context.Context, hc *http.Client, e *era, m message) (answer, error) {
	id := l.up.lastID.Add(1)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.endpoint.URL, bytes.NewReader(l.client.body(e, id, m)))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", "Countersign")
	e.mark(req.Header, m)
	resp, err := hc.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, session: resp.Header.Get("Mcp-Session-Id"), challenge: resp.Header.Get("WWW-Authenticate")}
	if m.notify {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		return a, err
	}
	text, err := l.response(resp, id, &a)
	if err != nil {
		return a, err
	}
	return a, a.parse(text, id)
}

// response finds the bytes of the JSON-RPC response in an HTTP answer.
func (l link) response(resp *http.Response, id int64, a *answer) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "text/event-stream" {
		a.buffer = buffers.Get().(*bytes.Buffer)
		if n := resp.ContentLength; n > 0 && n < keptBuffer {
			a.buffer.Grow(int(n) + bytes.MinRead) // once, and with room to find the end in
		}
		_, err := a.buffer.ReadFrom(resp.Body)
		return a.buffer.Bytes(), err
	}
	events := newEvents(resp.Body)
	for {
		data, err := events.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the stream ended without the answer
			}
			return nil, err
		}
		if answers(data, id) {
			drain(resp.Body)
			return data, nil
		}
	}
}

// drain reads the usual nothing that follows the answer, so that the connection can serve again. Closing the body ends it early.
func drain(body io.Reader) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, body)
		close(done)
	}()
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}

// answers reports whether an event is the response with this id; the others are notifications and questions of the server.
func answers(data []byte, id int64) bool {
	found, isCall := false, false
	s := scanner{b: data}
	_ = s.members(func(key, value []byte) error {
		switch string(key) {
		case "id":
			found = sameID(value, id)
		case "method":
			isCall = true
		}
		return nil
	})
	return found && !isCall
}

func sameID(value []byte, id int64) bool { return string(value) == strconv.FormatInt(id, 10) }

// parse checks the whole text once and keeps its result or error. An error answer without JSON (a proxy's page, say) is judged by
// its status alone.
func (a *answer) parse(text []byte, id int64) error {
	var result, failure, gotID []byte
	seen := map[string]bool{}
	s := scanner{b: text}
	err := s.object(func(key []byte) error {
		if seen[string(key)] {
			return errJSON // which of the two counts depends on the reader
		}
		seen[string(key)] = true
		var err error
		switch string(key) {
		case "result":
			result, err = s.result(&a.tool)
		case "error":
			failure, err = s.value()
		case "id":
			gotID, err = s.value()
		default:
			err = s.skip()
		}
		return err
	})
	if err == nil && !s.end() {
		err = errJSON
	}
	a.tool.clean = !s.unwanted
	if a.status >= 300 && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if failure != nil && string(failure) != "null" && result == nil {
		// A request that could not be read is answered without its id.
		if !sameID(gotID, id) && gotID != nil && string(gotID) != "null" {
			return errAnswer
		}
		a.failure = new(rpcError)
		if json.Unmarshal(failure, a.failure) != nil {
			a.failure = nil
			return errAnswer
		}
		return nil
	}
	if a.status >= 300 {
		return nil
	}
	if result == nil || failure != nil || !sameID(gotID, id) {
		return errAnswer
	}
	a.result = result
	return nil
}

// identification is how the client introduces itself, as prepared JSON.
type identification struct {
	info string
	meta string
}

func identify(name, version string) identification {
	info, err := json.Marshal(map[string]string{"name": name, "version": version})
	if err != nil {
		panic(err) // two strings always encode
	}
	return identification{
		info: string(info),
		meta: `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":` + string(info) +
			`,"io.modelcontextprotocol/clientCapabilities":{}}`,
	}
}

// body writes a message. The arguments of a call are appended as they are: what people approved is what travels.
func (c *Client) body(e *era, id int64, m message) []byte {
	b := make([]byte, 0, len(m.params)+len(m.method)+len(c.self.meta)+96)
	b = append(b, `{"jsonrpc":"2.0",`...)
	if !m.notify {
		b = strconv.AppendInt(append(b, `"id":`...), id, 10)
		b = append(b, ',')
	}
	b = append(append(append(b, `"method":"`...), m.method...), `","params":{`...)
	b = append(b, m.params...)
	if e.isModern() {
		if len(m.params) > 0 {
			b = append(b, ',')
		}
		b = append(b, c.self.meta...)
	}
	return append(b, "}}"...)
}

// headerText makes any text fit for a header, as 2026-07-28 prescribes.
func headerText(s string) string {
	safe := s == strings.TrimSpace(s) && (!strings.HasPrefix(s, "=?base64?") || !strings.HasSuffix(s, "?="))
	for i := 0; safe && i < len(s); i++ {
		safe = s[i] >= 0x20 && s[i] <= 0x7e
	}
	if safe {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
