package direct

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
)

// find is the tool of a call with its checked arguments.
func (p *Provider) find(call provider.Call) (*tool, Arguments, error) {
	t, ok := p.tools[call.Tool]
	if !ok {
		return nil, nil, fault.New(fault.Invalid, fault.InvalidArguments, p.vendor.Name+" has no tool “"+provider.Printable(call.Tool)+"”.", "List the tools again.")
	}
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := t.input.Check(raw); err != nil { // the gateway has, by the pinned definition; this is by what the code relies on
		return nil, nil, err
	}
	a := Arguments{}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, fault.New(fault.Invalid, fault.InvalidArguments, "The arguments of the call are not a JSON object.", "Send one object.").Wrap(err)
	}
	return t, a, nil
}

func (p *Provider) link(c *provider.Conn, call provider.Call) *Link {
	return &Link{Conn: c, Action: call.Action, vendor: &p.vendor}
}

// Read implements provider.Provider. An error answer about the request is a result that says so, as a tool's own error would be.
func (p *Provider) Read(ctx context.Context, c *provider.Conn, call provider.Call) (provider.Result, error) {
	t, a, err := p.find(call)
	if err != nil {
		return provider.Result{}, err
	}
	if t.Read == nil {
		return provider.Result{}, fault.New(fault.Invalid, fault.InvalidArguments, "“"+t.Name+"” is not a read.", "")
	}
	l := p.link(c, call)
	answer, err := t.Read(ctx, l, a)
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		return l.deliver(Answer{Text: refused.Words}, true)
	case err != nil:
		return provider.Result{}, provider.Broken(err)
	}
	return l.deliver(answer, false)
}

// Execute implements provider.Provider.
func (p *Provider) Execute(ctx context.Context, c *provider.Conn, call provider.Call) action.Outcome {
	t, a, err := p.find(call)
	if err != nil {
		return unsent(err)
	}
	if t.Write == nil {
		return unsent(fault.New(fault.Invalid, fault.InvalidArguments, "“"+t.Name+"” is a read.", ""))
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, egress.DefaultTimeout)
		defer cancel()
	}
	l := p.link(c, call)
	e, err := c.Endpoint(t.Role)
	if err == nil && e.ReadsOnly {
		err = fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This connection has only a credential for reading.", provider.EnterAnother)
	}
	if err != nil {
		return unsent(err)
	}
	if t.Write.Send != nil {
		return t.Write.Send(ctx, l, a)
	}
	q, err := t.Write.Prepare(ctx, l, a)
	if err != nil {
		return unsent(err)
	}
	if err := l.pace(ctx, policy.Consequential); err != nil {
		return unsent(err)
	}
	watched, watch := egress.Observe(ctx)
	out, err := l.request(watched, e.URL, q)
	if err != nil {
		return unsent(err)
	}
	r, err := l.do(e.Writer, out)
	return l.judge(t.Write, a, r, err, watch.Record(), q.Before)
}

// Unsent is the outcome of a write of which nothing was sent, for a Send that found out why not.
func Unsent(err error) action.Outcome { return unsent(err) }

// unsent is the outcome of a write of which nothing was sent.
func unsent(err error) action.Outcome {
	var refused *Refused
	if errors.As(err, &refused) {
		return action.Failed(fault.UpstreamError, refused.Words+" Nothing was sent.", action.Evidence{})
	}
	f := fault.Of(provider.Broken(err))
	return action.Failed(f.Code, f.What+" Nothing was sent.", action.Evidence{})
}

// judge classifies. The status of a REST answer is the evidence: a good one means applied even where the answer's body was lost, unless
// the write's own Judge has to read it.
func (l *Link) judge(w *Write, a Arguments, r Reply, err error, rec egress.Record, before string) action.Outcome {
	evidence := action.Observed(rec)
	evidence.Before = before
	if o, settled := action.Classify(rec); settled {
		o = o.WithBefore(before)
		if r.Status > 0 && !r.Good() && r.Whole {
			if raw, bad := (Answer{Text: l.explain(r)}).raw(true); bad == nil {
				o = o.WithAnswer(raw).WithProviderCode("HTTP " + strconv.Itoa(r.Status))
			}
		}
		return o
	}
	if w.Judge != nil {
		if v := w.Judge(l, a, r); v.Kind != action.OutcomeSucceeded {
			return l.notApplied(v, r, evidence)
		}
	}
	if err != nil {
		raw, _ := Answer{Text: "Applied: the service answered with HTTP " + strconv.Itoa(rec.Status) + ". The rest of its answer did not arrive."}.raw(false)
		return action.Succeeded(raw, evidence)
	}
	d, err := l.deliver(l.shown(w, a, r), false)
	if err != nil {
		d.Raw, _ = Answer{Text: "Applied. The service's answer cannot be kept within the bound."}.raw(false)
	}
	return action.Succeeded(d.Raw, evidence)
}

func (l *Link) notApplied(v Verdict, r Reply, e action.Evidence) action.Outcome {
	raw, err := Answer{Text: clip(string(r.Body), maxWords)}.raw(true)
	if err != nil || !r.Whole {
		raw = nil
	}
	if v.Kind == action.OutcomeFailed {
		return action.Failed(fault.UpstreamError, v.Sentence, e).WithAnswer(raw)
	}
	return action.Uncertain(fault.UpstreamError, v.Sentence, e).WithAnswer(raw)
}

func (l *Link) shown(w *Write, a Arguments, r Reply) Answer {
	if w.Show != nil {
		return w.Show(l, a, r)
	}
	var v any
	if len(r.Body) == 0 || r.JSON(&v) != nil {
		return Answer{Text: "Applied (HTTP " + strconv.Itoa(r.Status) + ")."}
	}
	return Answer{Structured: v}
}

// CanPreview implements provider.Previewer.
func (p *Provider) CanPreview(call provider.Call) bool {
	t, _, err := p.find(call)
	return err == nil && t.Write != nil && t.Write.Preview != nil
}

// Preview implements provider.Previewer.
func (p *Provider) Preview(ctx context.Context, c *provider.Conn, call provider.Call) (provider.Preview, error) {
	t, a, err := p.find(call)
	if err != nil || t.Write == nil || t.Write.Preview == nil {
		return provider.Preview{}, err
	}
	v, err := t.Write.Preview(ctx, p.link(c, call), a)
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		return provider.Preview{Sentence: refused.Words}, nil
	case err != nil:
		return v, provider.Broken(err)
	}
	return v, nil
}

// CanReconcile implements provider.OwnReconciler.
func (p *Provider) CanReconcile(call provider.Call) bool {
	t, a, err := p.find(call)
	return err == nil && t.Write != nil && t.Write.Look != nil && (t.Write.Lookable == nil || t.Write.Lookable(a))
}

// Reconcile implements provider.Reconciler.
func (p *Provider) Reconcile(ctx context.Context, c *provider.Conn, call provider.Call, e action.Evidence) (provider.Sighting, error) {
	t, a, err := p.find(call)
	if err != nil {
		return provider.Sighting{}, err
	}
	if !p.CanReconcile(call) {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "Nothing at " + p.vendor.Name + " tells without doubt what became of the call."}, nil
	}
	s, err := t.Write.Look(ctx, p.link(c, call), a, e)
	var refused *Refused
	if errors.As(err, &refused) {
		return provider.Sighting{Sight: provider.Unseen, Sentence: refused.Words}, nil
	}
	return s, err
}
