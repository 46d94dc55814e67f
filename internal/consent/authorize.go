package consent

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/secret"
)

// drawn is a random text of 256 bits, in an alphabet that both state and code verifier allow.
func drawn() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func digestOf(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}

// authorization is the address a person is sent to.
func authorization(q Request, o manifest.OAuth, state string, verifier secret.Value, callback string) (string, error) {
	u, err := url.Parse(q.Server.Authorize)
	if err != nil {
		return "", undiscovered("The authorization server's address cannot be read.", err)
	}
	challenge := sha256.Sum256([]byte(verifier.Reveal()))
	p := u.Query()
	for name, value := range o.AuthorizeParameters {
		p.Set(name, value)
	}
	p.Set("response_type", "code")
	p.Set("client_id", q.Client.ID)
	p.Set("redirect_uri", callback)
	p.Set("state", state)
	p.Set("code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:]))
	p.Set("code_challenge_method", "S256")
	if len(q.Asked) > 0 {
		p.Set(scopeParameter(o), joined(o, q.Asked))
	}
	if q.Server.Resource != "" {
		p.Set("resource", q.Server.Resource)
	}
	u.RawQuery = p.Encode()
	return u.String(), nil
}

// Answer is what came back to the callback, as it stands in the address.
type Answer struct {
	State string
	Code  string
	Error string
	Issue string
	Named bool // the answer names its issuer
}

// The faults of a callback. Each leaves everything as it was.
var (
	ErrNotStarted = fault.New(fault.Invalid, fault.CodeInvalid, "This answer belongs to no consent that is under way here: it was used already, took longer than ten minutes, or was not started in this browser.",
		"Open the connection and start again. Nothing was stored.")
	ErrOtherPerson = fault.New(fault.Forbidden, fault.CodeForbidden, "Somebody else started this consent. Only who started it can finish it, in the same browser session.",
		"Start it yourself from the connection's page. Nothing was stored, and the answer can no longer be used.")
	ErrIssuer = fault.New(fault.Invalid, fault.CodeInvalid, "The answer does not come from the authorization server that you were sent to.",
		"Nothing was stored. Start again; if it happens again, tell the vendor, since somebody may be mixing up sign-ins on purpose.")
	ErrDenied = fault.New(fault.Invalid, fault.CodeInvalid, "The consent was declined at the service.",
		"Nothing was stored. Start again if that was not meant.")
)

// judge says whether an answer belongs to the request and carries a code.
func (q Request) judge(a Answer) error {
	switch {
	case q.NamesIssue && !a.Named, a.Named && q.Server.Issuer != "" && a.Issue != q.Server.Issuer: // RFC 9207
		return ErrIssuer
	case a.Error == "access_denied":
		return ErrDenied
	case a.Error != "":
		return declined(word(a.Error))
	case !plain(a.Code):
		return declined("no code")
	}
	return nil
}

// declined is the fault for an answer that is an error. The words of the other side are not repeated, apart from the code itself.
func declined(code string) error {
	next := "Nothing was stored. Start again; if it stays, the vendor's documentation says what the word means."
	switch code {
	case "invalid_scope":
		next = "Nothing was stored. The service does not know one of the permissions that were asked for; start again with fewer grants."
	case "unauthorized_client", "invalid_client":
		next = "Nothing was stored. Check that the client at the vendor is enabled and that its redirect address is exactly ours, then start again."
	case "temporarily_unavailable", "server_error":
		next = "Nothing was stored. The service has a problem of its own; start again later."
	}
	return fault.New(fault.Invalid, fault.CodeInvalid, "The service answered “"+code+"” instead of a consent.", next)
}
