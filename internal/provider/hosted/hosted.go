// Package hosted owns the managed hosted kind: an MCP server that the vendor runs at an address this program was compiled with. It is
// the MCP client with the vendor's annotations trusted as far as the catalog trusts the vendor. It never takes an address or a
// header from anywhere but the registry, and has no code for any single vendor.
package hosted

import (
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/mcpclient"
	"countersign/internal/registry"
)

// Kind is what the registry calls this kind.
const Kind = registry.Hosted

// Origin says who vouches for the annotations of its tools.
const Origin = policy.CatalogVendor

// New makes the provider for every hosted integration.
func New(version string) provider.Provider { return mcpclient.New(version) }

// Targets are the addresses of a registry entry, each with what authorises requests to it. Only an address that the operator
// overrode may be private.
func Targets(e registry.Entry, editor provider.EditorFor) (map[registry.Role]provider.Target, error) {
	if e.Kind != Kind {
		return nil, fault.New(fault.Internal, fault.CodeInternal, "The runtime “"+string(e.Key)+"” is not a hosted one.", "")
	}
	return provider.Targets(e, editor)
}
