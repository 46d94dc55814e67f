// Package people owns how persons get in: passwords, invitations and who may change whom. It never sees a session cookie (web/session)
// and keeps no clear password or invitation: only an argon2id hash and the SHA-256 of a random link.
package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/secret"
)

// InvitationLife is how long an invitation or a password link works.
const InvitationLife = 72 * time.Hour

// Account is a person with what sign-in needs.
type Account struct {
	Person       identity.Person
	Org          identity.Org
	PasswordHash string // argon2id, empty until the invitation is accepted
}

// Listed is a row of the people page.
type Listed struct {
	identity.Person
	Invited      bool // no password yet
	LastSignedIn *time.Time
}

// Directory reads people. AccountByEmail is the one look-up that crosses organizations, since sign-in does not know one yet.
type Directory interface {
	AnyOrganization(ctx context.Context) (bool, error)
	AccountByEmail(ctx context.Context, email string) (Account, error)
	Person(ctx context.Context, org identity.OrgID, id identity.PersonID) (identity.Person, error)
	People(ctx context.Context, org identity.OrgID) ([]Listed, error)
}

// Roster changes people, each in one statement with its audit row. The last active owner can be neither deactivated nor demoted: the
// store refuses with a conflict, since only the database can see it without a race.
type Roster interface {
	CreateOrganization(ctx context.Context, org identity.Org, owner identity.Person, passwordHash string, e ...audit.Entry) error
	AddPerson(ctx context.Context, p identity.Person, passwordHash string, e audit.Entry) error
	SetRoles(ctx context.Context, org identity.OrgID, id identity.PersonID, roles []identity.Role, e audit.Entry) error
	SetActive(ctx context.Context, org identity.OrgID, id identity.PersonID, active bool, e audit.Entry) error
	// SetPassword also ends every session of the person except keep (a session id hash, may be nil).
	SetPassword(ctx context.Context, org identity.OrgID, id identity.PersonID, hash string, keep []byte, e audit.Entry) error
}

// Invitations are single-use links by which a person sets a first or a new password.
type Invitations interface {
	SaveInvitation(ctx context.Context, org identity.OrgID, id identity.PersonID, linkHash []byte, life time.Duration, e audit.Entry) error
	// Invitee finds the account behind a link that is neither used nor expired, by the database's clock.
	Invitee(ctx context.Context, linkHash []byte) (Account, error)
	// AcceptInvitation uses the link up and sets the password (and name, when not empty) in the same statement.
	AcceptInvitation(ctx context.Context, linkHash []byte, name, passwordHash string, e audit.Entry) error
}

// params follow the OWASP password storage cheat sheet (19 MiB, 2 passes, 1 lane).
var params = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// decoy makes an unknown email cost the same time as a wrong password, so that addresses cannot be counted out. It is the hash of a random
// text that nobody kept; made anew at every start it would cost each program of ours 20 MiB and a twentieth of a second.
const decoy = "$argon2id$v=19$m=19456,t=2,p=1$+6NU/e5NePMWYaG3jGNp+w$0qwDFw/qm3DRi6jedntRdu8txo208ExB8soeOcIEABk"

// HashPassword checks the length (12 to 200 characters) and returns an argon2id hash.
func HashPassword(password secret.Value) (string, error) {
	p := password.Reveal()
	if n := utf8.RuneCountInString(p); n < 12 || n > 200 || !utf8.ValidString(p) {
		return "", fault.Field("password", "A password has 12 to 200 characters.")
	}
	return argon2id.CreateHash(p, params)
}

// SignInRefused is the one answer to every failed sign-in.
var SignInRefused = fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "That email and password do not match.",
	"Check both and try again, or ask an admin for a new password link.")

// Verify checks a password against an account; a zero account costs the same and is refused alike.
func Verify(a Account, password secret.Value) error {
	hash := a.PasswordHash
	if hash == "" {
		hash = decoy
	}
	ok, err := argon2id.ComparePasswordAndHash(password.Reveal(), hash)
	if err != nil {
		return err
	}
	if !ok || a.PasswordHash == "" || !a.Person.Active {
		return SignInRefused
	}
	return nil
}

// NewLink returns the secret part of an invitation link with 256 random bits, and the hash to store.
func NewLink() (link string, hash []byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	link = base64.RawURLEncoding.EncodeToString(b[:])
	return link, HashLink(link)
}

// HashLink is how an invitation link is looked up.
func HashLink(link string) []byte {
	h := sha256.Sum256([]byte(link))
	return h[:]
}

// NewPerson checks what a form or command says about a new person.
func NewPerson(org identity.OrgID, email, name string, roles []string) (identity.Person, error) {
	var faults fault.List
	note := func(err error) {
		if e, ok := fault.As(err); ok {
			faults = append(faults, e)
		}
	}
	mail, err := identity.NormalizeEmail(email)
	note(err)
	parsed, err := ParseRoles(roles)
	note(err)
	if name = strings.TrimSpace(name); utf8.RuneCountInString(name) > 100 || !utf8.ValidString(name) {
		note(fault.Field("name", "A name has at most 100 characters."))
	}
	p := identity.Person{ID: identity.PersonID(identity.NewID("per_")), Org: org, Email: mail, Name: name, Roles: parsed, Active: true}
	return p, faults.Err()
}

// ParseRoles accepts one or more role names and returns them in order, once each.
func ParseRoles(names []string) ([]identity.Role, error) {
	var out []identity.Role
	for _, n := range names {
		r, err := identity.ParseRole(n)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, fault.Field("role", "Choose at least one role.")
	}
	slices.SortFunc(out, func(a, b identity.Role) int {
		return slices.Index(identity.AllRoles, a) - slices.Index(identity.AllRoles, b)
	})
	return out, nil
}

// MayChange says whether actor may change target's roles, standing or password. Only an owner touches an owner or makes one; nobody
// changes their own roles, so that a stolen admin session cannot sign what it staged.
func MayChange(actor identity.Person, target identity.Person, newRoles []identity.Role) error {
	owner := slices.Contains(actor.Roles, identity.Owner)
	switch {
	case !actor.May(identity.Manage) || actor.Org != target.Org:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Your roles do not let you change people.", "Ask an owner or admin.")
	case actor.ID == target.ID:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "You cannot change your own roles or standing.", "Ask another owner or admin.")
	case !owner && (slices.Contains(target.Roles, identity.Owner) || slices.Contains(newRoles, identity.Owner)):
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only an owner can change or make an owner.", "Ask an owner.")
	}
	return nil
}
