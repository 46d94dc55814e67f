package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
)

// scripted is a stateless server that answers tools/call with whatever a test says.
func scripted(t testing.TB, call func(w http.ResponseWriter, id string)) *provider.Conn {
	t.Helper()
	return scriptedWithin(t, 2*time.Second, call)
}

func scriptedWithin(t testing.TB, timeout time.Duration, call func(w http.ResponseWriter, id string)) *provider.Conn {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(newPeek(r), &m)
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "server/discover":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`, m.ID)
		case "tools/list":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
		default:
			call(w, string(m.ID))
		}
	}))
	t.Cleanup(srv.Close)
	return connTo(t, srv.URL, bearer, provider.Settings{Timeout: timeout, MaxAnswer: 1 << 20})
}

func body(text string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) { _, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", id)) }
}

func status(code int, text string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", id))
	}
}

func stream(text string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", id))
	}
}

func rpcErr(code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":ID,"error":{"code":%d,"message":"m %s"}}`, code, bearer)
}

const fine = `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ok"}]}}`

// TestEveryAnswerHasItsOutcome is the table of what an answer to a write proves, and what the same answer is to a read.
func TestEveryAnswerHasItsOutcome(t *testing.T) {
	const (
		ok   = action.OutcomeSucceeded
		no   = action.OutcomeFailed
		open = action.OutcomeUncertain
		good = fault.Code("") // the read works
	)
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter, string)
		write  action.OutcomeKind
		read   fault.Code
	}{
		"a result":                   {body(fine), ok, good},
		"an event":                   {stream("event: message\ndata: " + fine + "\n\n"), ok, good},
		"an event after others":      {stream(": hi\n\nid: 1\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"id\":ID}}\r\n\r\ndata: " + fine + "\r\n\r\n"), ok, good},
		"an event in two lines":      {stream("data: {\"jsonrpc\":\"2.0\",\"id\":ID,\ndata: \"result\":{\"content\":[]}}\n\n"), ok, good},
		"a result without content":   {body(`{"jsonrpc":"2.0","id":ID,"result":{}}`), ok, good},
		"a complete result":          {body(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[]}}`), ok, good},
		"status 201":                 {status(201, fine), ok, good},
		"isError":                    {body(`{"jsonrpc":"2.0","id":ID,"result":{"isError":true,"content":[]}}`), open, good},
		"isError as text":            {body(`{"jsonrpc":"2.0","id":ID,"result":{"isError":"false","content":[]}}`), open, good},
		"a question back":            {body(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{}}}`), open, fault.UpstreamError},
		"a task":                     {body(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"task","task":{"taskId":"1"}}}`), open, fault.UpstreamError},
		"content that is no list":    {body(`{"jsonrpc":"2.0","id":ID,"result":{"content":"ok"}}`), open, fault.UpstreamError},
		"items that are no objects":  {body(`{"jsonrpc":"2.0","id":ID,"result":{"content":["ok"]}}`), open, fault.UpstreamError},
		"a result that is a list":    {body(`{"jsonrpc":"2.0","id":ID,"result":[]}`), open, fault.UpstreamError},
		"result null":                {body(`{"jsonrpc":"2.0","id":ID,"result":null}`), open, fault.UpstreamError},
		"two results":                {body(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"result":{"isError":true}}`), open, fault.UpstreamError},
		"a result and an error":      {body(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"error":{"code":-32602,"message":""}}`), open, fault.UpstreamError},
		"isError twice":              {body(`{"jsonrpc":"2.0","id":ID,"result":{"isError":true,"isError":false,"content":[]}}`), open, fault.UpstreamError},
		"another id":                 {body(`{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}`), open, fault.UpstreamError},
		"no id":                      {body(`{"jsonrpc":"2.0","result":{"content":[]}}`), open, fault.UpstreamError},
		"a batch":                    {body(`[` + fine + `]`), open, fault.UpstreamError},
		"half of it":                 {body(fine[:len(fine)-20]), open, fault.UpstreamError},
		"more after it":              {body(fine + "{}"), open, fault.UpstreamError},
		"nothing":                    {body(""), open, fault.UpstreamError},
		"a page":                     {body("<html>ok</html>"), open, fault.UpstreamError},
		"bad UTF-8":                  {body(`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + "\xff" + `"}]}}`), open, fault.UpstreamError},
		"too deep":                   {body(`{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}}`), open, fault.UpstreamError},
		"too much":                   {body(`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + strings.Repeat("a", 2<<20) + `"}]}}`), open, fault.ResultTooLarge},
		"an endless stream of notes": {stream(strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n", 40_000)), open, fault.ResultTooLarge},
		"a stream without an answer": {stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":ID}\n\n"), open, fault.ConnectionUnavailable},
		"an event cut off":           {stream("data: " + fine + "\n"), open, fault.ConnectionUnavailable},
		"an accepted request":        {status(202, ""), open, fault.UpstreamError},
		"error -32602":               {body(rpcErr(-32602)), no, good},
		"error -32601":               {body(rpcErr(-32601)), no, fault.UpstreamError},
		"error -32600 without an id": {body(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":""}}`), no, good},
		"error -32603":               {body(rpcErr(-32603)), open, good},
		"error -32000":               {body(rpcErr(-32000)), open, good},
		"an error that is no object": {body(`{"jsonrpc":"2.0","id":ID,"error":"x"}`), open, fault.UpstreamError},
		"status 400":                 {status(400, "no"), no, fault.UpstreamError},
		"status 400 with -32602":     {status(400, rpcErr(-32602)), no, good},
		"status 401":                 {status(401, "no"), no, fault.ConnectionUnavailable},
		"status 403":                 {status(403, "no"), no, fault.UpstreamError},
		"status 404":                 {status(404, "no"), no, fault.ConnectionUnavailable},
		"status 405":                 {status(405, ""), no, fault.ConnectionUnavailable},
		"status 413":                 {status(413, ""), no, fault.UpstreamError},
		"status 415":                 {status(415, ""), no, fault.UpstreamError},
		"status 422":                 {status(422, fine), no, fault.UpstreamError},
		"status 429":                 {status(429, ""), no, fault.UpstreamError},
		"status 307":                 {status(307, ""), no, fault.ConnectionUnavailable},
		"status 308":                 {status(308, ""), no, fault.ConnectionUnavailable},
		"status 302":                 {status(302, ""), open, fault.ConnectionUnavailable},
		"status 303":                 {status(303, fine), open, fault.ConnectionUnavailable},
		"status 408":                 {status(408, ""), open, fault.UpstreamTimeout},
		"status 409":                 {status(409, ""), open, fault.UpstreamError},
		"status 425":                 {status(425, ""), open, fault.UpstreamError},
		"status 499":                 {status(499, ""), open, fault.UpstreamError},
		"status 500":                 {status(500, fine), open, fault.UpstreamError},
		"status 500 with -32602":     {status(500, rpcErr(-32602)), open, fault.UpstreamError},
		"status 502":                 {status(502, "<html>"), open, fault.UpstreamError},
		"status 504":                 {status(504, ""), open, fault.UpstreamTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, test.answer)
			o := client.Execute(t.Context(), c, apply)
			if o.Kind() != test.write {
				t.Errorf("the write is %s, want %s: %s", o.Kind(), test.write, o.Sentence())
			}
			if test.write != ok && (o.Sentence() == "" || o.Code() == "") || strings.Contains(string(o.Result())+o.Sentence(), bearer) {
				t.Errorf("%q %q %s", o.Code(), o.Sentence(), o.Result())
			}
			r, err := client.Read(t.Context(), c, apply)
			f, _ := fault.As(err)
			switch {
			case test.read == good && err != nil, test.read != good && (f == nil || f.Code != test.read):
				t.Errorf("the read answers %s, %v; want %q", r.Raw, err, test.read)
			case err == nil && !json.Valid(r.Raw):
				t.Errorf("not JSON: %s", r.Raw)
			}
			if strings.Contains(string(r.Raw), bearer) || f != nil && strings.Contains(f.Error(), bearer) {
				t.Error("the credential came back")
			}
		})
	}
}

func TestWhatAnAgentMustNotSeeIsDropped(t *testing.T) {
	c := scripted(t, body(`{"jsonrpc":"2.0","id":ID,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"ttlMs":1,"x":2,"resultType":"complete",
		"content":[{"type":"text","text":"a \"_meta\" b","_meta":{"k":1},"annotations":{"priority":1}},
		{"type":"resource_link","uri":"https://x.example","icons":[{"src":"https://t.example/p.gif"}],"\u005fmeta":{}},
		{"type":"resource","resource":{"uri":"u","text":"t","_meta":{"z":1}}}],
		"structuredContent":{"_meta":"the tool's own data","n":12345678901234567890}}}`))
	r, err := client.Read(t.Context(), c, apply)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"content":[{"type":"text","text":"a \"_meta\" b","annotations":{"priority":1}},{"type":"resource_link","uri":"https://x.example"},` +
		`{"type":"resource","resource":{"uri":"u","text":"t"}}],"structuredContent":{"_meta":"the tool's own data","n":12345678901234567890}}`
	if string(r.Raw) != want {
		t.Errorf("got  %s\nwant %s", r.Raw, want)
	}
}

func TestACallThatIsNotOneObjectOfArgumentsIsNotSent(t *testing.T) {
	c := scripted(t, func(http.ResponseWriter, string) { t.Error("it was sent") })
	for _, arguments := range []string{`[]`, `{"a":1}}`, `{"a":1},"method":"x"`, `{`, `"x"`, `{} {}`} {
		call := provider.Call{Tool: "apply", Arguments: json.RawMessage(arguments)}
		if o := client.Execute(t.Context(), c, call); o.Kind() != action.OutcomeFailed || o.Code() != fault.InvalidArguments {
			t.Errorf("%s: %s %s", arguments, o.Kind(), o.Code())
		}
		if _, err := client.Read(t.Context(), c, call); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	if o := client.Execute(t.Context(), c, provider.Call{}); o.Kind() != action.OutcomeFailed {
		t.Errorf("%s", o.Kind())
	}
}

func TestAMissingScopeIsSaidToBeOne(t *testing.T) {
	c := scripted(t, func(w http.ResponseWriter, _ string) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		w.WriteHeader(http.StatusForbidden)
	})
	if _, err := client.Read(t.Context(), c, apply); !fault.Is(err, fault.NeedsConsent) {
		t.Error(err)
	}
}

func TestAStreamThatStaysOpenAfterItsAnswerIsNotWaitedFor(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	c := scriptedWithin(t, time.Hour, func(w http.ResponseWriter, id string) { // whoever waits does so until the tests are ended
		stream("data: "+fine+"\n\n")(w, id)
		_ = http.NewResponseController(w).Flush()
		<-done
	})
	if o := client.Execute(t.Context(), c, apply); o.Kind() != action.OutcomeSucceeded {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
	if _, err := client.Read(t.Context(), c, apply); err != nil {
		t.Error(err)
	}
}
