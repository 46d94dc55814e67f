package crm

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/fault"
)

// The eras served. What came before 2025-06-18 had batches, in which one HTTP answer carries several calls.
var protocolVersions = []string{"2026-07-28", "2025-11-25", "2025-06-18"}

const firstStateless = "2026-07-28"

// listing is tools/list with its tools untouched. ResultType is for the versions that have one.
type listing struct {
	mcp.ResultBase
	ResultType string            `json:"resultType,omitempty"`
	Tools      []json.RawMessage `json:"tools"`
	TTLMs      int               `json:"ttlMs"`
	CacheScope string            `json:"cacheScope"`
}

// newProtocol is the MCP edge: stateless, which serves 2026-07-28 and the 2025 versions without a session id.
func (s *Server) newProtocol() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "sandbox-crm", Title: "Sandbox CRM", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions:              "A customer database to practise on. Everything in it is made up, and a reset restores it.",
		Capabilities:              &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SupportedProtocolVersions: protocolVersions,
		SetCacheable:              func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs, c.CacheScope = 0, "private" },
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch r := req.(type) {
			case *mcp.ListToolsRequest:
				return s.listTools(r)
			case *mcp.CallToolRequest:
				return s.callTool(ctx, r)
			case *mcp.SubscriptionsListenRequest:
				// Nothing here announces changes, and the stream would never end.
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "subscriptions are not offered"}
			}
			return next(ctx, method, req)
		}
	})
	// The SDK's check of the Host header is for servers without a credential. Every request here carries one that no browser
	// sends by itself, and the check would refuse a proxy in front that keeps the public Host.
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true})
}

func (s *Server) listTools(req *mcp.ListToolsRequest) (mcp.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is only one page of tools"}
	}
	l := &listing{Tools: s.book.list(), CacheScope: "private"}
	if req.ProtocolVersion() >= firstStateless {
		l.ResultType = "complete"
	}
	return l, nil
}

func (s *Server) callTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	x := exchangeOf(ctx)
	def, armed, epoch, cleared, ok := s.book.begin(req.Params.Name)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool"}
	}
	args := bytes.Clone(req.Params.Arguments)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	c := call{def: def, args: args, headers: x.headers, epoch: epoch}
	if armed == nil {
		return s.perform(x, c), nil
	}
	s.log.Info("fault", "tool", def.name, "mode", string(armed.mode))
	return s.performBroken(x, c, armed, cleared), nil
}

// performBroken does to the records what the fault leaves of a call, and tells the exchange what the connection gets.
func (s *Server) performBroken(x *exchange, c call, a *arming, cleared <-chan struct{}) *mcp.CallToolResult {
	if a.mode.breaksAnswer() {
		x.breakWith(a, cleared)
	}
	switch {
	case a.mode == lateApply:
		go func() {
			if s.pause(a.delay, cleared) {
				s.perform(x, c)
			}
		}()
	case a.mode == slow:
		if !s.pause(a.delay, cleared) {
			return failed(fault.New(fault.Unavailable, fault.CodeUnavailable, "The sandbox was stopped or reset while this call was under way; nothing was applied.", ""))
		}
	}
	if a.mode.holdsBack() {
		return failed(fault.New(fault.Conflict, fault.CodeConflict, "The CRM rejected this call; nothing was applied.", ""))
	}
	return s.perform(x, c)
}

// pause waits and reports whether the time passed without a reset or the end of the server.
func (s *Server) pause(d time.Duration, cleared <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-cleared:
	case <-s.stopped:
	}
	return false
}

// perform runs a call to its result. An error the caller can read is a tool error, never a protocol error.
func (s *Server) perform(x *exchange, c call) *mcp.CallToolResult {
	if _, known := operations[c.def.name]; known || c.def.name == toolWait || c.def.name == toolReport {
		if err := c.def.check(c.args); err != nil {
			return failed(err)
		}
	}
	switch c.def.name {
	case toolWait:
		return s.wait(x, c.args)
	case toolReport:
		text, kilobytes, err := report(c.args)
		if err != nil {
			return failed(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: map[string]any{"kilobytes": kilobytes, "format": "csv"}}
	}
	out, err := s.book.apply(c)
	if err != nil {
		return failed(err)
	}
	return succeeded(out)
}

// wait ends early when the caller leaves or the server stops.
func (s *Server) wait(x *exchange, args json.RawMessage) *mcp.CallToolResult {
	d, err := waiting(args)
	if err != nil {
		return failed(err)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return succeeded(map[string]any{"waited_seconds": d.Seconds()})
	case <-x.gone:
	case <-s.stopped:
	}
	return failed(fault.New(fault.Unavailable, fault.CodeUnavailable, "The wait was cut short.", ""))
}

// succeeded answers a result as structured content and, for clients that read only text, as the same JSON in text.
func succeeded(out any) *mcp.CallToolResult {
	raw, err := encodeAny(out)
	if err != nil {
		return failed(err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(raw)}}, StructuredContent: raw}
}

func failed(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: fault.Of(err).Error()}}}
}
