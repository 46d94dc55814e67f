package credential

import (
	"io"
	"net/http"
	"slices"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/secret"
)

// ErrElsewhere refuses to authorise a request to an origin the credential was not stored for.
var ErrElsewhere = fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The credential of this connection was stored for another address.",
	"Enter the credential again for the present address.")

// Authorizer is a credential in its only usable form: it edits requests to the origins it was bound to, nearly always one. It implements
// egress.Editor and has no way to give the secret back.
type Authorizer struct {
	places   []egress.Destination
	headers  []filled
	redactor *Redactor
	login    egress.Login // of a connection string
}

type filled struct {
	name  string
	value secret.Value
}

// Bind turns checked values into an authorizer for requests to d, and to the runtime's other addresses where one token opens them all.
func Bind(c Contract, values map[string]secret.Value, d egress.Destination, also ...egress.Destination) (*Authorizer, error) {
	a := &Authorizer{}
	for _, to := range append([]egress.Destination{d}, also...) {
		if to.IsZero() {
			return nil, egress.ErrRefused
		}
		a.places = append(a.places, to)
	}
	if err := c.Check(values); err != nil {
		return nil, err
	}
	if c.connection != "" {
		login, err := bindLogin(values[c.connection], d)
		if err != nil {
			return nil, err
		}
		a.login, a.redactor = login, login.redactor
		return a, nil
	}
	var all []secret.Value
	for _, h := range c.headers {
		v := h.filled(values)
		a.headers = append(a.headers, filled{h.Name, v})
		all = append(all, values[h.Field])
		if _, literal := h.literalUser(); h.User != "" || literal { // joined, it is another text
			all = append(all, v)
		}
	}
	a.redactor = NewRedactor(all...)
	return a, nil
}

// Edit implements egress.Editor. It replaces whatever stood in its headers.
func (a *Authorizer) Edit(r *http.Request) error {
	if !slices.ContainsFunc(a.places, func(d egress.Destination) bool { return d.Covers(r.URL) }) {
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
