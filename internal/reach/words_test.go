package reach

import (
	"errors"
	"strings"
	"testing"

	"countersign/internal/consent"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
)

// Whoever has the connection's page open is not sent to it, nor to themselves.
func TestAFaultIsWordedForWhoHasThePageOpen(t *testing.T) {
	for _, c := range []struct {
		contract manifest.Contract
		err      error
		next     string
	}{
		{manifest.Token, provider.Unauthorized(), "Enter a new credential on this page."},
		{manifest.OAuth2, provider.Unauthorized(), "Sign in at the service again."},
		{manifest.None, provider.Unauthorized(), "It wants a credential, and this connection has none: install it again with one."},
		{manifest.Token, provider.OutOfScope([]string{"write"}), "Give the credential that permission at the service, or enter another one on this page."},
		{manifest.OAuth2, provider.OutOfScope(nil), "Sign in at the service again and allow more there."},
		{manifest.Token, provider.Unreachable("Nobody answers.", errors.New("refused")), "Try again later."},
		{manifest.OAuth2, consent.Expired.Fault(), "Sign in at the service again."},
		{manifest.OAuth2, usable(installation.Connection{State: installation.NeedsConsent}), "Sign in at the service again."},
		{manifest.Token, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "It only reads.", provider.EnterAnother), "Enter another credential on this page."},
		{manifest.Token, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The entry is gone.", installAgain), "Install it again and retire this one."},
		{manifest.Token, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The key is wrong.", "Make a new key in the console."), "Make a new key in the console."},
	} {
		f := failed(installation.Connection{Contract: string(c.contract)}, c.err)
		if f.OK || f.What != fault.Of(c.err).What || f.Next != c.next || strings.Contains(f.Next, "admin") {
			t.Errorf("%s, %v: %q %q", c.contract, c.err, f.What, f.Next)
		}
	}
}
