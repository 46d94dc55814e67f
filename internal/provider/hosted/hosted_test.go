package hosted_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/egress"
	"countersign/internal/provider"
	"countersign/internal/provider/hosted"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

const token = "crm-secret-0123456789abcdef"

// TestAHostedServiceIsReachedAsTheServerReachesIt goes the whole way from the trusted table to a tool's answer.
func TestAHostedServiceIsReachedAsTheServerReachesIt(t *testing.T) {
	srv := httptest.NewServer(crm.New(crm.Config{BearerToken: token, ControlToken: "control"}).Handler())
	defer srv.Close()
	trusted := registry.Trusted()
	override, err := trusted.NewOverride("sandbox_crm.v1", srv.URL+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	entry, ok := trusted.With(override).Lookup("sandbox_crm.v1")
	if !ok {
		t.Fatal("the table has no sandbox")
	}
	contract, err := credential.Token("Authorization", "Bearer {secret}")
	if err != nil {
		t.Fatal(err)
	}
	targets, err := hosted.Targets(entry, func(_ registry.Role, d egress.Destination) (egress.Editor, error) {
		return credential.Bind(contract, map[string]secret.Value{credential.TokenField: secret.New(token)}, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	probe := &provider.Call{Tool: "contacts_list", Arguments: json.RawMessage(`{"limit":1}`)}
	c := provider.NewConn("org_1", "sandbox-crm-abcdef", provider.Settings{Probe: probe}, targets)
	defer c.Close()
	f, err := hosted.New("test").Test(t.Context(), c)
	if err != nil || !f.Proven || f.Tools == 0 || f.Broken != 0 {
		t.Errorf("%+v %v", f, err)
	}
}

func TestEveryHostedEntryOfTheTableIsPublicOrWaitsForTheOperator(t *testing.T) {
	n := 0
	for _, key := range registry.Trusted().Keys() {
		entry, _ := registry.Trusted().Lookup(key)
		if entry.Kind != hosted.Kind {
			if _, err := hosted.Targets(entry, nil); err == nil {
				t.Errorf("%s is not hosted and was accepted", key)
			}
			continue
		}
		targets, err := hosted.Targets(entry, nil)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		n += len(targets)
	}
	if n == 0 {
		t.Error("no hosted entry has an address")
	}
}
