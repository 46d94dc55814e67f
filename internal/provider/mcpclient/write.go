package mcpclient

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/provider"
)

// endLimit bounds the good manners after a write.
const endLimit = 5 * time.Second

// execute sends one write once. Everything before it (agreeing on a revision, opening a session) has no effect; from the moment
// the call itself is handed over, only what the transport recorded and the provider answered counts.
func (l link) execute(ctx context.Context, call provider.Call) action.Outcome {
	if err := checkCall(call); err != nil {
		return unsent(argumentFault(err))
	}
	e, err := l.forOneWrite(ctx)
	if err != nil {
		return unsent(err)
	}
	if e.isModern() && !l.up.bindings.known(call) {
		if _, err := l.tools(ctx); err != nil { // a call without the headers its definition asks for would be refused
			return unsent(err)
		}
	}
	m, err := l.callMessage(e, call)
	if err != nil {
		return unsent(argumentFault(err))
	}
	watched, watch := egress.Observe(ctx)
	a, err := l.post(watched, l.endpoint.Writer, e, m)
	if outdated(e, a) {
		l.forget(e) // for the calls to come; this one is not sent again
	}
	if e.session != "" {
		defer l.endSoon(ctx, e)
	}
	return l.judge(call, a, err, watch.Record())
}

// forOneWrite agrees for one write. With a server that keeps sessions each write gets one of its own: a pooled session may be gone
// by now, and then the approval would be spent on an answer that says so.
func (l link) forOneWrite(ctx context.Context) (*era, error) {
	e, err := l.negotiated(ctx)
	if err != nil || e.session == "" {
		return e, err
	}
	own, err := l.initialize(ctx)
	if err == nil {
		return own, nil
	}
	l.forget(e) // the server may speak another revision by now
	if e, err = l.negotiated(ctx); err != nil || e.session == "" {
		return e, err
	}
	return l.initialize(ctx)
}

func (l link) endSoon(ctx context.Context, e *era) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	l.end(ctx, e)
}

// unsent is the outcome of a write of which nothing was sent.
func unsent(err error) action.Outcome {
	f := fault.Of(err)
	return action.Failed(f.Code, f.What+" Nothing was sent.", action.Evidence{})
}

// judge classifies. The transport's record decides first; only a good status leaves it to the answer.
func (l link) judge(call provider.Call, a answer, err error, rec egress.Record) action.Outcome {
	evidence := action.Observed(rec)
	if o, settled := action.Classify(rec); settled {
		if o.Kind() == action.OutcomeFailed && a.lacksScope() {
			return action.Failed(fault.NeedsConsent, "The provider asks for a permission that this connection lacks; nothing was applied.", evidence).
				WithProviderCode(strings.Join(append([]string{provider.LacksScope}, a.scopes()...), " "))
		}
		if a.failure != nil {
			o = o.WithAnswer(a.failure.asResult()).WithProviderCode(strconv.Itoa(a.failure.Code))
		}
		return o
	}
	if err != nil {
		return action.Uncertain(codeFor(err), "The provider began to answer, but the answer did not arrive whole and readable.", evidence)
	}
	if a.failure != nil {
		return judgeError(a.failure, call, evidence)
	}
	r, err := a.checked()
	if err != nil {
		return action.Uncertain(fault.UpstreamError, "The provider answered something that is not a tool result.", evidence)
	}
	if !r.final() {
		return action.Uncertain(fault.UpstreamError, "The provider answered that it is not done: it asks something back or works on.", evidence)
	}
	delivered, err := r.deliver(l.conn.Settings.MaxResult)
	if err != nil {
		return action.Uncertain(fault.ResultTooLarge, "The provider's answer cannot be kept within the bound.", evidence)
	}
	switch {
	case r.errorFlag == flagFalse:
		return action.Succeeded(delivered.Raw, evidence)
	case r.errorFlag == flagTrue && call.Definite != nil && call.Definite(r.text()):
		return action.Failed(fault.UpstreamError, "The provider refused the call; by the reviewed tool policy this refusal means that nothing was applied.", evidence).WithAnswer(delivered.Raw)
	default:
		return action.Uncertain(fault.UpstreamError, "The provider answered with an error that does not say whether anything was applied.", evidence).WithAnswer(delivered.Raw)
	}
}

// judgeError judges a JSON-RPC error with a good status. Only the codes that the protocol reserves for requests that were not
// carried out prove anything; -32603 and a server's own codes may come after the effect.
func judgeError(f *rpcError, call provider.Call, e action.Evidence) action.Outcome {
	e.ProviderCode = strconv.Itoa(f.Code)
	switch f.Code {
	case codeParse, codeRequest, codeMethod, codeParams, codeHeaderMismatch, codeVersion:
		return action.Failed(fault.UpstreamError, "The provider refused the request before carrying it out (error "+e.ProviderCode+").", e).WithAnswer(f.asResult())
	}
	if call.Definite != nil && call.Definite(f.Message) {
		return action.Failed(fault.UpstreamError, "The provider refused the call; by the reviewed tool policy this refusal means that nothing was applied.", e).WithAnswer(f.asResult())
	}
	return action.Uncertain(fault.UpstreamError, "The provider answered with an error that does not say whether anything was applied (error "+e.ProviderCode+").", e).WithAnswer(f.asResult())
}

func codeFor(err error) fault.Code {
	switch {
	case timedOut(err):
		return fault.UpstreamTimeout
	case errors.Is(err, egress.ErrTooLarge):
		return fault.ResultTooLarge
	}
	return fault.UpstreamError
}
