package agentside

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"countersign/internal/fault"
)

// errOver is why a server is ended: its connection was retired or taken out of the profile, or the run is over.
func errOver(key string) *fault.Error {
	return cannot("This run does not have the runtime “"+visible(key)+"” any more: its connection was retired or taken out of the profile, or the run is over.", "Go on without it; a person can change that, for runs that start then.")
}

// Lasting answers a context that ends when the run of a place does not have a runtime any more, with the reason as its cause. A client that
// starts the server again is told at once. A gateway that does not answer proves nothing about a server that runs, and starts none.
func Lasting(ctx context.Context, place, key string, every time.Duration) (context.Context, error) {
	g, err := gatewayOf(place)
	if err == nil {
		err = g.has(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		turn := time.NewTicker(every)
		defer turn.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-turn.C:
			}
			if err := g.has(ctx, key); errors.Is(err, errGone) {
				end(err)
				return
			}
		}
	}()
	return ctx, nil
}

// errGone is behind what ends a server.
var errGone = errors.New("not in the configuration of the run")

// has asks whether the run has a runtime now.
func (g *Gateway) has(ctx context.Context, key string) error {
	c, err := g.Config(ctx, true) // exec has judged the address
	switch {
	case errors.Is(err, ErrToken):
		return errOver(key).Wrap(errGone)
	case err != nil:
		return err
	case !slices.ContainsFunc(c.Stdio, func(r Runtime) bool { return r.Key == key }):
		return errOver(key).Wrap(errGone)
	}
	return nil
}

// gatewayOf is the gateway of a run's place, with its token.
func gatewayOf(place string) (*Gateway, error) {
	address, err := os.ReadFile(filepath.Join(place, gatewayFile))
	if err != nil {
		return nil, cannot("This run is over.", "Start a run and countersign-agent again.").Wrap(err)
	}
	token, err := readTokenFile(filepath.Join(place, tokenFile))
	if err != nil {
		return nil, err
	}
	return Open(string(address), token, true)
}
