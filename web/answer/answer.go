// Package answer owns the only mapping from a fault to an HTTP answer: the status, the error page's words, and the JSON of the
// service API. It never shows a cause, never invents a reason, and decides nothing: an error it does not know is our own defect and
// says so in one constant sentence.
package answer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"countersign/internal/fault"
)

// Codes of refusals that only HTTP knows.
const (
	CodeMethod    fault.Code = "method_not_allowed"
	CodeMediaType fault.Code = "unsupported_media_type"
	CodeHost      fault.Code = "unknown_host"
	CodeCrossSite fault.Code = "cross_site"
)

// The refusals before a handler is reached.
var (
	NoSuchPage = fault.Absent("page")
	Method     = fault.New(fault.Invalid, CodeMethod, "This address does not answer that method.", "Open the page itself and use what it offers.")
	MediaType  = fault.New(fault.Invalid, CodeMediaType, "A form is sent as application/x-www-form-urlencoded.", "Send it from the page it belongs to.")
	TooLarge   = fault.New(fault.TooLarge, fault.CodeTooLarge, "What was sent is larger than this address takes. Nothing was saved.", "Shorten it and send it again.")
	NotText    = fault.New(fault.Invalid, fault.CodeInvalid, "What was sent holds bytes that are not text. Nothing was saved.", "Type the value instead of pasting it.")
	Host       = fault.New(fault.Forbidden, CodeHost, "This server does not answer to that name.", "Use the address in COUNTERSIGN_PUBLIC_URL.")
	CrossSite  = fault.New(fault.Forbidden, CodeCrossSite, "This form was sent from another site. Nothing was changed.", "Open the page here and send it from there.")
	Broken     = fault.New(fault.Internal, fault.CodeInternal, "Something went wrong on our side.", "Load the page again to see whether your change was kept; the operator finds the cause in the server log.")
	Slow       = fault.New(fault.Unavailable, fault.CodeUnavailable, "The answer took too long.", "Load the page again to see whether your change was kept.")
)

var statusOfKind = map[fault.Kind]int{
	fault.Invalid:         http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Limited:         http.StatusTooManyRequests,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Internal:        http.StatusInternalServerError,
}

var statusOfCode = map[fault.Code]int{
	CodeMethod:    http.StatusMethodNotAllowed,
	CodeMediaType: http.StatusUnsupportedMediaType,
	CodeHost:      http.StatusMisdirectedRequest,
}

// Status is the HTTP status of a fault. A kind that is not in the table is our own defect.
func Status(f *fault.Error) int {
	if s, ok := statusOfCode[f.Code]; ok {
		return s
	}
	if s, ok := statusOfKind[f.Kind]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Of is the fault in any error a handler or the router can return.
func Of(err error) *fault.Error {
	if f, ok := fault.As(err); ok {
		return f
	}
	var tooLarge *http.MaxBytesError
	var routed *echo.HTTPError
	switch {
	case errors.As(err, &tooLarge):
		return TooLarge.Wrap(err)
	case errors.Is(err, context.DeadlineExceeded):
		return Slow.Wrap(err)
	case errors.As(err, &routed) && routed.Code == http.StatusNotFound:
		return NoSuchPage
	case errors.As(err, &routed) && routed.Code == http.StatusMethodNotAllowed:
		return Method
	}
	return Broken.Wrap(err)
}

// Log writes what an operator must see: our own defects and what does not answer. What a caller did wrong is in the access log.
func Log(ctx context.Context, f *fault.Error, request string) {
	if f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		return
	}
	if errors.Is(f.Cause, context.Canceled) {
		return // the reader went away; nothing is wrong with us
	}
	slog.ErrorContext(ctx, "request failed", "request", request, "code", string(f.Code), "what", f.What, "cause", f.Cause)
}

// refusal is the one JSON form of a fault.
type refusal struct {
	Error refused `json:"error"`
}

type refused struct {
	Code    fault.Code        `json:"code"`
	Message string            `json:"message"`
	Next    string            `json:"next"`
	Fields  map[string]string `json:"fields,omitempty"` // input name → what is wrong with it
}

// Body is the JSON of an error: {"error":{"code","message","next","fields"?}}, and its status.
func Body(err error) (int, []byte) {
	f := Of(err)
	r := refused{Code: f.Code, Message: f.What, Next: f.Next, Fields: fields(err)}
	if len(r.Fields) > 1 {
		r.Message, r.Next = "Several fields are wrong.", "Correct the fields named here and send it again."
	}
	b, _ := json.Marshal(refusal{r}) // strings always marshal
	return Status(f), b
}

func fields(err error) map[string]string {
	var list fault.List
	if !errors.As(err, &list) {
		if f, ok := fault.As(err); ok {
			list = fault.List{f}
		}
	}
	var out map[string]string
	for _, f := range list {
		if f.Field == "" || out[f.Field] != "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[f.Field] = f.Error()
	}
	return out
}

// JSON writes an error as the service API says it, with the challenge a 401 must carry, and logs what an operator must see.
func JSON(w http.ResponseWriter, r *http.Request, err error) {
	f := Of(err)
	Log(r.Context(), f, w.Header().Get(echo.HeaderXRequestID))
	status, body := Body(err)
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", `Bearer realm="countersign"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
