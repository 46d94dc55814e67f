// Package servicetoken owns the tokens by which an organization's own programs start runs and read. A token has scopes and an expiry,
// is shown once, is stored as a hash, and can never decide on an action: no scope for that exists.
package servicetoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Scope is one thing a token may do.
type Scope string

// The scopes.
const (
	RunsWrite       Scope = "runs:write"
	RunsRead        Scope = "runs:read"
	ActionsRead     Scope = "actions:read"
	ConnectionsRead Scope = "connections:read"
	AuditRead       Scope = "audit:read"
)

// Scopes lists every scope.
var Scopes = []Scope{RunsWrite, RunsRead, ActionsRead, ConnectionsRead, AuditRead}

// Bounds of a token's life.
const (
	DefaultLife = 90 * 24 * time.Hour
	MaxLife     = 366 * 24 * time.Hour
)

// Prefix marks a service token, so that scanners can find a leaked one.
const Prefix = "cst_"

// Token is a service token as stored.
type Token struct {
	ID         string
	Org        identity.OrgID
	Name       string
	Scopes     []Scope
	Owner      identity.PersonID // who made it; may not decide on actions of runs it starts
	OwnerName  string
	CreatedAt  time.Time
	ExpiresAt  time.Time
	LastUsedAt *time.Time
	RevokedAt  *time.Time
	LastFour   string
}

// May reports whether the token has the scope. runs:write includes runs:read.
func (t Token) May(s Scope) bool {
	return slices.Contains(t.Scopes, s) || (s == RunsRead && slices.Contains(t.Scopes, RunsWrite))
}

// Store keeps tokens. TokenByHash finds only live ones (neither revoked nor expired by the database's clock, owner still active) and
// crosses organizations, since the token is what names one.
type Store interface {
	SaveToken(ctx context.Context, t Token, hash []byte, life time.Duration, e audit.Entry) (Token, error)
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	Tokens(ctx context.Context, org identity.OrgID) ([]Token, error)
	RevokeToken(ctx context.Context, org identity.OrgID, id string, e audit.Entry) error
}

// New checks a name and scopes and makes a token: the record to store, the clear token to show once, and its hash.
func New(owner identity.Person, name string, scopes []string) (t Token, clear string, hash []byte, err error) {
	var faults fault.List
	if name = strings.TrimSpace(name); name == "" || utf8.RuneCountInString(name) > 80 || !utf8.ValidString(name) {
		faults = append(faults, fault.Field("name", "A token needs a name of at most 80 characters."))
	}
	parsed, err := ParseScopes(scopes)
	if e, ok := fault.As(err); ok {
		faults = append(faults, e)
	}
	if err := faults.Err(); err != nil {
		return Token{}, "", nil, err
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	clear = Prefix + base64.RawURLEncoding.EncodeToString(b[:])
	t = Token{ID: identity.NewID("tok_"), Org: owner.Org, Name: name, Scopes: parsed, Owner: owner.ID, OwnerName: owner.Display(), LastFour: clear[len(clear)-4:]}
	return t, clear, Hash(clear), nil
}

// ParseScopes accepts one or more scope names.
func ParseScopes(names []string) ([]Scope, error) {
	var out []Scope
	for _, n := range names {
		s := Scope(strings.TrimSpace(n))
		if !slices.Contains(Scopes, s) {
			return nil, fault.Field("scopes", "There is no scope “"+n+"”; choose from runs:write, runs:read, actions:read, connections:read, audit:read.")
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, fault.Field("scopes", "Choose at least one scope.")
	}
	return out, nil
}

// Hash is how a token is looked up: SHA-256 is enough for 256 random bits.
func Hash(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}
