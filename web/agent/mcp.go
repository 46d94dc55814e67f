package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gateway"
	"countersign/internal/run"
	"countersign/web/answer"
)

// maxMessage is the largest JSON-RPC message of an agent, in bytes.
const maxMessage = 4 << 20

// Runs finds a live run by the hash of its token. capability.Store is one.
type Runs interface {
	ByToken(ctx context.Context, hash []byte) (capability.Live, error)
}

// mcp is the JSON-RPC edge of the gateway. It is written by hand because the official SDK's costs seven times as much per call; the SDK
// stays where it is measured against (tests) and on the client side. It keeps no state between requests: no session, no stream.
type mcp struct {
	runs    Runs
	gateway *gateway.Gateway
	self    string // serverInfo, as JSON
	words   *words // nil: the endpoint has tools alone
}

// NewMCP answers POST /gateway/mcp and POST /gateway/mcp/{connector key} with the bearer token of a live run, for MCP clients of
// 2026-07-28 and of the 2025 revisions, and every other method with 405. Version is that of this program.
func NewMCP(runs Runs, g *gateway.Gateway, version string, options ...Option) http.Handler {
	self, _ := json.Marshal(map[string]string{"name": "countersign", "title": "Countersign", "version": version}) // strings always marshal
	m := &mcp{runs: runs, gateway: g, self: string(self)}
	for _, o := range options {
		o(m)
	}
	return m
}

// NewConfig answers GET /gateway/config: what an agent runtime sets its client up with. It names no provider and holds no credential.
func NewConfig(runs Runs, publicURL string) http.Handler {
	return ofRun(runs, func(_ context.Context, live capability.Live) (any, error) {
		return capability.ConfigOf(live, publicURL), nil
	})
}

// NewPreflight answers GET /gateway/preflight: for each tool of the run whether a call would be allowed, staged or refused, why, and what
// is left of the limits. No upstream is asked.
func NewPreflight(runs Runs, g *gateway.Gateway) http.Handler {
	return ofRun(runs, func(ctx context.Context, live capability.Live) (any, error) { return g.Preflight(ctx, live) })
}

// ofRun answers what a run may read about itself.
func ofRun(runs Runs, read func(context.Context, capability.Live) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		live, err := authenticate(runs, r)
		if err != nil {
			turnAway(w, r, err)
			return
		}
		document, err := read(r.Context(), live)
		if err != nil {
			turnAway(w, r, err)
			return
		}
		body, _ := json.Marshal(document) // texts, numbers and times always marshal
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body)
	})
}

func (m *mcp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "This endpoint answers POST only: it keeps no stream and no session.", http.StatusMethodNotAllowed)
		return
	}
	if status, what := acceptable(r); status != 0 {
		http.Error(w, what, status)
		return
	}
	live, err := authenticate(m.runs, r)
	if err != nil {
		turnAway(w, r, err)
		return
	}
	body, err := read(w, r)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			reply{status: http.StatusRequestEntityTooLarge}.fail(codeInvalidRequest, "The message is larger than 4 MiB.").write(w)
			return
		}
		reply{status: http.StatusBadRequest}.fail(codeParse, "The message could not be read.").write(w)
		return
	}
	m.answer(r, live, endpoint(r.URL.Path), body).write(w)
}

// endpoint is the connection of the address, empty on the one for all. What is no key names no connection of any run.
func endpoint(path string) connector.Key {
	_, key, _ := strings.Cut(strings.TrimSuffix(path, "/"), "/gateway/mcp/")
	return connector.Key(key)
}

// acceptable checks the headers of a POST. The transport demands that a client takes both forms of answer, though ours is always JSON;
// one that sends no Accept at all takes anything.
func acceptable(r *http.Request) (status int, what string) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || kind != "application/json":
		return http.StatusUnsupportedMediaType, "A message is sent as application/json."
	case r.Header.Get("Content-Encoding") != "" && !strings.EqualFold(r.Header.Get("Content-Encoding"), "identity"):
		return http.StatusUnsupportedMediaType, "A message is sent without content encoding."
	case r.ContentLength > maxMessage:
		return http.StatusRequestEntityTooLarge, "The message is larger than 4 MiB."
	case !accepts(r.Header.Values("Accept"), "application/json"):
		return http.StatusNotAcceptable, "The answer is application/json; accept it, as the transport demands, beside text/event-stream."
	}
	return 0, ""
}

func accepts(values []string, kind string) bool {
	major, _, _ := strings.Cut(kind, "/")
	for _, v := range values {
		for _, part := range strings.Split(v, ",") {
			name, _, _ := strings.Cut(part, ";")
			if name = strings.ToLower(strings.TrimSpace(name)); name == kind || name == "*/*" || name == major+"/*" {
				return true
			}
		}
	}
	return len(values) == 0
}

var (
	badToken   = fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "The run token is missing, wrong, expired or of an ended run.", "Start a run and use its token.")
	noDatabase = fault.New(fault.Unavailable, fault.CodeUnavailable, "The server cannot check run tokens just now.", "Try again in a moment.")
)

// authenticate finds the live run of the bearer. Every reason for a token not to do looks the same, and what is no token of ours does not
// reach the database.
func authenticate(runs Runs, r *http.Request) (capability.Live, error) {
	token, _ := bearer(r)
	return authenticateToken(r.Context(), runs, token)
}

func authenticateToken(ctx context.Context, runs Runs, token string) (capability.Live, error) {
	if !strings.HasPrefix(token, run.TokenPrefix) || len(token) > 100 {
		return capability.Live{}, badToken
	}
	live, err := runs.ByToken(ctx, run.HashToken(token))
	if err == nil {
		return live, nil
	}
	if f, ok := fault.As(err); ok && (f.Kind == fault.Unauthenticated || f.Kind == fault.NotFound) {
		return capability.Live{}, badToken
	}
	return capability.Live{}, noDatabase.Wrap(err)
}

// turnAway answers before the run is known, always with the same bytes for the same status.
func turnAway(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.Of(err)
	if f.Kind == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	} else {
		w.Header().Set("Retry-After", "1")
	}
	answer.JSON(w, r, f)
}

func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, maxMessage)
	if n := r.ContentLength; n > 0 { // known and within the bound
		out := make([]byte, n)
		_, err := io.ReadFull(body, out)
		return out, err
	}
	return io.ReadAll(body)
}

// reply is one HTTP answer with a JSON-RPC message, or without a body.
type reply struct {
	status int    // 0 is 200
	id     []byte // as the request wrote it; nil is null
	result []byte // an object, sent as it is
	tools  []byte // in place of result: an array, the member "tools" of it
	extra  string // members put before those of result, each with a comma behind it
	err    *rpcError
	empty  bool
	later  bool // the caller may try again in a moment
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (a reply) fail(code int, message string) reply {
	a.err = &rpcError{Code: code, Message: message}
	return a
}

func (a reply) failWith(code int, message string, data any) reply {
	a.err = &rpcError{code, message, data}
	return a
}

// write sends the reply. A large result is sent from where it is, never copied into a bigger buffer.
func (a reply) write(w http.ResponseWriter) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.empty {
		w.WriteHeader(a.status)
		return
	}
	id := a.id
	if id == nil {
		id = []byte("null")
	}
	head, tail := `{"jsonrpc":"2.0","id":`+string(id)+`,"result":{`+a.extra, "}"
	body := a.result
	switch {
	case a.err != nil:
		raw, err := json.Marshal(a.err)
		if err != nil {
			slog.Error("an error of ours does not marshal", "error", err)
			raw = []byte(`{"code":-32603,"message":"Something went wrong on our side."}`)
		}
		head, body = `{"jsonrpc":"2.0","id":`+string(id)+`,"error":`, raw
	case a.tools != nil:
		head, body, tail = head+`"tools":`, a.tools, "}}"
	default:
		if body = body[1:]; len(body) == 1 { // an empty object
			head = strings.TrimSuffix(head, ",")
		}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(head)+len(body)+len(tail)))
	h.Set("Cache-Control", "no-store")
	if a.later {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, head)
	_, _ = w.Write(body)
	_, _ = io.WriteString(w, tail)
}
