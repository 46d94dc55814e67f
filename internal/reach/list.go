package reach

import (
	"context"
	"fmt"
	"sync"
	"time"

	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/provider"
)

// list is the live tool list of a line. The lock is held while it is fetched, so that concurrent calls ask the upstream once.
type list struct {
	mu    sync.Mutex
	at    time.Time // local, monotonic
	tools []provider.Definition
}

// Tools is the live list, at most maxAge old; zero fetches it now.
func (l *Line) Tools(ctx context.Context, maxAge time.Duration) ([]provider.Definition, error) {
	l.list.mu.Lock()
	defer l.list.mu.Unlock()
	if l.list.tools != nil && maxAge > 0 && time.Since(l.list.at) < maxAge {
		return l.list.tools, nil
	}
	began := time.Now() // the answer may describe this moment, not the one it arrives at
	tools, err := l.Provider.Tools(ctx, l.Conn)
	if err != nil {
		return nil, err
	}
	if tools == nil {
		tools = []provider.Definition{}
	}
	l.list.at, l.list.tools = began, tools
	return tools, nil
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

// Probe implements installation.Prober: an authenticated call, then the list.
func (l *Lines) Probe(ctx context.Context, c installation.Connection) installation.Finding {
	line, err := l.Open(ctx, c)
	if err != nil {
		return failed(err)
	}
	test, err := line.Provider.Test(ctx, line.Conn)
	if err != nil {
		return failed(err)
	}
	tools, err := line.Tools(ctx, 0)
	if err != nil {
		return failed(err)
	}
	return installation.Finding{OK: true, Found: found(test), Tools: Observed(tools)}
}

func failed(err error) installation.Finding {
	f := fault.Of(err)
	return installation.Finding{What: f.What, Next: f.Next}
}

func found(t provider.Finding) string {
	words := fmt.Sprintf("%s answered over %s and offers %d tools.", t.Server, t.Protocol, t.Tools)
	if t.Broken > 0 {
		words += fmt.Sprintf(" %d of them cannot be used.", t.Broken)
	}
	if t.Proven {
		return "The credential works: an authenticated call succeeded. " + words
	}
	return "Nothing here proves the credential, since no call that needs it is known. " + words
}

var _ installation.Prober = (*Lines)(nil)
