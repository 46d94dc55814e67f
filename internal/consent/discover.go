package consent

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
)

// Found is an authorization server with what it says of itself now. Only Server is pinned.
type Found struct {
	Server
	Register   string   // where clients register themselves; empty: nowhere
	Documents  bool     // it reads client id metadata documents
	NamesIssue bool     // it names its issuer in its answers
	Auth       []string // how clients may prove themselves; empty: it does not say
	Scopes     []string // what the resource asks for at least, where no grant names scopes
	Offline    bool     // it gives refresh tokens for offline_access
}

// protectedResource is the document of RFC 9728.
type protectedResource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// serverDocument is the document of RFC 8414 and of OpenID Connect discovery.
type serverDocument struct {
	Issuer     string   `json:"issuer"`
	Authorize  string   `json:"authorization_endpoint"`
	Token      string   `json:"token_endpoint"`
	Register   string   `json:"registration_endpoint"`
	Revoke     string   `json:"revocation_endpoint"`
	Challenges []string `json:"code_challenge_methods_supported"`
	Auth       []string `json:"token_endpoint_auth_methods_supported"`
	Scopes     []string `json:"scopes_supported"`
	Documents  bool     `json:"client_id_metadata_document_supported"`
	NamesIssue bool     `json:"authorization_response_iss_parameter_supported"`
}

// Discover finds the authorization server of a site: from the registry where it knows, else from the service's own documents.
func (s Site) Discover(ctx context.Context, o manifest.OAuth) (Found, error) {
	f, err := s.discover(ctx, o)
	if err != nil {
		return Found{}, err
	}
	if o.OmitResource {
		f.Resource = ""
	}
	if f.Revoke == "" {
		f.Revoke = s.fixed(registry.Revoke)
	}
	for _, raw := range []string{f.Authorize, f.Token, f.Register, f.Revoke} {
		if raw == "" {
			continue
		}
		if _, err := s.destination(raw); err != nil {
			return Found{}, undiscovered("The authorization server names an address that is not allowed.", err)
		}
	}
	return f, nil
}

func (s Site) discover(ctx context.Context, o manifest.OAuth) (Found, error) {
	if at := s.fixed(registry.Authorize); at != "" {
		return Found{
			Server:   Server{Issuer: s.fixed(registry.Issuer), Authorize: at, Token: s.fixed(registry.Token), Revoke: s.fixed(registry.Revoke), Resource: s.MCP.URL()},
			Register: s.fixed(registry.Register),
		}, nil
	}
	if issuer := s.fixed(registry.Issuer); issuer != "" {
		f, err := s.server(ctx, issuer, o)
		f.Resource = s.MCP.URL()
		return f, err
	}
	resource, asked, err := s.resource(ctx)
	if err != nil {
		return Found{}, err
	}
	issuer := s.MCP.Origin() // services of 2025-03-26 were their own authorization servers and had no document of the resource
	if len(resource.Servers) > 0 {
		issuer = resource.Servers[0]
	}
	f, err := s.server(ctx, issuer, o)
	if err != nil {
		return Found{}, err
	}
	f.Resource, f.Scopes = resource.Resource, resource.Scopes
	if len(asked) > 0 {
		f.Scopes = asked
	}
	return f, nil
}

func (s Site) fixed(role registry.Role) string { return s.Entry.Endpoints[role].URL }

var challengeParameter = regexp.MustCompile(`(?i)\b(resource_metadata|scope|error)\s*=\s*"([^"\\]*)"`)

// challenged reads one parameter of a WWW-Authenticate header.
func challenged(header, name string) string {
	for _, m := range challengeParameter.FindAllStringSubmatch(header, -1) {
		if strings.EqualFold(m[1], name) {
			return m[2]
		}
	}
	return ""
}

// resource finds the document of the protected resource: where the service's refusal points, else at the well-known places. A service
// without one is itself its resource.
func (s Site) resource(ctx context.Context) (protectedResource, []string, error) {
	a, err := s.post(ctx, s.MCP.URL(), "application/json", []byte(unauthorised), func(r *http.Request) { r.Header.Set("Accept", "application/json, text/event-stream") })
	if errors.Is(err, egress.ErrRefused) {
		return protectedResource{}, nil, egress.ErrRefused
	}
	if err != nil {
		return protectedResource{}, nil, unreachable(err)
	}
	asked := listed(challenged(a.challenge, "scope"))
	places := wellKnown(s.MCP.URL(), "oauth-protected-resource")
	if told := challenged(a.challenge, "resource_metadata"); told != "" {
		places = []string{told}
	}
	for _, place := range places {
		var doc protectedResource
		switch err := s.document(ctx, place, &doc); {
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return protectedResource{}, nil, unread(err)
		case !covers(doc.Resource, s.MCP.URL()):
			return protectedResource{}, nil, undiscovered("The service's own document is about another address than the one this connection leads to.", nil)
		}
		return doc, asked, nil
	}
	return protectedResource{Resource: s.MCP.URL()}, asked, nil
}

// unauthorised is a call that a service without credential refuses; one that answers it has shown nothing.
const unauthorised = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"countersign","version":"1"}}}`

// covers reports whether a resource is the address or a folder above it, of the same origin. What is sent as resource is the
// document's own words, since that is what the tokens are checked against.
func covers(resource, address string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil || r.User != nil || r.Fragment != "" || egress.OriginOf(r) == "" || egress.OriginOf(r) != egress.OriginOf(a) {
		return false
	}
	over := strings.TrimSuffix(r.EscapedPath(), "/")
	return r.RawQuery == "" && (over == strings.TrimSuffix(a.EscapedPath(), "/") || strings.HasPrefix(a.EscapedPath(), over+"/"))
}

// wellKnown are the places of a document about an address: with its path, then at the root.
func wellKnown(address, name string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	root := u.Scheme + "://" + u.Host
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	out := []string{root + "/.well-known/" + name + path}
	if path != "" {
		out = append(out, root+"/.well-known/"+name)
	}
	return out
}

// server reads what an authorization server says of itself. Its name must be, byte for byte, the one it was called by.
func (s Site) server(ctx context.Context, issuer string, o manifest.OAuth) (Found, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return Found{}, undiscovered("The service names an authorization server that is no address.", err)
	}
	if _, err := s.destination(issuer); err != nil { // as it is written: what is asked below leaves some of it out
		return Found{}, unread(err)
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	root := u.Scheme + "://" + u.Host
	places := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, root+path+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var doc serverDocument
		switch err := s.document(ctx, place, &doc); {
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return Found{}, unread(err)
		}
		return judged(doc, issuer, o)
	}
	return Found{}, undiscovered("The authorization server publishes no document about itself.", nil)
}

func judged(doc serverDocument, issuer string, o manifest.OAuth) (Found, error) {
	switch {
	case doc.Issuer != issuer:
		return Found{}, undiscovered("The authorization server calls itself by another name than the service does.", nil)
	case doc.Authorize == "" || doc.Token == "":
		return Found{}, undiscovered("The authorization server does not say where to ask for consent.", nil)
	case !slices.Contains(doc.Challenges, "S256") && !o.PKCEUnadvertised:
		return Found{}, undiscovered("The authorization server does not say that it takes PKCE with S256, without which a stolen code could be used.", nil)
	}
	return Found{
		Server:   Server{Issuer: doc.Issuer, Authorize: doc.Authorize, Token: doc.Token, Revoke: doc.Revoke},
		Register: doc.Register, Documents: doc.Documents, NamesIssue: doc.NamesIssue, Auth: doc.Auth, Offline: slices.Contains(doc.Scopes, "offline_access"),
	}, nil
}

func undiscovered(what string, cause error) *fault.Error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, what, "Nothing was asked and nothing was stored. Tell the vendor, or connect with another way to authenticate.").Wrap(cause)
}

// unread tells an address that may not be asked from one that does not answer: trying again helps with the second only.
func unread(cause error) *fault.Error {
	if errors.Is(cause, errForbidden) || errors.Is(cause, egress.ErrRefused) {
		return undiscovered("What the service says of itself leads to an address that is not allowed.", cause)
	}
	return unreachable(cause)
}

func unreachable(cause error) *fault.Error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The service or its authorization server cannot be reached.", "Nothing was changed. Try again later.").Wrap(cause)
}
