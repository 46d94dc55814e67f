package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/cli/sandbox"
	"countersign/internal/provider/direct"
)

// atOnce is how many programs run at the same time: each may take the memory of its bounds.
const atOnce = 4

var running = make(chan struct{}, atOnce)

// Provider serves every connection of one command.
type Provider struct {
	*direct.Provider
	command  Command
	programs *programs
}

// New makes the provider of a command whose program lies below the folder at, as it was installed. It panics where the declaration
// contradicts itself: it is code.
func New(c Command, at string) *Provider {
	c.check()
	p := &Provider{command: c, programs: &programs{pin: c.Program, at: at}}
	v := direct.Vendor{Name: c.Name, API: c.Name + " " + c.Program.Version}
	for _, i := range c.Tools {
		v.Tools = append(v.Tools, p.tool(i))
	}
	if c.Probe != "" {
		v.Probes = []direct.Probe{{Role: Role, Call: provider.Call{Tool: c.Probe, Arguments: json.RawMessage("{}")}}}
	}
	p.Provider = direct.New(v)
	return p
}

// tool is an invocation as direct providers declare them: schemas, definitions and the order of a call are the same.
func (p *Provider) tool(i Invocation) direct.Tool {
	t := direct.Tool{Name: i.Tool, Title: i.Title, Description: i.Description, Role: Role, Destructive: i.Destructive, Resource: i.Resource, Input: direct.Object{Fields: map[string]direct.Field{}}}
	for _, f := range slices.Concat(i.Flags, i.Operands) {
		t.Input.Fields[f.Argument] = f.Value.field
		if f.Required {
			t.Input.Required = append(t.Input.Required, f.Argument)
		}
	}
	if i.Effect == policy.Read {
		t.Read = func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
			return p.read(ctx, l, i, a)
		}
		return t
	}
	t.Write = &direct.Write{Send: func(ctx context.Context, l *direct.Link, a direct.Arguments) action.Outcome {
		return p.send(ctx, l, i, a)
	}}
	if i.Gone != "" {
		t.Write.Look = func(ctx context.Context, l *direct.Link, a direct.Arguments, _ action.Evidence) (provider.Sighting, error) {
			return p.look(ctx, l, i, a)
		}
	}
	return t
}

// Tools implements provider.Provider. Where the program is not what it was pinned as, no tool can be used, and each says why.
func (p *Provider) Tools(ctx context.Context, c *provider.Conn) ([]provider.Definition, error) {
	if _, err := p.programs.load(); err != nil {
		return nil, err
	}
	return p.Provider.Tools(ctx, c)
}

// Ready says why no connection can work on this server, before anybody enters a credential; nil where the program is what it should be.
func (p *Provider) Ready() error {
	_, err := p.programs.load()
	return err
}

// Test implements provider.Provider. What this machine cannot hold a program to is said with what was found.
func (p *Provider) Test(ctx context.Context, c *provider.Conn) (provider.Finding, error) {
	if _, err := p.programs.load(); err != nil {
		return provider.Finding{}, err
	}
	f, err := p.Provider.Test(ctx, c)
	f.Beyond = append(f.Beyond, sandbox.Lacks()...)
	return f, err
}

// Close gives back what was taken of the machine. It is called when nothing is run any more.
func (p *Provider) Close() { p.programs.close() }

// run is one run of the program: what it printed, and what its relay saw.
func (p *Provider) run(ctx context.Context, l *direct.Link, i Invocation, a direct.Arguments) (sandbox.End, seen, error) {
	args, err := p.command.argv(i, a)
	if err != nil {
		return sandbox.End{}, seen{}, err
	}
	program, err := p.programs.load()
	if err != nil {
		return sandbox.End{}, seen{}, err
	}
	e, err := l.Conn.Endpoint(Role)
	if err != nil {
		return sandbox.End{}, seen{}, err
	}
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return sandbox.End{}, seen{}, fault.New(fault.Limited, fault.ConnectionUnavailable, "Too many commands run at once.", "Try again in a moment.")
	}
	held, stop := context.WithCancel(ctx)
	defer stop()
	r := newRelay(ctx, stop, e, i, a)
	box := sandbox.Box{Program: program.file, Args: append(slices.Clone(program.args), args...), Readable: program.readable, Serve: r.serve}
	for _, v := range append([]string{"HOME=" + sandbox.Home, "TMPDIR=" + sandbox.Home}, p.command.Env...) {
		box.Env = append(box.Env, strings.ReplaceAll(v, Ticket, r.ticket))
	}
	box.Bounds.Memory = program.memory
	end, err := sandbox.Run(held, box)
	runtime.KeepAlive(program) // its private copy goes with it
	if err != nil {
		return end, r.end(), fault.New(fault.Unavailable, fault.ConnectionUnavailable, "This machine cannot hold "+p.command.Name+" as it has to be held, so it is not started.", "Ask the operator of this server.").Wrap(err)
	}
	end.Out, end.Err = []byte(strings.ReplaceAll(string(end.Out), r.ticket, "[ticket]")), []byte(strings.ReplaceAll(string(end.Err), r.ticket, "[ticket]"))
	return end, r.end(), nil
}

func (p *Provider) read(ctx context.Context, l *direct.Link, i Invocation, a direct.Arguments) (direct.Answer, error) {
	end, saw, err := p.run(ctx, l, i, a)
	switch {
	case err != nil:
		return direct.Answer{}, err
	case saw.failure != nil:
		return direct.Answer{}, saw.failure
	case end.Flooded:
		return direct.Answer{}, provider.TooLarge(errors.New("the command printed more than it may"))
	case end.Late:
		return direct.Answer{}, provider.TimedOut(ctx.Err())
	case end.Code != 0:
		return direct.Answer{}, &direct.Refused{Reply: direct.Reply{Status: saw.status, Whole: true}, Words: p.words(end, saw)}
	}
	return printed(end.Out), nil
}

// send runs the program once. What its one request with an effect came to is judged by that request, as any other write is; the program's
// own end decides only where nothing was sent.
func (p *Provider) send(ctx context.Context, l *direct.Link, i Invocation, a direct.Arguments) action.Outcome {
	end, saw, err := p.run(ctx, l, i, a)
	if !saw.sent {
		switch {
		case err != nil:
			return direct.Unsent(err)
		case saw.failure != nil:
			return direct.Unsent(saw.failure)
		case end.Late:
			return direct.Unsent(provider.TimedOut(ctx.Err()))
		case end.Flooded:
			return direct.Unsent(provider.TooLarge(nil))
		case end.Code == 0:
			return action.Failed(fault.UpstreamError, p.command.Name+" found nothing to do. Nothing was sent.", action.Evidence{}).WithAnswer(l.Kept(printed(end.Out), false))
		}
		return direct.Unsent(&direct.Refused{Words: p.words(end, saw)})
	}
	if o, settled := action.Classify(saw.record); settled {
		if end.Code > 0 {
			o = o.WithAnswer(l.Kept(direct.Answer{Text: p.words(end, saw)}, true))
		}
		if saw.record.Status > 0 {
			o = o.WithProviderCode("HTTP " + strconv.Itoa(saw.record.Status))
		}
		return o
	}
	answer := printed(end.Out)
	if err != nil || end.Code != 0 {
		answer = direct.Answer{Text: "Applied: the service answered with HTTP " + strconv.Itoa(saw.record.Status) + ". What the command made of the answer did not come."}
	}
	return action.Succeeded(l.Kept(answer, false), action.Observed(saw.record))
}

// look asks with the read that finds nothing once the write was applied.
func (p *Provider) look(ctx context.Context, l *direct.Link, i Invocation, a direct.Arguments) (provider.Sighting, error) {
	at := slices.IndexFunc(p.command.Tools, func(t Invocation) bool { return t.Tool == i.Gone })
	end, saw, err := p.run(ctx, l, p.command.Tools[at], a)
	switch {
	case err != nil:
		return provider.Sighting{}, err
	case saw.failure != nil:
		return provider.Sighting{}, saw.failure
	case saw.status == 404:
		return provider.Sighting{Sight: provider.Applied, Sentence: p.command.Service + " knows it no longer (“" + i.Gone + "”, HTTP 404)."}, nil
	case end.Code == 0 && !end.Late && !end.Flooded:
		return provider.Sighting{Sight: provider.Absent, Sentence: p.command.Service + " still has it (“" + i.Gone + "”)."}, nil
	}
	return provider.Sighting{Sight: provider.Unseen, Sentence: p.words(end, saw)}, nil
}

// maxWords bounds what is passed on of what a command said went wrong.
const maxWords = 2 << 10

// words is what a command said went wrong.
func (p *Provider) words(end sandbox.End, saw seen) string {
	said := strings.TrimSpace(string(end.Err))
	if said == "" {
		said = strings.TrimSpace(string(end.Out))
	}
	said = provider.Printable(strings.Join(strings.Fields(said), " "))
	said = strings.ToValidUTF8(said[:min(len(said), maxWords)], "")
	s := p.command.Name + " ended with code " + strconv.Itoa(end.Code) + ": " + said
	if saw.blocked != "" {
		s += " (It asked for " + saw.blocked + ", which “" + p.command.Name + "” is not allowed here.)"
	}
	return s
}

// printed is what a command printed: JSON where it is JSON, else its text with what cannot be seen made visible, line by line.
func printed(out []byte) direct.Answer {
	trimmed := strings.TrimSpace(string(out))
	if (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(trimmed)) {
		return direct.Answer{Structured: json.RawMessage(trimmed)}
	}
	if trimmed == "" {
		return direct.Answer{Text: "Done. The command printed nothing."}
	}
	lines := strings.Split(strings.ToValidUTF8(trimmed, "?"), "\n")
	for n, line := range lines {
		lines[n] = provider.Printable(strings.TrimRight(line, "\r"))
	}
	return direct.Answer{Text: strings.Join(lines, "\n")}
}

// wrong is the fault of a status after which only an admin or time can help.
func wrong(status int) error {
	cause := errors.New("HTTP " + strconv.Itoa(status))
	switch {
	case status == http.StatusUnauthorized:
		return provider.Unauthorized()
	case status == http.StatusTooManyRequests:
		return fault.New(fault.Limited, fault.UpstreamError, "The service limits how often it may be called.", "Wait a minute and call less often.").Wrap(cause)
	case status == http.StatusGatewayTimeout, status == http.StatusRequestTimeout:
		return provider.TimedOut(cause)
	case status/100 == 3:
		return provider.Unreachable("The service redirects to another address, which is never followed.", cause)
	case status >= 500:
		return provider.Upstream("The service has a problem of its own (HTTP "+strconv.Itoa(status)+").", cause)
	}
	return nil
}
