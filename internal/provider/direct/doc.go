// Package direct owns what every direct backend API provider shares: a vendor's tools declared once as Go values, how they become
// definitions with stable digests, how a read is asked, how a write is sent once and judged by its status, and how an error answer becomes
// words. It knows no vendor, sees no credential (its clients carry it), opens no connection of its own and stores nothing.
package direct

import (
	"context"
	"time"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/registry"
	"countersign/internal/schema"
)

// Kind is what the registry calls this kind.
const Kind = registry.Direct

// Vendor is everything a folder below says of its vendor.
type Vendor struct {
	Name  string // for display: "Lemon Squeezy"
	API   string // what is spoken, e.g. "JSON:API v1"
	Tools []Tool
	// Accept is the media type asked for, and that of a body; empty means application/json.
	Accept string
	// Explain says in words what an error answer says; empty where it says nothing.
	Explain func(Reply) string
	// Pace waits, within ctx, until the vendor's rate limit leaves room; an error is a fault and nothing is sent. Nil: no limit is known.
	Pace func(ctx context.Context, l *Link, effect policy.Effect) error
	// Paced learns from every answer; nil where there is nothing to learn.
	Paced func(l *Link, r Reply)
	// Probes are reads that each prove the credential of one endpoint. Those whose endpoint a connection has are all made.
	Probes []Probe
	// Beyond says what the credential may do besides what the tools need, a sentence each; nil where a vendor does not tell.
	Beyond func(ctx context.Context, l *Link) ([]string, error)
}

// Probe is one of a vendor's own reads.
type Probe struct {
	Role registry.Role
	Call provider.Call
}

// Tool is one tool, declared once. Exactly one of Read and Write is there.
type Tool struct {
	Name        string
	Title       string
	Description string
	Role        registry.Role // the endpoint it needs
	Input       Object
	Output      Object // of the structured content; the zero value says nothing of it
	Destructive bool
	Resource    string // the argument that names what is acted upon
	Money       string // the argument that is an amount

	Read  func(ctx context.Context, l *Link, a Arguments) (Answer, error)
	Write *Write
}

// Effect is what a call of the tool does.
func (t Tool) Effect() policy.Effect {
	if t.Write == nil {
		return policy.Read
	}
	return policy.Consequential
}

// Write is how an effect is prepared, sent and judged.
type Write struct {
	// Prepare looks at what has to be looked at first and makes the one request. An error means that nothing is sent.
	Prepare func(ctx context.Context, l *Link, a Arguments) (Request, error)
	// Send does all of it where the vendor speaks a protocol of its own: then there is no Prepare, Judge or Show.
	Send func(ctx context.Context, l *Link, a Arguments) action.Outcome
	// Preview reads what the write would meet, for the person who decides. Nil: nothing is shown.
	Preview func(ctx context.Context, l *Link, a Arguments) (provider.Preview, error)
	// Judge says what a good status means where it does not by itself mean "applied". Nil: it does.
	Judge func(l *Link, a Arguments, r Reply) Verdict
	// Show makes the answer that is kept; nil shows the vendor's own JSON.
	Show func(l *Link, a Arguments, r Reply) Answer
	// Look finds out by reads what became of a lost call. Nil: only a person can.
	Look func(ctx context.Context, l *Link, a Arguments, e action.Evidence) (provider.Sighting, error)
	// Lookable narrows Look to some calls; nil: all.
	Lookable func(a Arguments) bool
}

// Verdict is a judgement of an answer with a good status.
type Verdict struct {
	Kind     action.OutcomeKind
	Sentence string // unless it succeeded
}

// Provider serves every connection of one vendor.
type Provider struct {
	vendor Vendor
	tools  map[string]*tool
	list   []provider.Definition
}

type tool struct {
	Tool
	input *schema.Schema
}

var (
	_ provider.Provider      = (*Provider)(nil)
	_ provider.OwnReconciler = (*Provider)(nil)
	_ provider.Previewer     = (*Provider)(nil)
)

// New makes the provider of a vendor. It panics where the vendor's declarations contradict each other: they are code.
func New(v Vendor) *Provider {
	p := &Provider{vendor: v, tools: map[string]*tool{}}
	for _, t := range v.Tools {
		d, compiled := t.define()
		if _, twice := p.tools[t.Name]; twice || (t.Read == nil) == (t.Write == nil) || d.Problem != "" {
			panic("direct: " + v.Name + " declares " + t.Name + " badly: " + d.Problem)
		}
		p.tools[t.Name] = &tool{t, compiled}
		p.list = append(p.list, d)
	}
	return p
}

// Declared are the tools as declared, for whoever compares them with the catalog.
func (p *Provider) Declared() []Tool { return p.vendor.Tools }

// Tools implements provider.Provider. The tools are compiled in, so nothing is asked of the vendor; those whose address or credential a
// connection lacks say so.
func (p *Provider) Tools(_ context.Context, c *provider.Conn) ([]provider.Definition, error) {
	out := make([]provider.Definition, len(p.list))
	for i, d := range p.list {
		t := p.tools[d.Name]
		e, err := c.Endpoint(t.Role)
		switch {
		case err != nil:
			d.Problem = "this connection has no address or credential for it."
		case e.ReadsOnly && t.Write != nil:
			d.Problem = "this connection has only a credential for reading."
		}
		out[i] = d
	}
	return out, nil
}

// Test implements provider.Provider.
func (p *Provider) Test(ctx context.Context, c *provider.Conn) (provider.Finding, error) {
	start := time.Now()
	f := provider.Finding{Server: p.vendor.Name, Protocol: p.vendor.API}
	tools, err := p.Tools(ctx, c)
	if err != nil {
		return f, err
	}
	for _, d := range tools {
		if d.Problem == "" {
			f.Tools++
		}
	}
	for _, call := range p.probes(c) {
		r, err := p.Read(ctx, c, call)
		if err != nil {
			return f, err
		}
		if r.IsError {
			return f, fault.New(fault.Unavailable, fault.UpstreamError, "The service refused the test call “"+call.Tool+"”: "+clip(textOf(r.Raw), 300), "Check what the credential may do at "+p.vendor.Name+".")
		}
		f.Proven = true
	}
	if p.vendor.Beyond != nil {
		if f.Beyond, err = p.vendor.Beyond(ctx, p.link(c, provider.Call{})); err != nil {
			return f, provider.Broken(err)
		}
	}
	f.Took = time.Since(start)
	return f, nil
}

// probes are the vendor's own where it has some, else the catalog's.
func (p *Provider) probes(c *provider.Conn) (out []provider.Call) {
	for _, probe := range p.vendor.Probes {
		if _, err := c.Endpoint(probe.Role); err == nil {
			out = append(out, probe.Call)
		}
	}
	if len(p.vendor.Probes) == 0 && c.Settings.Probe != nil {
		out = append(out, *c.Settings.Probe)
	}
	return out
}
