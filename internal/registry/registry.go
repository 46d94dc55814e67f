// Package registry owns everything the server trusts to be called or run: one literal table (table.go), compiled in. A manifest, a
// form, a database row or an upstream can only name a key of it. It never reads an endpoint, a header or a command from data; the
// one thing that moves an endpoint is the operator's own file (endpoints.go), read once at start. It performs no I/O of its own.
package registry

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/fault"
)

// Key names one runtime, with the revision of its contract: "context7.v1".
type Key string

// Kind is how a runtime is reached. The set is closed.
type Kind string

// The kinds of the decision guide.
const (
	Hosted Kind = "hosted" // an MCP server the vendor runs
	Direct Kind = "direct" // a vendor API our own code calls
	Remote Kind = "remote" // an MCP server an organization runs at an address a person types
	Stdio  Kind = "stdio"  // an MCP server pinned in the agent image
	CLI    Kind = "cli"    // a vendor command with a closed grammar
	Git    Kind = "git"    // repository transport
)

// Kinds lists every kind in the order of the decision guide.
var Kinds = []Kind{Hosted, Direct, Remote, Stdio, CLI, Git}

// Role says what an endpoint of a runtime is for. A runtime has at most one endpoint per role.
type Role string

// The roles. MCP is the unnamed one: an endpoints file writes "<key>" for it and "<key>/<role>" for the others.
const (
	MCP       Role = "mcp"
	API       Role = "api"
	GitHTTP   Role = "git"
	Issuer    Role = "issuer"    // the authorization server, where the vendor's MCP server does not name it or names the wrong one
	Authorize Role = "authorize" // its endpoints, where its own documents do not name them
	Token     Role = "token"
	Register  Role = "register"
	Revoke    Role = "revoke"
	Data      Role = "data"
	Admin     Role = "admin"
)

// Roles lists every role.
var Roles = []Role{MCP, API, GitHTTP, Issuer, Authorize, Token, Register, Revoke, Data, Admin}

// Endpoint is one address of a runtime. URL is empty when only the operator can supply it and has not. In the host of a direct runtime's
// URL, "{setting}" stands for one label that a connection chooses: see At.
type Endpoint struct {
	URL        string
	Overridden bool // the operator's endpoints file (or serve's own wiring) set it: it may be a private address
}

// CredentialHeader is one request header a runtime accepts a credential in. Format holds "{secret}" once: "Bearer {secret}". In
// "Basic user:{secret}" what stands behind the first word is joined as Basic authentication does.
type CredentialHeader struct {
	Header string
	Format string
}

// Entry is one trusted runtime.
type Entry struct {
	Key         Key
	Kind        Kind
	Endpoints   map[Role]Endpoint
	Headers     map[string]string  // static and public, sent with every request
	Credentials []CredentialHeader // what a manifest's token contract may ask for; empty: no credential is ever sent
	OAuth       bool               // takes an OAuth access token; Issuer, Authorize and Token stand here only where discovery does not find them

	// What only direct runtimes have, and a remote one whose header a person named (For): a credential of several parts, each for one
	// endpoint. Or the key of a service account, which is sent to nobody: what is signed with it is exchanged at Token for what authorises
	// the rest.
	Parts          []Part
	ServiceAccount bool
	// ConnectionString: a person types where it is together with the login. Such an address is held to the rule for databases.
	ConnectionString bool

	// Invocations are what only commands have: everything such a runtime may be asked to do, by tool. Its grammar is the code of its kind.
	Invocations map[string]Effect
}

// Effect is what one invocation of a command does, as it can be told from its arguments alone.
type Effect string

// The effects. They have the names of policy's, which lies beside this package.
const (
	Reads  Effect = "read"
	Writes Effect = "consequential"
)

// Part is how one part of a credential travels. In Format "{field}" stands for a field of the setup form, and "{field:other}" for both
// as Basic authentication joins them. A part authorises Reads alone where the vendor has a credential of its own for them.
type Part struct {
	Role   Role
	Header string
	Format string
	Reads  bool
}

// Fields are the setup fields the part is made of; a user name comes first.
func (p Part) Fields() []string {
	_, rest, _ := strings.Cut(p.Format, "{")
	names, _, _ := strings.Cut(rest, "}")
	return strings.Split(names, ":")
}

// Slotted is the format with "{secret}" where the part's own value goes.
func (p Part) Slotted() string {
	before, rest, _ := strings.Cut(p.Format, "{")
	_, after, _ := strings.Cut(rest, "}")
	return before + "{secret}" + after
}

// Own are the roles of the addresses that do a runtime's work, in the order in which one of them stands for the runtime.
var Own = []Role{MCP, GitHTTP, API, Data, Admin}

// Primary is the role whose address stands for the runtime: it is what a connection is said to lead to.
func (e Entry) Primary() Role {
	for _, r := range Own {
		if _, ok := e.Endpoints[r]; ok {
			return r
		}
	}
	return MCP
}

// For is the entry as it is for one connection. A remote runtime has no address of its own: it is the one a person typed for the
// connection, and a credential travels in the header they named, or as a bearer. What is typed reaches no runtime of another kind.
func (e Entry) For(address, header string) Entry {
	if e.Kind != Remote {
		return e
	}
	e.Endpoints = maps.Clone(e.Endpoints)
	e.Endpoints[MCP] = Endpoint{URL: address}
	if header != "" {
		e.Parts = []Part{{Role: MCP, Header: header, Format: "{" + RemoteField + "}"}}
	}
	return e
}

// RemoteField is the setup field of a remote runtime's credential.
const RemoteField = "token"

var (
	settingInHost = regexp.MustCompile(`^(https://)\{([a-z][a-z0-9_]*)\}(\.[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/.*)?)$`)
	hostLabel     = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)
)

// At is the endpoint of one connection. What the connection chooses can only ever be one label below a domain that is compiled in; false
// where it has chosen none, or something else.
func (e Endpoint) At(settings map[string]string) (Endpoint, bool) {
	m := settingInHost.FindStringSubmatch(e.URL)
	if m == nil {
		return e, e.URL != "" && !strings.Contains(e.URL, "{")
	}
	label := settings[m[2]]
	if !hostLabel.MatchString(label) {
		return Endpoint{}, false
	}
	e.URL = m[1] + label + m[3]
	return e, true
}

// Endpoint returns the address of a role. A runtime without that role, or whose address the operator has not supplied, is
// Unavailable, in words that say which line to add.
func (e Entry) Endpoint(r Role) (Endpoint, error) {
	ep, ok := e.Endpoints[r]
	if !ok {
		return Endpoint{}, fault.New(fault.Internal, fault.CodeInternal, "The runtime “"+string(e.Key)+"” has no "+string(r)+" endpoint.", "")
	}
	if ep.URL == "" && e.Kind == Remote {
		return Endpoint{}, fault.New(fault.Internal, fault.CodeInternal, "The runtime “"+string(e.Key)+"” has an address for each connection, and none of its own.", "")
	}
	if ep.URL == "" {
		return Endpoint{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable,
			"The runtime “"+string(e.Key)+"” has no address of its own; only the operator of this server can supply one.",
			"Add "+quoted(target(e.Key, r))+" = \"https://…\" under [endpoints] in the file COUNTERSIGN_ENDPOINTS_FILE names, and restart.")
	}
	return ep, nil
}

// Accepts reports whether the runtime takes a credential in exactly this header and format.
func (e Entry) Accepts(header, format string) bool {
	return slices.Contains(e.Credentials, CredentialHeader{Header: header, Format: format})
}

// Table is a set of trusted runtimes. Outside this package it can only be Trusted() or that with the operator's overrides.
type Table struct{ entries map[Key]Entry }

// Lookup finds a runtime. The answer is a copy: changing it changes nothing here.
func (t Table) Lookup(k Key) (Entry, bool) {
	e, ok := t.entries[k]
	if !ok {
		return Entry{}, false
	}
	e.Endpoints, e.Headers, e.Credentials = maps.Clone(e.Endpoints), maps.Clone(e.Headers), slices.Clone(e.Credentials)
	e.Parts, e.Invocations = slices.Clone(e.Parts), maps.Clone(e.Invocations)
	return e, true
}

// Keys lists every runtime key, sorted.
func (t Table) Keys() []Key { return slices.Sorted(maps.Keys(t.entries)) }

// tableOf indexes entries. It is unexported so that nothing outside can extend what is trusted.
func tableOf(entries ...Entry) Table {
	t := Table{entries: make(map[Key]Entry, len(entries))}
	for _, e := range entries {
		t.entries[e.Key] = e
	}
	return t
}
