package directtest

import (
	"testing"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/provider/providertest"
	"countersign/internal/secret"
)

// Bearer authorises requests to an address with a token, redacting it from answers, as the product does.
func Bearer(t testing.TB, address, token string) egress.Editor {
	t.Helper()
	return Authorized(t, address, credential.Header{Field: "token", Name: "Authorization", Format: "Bearer {secret}"}, map[string]string{"token": token})
}

// Authorized is Bearer for any header.
func Authorized(t testing.TB, address string, h credential.Header, values map[string]string) egress.Editor {
	t.Helper()
	d, err := egress.Operator(address)
	if err != nil {
		t.Fatal(err)
	}
	contract, err := credential.NewContract(h)
	if err != nil {
		t.Fatal(err)
	}
	sealed := map[string]secret.Value{}
	for name, v := range values {
		sealed[name] = secret.New(v)
	}
	a, err := credential.Bind(contract, sealed, d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Faults are those of the exam that every vendor here can play.
var Faults = []providertest.Fault{
	providertest.ApplyThenHang, providertest.ApplyThenReset, providertest.ApplyThen500, providertest.ApplyThenTruncate,
	providertest.Reject, providertest.Hang, providertest.Reset, providertest.Slow,
}
