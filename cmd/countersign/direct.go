package main

import (
	"countersign/internal/provider"
	"countersign/internal/provider/direct/analytics"
	"countersign/internal/provider/direct/lemonsqueezy"
	"countersign/internal/provider/direct/mongodb"
	"countersign/internal/provider/direct/upstash"
	"countersign/internal/registry"
)

// direct is the code of every direct runtime: one line a vendor.
func direct() map[registry.Key]provider.Provider {
	return map[registry.Key]provider.Provider{
		analytics.Key:    analytics.New(),
		lemonsqueezy.Key: lemonsqueezy.New(),
		mongodb.Key:      mongodb.New(),
		upstash.Key:      upstash.New(),
	}
}
