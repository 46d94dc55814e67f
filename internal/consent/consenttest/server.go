// Package consenttest owns an authorization server with a protected MCP server behind it, for tests: real HTTP, single-use codes, refresh
// tokens that rotate and take their whole family with them when one is used twice, clients by document, registration or hand, and a
// journal of what was asked of it. It knows nothing of the code under test, and no product code imports it.
package consenttest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Rules are how the server behaves. A test changes them with Server.Rule.
type Rules struct {
	Documents   bool              // takes client id metadata documents, and reads them with Fetch
	Fetch       *http.Client      // what reads them
	Register    bool              // takes registrations
	Known       map[string]string // clients made by hand: id → secret
	NamesIssue  bool              // sends iss, and says so
	WrongIssue  string            // sends this as iss instead
	Challenges  []string          // code challenge methods it says it takes
	Auth        []string          // token endpoint auth methods it says it takes
	Lifetime    time.Duration     // of access tokens; 0: not said
	NoRefresh   bool              // gives no refresh tokens
	Keeps       bool              // does not rotate them
	Grants      func(asked []string) []string
	Deny        string            // answers authorization requests with this error
	Resource    string            // what the document of the resource says it is about; empty: the MCP address
	Issuer      string            // what it calls itself; empty: its address
	Revokes     bool              // has a revocation endpoint
	Needs       map[string]string // tool → scope without which it is refused
	Open        bool              // lists tools without a token
	Refuses     bool              // the protected server refuses every token
	TokenFault  string            // of the next TokenFaults token answers: "500", "reset" (nothing done), "lost" (done, and the answer lost)
	TokenFaults int
	Metadata    map[string]any // laid over the server's document
}

// Entry is one line of the journal.
type Entry struct {
	Kind   string // register, document, authorize, code, refresh, reuse, revoke, refused, call
	Client string
	Scope  string
	Form   url.Values // of authorize and token requests
	Tool   string
}

// Server is the authorization server and the resource it protects.
type Server struct {
	*httptest.Server
	mcp http.Handler

	mu       sync.Mutex
	rules    Rules
	journal  []Entry
	codes    map[string]code
	clients  map[string]string   // registered: id → secret
	access   map[string]*token   // live and dead
	refresh  map[string]*token   // live and consumed
	families map[string][]*token // by consent
}

type code struct {
	client, redirect, challenge, resource string
	scopes                                []string
}

type token struct {
	family, client string
	scopes         []string
	dead           bool
	ends           time.Time
}

// New serves an MCP server behind consent. The handler sees no Authorization header of ours but the one a test sets with bearer.
func New(t *testing.T, mcp http.Handler, bearer string) *Server {
	t.Helper()
	s := &Server{
		rules: Rules{Register: true, NamesIssue: true, Challenges: []string{"S256"}, Auth: []string{"none", "client_secret_basic"}, Lifetime: time.Hour, Revokes: true},
		codes: map[string]code{}, clients: map[string]string{}, access: map[string]*token{}, refresh: map[string]*token{}, families: map[string][]*token{},
	}
	s.mcp = s.Protects(mcp, bearer)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.resource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.document)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", s.revoke)
	mux.Handle("/mcp", s.mcp)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// MCP is the address of the protected server.
func (s *Server) MCP() string { return s.URL + "/mcp" }

// Rule changes how the server behaves from now on.
func (s *Server) Rule(change func(*Rules)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.rules)
}

// Journal is what was asked, of one kind or, with "", of all.
func (s *Server) Journal(kind string) (out []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.journal {
		if kind == "" || e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// Expire ends every access token now, as time would.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.access {
		t.ends = time.Now().Add(-time.Second)
	}
}

// RevokeAll ends every consent, as a person would at the vendor's page.
func (s *Server) RevokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for family := range s.families {
		s.kill(family)
	}
}

// Forget makes the server not know a client any more.
func (s *Server) Forget(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, client)
	delete(s.rules.Known, client)
}

// Live counts the access tokens that still work.
func (s *Server) Live() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.access {
		if !t.dead && time.Now().Before(t.ends) {
			n++
		}
	}
	return n
}

func (s *Server) note(e Entry) { s.journal = append(s.journal, e) }

func (s *Server) kill(family string) {
	for _, t := range s.families[family] {
		t.dead = true
	}
}

func drawn() string {
	var b [18]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) resource(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say(w, http.StatusOK, map[string]any{"resource": or(s.rules.Resource, s.URL+"/mcp"), "authorization_servers": []string{s.URL}, "scopes_supported": []string{"mcp"}})
}

func (s *Server) document(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := map[string]any{
		"issuer": or(s.rules.Issuer, s.URL), "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": s.rules.Challenges, "token_endpoint_auth_methods_supported": s.rules.Auth,
		"client_id_metadata_document_supported": s.rules.Documents, "authorization_response_iss_parameter_supported": s.rules.NamesIssue,
	}
	if s.rules.Register {
		d["registration_endpoint"] = s.URL + "/register"
	}
	if s.rules.Revokes {
		d["revocation_endpoint"] = s.URL + "/revoke"
	}
	for name, value := range s.rules.Metadata {
		d[name] = value
	}
	say(w, http.StatusOK, d)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Protects puts a service behind the server's tokens; it hears its own bearer token instead of them.
func (s *Server) Protects(service http.Handler, bearer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.admits(w, r) {
			r.Header.Set("Authorization", "Bearer "+bearer)
			service.ServeHTTP(w, r)
		}
	})
}

// admits refuses a request without a token that is good for it.
func (s *Server) admits(w http.ResponseWriter, r *http.Request) bool {
	body, tool := toolOf(r)
	s.mu.Lock()
	t := s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	needed, open := s.rules.Needs[tool], s.rules.Open && tool == ""
	alive := t != nil && !t.dead && time.Now().Before(t.ends) && !s.rules.Refuses
	if alive && tool != "" {
		s.note(Entry{Kind: "call", Client: t.client, Tool: tool})
	}
	s.mu.Unlock()
	challenge := `Bearer resource_metadata="` + s.URL + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case !alive && !open:
		w.Header().Set("WWW-Authenticate", challenge+`, scope="mcp"`)
		say(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
	case needed != "" && !slices.Contains(t.scopes, needed):
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+needed+`"`)
		say(w, http.StatusForbidden, map[string]string{"error": "insufficient_scope"})
	default:
		r.Body = body
		return true
	}
	return false
}
