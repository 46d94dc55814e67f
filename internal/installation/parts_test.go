package installation

import (
	"slices"
	"strings"
	"testing"

	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// partedRuntime is a runtime with two addresses, one of which a connection names, and a credential of three parts.
func partedRuntime(t *testing.T) (registry.Entry, manifest.Manifest) {
	t.Helper()
	entry, ok := registry.Trusted().Lookup("upstash.v1")
	if !ok {
		t.Fatal("the table has no such runtime")
	}
	m := manifest.Manifest{Name: "Parted", Auth: []manifest.Auth{{Contract: manifest.Token}}}
	for _, name := range []string{"rest_token", "read_token", "email", "api_key"} {
		m.Setup.Fields = append(m.Setup.Fields, manifest.Field{Name: name, Label: name, GoesTo: manifest.Token})
	}
	return entry, m
}

func values(pairs ...string) map[string]secret.Value {
	out := map[string]secret.Value{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = secret.New(pairs[i+1])
	}
	return out
}

func TestEachPartOfACredentialIsSealedForItsOwnAddress(t *testing.T) {
	entry, m := partedRuntime(t)
	entered := values("rest_token", "rest-0123456789", "email", "a@b.example", "api_key", "key-0123456789")
	parts, err := checkSecrets(m, entry, manifest.Token, map[string]string{"database": "orders"}, entered, egress.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := secret.Generate()
	if err != nil {
		t.Fatal(err)
	}
	records, err := sealParts(keys, credential.Place{Org: "org_1", Connection: "parted-abcdef"}, 1, parts, entered)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, r.Field+" "+r.Origin)
	}
	slices.Sort(got)
	want := []string{"api_key https://api.upstash.com", "email https://api.upstash.com", "rest_token https://orders.upstash.io"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAPartIsWholeOrNotThere(t *testing.T) {
	entry, m := partedRuntime(t)
	database := map[string]string{"database": "orders"}
	for name, c := range map[string]struct {
		settings map[string]string
		entered  map[string]secret.Value
		wrong    string
	}{
		"half a part":                {database, values("email", "a@b.example"), "The credential is empty"},
		"nothing":                    {database, values(), "at least one credential"},
		"a token without a database": {nil, values("rest_token", "rest-0123456789", "email", "a@b.example", "api_key", "k0123456"), "no place for it"},
		"a host that is another's":   {map[string]string{"database": "evil.example/x"}, values("rest_token", "rest-0123456789"), "no place for it"},
		"a colon in the user name":   {database, values("email", "a:b@c.example", "api_key", "k0123456"), "no colon"},
		"one part":                   {database, values("read_token", "read-0123456789"), ""},
		"the account alone":          {nil, values("email", "a@b.example", "api_key", "k0123456"), ""},
	} {
		_, err := checkSecrets(m, entry, manifest.Token, c.settings, c.entered, egress.Destination{})
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %v", name, err)
		case err != nil && strings.Contains(err.Error(), "0123456"):
			t.Errorf("%s: the sentence holds a secret", name)
		}
	}
}

func TestAServiceAccountIsSealedForItsTokenEndpointAlone(t *testing.T) {
	entry, ok := registry.Trusted().Lookup("google_analytics.v1")
	if !ok {
		t.Fatal("the table has no such runtime")
	}
	m := manifest.Manifest{Name: "Account", Auth: []manifest.Auth{{Contract: manifest.ServiceAccount}}}
	m.Setup.Fields = []manifest.Field{{Name: "key", Label: "Key", Secret: true, Required: true, GoesTo: manifest.ServiceAccount}}
	parts, err := Parts(m, entry, manifest.ServiceAccount, nil, egress.Destination{})
	if err != nil || len(parts) != 1 || parts[0].Destination.Origin() != "https://oauth2.googleapis.com" || !parts[0].Account {
		t.Errorf("%+v %v", parts, err)
	}
	if err := checkParts(m, parts, values("key", `{"type":"authorized_user"}`)); !fault.Is(err, fault.CodeInvalid) || !strings.Contains(err.Error(), "not a service account key") {
		t.Errorf("%v", err)
	}
}

// Where a database is stands in what a person types; it is stored without the login, and the string is sealed for that place alone.
func TestAConnectionStringSaysWhereItLeads(t *testing.T) {
	table := registry.Trusted()
	entry, _ := table.Lookup("mongodb.v1")
	m := manifest.Manifest{Name: "Base", Runtime: entry.Key, Auth: []manifest.Auth{{Contract: manifest.ConnectionString}}}
	m.Setup.Fields = []manifest.Field{{Name: "dsn", Label: "String", Secret: true, Required: true, GoesTo: manifest.ConnectionString}}
	typed := values("dsn", "mongodb+srv://agents:canary-0123456@cluster0.ab12c.mongodb.net/?w=majority")
	d, err := WhereTyped(entry, manifest.ConnectionString, m.Setup.Fields, typed)
	if err != nil || d.URL() != "mongodb+srv://cluster0.ab12c.mongodb.net" {
		t.Fatal(d.URL(), err)
	}
	parts, err := checkSecrets(m, entry, manifest.ConnectionString, nil, typed, d)
	if err != nil || len(parts) != 1 || parts[0].Destination.Origin() != d.Origin() || len(parts[0].Fields) != 1 {
		t.Errorf("%+v %v", parts, err)
	}
	_, err = WhereTyped(entry, manifest.ConnectionString, m.Setup.Fields, values("dsn", "mongodb://agents:canary-0123456@10.0.0.7/"))
	if f, ok := fault.As(err); !ok || f.Field != "dsn" || strings.Contains(f.Error(), "canary") {
		t.Errorf("a private address: %v", err)
	}
	made := Connection{Runtime: entry.Key, Contract: string(manifest.ConnectionString), Destination: d.URL()}
	if again, err := WhereStored(table, made); err != nil || again.URL() != d.URL() {
		t.Errorf("stored, it leads to %s: %v", again.URL(), err)
	}
	o, err := table.NewOverride("mongodb.v1", "http://127.0.0.1:27017")
	if err != nil {
		t.Fatal(err)
	}
	moved := table.With(o)
	if now, err := WhereStored(moved, made); err != nil || now.URL() != "http://127.0.0.1:27017" {
		t.Errorf("moved, it leads to %s: %v", now.URL(), err)
	}
	made.Destination = "http://127.0.0.1:27017" // made for an operator's endpoint that is gone since
	if _, err := WhereStored(table, made); err == nil {
		t.Error("a private address that no operator vouches for any more is taken")
	}
}
