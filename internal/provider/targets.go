package provider

import (
	"countersign/internal/egress"
	"countersign/internal/registry"
)

// EditorFor makes what authorises requests to one endpoint. It answers nil where nothing does: an authorization server, for one,
// must never be sent the credential of the API beside it.
type EditorFor func(registry.Role, egress.Destination) (egress.Editor, error)

// Targets turns the endpoints of a trusted runtime into targets. Editor may be nil where the service is open. An endpoint without
// an address is left out; using it says so.
func Targets(e registry.Entry, editor EditorFor) (map[registry.Role]Target, error) {
	out := map[registry.Role]Target{}
	for role, endpoint := range e.Endpoints {
		if endpoint.URL == "" {
			continue
		}
		d, err := DestinationOf(endpoint)
		if err != nil {
			return nil, err
		}
		t := Target{Destination: d, Headers: e.Headers}
		if editor != nil {
			if t.Editor, err = editor(role, d); err != nil {
				return nil, err
			}
		}
		out[role] = t
	}
	return out, nil
}

// DestinationOf is the destination of an endpoint. Only what the operator overrode may be private: the flag comes from the
// operator's file through the registry and from nowhere else.
func DestinationOf(e registry.Endpoint) (egress.Destination, error) {
	if e.Overridden {
		return egress.Operator(e.URL)
	}
	return egress.Public(e.URL)
}
