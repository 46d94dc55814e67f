package main

import (
	"countersign/internal/provider"
	"countersign/internal/provider/cli/gh"
	"countersign/internal/provider/cli/neonctl"
	"countersign/internal/provider/cli/sentrycli"
	"countersign/internal/provider/direct/analytics"
	"countersign/internal/provider/direct/lemonsqueezy"
	"countersign/internal/provider/direct/mongodb"
	"countersign/internal/provider/direct/upstash"
	"countersign/internal/registry"
)

// direct is the code of every direct runtime and of every vendor's command: one line a vendor. Commands is the folder where programs are
// installed.
func direct(commands string) map[registry.Key]provider.Provider {
	return map[registry.Key]provider.Provider{
		analytics.Key:    analytics.New(),
		lemonsqueezy.Key: lemonsqueezy.New(),
		mongodb.Key:      mongodb.New(),
		upstash.Key:      upstash.New(),
		gh.Key:           gh.New(commands),
		neonctl.Key:      neonctl.New(commands),
		sentrycli.Key:    sentrycli.New(commands),
	}
}
