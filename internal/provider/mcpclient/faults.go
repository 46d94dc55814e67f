package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/provider"
)

// maxErrorText bounds what is passed on of an error message.
const maxErrorText = 4 << 10

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// ours reports whether our side refused before anything was sent; asking again would be refused again.
func ours(err error) bool {
	_, ok := fault.As(err)
	return ok
}

// exchangeFault is the fault for a read whose exchange failed.
func exchangeFault(err error) error {
	if !ours(err) && !timedOut(err) && (errors.Is(err, errJSON) || errors.Is(err, errAnswer)) {
		return provider.Upstream("The service's answer is not what the protocol promises.", err)
	}
	return provider.Broken(err)
}

// faultOf keeps a fault and makes one of anything else.
func faultOf(err error) error {
	if f, ok := fault.As(err); ok {
		return f
	}
	return exchangeFault(err)
}

func argumentFault(err error) error {
	return fault.New(fault.Invalid, fault.InvalidArguments, "The arguments of the call are not a JSON object.", "Send one object.").Wrap(err)
}

// lacksScope reports whether the service says that the credential is valid but not enough (RFC 6750).
func (a answer) lacksScope() bool { return strings.Contains(a.challenge, "insufficient_scope") }

var challengedScope = regexp.MustCompile(`(?i)\bscope\s*=\s*"([\x21\x23-\x5b\x5d-\x7e ]+)"`)

// longestScopes bounds what is read of a challenge; all the scopes of the largest vendors are a tenth of it.
const longestScopes = 1000

// scopes are those the service says it wants.
func (a answer) scopes() []string {
	m := challengedScope.FindStringSubmatch(a.challenge)
	if m == nil || len(m[1]) > longestScopes {
		return nil
	}
	return strings.Fields(m[1])
}

// statusFault is the fault for an HTTP status on its own.
func statusFault(a answer) error {
	cause := errors.New("HTTP " + strconv.Itoa(a.status))
	switch {
	case a.lacksScope():
		return provider.OutOfScope(a.scopes())
	case a.status == http.StatusUnauthorized:
		return provider.Unauthorized()
	case a.status == http.StatusForbidden:
		return provider.Upstream("The service does not allow this with the credential of this connection.", cause)
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed, a.status == http.StatusGone:
		return provider.Unreachable("There is no MCP server at the address of this connection (any more).", cause)
	case a.status == http.StatusTooManyRequests:
		return fault.New(fault.Limited, fault.UpstreamError, "The service limits how often it may be called.", "Wait a little and call less often.").Wrap(cause)
	case a.status == http.StatusGatewayTimeout, a.status == http.StatusRequestTimeout:
		return provider.TimedOut(cause)
	case a.status/100 == 3:
		return provider.Unreachable("The service redirects to another address, which is never followed.", cause)
	case a.status >= 500:
		return provider.Upstream("The service has a problem of its own.", cause)
	}
	return provider.Upstream("The service refused the request.", cause)
}

func rpcFault(f *rpcError, doing string) error {
	return provider.Upstream("The service could not "+doing+" (error "+strconv.Itoa(f.Code)+").", nil)
}

// asResult is the error as a tool result. The text is the upstream's and marked as such.
func (f *rpcError) asResult() json.RawMessage {
	text, err := json.Marshal("The service answered with error " + strconv.Itoa(f.Code) + ": " + clip(f.Message, maxErrorText))
	if err != nil {
		text = []byte(`"The service answered with an error."`)
	}
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}],"isError":true}`)
}
