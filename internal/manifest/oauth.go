package manifest

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// OAuth is how an authorization server differs from what its documents and the standards say, as data. Its addresses are not here:
// they are discovered from the runtime, or stand in the registry.
type OAuth struct {
	Client              Client            `toml:"client" json:"client,omitempty"`                             // who may ask for consent
	ClientSteps         []string          `toml:"client_steps" json:"client_steps,omitempty"`                 // how an admin makes a client at the vendor; {redirect_uri} is our callback
	TokenAuth           TokenAuth         `toml:"token_auth" json:"token_auth,omitempty"`                     // how a client proves itself; empty: as the server's document says
	AlwaysScopes        []string          `toml:"always_scopes" json:"always_scopes,omitempty"`               // asked for with whatever is asked for: offline_access
	ScopeParameter      string            `toml:"scope_parameter" json:"scope_parameter,omitempty"`           // empty: scope
	ScopeSeparator      string            `toml:"scope_separator" json:"scope_separator,omitempty"`           // empty: a space
	AuthorizeParameters map[string]string `toml:"authorize_parameters" json:"authorize_parameters,omitempty"` // added to the authorization request
	OmitResource        bool              `toml:"omit_resource" json:"omit_resource,omitempty"`               // the server refuses a request with resource
	PKCEUnadvertised    bool              `toml:"pkce_unadvertised" json:"pkce_unadvertised,omitempty"`       // its document does not say that it takes PKCE, which is sent all the same
	AddsScopes          bool              `toml:"adds_scopes" json:"adds_scopes,omitempty"`                   // a later consent adds to the earlier ones; else all is asked for again
	TokensIn            string            `toml:"tokens_in" json:"tokens_in,omitempty"`                       // the member of the token answer that holds the tokens
	Revocation          Revocation        `toml:"revocation" json:"revocation,omitempty"`                     // what revoking a token ends
	Manage              string            `toml:"manage" json:"manage,omitempty"`                             // the vendor's page where a person sees and ends what was allowed
}

// Client says who may ask for consent at the authorization server.
type Client string

// The clients.
const (
	AnyClient        Client = ""           // ours, by the order of docs/adr/0008
	RegisteredClient Client = "registered" // only one that an admin made at the vendor beforehand
)

// TokenAuth is how a client proves itself at the token endpoint, in the words of the standard.
type TokenAuth string

// The ways.
const (
	AdvertisedAuth TokenAuth = ""
	NoAuth         TokenAuth = "none"
	BasicAuth      TokenAuth = "client_secret_basic"
	PostAuth       TokenAuth = "client_secret_post"
)

// Revocation says what revoking one token ends at the vendor.
type Revocation string

// The revocations.
const (
	RevokesToken Revocation = ""      // what this connection was given
	RevokesGrant Revocation = "grant" // everything the account ever allowed this client: other connections of it end too
	NoRevocation Revocation = "none"  // the vendor offers none that works; the person ends it at Manage
)

// ours are the parameters of an authorization request that are part of the protocol.
var ours = []string{
	"response_type", "response_mode", "client_id", "client_secret", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource", "request", "request_uri", "nonce",
}

var (
	parameterShape = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	scopeShape     = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`) // scope-token of RFC 6749
)

// longestScope is in bytes; a bound in the pattern would be compiled into as many steps.
const longestScope = 200

func isScope(s string) bool { return len(s) <= longestScope && scopeShape.MatchString(s) }

// empty reports whether nothing of it is written.
func (o OAuth) empty() bool {
	return o.Client == "" && len(o.ClientSteps) == 0 && o.TokenAuth == "" && len(o.AlwaysScopes) == 0 && o.ScopeParameter == "" && o.ScopeSeparator == "" &&
		len(o.AuthorizeParameters) == 0 && !o.OmitResource && !o.PKCEUnadvertised && !o.AddsScopes && o.TokensIn == "" && o.Revocation == "" && o.Manage == ""
}

func (c *check) oauth(p string, a Auth) {
	if a.Header != "" || a.Format != "" {
		c.at(p, "The auth contract “oauth2” chooses no header: an access token is a bearer.", "Remove header and format.")
	}
	if entry, ok := c.reg.Lookup(c.m.Runtime); ok && !entry.OAuth {
		c.at(p, "The runtime “"+string(c.m.Runtime)+"” takes no OAuth token.", "Set OAuth in its entry in internal/registry/table.go, or use another contract.")
	}
	c.oauthClient(p, a.OAuth)
	c.oauthRequest(p, a.OAuth)
	if !slices.Contains([]Revocation{RevokesToken, RevokesGrant, NoRevocation}, a.Revocation) {
		c.at(p+".revocation", "There is no revocation “"+string(a.Revocation)+"”.", "Write \"grant\" where it ends all that the account allowed, \"none\" where there is none, or leave it out.")
	}
	if a.Revocation == NoRevocation && a.Manage == "" {
		c.at(p+".manage", "The vendor revokes nothing, and the manifest does not say where a person ends it.", "Write manage with the vendor's page for it.")
	}
	if u, err := url.Parse(a.Manage); a.Manage != "" && (err != nil || u.Scheme != "https" || !strings.Contains(u.Hostname(), ".") || u.Port() != "") {
		c.at(p+".manage", "“manage” is not the address of a public page.", "Write the vendor's page as https://…, or leave the field out.")
	}
}

func (c *check) oauthClient(p string, o OAuth) {
	if o.Client != AnyClient && o.Client != RegisteredClient {
		c.at(p+".client", "There is no client “"+string(o.Client)+"”.", "Write client = \"registered\" where the vendor takes no other, or leave it out.")
	}
	if o.Client == RegisteredClient && !strings.Contains(strings.Join(o.ClientSteps, "\n"), "{redirect_uri}") {
		c.at(p+".client_steps", "An admin has to make a client at the vendor, and no step says where {redirect_uri} goes.",
			"Write client_steps with the vendor's own words for each thing to press, and {redirect_uri} where our callback address is to be entered.")
	}
	if len(o.ClientSteps) > 12 {
		c.at(p+".client_steps", "There are more than 12 steps to make a client.", "Say it shorter, and point to the vendor's page with docs.")
	}
	for i, s := range o.ClientSteps {
		c.line(fmt.Sprintf("%s.client_steps[%d]", p, i), s, 5, 300)
	}
	if !slices.Contains([]TokenAuth{AdvertisedAuth, NoAuth, BasicAuth, PostAuth}, o.TokenAuth) {
		c.at(p+".token_auth", "There is no way “"+string(o.TokenAuth)+"” for a client to prove itself.", "Write none, client_secret_basic or client_secret_post, or leave it out.")
	}
}

func (c *check) oauthRequest(p string, o OAuth) {
	for i, s := range o.AlwaysScopes {
		if !isScope(s) {
			c.at(fmt.Sprintf("%s.always_scopes[%d]", p, i), "“"+s+"” is no scope.", "Write one scope an entry, as the vendor spells it.")
		}
	}
	if o.ScopeSeparator != "" && o.ScopeSeparator != "," {
		c.at(p+".scope_separator", "Scopes are separated by a space or a comma.", "Write scope_separator = \",\", or leave it out for a space.")
	}
	for field, value := range map[string]string{"scope_parameter": o.ScopeParameter, "tokens_in": o.TokensIn} {
		if value != "" && (!parameterShape.MatchString(value) || slices.Contains(ours, value)) {
			c.at(p+"."+field, "“"+value+"” cannot stand as "+field+".", "Write the vendor's name for it, like user_scope, or leave it out.")
		}
	}
	for name, value := range o.AuthorizeParameters {
		path := join(p+".authorize_parameters", name)
		if !parameterShape.MatchString(name) || slices.Contains(ours, name) || name == o.ScopeParameter {
			c.at(path, "The parameter “"+name+"” belongs to the protocol, or is none.", "Name only what the vendor asks for besides, like access_type.")
		}
		c.line(path, value, 1, 100)
	}
}

// needs holds a tool to grants that there are. What is not optional is always asked for, so no tool needs to name it.
func (c *check) needs(p string, t ToolPolicy) {
	for i, id := range t.Needs {
		if g, ok := c.m.Grant(id); !ok || !g.Optional || len(g.Scopes) == 0 || slices.Contains(t.Needs[:i], id) {
			c.at(fmt.Sprintf("%s.needs[%d]", p, i), "“"+t.Name+"” needs the grant “"+id+"”, which is no optional grant with scopes of this manifest, or is there twice.",
				"Name the id of a [[grants]] entry with optional = true and its scopes.")
		}
	}
}

// Lacks are the grants a tool needs whose scopes are not all granted.
func (m Manifest) Lacks(tool string, granted []string) (out []Grant) {
	p, _ := m.Policy(tool)
	for _, id := range p.Needs {
		if g, ok := m.Grant(id); ok && slices.ContainsFunc(g.Scopes, func(s string) bool { return !slices.Contains(granted, s) }) {
			out = append(out, g)
		}
	}
	return out
}

// Grant returns the manifest's grant of an id.
func (m Manifest) Grant(id string) (Grant, bool) {
	for _, g := range m.Grants {
		if g.ID == id {
			return g, true
		}
	}
	return Grant{}, false
}
