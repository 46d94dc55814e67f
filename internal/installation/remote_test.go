package installation

import (
	"strings"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
)

func TestAnAddressThatAPersonTypes(t *testing.T) {
	for _, good := range []string{"https://mcp.example.com/mcp", "https://mcp.example.com", "HTTPS://MCP.Example.com:443/a/b", "https://xn--bcher-kva.example/mcp"} {
		if err := checkRemote(registry.Remote, manifest.None, Remote{Address: good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for address, words := range map[string]string{
		"": "is empty", "http://mcp.example.com/mcp": "https://", "https://127.0.0.1/mcp": "not an IP address", "https://2130706433/": "not an IP address", "https://0x7f.1/": "not an IP address",
		"https://[::1]/mcp": "not an IP address", "https://localhost/mcp": "private network", "https://db.internal/mcp": "private network", "https://crm/mcp": "full name",
		"https://mcp.example.com:8443/mcp": "port 443", "https://a:b@mcp.example.com/": "user name or password", "https://mcp.example.com/mcp?api_key=s3cret": "carries a query",
		"https://mcp.example.com/mcp#x": "fragment", "https://mcp.example.com/{team}": "placeholder", "https://bücher.example/mcp": "xn--", "mcp.example.com": "complete address",
		"https://mcp.example.com\\@evil.example/": "backslash",
	} {
		err := checkRemote(registry.Remote, manifest.None, Remote{Address: address})
		if f, ok := fault.As(err); !ok || f.Field != "url" || !strings.Contains(f.What, words) || strings.Contains(f.What, "s3cret") {
			t.Errorf("%q: %v, want %q", address, err, words)
		}
	}
}

func TestAHeaderIsForACredentialThatIsTypedIn(t *testing.T) {
	const address = "https://mcp.example.com/mcp"
	for _, c := range []struct {
		kind     registry.Kind
		contract manifest.Contract
		typed    Remote
		field    string
	}{
		{registry.Remote, manifest.Token, Remote{Address: address, Named: true, Header: "X-Key"}, ""},
		{registry.Remote, manifest.Token, Remote{Address: address, Named: true}, "header"},
		{registry.Remote, manifest.Token, Remote{Address: address, Named: true, Header: "Mcp-Name"}, "header"},
		{registry.Remote, manifest.OAuth2, Remote{Address: address, Named: true, Header: "X-Key"}, "header"},
		{registry.Remote, manifest.None, Remote{Address: address, Named: true, Header: "X-Key"}, "header"},
		{registry.Hosted, manifest.Token, Remote{}, ""},
		{registry.Hosted, manifest.Token, Remote{Address: address}, "url"},
		{registry.Direct, manifest.Token, Remote{Named: true, Header: "X-Key"}, "url"},
	} {
		err := checkRemote(c.kind, c.contract, c.typed)
		if f, ok := fault.As(err); (c.field == "") != (err == nil) || ok && f.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The part that carries the credential follows what was typed: a bearer, or the named header as it is; each for that one origin.
func TestTheCredentialOfACustomServerTravelsAsItWasSaid(t *testing.T) {
	m := manifest.Manifest{Name: "Custom", Auth: []manifest.Auth{{Contract: manifest.Token, Header: "Authorization", Format: "Bearer {secret}"}}}
	m.Setup.Fields = []manifest.Field{{Name: registry.RemoteField, Label: "Credential", Secret: true, Required: true, GoesTo: manifest.Token}}
	for _, header := range []string{"", "X-Key"} {
		entry, err := EntryOf(registry.Trusted(), Connection{Runtime: "custom_mcp.v1", Destination: "https://mcp.example.com/mcp", Header: header})
		if err != nil {
			t.Fatal(err)
		}
		d, err := AddressOf(entry)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := checkSecrets(m, entry, manifest.Token, nil, values("token", "s3cret"), d)
		if err != nil || len(parts) != 1 || parts[0].Destination.Origin() != "https://mcp.example.com" || parts[0].Destination.Overridden() {
			t.Errorf("%q: %+v %v", header, parts, err)
		}
		if _, err := checkSecrets(m, entry, manifest.Token, nil, values("token", ""), d); err == nil {
			t.Errorf("%q: nothing was entered, and that is enough", header)
		}
	}
	if _, err := DestinationOf(registry.Trusted(), "custom_mcp.v1"); err == nil {
		t.Error("the runtime has an address of its own")
	}
	for _, stored := range []string{"http://127.0.0.1:1/mcp", "https://10.0.0.1/mcp", ""} { // a row that somebody wrote by hand
		entry, _ := EntryOf(registry.Trusted(), Connection{Runtime: "custom_mcp.v1", Destination: stored})
		if d, err := AddressOf(entry); err == nil {
			t.Errorf("%q leads to %s", stored, d.Origin())
		}
	}
}
