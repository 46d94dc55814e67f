package credential

import (
	"io"
	"net/http"
	"strings"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/secret"
)

// ErrElsewhere refuses to authorise a request to an origin the credential was not stored for.
var ErrElsewhere = fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The credential of this connection was stored for another address.",
	"Enter the credential again for the present address.")

// Authorizer is a credential in its only usable form: it edits requests to one origin. It implements egress.Editor and has no way
// to give the secret back.
type Authorizer struct {
	origin   string
	headers  []filled
	redactor *Redactor
}

type filled struct {
	name  string
	value secret.Value
}

// Bind turns checked values into an authorizer for requests to d.
func Bind(c Contract, values map[string]secret.Value, d egress.Destination) (*Authorizer, error) {
	if d.IsZero() {
		return nil, egress.ErrRefused
	}
	if err := c.Check(values); err != nil {
		return nil, err
	}
	a := &Authorizer{origin: d.Origin()}
	var all []secret.Value
	for _, h := range c.headers {
		v := values[h.Field]
		a.headers = append(a.headers, filled{h.Name, secret.New(strings.Replace(h.Format, slot, v.Reveal(), 1))})
		all = append(all, v)
	}
	a.redactor = NewRedactor(all...)
	return a, nil
}

// Edit implements egress.Editor. It replaces whatever stood in its headers.
func (a *Authorizer) Edit(r *http.Request) error {
	if egress.OriginOf(r.URL) != a.origin {
		return ErrElsewhere
	}
	for _, h := range a.headers {
		r.Header.Set(h.name, h.value.Reveal())
	}
	return nil
}

// Body implements egress.Editor: an upstream that echoes its Authorization header must not hand it to the agent.
func (a *Authorizer) Body(body io.Reader) io.Reader { return a.redactor.Reader(body) }

// Header implements egress.Editor.
func (a *Authorizer) Header(h http.Header) { a.redactor.Header(h) }

// Redactor finds the secrets in other bytes, e.g. the output of a child process.
func (a *Authorizer) Redactor() *Redactor { return a.redactor }

var _ egress.Editor = (*Authorizer)(nil)
