package installation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// Trial is a credential that was typed in and is stored nowhere: enough to look at what a connection made of it could be for.
type Trial struct {
	Org      identity.OrgID
	Manifest manifest.Manifest
	Entry    registry.Entry
	Parts    []Part
	Values   map[string]secret.Value
}

// Choice is something at the service that a connection could be for.
type Choice struct {
	Name     string
	Private  bool
	Archived bool
	Writable bool
}

// Choices is one page of what a credential sees.
type Choices struct {
	Listed []Choice
	Page   int
	More   bool // there are further pages
	Hidden bool // the service says that it leaves some out until the credential is authorized for them
}

// MaxChoicePage bounds how far anybody pages; what lies behind it is typed.
const MaxChoicePage = 100

// Scout looks with a credential that is not stored yet. It reads, and keeps nothing.
type Scout interface {
	Choices(ctx context.Context, t Trial, page int) (Choices, error)
}

// Choose lists what the credential of a form sees, before there is a connection.
func (s *Connections) Choose(ctx context.Context, by identity.Person, q Setup, page int) (Choices, error) {
	current, err := s.Releases.Current(ctx)
	if err != nil {
		return Choices{}, err
	}
	m, ok := current.Manifest(q.Integration)
	if !ok || m.Kind != registry.Git || s.Scout == nil {
		return Choices{}, fault.Absent("list to choose from")
	}
	if page < 1 || page > MaxChoicePage {
		return Choices{}, fault.New(fault.Invalid, fault.CodeInvalid, "There is no such page of the list.", "Begin with the first page, or type the names.")
	}
	entry, err := EntryOf(s.Registry, Connection{Runtime: m.Runtime})
	if err != nil {
		return Choices{}, err
	}
	destination, err := AddressOf(entry)
	if err != nil {
		return Choices{}, err
	}
	parts, err := checkSecrets(m, entry, q.Contract, nil, q.Secrets, destination)
	if err != nil {
		return Choices{}, err
	}
	return s.Scout.Choices(ctx, Trial{Org: by.Org, Manifest: m, Entry: entry, Parts: parts, Values: q.Secrets}, page)
}

// carriedFor is how long a form may carry a credential that was typed into it.
const carriedFor = 30 * time.Minute

// Carry seals what was typed into a form, so that the form can be shown again without asking for it twice and without showing it: only this
// server opens it, for the same form and person, and not for long.
func (s *Connections) Carry(by identity.Person, q Setup) (string, error) {
	plain := map[string]string{}
	for name, v := range q.Secrets {
		plain[name] = v.Reveal()
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return "", err
	}
	until := time.Now().Add(carriedFor).Unix()
	sealed, err := s.Keys.Seal(secret.New(string(text)), carried(by, q, until))
	return strconv.FormatInt(until, 10) + "." + base64.RawURLEncoding.EncodeToString(sealed), err
}

// Carried opens what a form carries. Whatever is wrong with it, the credential has to be typed again.
func (s *Connections) Carried(by identity.Person, q Setup, text string) (map[string]secret.Value, error) {
	deadline, encoded, _ := strings.Cut(text, ".")
	until, err := strconv.ParseInt(deadline, 10, 64)
	if err != nil || time.Now().Unix() > until {
		return nil, notCarried
	}
	sealed, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, notCarried
	}
	opened, err := s.Keys.Open(sealed, carried(by, q, until))
	if err != nil {
		return nil, notCarried
	}
	var plain map[string]string
	if json.Unmarshal([]byte(opened.Reveal()), &plain) != nil {
		return nil, notCarried
	}
	out := map[string]secret.Value{}
	for name, v := range plain {
		out[name] = secret.New(v)
	}
	return out, nil
}

var notCarried = fault.New(fault.Invalid, fault.CodeInvalid, "Not installed. The credential that was entered is not kept by this form any more.", "Enter it again.")

// carried binds a sealed credential to one form of one person. The names cannot be those of a stored credential: a connection's key has no
// colon.
func carried(by identity.Person, q Setup, until int64) secret.Binding {
	return secret.Binding{Org: string(by.Org), Connection: "form:" + q.ID, Field: q.Integration + ":" + string(q.Contract) + ":" + string(by.ID), Version: until}
}
