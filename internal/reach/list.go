package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// listWithin bounds one look-up of a list, with all its pages.
const listWithin = time.Minute

// list is the live tool list of a line.
type list struct {
	mu     sync.Mutex
	at     time.Time // local, monotonic
	tools  []provider.Definition
	flight *flight // under way, for calls that need no newer one
}

// flight is one look-up. Concurrent calls wait for it together, each no longer than it wants to: an upstream that hangs must not make
// them ask one after the other.
type flight struct {
	done  chan struct{}
	tools []provider.Definition
	err   error
}

// Tools is the live list, at most maxAge old; zero fetches it now. A caller that gives up leaves the look-up to the others.
func (l *Line) Tools(ctx context.Context, maxAge time.Duration) ([]provider.Definition, error) {
	l.list.mu.Lock()
	if l.list.tools != nil && maxAge > 0 && time.Since(l.list.at) < maxAge {
		defer l.list.mu.Unlock()
		return l.list.tools, nil
	}
	f := l.list.flight
	if f == nil || maxAge <= 0 { // one that has begun before may describe an earlier moment than now
		f = &flight{done: make(chan struct{})}
		if maxAge > 0 {
			l.list.flight = f
		}
		go l.fetch(context.WithoutCancel(ctx), f, maxAge > 0)
	}
	l.list.mu.Unlock()
	select {
	case <-f.done:
		return f.tools, f.err
	case <-ctx.Done():
		return nil, provider.TimedOut(ctx.Err())
	}
}

func (l *Line) fetch(ctx context.Context, f *flight, mayRest bool) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	began := time.Now() // the answer may describe this moment, not the one it arrives at
	f.tools, f.err = l.ask(ctx, mayRest)
	l.list.mu.Lock()
	if f.err == nil && began.After(l.list.at) {
		l.list.at, l.list.tools = began, f.tools
	}
	if l.list.flight == f {
		l.list.flight = nil
	}
	l.list.mu.Unlock()
	close(f.done)
}

// ask never panics: nobody above this goroutine would catch it. A service that is left alone is asked all the same by those who need to
// know about this very moment: a claim, and a person who tests.
func (l *Line) ask(ctx context.Context, mayRest bool) (tools []provider.Definition, err error) {
	defer func() {
		if r := recover(); r != nil {
			tools, err = nil, fault.Of(fmt.Errorf("listing tools panicked: %T", r))
		}
	}()
	if mayRest {
		done, open := l.breaker.Allow()
		if open != nil {
			return nil, resting
		}
		defer func() { done(err) }()
	}
	if tools, err = l.Provider.Tools(ctx, l.Conn); err == nil && tools == nil {
		tools = []provider.Definition{}
	}
	return tools, err
}

// Live finds one tool in the live list; false when the upstream does not offer it, or not usably.
func (l *Line) Live(ctx context.Context, tool string, maxAge time.Duration) (provider.Definition, bool, error) {
	tools, err := l.Tools(ctx, maxAge)
	if err != nil {
		return provider.Definition{}, false, err
	}
	for _, d := range tools {
		if d.Name == tool {
			return d, d.Problem == "", nil
		}
	}
	return provider.Definition{}, false, nil
}

// Observed brings a live list into the form people are shown.
func Observed(tools []provider.Definition) []installation.Observed {
	out := make([]installation.Observed, 0, len(tools))
	for _, d := range tools {
		if d.Name == "" {
			continue // a tool without a name can be neither shown nor called
		}
		out = append(out, installation.Observed{
			Tool: d.Name, Title: d.Title, Description: d.Description, Digest: d.Digest, Recipe: d.Recipe, Raw: d.Raw, Annotations: d.Annotations, Problem: d.Problem,
		})
	}
	return out
}

// beside is what is known here of a runtime that works beside the agent: nobody here can call it.
var beside = installation.Finding{
	OK: true, Tools: []installation.Observed{},
	Found: "It works beside the agent: countersign-agent checks it against what it was built with and starts it there. Nothing is sent from here.",
}

// Probe implements installation.Prober: an authenticated call, then the list.
func (l *Lines) Probe(ctx context.Context, c installation.Connection) installation.Finding {
	if c.Kind == registry.Stdio {
		return beside
	}
	line, err := l.Open(ctx, c)
	if err != nil {
		return failed(c, err)
	}
	test, err := line.Provider.Test(ctx, line.Conn)
	if err != nil {
		return failed(c, err)
	}
	tools, err := line.Tools(ctx, 0)
	if err != nil {
		return failed(c, err)
	}
	return installation.Finding{OK: true, Found: found(test), Tools: Observed(tools)}
}

// DefaultBranch is the branch that agents never push to, of a repository of a connection to git.
func (l *Lines) DefaultBranch(ctx context.Context, c installation.Connection, repository string) (string, error) {
	line, err := l.Open(ctx, c)
	if err != nil {
		return "", err
	}
	git, ok := line.Provider.(interface {
		DefaultBranch(ctx context.Context, c *provider.Conn, repository string) (string, error)
	})
	if !ok {
		return "", fault.Absent("repository")
	}
	return git.DefaultBranch(ctx, line.Conn, repository)
}

func failed(c installation.Connection, err error) installation.Finding {
	what, next := toAdmin(c, err)
	return installation.Finding{What: what, Next: next}
}

// toAdmin is a fault in words for somebody who has the connection's page open: what sends an agent to an admin, and an admin to that page,
// says there what to do.
func toAdmin(c installation.Connection, err error) (what, next string) {
	f := fault.Of(err)
	contract := manifest.Contract(c.Contract)
	if f.Code == fault.NeedsConsent && contract == manifest.OAuth2 && !errors.Is(err, provider.ErrScope) {
		return f.What, "Sign in at the service again."
	}
	switch f.Next {
	case provider.Unauthorized().Next:
		switch contract {
		case manifest.OAuth2:
			return f.What, "Sign in at the service again."
		case manifest.None:
			return f.What, "It wants a credential, and this connection has none: install it again with one."
		}
		return f.What, "Enter a new credential on this page."
	case provider.OutOfScope(nil).Next:
		if contract == manifest.OAuth2 {
			return f.What, "Sign in at the service again and allow more there."
		}
		return f.What, "Give the credential that permission at the service, or enter another one on this page."
	case provider.Unreachable("", nil).Next:
		return f.What, "Try again later."
	case provider.EnterAnother:
		return f.What, "Enter another credential on this page."
	case installAgain:
		return f.What, "Install it again and retire this one."
	}
	return f.What, f.Next
}

func found(t provider.Finding) string {
	words := fmt.Sprintf("%s answered over %s and offers %d tools.", t.Server, t.Protocol, t.Tools)
	if t.Broken > 0 {
		words += fmt.Sprintf(" %d of them cannot be used.", t.Broken)
	}
	if t.Kind != "" {
		words += " The credential is " + t.Kind + "."
	}
	for _, more := range slices.Concat(t.Lacks, t.Beyond) {
		words += " " + more
	}
	if t.Proven {
		return "The credential works: an authenticated call succeeded. " + words
	}
	return "Nothing here proves the credential, since no call that needs it is known. " + words
}

var _ installation.Prober = (*Lines)(nil)
