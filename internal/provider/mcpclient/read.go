package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"countersign/internal/provider"
)

// ask sends something without an effect. A warm connection is asked once; only when the server no longer knows what was agreed, or
// the connection broke without an answer, is it asked a second time. The error is a fault.
func (l link) ask(ctx context.Context, of func(*era) message) (answer, error) {
	for second := false; ; second = true {
		e, err := l.negotiated(ctx)
		if err != nil {
			return answer{}, err
		}
		a, err := l.post(ctx, l.endpoint.Reader, e, of(e))
		switch {
		case !second && outdated(e, a):
			l.forget(e)
			continue
		case !second && wantsHeaders(a):
			// Which arguments it wants repeated in headers stands in the definitions.
			if _, err := l.tools(ctx); err != nil {
				return a, err
			}
			continue
		case !second && err != nil && a.status == 0 && worthAnother(ctx, err):
			continue
		case err != nil && (a.status == 0 || a.status/100 == 2):
			return a, exchangeFault(err)
		case a.status/100 != 2 && !informative(a):
			return a, statusFault(a)
		}
		return a, nil
	}
}

// outdated reports whether the server no longer knows what was agreed: the session is gone, or it speaks another revision now.
func outdated(e *era, a answer) bool {
	if a.failure != nil && a.failure.Code == codeVersion {
		return true
	}
	return e.session != "" && a.status == http.StatusNotFound
}

// wantsHeaders reports whether a request was refused because its headers do not repeat what the tool's definition asks for.
func wantsHeaders(a answer) bool { return a.failure != nil && a.failure.Code == codeHeaderMismatch }

// worthAnother reports whether a broken connection may have been an old one that the server had closed meanwhile.
func worthAnother(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !ours(err) && !timedOut(err)
}

// informative reports whether an error status came with a JSON-RPC error that says more than the status: 2026-07-28 puts protocol
// errors in 400 and 404. Who is not allowed learns no details.
func informative(a answer) bool {
	return a.failure != nil && !refusesCaller(a.status) && a.status < 500
}

// callMessage is tools/call.
func (l link) callMessage(e *era, call provider.Call) (message, error) {
	name, err := json.Marshal(call.Tool)
	if err != nil {
		return message{}, err
	}
	arguments := call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	m := message{method: "tools/call", name: call.Tool, params: make([]byte, 0, len(name)+len(arguments)+24)}
	m.params = append(append(append(append(m.params, `"name":`...), name...), `,"arguments":`...), arguments...)
	if e.isModern() {
		if list := l.up.bindings.of(call); len(list) > 0 {
			m.headers = headersFor(list, arguments)
		}
	}
	return m, nil
}

// checkCall refuses what would not stay one message.
func checkCall(call provider.Call) error {
	if call.Tool == "" || len(call.Arguments) > 0 && !isObject(call.Arguments) {
		return errors.New("a call needs a tool and an object of arguments")
	}
	return nil
}

func isObject(b []byte) bool {
	s := scanner{b: b}
	return s.next() == '{' && s.skip() == nil && s.end()
}

func (l link) read(ctx context.Context, call provider.Call) (provider.Result, error) {
	if err := checkCall(call); err != nil {
		return provider.Result{}, argumentFault(err)
	}
	var broken error
	a, err := l.ask(ctx, func(e *era) message {
		m, err := l.callMessage(e, call)
		broken = err
		return m
	})
	if err = errors.Join(broken, err); err != nil {
		return provider.Result{}, faultOf(err)
	}
	defer a.release() // what is returned has memory of its own
	if a.failure != nil {
		return l.errorResult(a.failure)
	}
	r, err := a.checked()
	if err != nil {
		return provider.Result{}, exchangeFault(err)
	}
	if !r.final() {
		return provider.Result{}, provider.Upstream("The service asks a question back before it answers, which is not passed on.", nil)
	}
	return r.deliver(l.conn.Settings.MaxResult)
}

// errorResult makes a JSON-RPC error of a read readable for the agent: to the model it is the same as a tool's own error.
func (l link) errorResult(f *rpcError) (provider.Result, error) {
	if f.Code == codeVersion || f.Code == codeHeaderMismatch || f.Code == codeMethod {
		return provider.Result{}, rpcFault(f, "answer this call")
	}
	raw := f.asResult()
	return provider.Result{Raw: raw, IsError: true, Size: len(raw)}, nil
}
