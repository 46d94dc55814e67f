// Package identity owns who people are: organizations, persons, roles and what a role may do. It knows nothing of passwords,
// sessions or storage. A role only ever adds; what nobody granted is denied.
package identity

import (
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"

	"countersign/internal/fault"
)

// OrgID and PersonID are random, from NewID.
type (
	OrgID    string
	PersonID string
)

// Org is an organization. Slug is unique and appears in operator commands only.
type Org struct {
	ID   OrgID
	Slug string
	Name string
}

// Role is one thing an organization trusts a person with. Roles combine.
type Role string

// The roles, most trusted first.
const (
	Owner    Role = "owner"
	Admin    Role = "admin"
	Approver Role = "approver"
	Auditor  Role = "auditor"
	Member   Role = "member"
)

// AllRoles lists every role in order.
var AllRoles = []Role{Owner, Admin, Approver, Auditor, Member}

// ParseRole accepts exactly the five role names.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(AllRoles, r) {
		return r, nil
	}
	return "", fault.Field("role", "There is no role “"+s+"”; choose owner, admin, approver, auditor or member.")
}

// Right is something a page or an endpoint asks for.
type Right string

// The rights. Decide is deliberately not part of admin: whoever sets the rules is not thereby the one who signs.
const (
	Decide    Right = "decide actions"
	Manage    Right = "manage connections, profiles, people and tokens"
	ReadAudit Right = "read the audit trail"
	View      Right = "view the organization"
)

// grants is the whole role table.
var grants = map[Role][]Right{
	Owner:    {Decide, Manage, ReadAudit, View},
	Admin:    {Manage, View},
	Approver: {Decide, View},
	Auditor:  {ReadAudit, View},
	Member:   {View},
}

// Person is somebody of exactly one organization. Email is globally unique, lower case.
type Person struct {
	ID     PersonID
	Org    OrgID
	Email  string
	Name   string
	Roles  []Role
	Active bool
}

// May reports whether an active person's roles grant the right. Everything else is denied.
func (p Person) May(r Right) bool {
	if !p.Active {
		return false
	}
	for _, role := range p.Roles {
		if slices.Contains(grants[role], r) {
			return true
		}
	}
	return false
}

// Display is the name, or the email where no name is known.
func (p Person) Display() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Email
}

// NormalizeEmail trims and lower-cases an address and refuses what cannot be one.
func NormalizeEmail(s string) (string, error) {
	e := strings.ToLower(strings.TrimSpace(s))
	local, domain, ok := strings.Cut(e, "@")
	if !ok || local == "" || domain == "" || len(e) > 254 || strings.ContainsAny(e, " \t\r\n<>,;\"\\") || strings.Contains(domain, "@") {
		return "", fault.Field("email", "“"+s+"” is not an email address.")
	}
	for _, r := range e {
		if r < 0x21 || r > 0x7e {
			return "", fault.Field("email", "An email address here is plain ASCII.")
		}
	}
	return e, nil
}

// NewID returns a random 128-bit identifier with the given prefix, e.g. "act_…": 26 lower-case base32 characters after it.
func NewID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails since Go 1.24
	return prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
