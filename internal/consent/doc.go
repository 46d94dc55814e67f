// Package consent owns OAuth: finding the authorization server of a connection, asking a person there, keeping what was given fresh
// across replicas, and giving it back. What it holds leaves it only as an editor of outgoing requests. It never decides which tool may
// be used, never follows to an address that was not pinned when a person consented, never sends a refresh token again that is known to
// be consumed, and has no code for any single vendor: their quirks are data of the manifest.
package consent

import (
	"time"

	"countersign/internal/credential"
	"countersign/internal/identity"
	"countersign/internal/manifest"
)

// The sealed fields of a consent. The access token may be sent to the connection's own origin, the others to the token endpoint's.
const (
	accessField  = "access_token"
	refreshField = "refresh_token"
	secretField  = "client_secret"
)

// Server is an authorization server as it was pinned when a person consented.
type Server struct {
	Issuer    string // as it names itself; empty where nothing does
	Authorize string
	Token     string
	Revoke    string // empty: it revokes nothing
	Resource  string // the protected resource, as RFC 8707 wants it named; empty where the vendor refuses that
}

// Origin is where it is, for a person: the address they sign in at.
func (s Server) Origin() string { return originOf(s.Authorize) }

// Identity says how a client came to be known to an authorization server. The order is that of docs/adr/0008.
type Identity string

// The identities.
const (
	Registered Identity = "registered" // an admin made it at the vendor
	Document   Identity = "document"   // the server reads the document we publish
	Dynamic    Identity = "dynamic"    // made by registration, for one connection
)

// Client is who asks for consent.
type Client struct {
	Identity Identity
	ID       string
	Auth     manifest.TokenAuth // how it proves itself; never empty once in use
}

// Consent is what a person allowed a connection. The tokens are sealed beside it, under the same version.
type Consent struct {
	credential.Place
	ID      string // drawn with each consent: what was begun under one never ends another
	Server  Server
	Client  Client
	Asked   []string // scopes asked for
	Granted []string // scopes as granted: people untick
	By      identity.PersonID
	ByName  string
	At      time.Time
	Lost    string     // the word of a Trouble; empty while it works
	Version int64      // of the sealed tokens
	Issued  time.Time  // when this version of them was given
	Expires *time.Time // when the access token ends; nil: unknown
	Renews  bool       // there is a refresh token
	Refused []string   // scopes the service asked for when it refused a call as beyond the consent; with no names, one empty text
}

// Holds reports whether every scope was granted.
func (c Consent) Holds(scopes []string) bool { return len(missing(scopes, c.Granted)) == 0 }

// Request is one consent under way: what was pinned when a person left for the authorization server.
type Request struct {
	credential.Place
	State      []byte // digest of the state; the state itself is only ever in the person's browser
	By         identity.PersonID
	Session    []byte // of the browser that left
	Server     Server
	NamesIssue bool // the server says of itself that it names its issuer in the answer (RFC 9207)
	Client     Client
	Secret     []byte // sealed client secret; empty where the client has none
	Verifier   []byte // sealed
	Asked      []string
	Expires    time.Time
}

// Patience is how long a person may take at the authorization server.
const Patience = 10 * time.Minute
