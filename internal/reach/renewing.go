package reach

import (
	"context"
	"errors"
	"strings"

	"countersign/internal/action"
	"countersign/internal/consent"
	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/provider"
)

// renewing is a provider over a consent. A read that the service refuses for its token is sent once more with the next one; a write
// never is. Tools beyond the consent are listed with what they lack.
type renewing struct {
	provider.Provider
	held     *consent.Held
	manifest manifest.Manifest
}

// Tools implements provider.Provider.
func (p renewing) Tools(ctx context.Context, c *provider.Conn) ([]provider.Definition, error) {
	tools, err := tried(ctx, p.held, func() ([]provider.Definition, error) { return p.Provider.Tools(ctx, c) })
	for i, d := range tools {
		if lacks := p.manifest.Lacks(d.Name, p.held.Granted()); d.Problem == "" && len(lacks) > 0 {
			tools[i].Problem = "it needs “" + lacks[0].Title + "”, which nobody has allowed at the service yet."
		}
	}
	return tools, err
}

// Read implements provider.Provider.
func (p renewing) Read(ctx context.Context, c *provider.Conn, call provider.Call) (provider.Result, error) {
	return tried(ctx, p.held, func() (provider.Result, error) { return p.Provider.Read(ctx, c, call) })
}

// Test implements provider.Provider.
func (p renewing) Test(ctx context.Context, c *provider.Conn) (provider.Finding, error) {
	return tried(ctx, p.held, func() (provider.Finding, error) { return p.Provider.Test(ctx, c) })
}

// Execute implements provider.Provider. What became of it is what the provider says; only what the service lacked is noted beside it.
func (p renewing) Execute(ctx context.Context, c *provider.Conn, call provider.Call) action.Outcome {
	o := p.Provider.Execute(ctx, c, call)
	if lacking, ok := strings.CutPrefix(o.Evidence().ProviderCode, provider.LacksScope); ok && o.Code() == fault.NeedsConsent {
		_ = p.held.Lacks(context.WithoutCancel(ctx), strings.Fields(lacking)) // a note that is not kept takes nothing from the outcome
	}
	return o
}

// Reconcile implements provider.Reconciler, as far as the provider does.
func (p renewing) Reconcile(ctx context.Context, c *provider.Conn, call provider.Call, e action.Evidence) (provider.Sighting, error) {
	able, ok := p.Provider.(provider.Reconciler)
	if !ok {
		return provider.Sighting{Sight: provider.Unseen}, nil
	}
	return tried(ctx, p.held, func() (provider.Sighting, error) { return able.Reconcile(ctx, c, call, e) })
}

// CanPreview implements provider.Previewer, as far as the provider does.
func (p renewing) CanPreview(call provider.Call) bool {
	able, ok := p.Provider.(provider.Previewer)
	return ok && able.CanPreview(call)
}

// Preview implements provider.Previewer.
func (p renewing) Preview(ctx context.Context, c *provider.Conn, call provider.Call) (provider.Preview, error) {
	able, ok := p.Provider.(provider.Previewer)
	if !ok {
		return provider.Preview{}, nil
	}
	return tried(ctx, p.held, func() (provider.Preview, error) { return able.Preview(ctx, c, call) })
}

// CanReconcile implements provider.OwnReconciler, as far as the provider does.
func (p renewing) CanReconcile(call provider.Call) bool {
	own, ok := p.Provider.(provider.OwnReconciler)
	return ok && own.CanReconcile(call)
}

// tried asks, and once more with another token where the service refused the first. When that is refused too the consent is over, and
// nothing is asked a third time.
func tried[T any](ctx context.Context, h *consent.Held, ask func() (T, error)) (T, error) {
	version := h.Version()
	out, err := ask()
	var scope *provider.ScopeError
	switch {
	case errors.As(err, &scope):
		_ = h.Lacks(context.WithoutCancel(ctx), scope.Scopes)
		return out, err
	case !provider.IsUnauthorized(err):
		return out, err
	}
	if err := h.Again(ctx, version); err != nil {
		return out, err
	}
	version = h.Version()
	if out, err = ask(); !provider.IsUnauthorized(err) {
		return out, err
	}
	if over := h.Over(ctx, version); over != nil {
		err = over
	}
	return out, err
}
