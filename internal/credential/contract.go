// Package credential owns the way from sealed records to authorised requests: a credential is applied, not returned. It checks what
// a person enters against the auth contract, seals it for one connection with the origin it may be sent to, and turns it into an
// Authorizer that edits requests to that origin and takes the secret out of every answer. It never sends anything itself, never
// stores a value in clear and never hands one to a provider.
package credential

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"countersign/internal/fault"
	"countersign/internal/secret"
)

// TokenField is the field of a contract with a single secret.
const TokenField = "token"

const maxSecret = 8 << 10

const slot = "{secret}"

// Header says where one secret goes: Format holds "{secret}" once, e.g. "Bearer {secret}".
type Header struct {
	Field  string
	User   string // the field of the user name where Basic authentication joins the two; else empty
	Name   string
	Format string
}

func (h Header) fields() []string {
	if h.User == "" {
		return []string{h.Field}
	}
	return []string{h.User, h.Field}
}

// literalUser is the user name of a format like "Basic user:{secret}", which is joined with the secret.
func (h Header) literalUser() (string, bool) {
	user, ok := strings.CutSuffix(strings.TrimPrefix(h.Format, "Basic "), ":"+slot)
	return user, ok && strings.HasPrefix(h.Format, "Basic ") && h.User == "" && user != ""
}

// filled is the value of the header.
func (h Header) filled(values map[string]secret.Value) secret.Value {
	v := values[h.Field].Reveal()
	if user, ok := h.literalUser(); ok {
		return secret.New("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+v)))
	}
	if h.User != "" {
		v = base64.StdEncoding.EncodeToString([]byte(values[h.User].Reveal() + ":" + v))
	}
	return secret.New(strings.Replace(h.Format, slot, v, 1))
}

// Contract is how requests of a connection are authorised by static secrets. The zero value authorises nothing.
type Contract struct {
	headers    []Header
	connection string // the field of a connection string; then there are no headers
}

// Token is the contract with one secret in one header.
func Token(name, format string) (Contract, error) {
	return NewContract(Header{Field: TokenField, Name: name, Format: format})
}

// steering are headers a credential may not ride in: they decide where a request goes or how it is framed.
var steering = []string{
	"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept", "Accept-Encoding", "Upgrade", "Te", "Trailer",
	"Keep-Alive", "Expect", "Cookie", "Cookie2", "Set-Cookie", "Proxy-Connection", "Range", "Origin", "Forwarded", "Via",
}

// steers reports whether a header, in its canonical form, is one of them. All of the protocol's own begin alike.
func steers(name string) bool {
	return slices.Contains(steering, name) || strings.HasPrefix(name, "Mcp-") || strings.HasPrefix(name, "X-Forwarded-")
}

// NewContract checks the headers of a contract. An empty one is valid: the service is open.
func NewContract(headers ...Header) (Contract, error) {
	seen := map[string]bool{}
	for _, h := range headers {
		name := http.CanonicalHeaderKey(h.Name)
		if !httpguts.ValidHeaderFieldName(h.Name) {
			return Contract{}, fault.Field("header", fmt.Sprintf("%q is not the name of a header.", h.Name))
		}
		if steers(name) {
			return Contract{}, fault.Field("header", "A credential may not travel in the header "+name+".")
		}
		if strings.Count(h.Format, slot) != 1 || !httpguts.ValidHeaderFieldValue(h.Format) {
			return Contract{}, fault.Field("format", "The format must hold {secret} exactly once, like “Bearer {secret}”.")
		}
		for _, f := range h.fields() {
			if f == "" || seen["field "+f] {
				return Contract{}, fault.Field("header", "Each secret needs a field of its own.")
			}
			seen["field "+f] = true
		}
		if seen["header "+name] {
			return Contract{}, fault.Field("header", "Each secret needs a header of its own.")
		}
		seen["header "+name] = true
	}
	return Contract{headers: append([]Header(nil), headers...)}, nil
}

// Fields lists the fields a person fills in.
func (c Contract) Fields() []string {
	if c.connection != "" {
		return []string{c.connection}
	}
	var out []string
	for _, h := range c.headers {
		out = append(out, h.fields()...)
	}
	return out
}

// Check says, a sentence a field, what is wrong with entered values. The sentences never quote one.
func (c Contract) Check(values map[string]secret.Value) error {
	var problems fault.List
	known := map[string]bool{}
	if c.connection != "" {
		known[c.connection] = true
		if _, err := parseLogin(values[c.connection].Reveal()); err != nil {
			f := *fault.Of(err)
			f.Field = c.connection
			problems = append(problems, &f)
		}
	}
	for _, h := range c.headers {
		for _, f := range h.fields() {
			known[f] = true
			if s := wrong(values[f].Reveal()); s != "" {
				problems = append(problems, fault.Field(f, s))
			}
		}
		if h.User != "" && strings.Contains(values[h.User].Reveal(), ":") {
			problems = append(problems, fault.Field(h.User, "A user name holds no colon; Basic authentication would read it otherwise."))
		}
	}
	for field := range values {
		if !known[field] {
			problems = append(problems, fault.Field(field, "This service takes no such credential."))
		}
	}
	return problems.Err()
}

// wrong says why s cannot be sent in a header. A pasted line end is the usual mistake, and unchecked the classic way to smuggle a
// second header in.
func wrong(s string) string {
	switch {
	case s == "":
		return "The credential is empty; paste it whole."
	case len(s) > maxSecret:
		return "The credential is longer than 8 KiB; that is not a token."
	case strings.TrimSpace(s) != s:
		return "The credential begins or ends with white space; paste it without."
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return "The credential contains a line break or another control character; paste it as one line."
		}
		if r > 0x7e {
			return "The credential contains a character outside ASCII; check that it was copied whole."
		}
	}
	return ""
}
