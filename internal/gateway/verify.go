package gateway

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/action"
	"countersign/internal/canonical"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/reach"
)

// verified is a call that may proceed: everything about it was checked, nothing of it was sent.
type verified struct {
	target
	line       *reach.Line
	definition provider.Definition
	arguments  []byte // canonical
	digest     string
	outside    string // why the call is outside the connection's resource
}

func (v verified) reads() bool { return v.effect() == policy.Read }

// verify judges a call in the order in which an agent should learn the facts: what its surface forbids and what people changed since
// it started, before anything is asked of the upstream; then the live definition; then its arguments.
func (g *Gateway) verify(ctx context.Context, l capability.Live, t target, raw json.RawMessage) (verified, error) {
	c := t.grant.Connection
	line, definition, err := g.admit(ctx, l, t)
	if err != nil {
		return verified{}, err
	}
	entry := g.served.entry(t.key(), definition)
	if entry.problem != "" {
		return verified{}, fault.New(fault.Forbidden, fault.ToolNotGranted, "This tool cannot be used. "+entry.problem, "Go on without it; an admin sees the tool on the connection's page.")
	}
	arguments, err := action.Arguments(raw)
	if err != nil {
		return verified{}, err
	}
	values, err := canonical.Decode(arguments)
	if err != nil {
		return verified{}, err
	}
	if err := entry.schema.Judge(values); err != nil {
		return verified{}, err
	}
	return verified{
		target: t, line: line, definition: definition, arguments: arguments,
		digest:  action.Digest(t.key(), t.tool, definition.Digest, c.Destination, arguments),
		outside: installation.Outside(line.Manifest, c, t.grant.Resources, t.tool, arguments),
	}, nil
}

// admit is verify up to the arguments: may this run use the tool now, and is it the one that was granted?
func (g *Gateway) admit(ctx context.Context, l capability.Live, t target) (*reach.Line, provider.Definition, error) {
	c := t.grant.Connection
	if _, refusal := g.known(l, t); refusal != nil {
		return nil, provider.Definition{}, refusal
	}
	line, err := g.Lines.Open(ctx, c)
	if err != nil {
		return nil, provider.Definition{}, err
	}
	definition, live, err := g.live(ctx, c, line, t)
	if err != nil {
		return nil, provider.Definition{}, err
	}
	if refusal := t.decide(l, live, true); refusal != nil {
		return nil, provider.Definition{}, refusal
	}
	return line, definition, nil
}

// known judges a call by what is known without asking the upstream.
func (g *Gateway) known(l capability.Live, t target) (policy.Do, *fault.Error) {
	c := t.grant.Connection
	do, refusal := t.verdict(l, true, c.State == installation.Active)
	if refusal != nil && refusal.Code == fault.ConnectionUnavailable && c.State == installation.NeedsConsent {
		refusal = g.needsConsent(c)
	}
	return do, refusal
}

func (g *Gateway) needsConsent(c installation.Connection) *fault.Error {
	return fault.New(fault.Unavailable, fault.NeedsConsent, "The connection needs a person's consent again.",
		"Ask an admin to reconnect it at "+g.PublicURL+"/connections/"+c.Key.String()+".")
}

// live finds the tool in the upstream's list and says whether it is the definition that was minted. A list that differs from what was
// granted is reported, so that people see the drift an agent met.
func (g *Gateway) live(ctx context.Context, c installation.Connection, line *reach.Line, t target) (provider.Definition, bool, error) {
	tools, err := line.Tools(ctx, reach.FreshFor)
	if err != nil {
		return provider.Definition{}, false, err
	}
	for i := range tools {
		if d := &tools[i]; d.Name == t.tool {
			same := matches(*d, t.minted)
			if !same {
				g.observe(ctx, c, tools)
			}
			return *d, same, nil
		}
	}
	g.observe(ctx, c, tools)
	return provider.Definition{}, false, nil
}

func matches(d provider.Definition, pin policy.Pinned) bool {
	return d.Problem == "" && d.Digest != "" && d.Digest == pin.Digest && d.Recipe == pin.Recipe
}

// observe reports a list once. What cannot be recorded now is reported with the next list; the refusal stands either way.
func (g *Gateway) observe(ctx context.Context, c installation.Connection, tools []provider.Definition) {
	if g.Observer == nil {
		return
	}
	var first *provider.Definition
	if len(tools) > 0 {
		first = &tools[0]
	}
	if last, ok := g.drift.Load(c.ID); ok && last == first {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := g.Observer.Observe(ctx, c, reach.Observed(tools)); err != nil {
		g.Log.WarnContext(ctx, "drift not recorded yet", "connection", c.Key, "error", err)
		return
	}
	g.drift.Store(c.ID, first)
}
