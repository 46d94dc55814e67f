package manifest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

func parseFile(t *testing.T, path, name string) manifest.Manifest {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(name, data, registry.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// good/full.toml uses every field there is.
func TestParseKeepsEveryField(t *testing.T) {
	got := parseFile(t, "testdata/good/full.toml", "some/folder/full.toml")
	want := manifest.Manifest{
		Key: "full", Name: "Full desk", Category: manifest.Customers, Summary: "Tickets and payments of a desk that exists for tests.",
		Description: "First paragraph, long enough to say what it is.\n\nSecond paragraph.",
		Mark:        "FD", Docs: "https://desk.example.com/docs", Kind: registry.Hosted, Runtime: "sandbox_crm.v1",
		WhyThisKind: "The service is a hosted MCP server with annotated tools.",
		Setup: manifest.Setup{
			Steps:  []string{"Create a key.", "Paste it."},
			Fields: []manifest.Field{{Name: "api_key", Label: "API key", Hint: "Starts with dk-.", Secret: true, Required: true, Pattern: "dk-[a-z]+", GoesTo: manifest.Token}},
		},
		Auth: []manifest.Auth{
			{Contract: manifest.None},
			{Contract: manifest.Token, Header: "Authorization", Format: "Bearer {secret}"},
			{Contract: manifest.OAuth2, OAuth: manifest.OAuth{
				Client: manifest.RegisteredClient, ClientSteps: []string{"Make an app on the vendor's page.", "Enter {redirect_uri} as its redirect address."},
				TokenAuth: manifest.PostAuth, AlwaysScopes: []string{"offline_access"}, ScopeParameter: "user_scope", ScopeSeparator: ",",
				AuthorizeParameters: map[string]string{"access_type": "offline", "prompt": "consent"}, OmitResource: true, PKCEUnadvertised: true, AddsScopes: true,
				TokensIn: "authed_user", Revocation: manifest.RevokesGrant, Manage: "https://desk.example.com/apps",
			}},
		},
		Grants: []manifest.Grant{
			{ID: "tickets", Title: "Read and close tickets", Why: "Agents answer customers.", Scopes: []string{"tickets:read", "tickets:write"}},
			{ID: "payments", Title: "Pay customers back", Why: "Agents return what was paid twice.", Scopes: []string{"payments:write"}, Optional: true},
		},
		Resources: []manifest.Resource{{Name: "desk", Label: "Desk", Hint: "The desk agents may act on.", Required: true, Pattern: "d_[0-9]+"}},
		Tools: []manifest.ToolPolicy{
			{Name: "tickets.list", Effect: policy.Read, Reviewed: "2026-11-30", Why: "Lists tickets and changes nothing."},
			{
				Name: "payments_return", Effect: policy.Consequential, Destructive: true, Reviewed: "2026-11-29", Why: "Pays money back at once.",
				Arguments: []string{"desk", "payment_id", "cents"}, Sentence: "Pay {cents} back for {payment_id} on {desk}, {cents} in all", Stakes: "Money leaves the account.",
				Money:          &manifest.Money{Argument: "cents", Currency: "USD", MinorUnits: 2},
				Resource:       &manifest.ResourceArgument{Argument: "desk", Setting: "desk"},
				Needs:          []string{"payments"},
				SettleSeconds:  900,
				DefiniteErrors: []string{"^payment [a-z0-9_]+ does not exist$"},
				LookUps:        []manifest.Call{{Tool: "tickets.list", Arguments: map[string]any{"filter": map[string]any{"payments": []any{"{payment_id}"}}, "limit": int64(5)}}},
			},
			{
				Name: "tickets_close", Effect: policy.Consequential, Reviewed: "2026-11-29", Why: "Closes a ticket, once and for all.", Arguments: []string{"ticket_id"},
				Sentence: "Close ticket {ticket_id}",
				Probe: &manifest.ToolProbe{
					Call:    manifest.Call{Tool: "tickets.list", Arguments: map[string]any{"ticket": "{ticket_id}", "limit": int64(1)}},
					Applied: `^Ticket {ticket_id} is closed\.`, Absent: `^Ticket {ticket_id} is open\.`,
				},
			},
		},
		Probe: &manifest.Probe{Call: manifest.Call{Tool: "tickets.list", Arguments: map[string]any{"limit": int64(1), "open": true, "ratio": 0.5}}, Expect: "tickets"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got, want := string(got.Probe.ArgumentsJSON()), `{"limit":1,"open":true,"ratio":0.5}`; got != want {
		t.Errorf("%s", got)
	}
	if got := string(manifest.Call{}.ArgumentsJSON()); got != "{}" {
		t.Errorf("no arguments are %s", got)
	}
}

func TestAnUnreviewedToolHasNoPolicy(t *testing.T) {
	m := parseFile(t, "../../catalog/sandbox-crm.toml", "sandbox-crm.toml")
	if p, ok := m.Policy("notes_add"); ok {
		t.Errorf("%+v", p)
	}
	p, ok := m.Policy("refund_issue")
	if !ok || *p.Review() != (policy.Review{Effect: policy.Consequential, Destructive: true}) {
		t.Errorf("%+v, %t", p, ok)
	}
	if got := strings.Join(p.Placeholders(), " "); got != "amount_cents contact_id" {
		t.Errorf("%s", got)
	}
	reads, consequential, destructive := m.Tally()
	if reads != 5 || consequential != 3 || destructive != 2 {
		t.Errorf("%d %d %d", reads, consequential, destructive)
	}
}

func TestFieldsBelongToTheirContract(t *testing.T) {
	m := parseFile(t, "../../catalog/context7.toml", "context7.toml")
	if len(m.FieldsFor(manifest.None)) != 0 || len(m.FieldsFor(manifest.Token)) != 1 {
		t.Errorf("%+v", m.Setup.Fields)
	}
	if a, ok := m.Contract(manifest.Token); !ok || a.Header != "CONTEXT7_API_KEY" {
		t.Errorf("%+v", a)
	}
	if _, ok := m.Contract(manifest.OAuth2); ok {
		t.Error("a contract that is not there was found")
	}
}

// What a person pastes is judged without ever being repeated.
func TestFieldCheck(t *testing.T) {
	f := manifest.Field{Name: "api_key", Label: "API key", Required: true, Secret: true, Pattern: "dk-[a-z]+|dk_[a-z]+"}
	for value, want := range map[string]string{
		"dk-hunter": "", "dk_hunter": "",
		"":                                "is empty",
		"hunter":                          "does not look right",
		"xdk-hunter":                      "does not look right", // the alternatives are anchored as a whole
		"dk_hunter7":                      "does not look right",
		"dk-hunter\n":                     "line break",
		"dk-hun\u200bter":                 "invisible",
		"dk-" + strings.Repeat("h", 5000): "longer than",
	} {
		err := f.Check(value)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", value, err)
			}
			continue
		}
		fe, ok := fault.As(err)
		if !ok || fe.Field != "api_key" || !strings.Contains(fe.What, want) {
			t.Errorf("%q: %v", value, err)
		} else if value != "" && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the fault repeats the value: %v", err)
		}
	}
	if err := (manifest.Resource{Name: "desk", Label: "Desk"}).Check(""); err != nil {
		t.Errorf("an optional setting is demanded: %v", err)
	}
}

func TestDefinitelyNotApplied(t *testing.T) {
	p, _ := parseFile(t, "../../catalog/sandbox-crm.toml", "sandbox-crm.toml").Policy("refund_issue")
	for text, want := range map[string]bool{
		"The CRM rejected this call; nothing was applied.":                                 true,
		"There is no contact “c_9”. Find its id with contacts_search.":                     true,
		"amount_cents is a whole number of cents above zero. See the tool's input schema.": true,
		"":                      false,
		"Something went wrong.": false,
		"Timeout. There is no contact with the bank.": false, // not at the start: another sentence
	} {
		if got := p.DefinitelyNotApplied(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if (manifest.ToolPolicy{DefiniteErrors: []string{"("}}).DefinitelyNotApplied("(") {
		t.Error("a broken pattern says that nothing was applied")
	}
}

// A tool may be called like something executable, and so may an argument: both are data.
func TestExecutableWordsAreFineWhereTheyAreData(t *testing.T) {
	data, err := os.ReadFile("testdata/good/minimal.toml")
	if err != nil {
		t.Fatal(err)
	}
	s := strings.NewReplacer("[tools.tickets_list]", "[tools.command]", `tool = "tickets_list"`, "tool = \"command\"\narguments = { path = \"/\", url = \"https://a.example.com\", env = { args = [\"x\"] } }").Replace(string(data))
	m, err := manifest.Parse("minimal.toml", []byte(s), registry.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Probe.ArgumentsJSON()); got != `{"env":{"args":["x"]},"path":"/","url":"https://a.example.com"}` {
		t.Errorf("%s", got)
	}
}

func TestWindowsLineEndsAreFine(t *testing.T) {
	data, err := os.ReadFile("testdata/good/minimal.toml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Parse("minimal.toml", []byte(strings.ReplaceAll(string(data), "\n", "\r\n")), registry.Trusted()); err != nil {
		t.Error(err)
	}
}

func TestEveryCategoryHasALabel(t *testing.T) {
	for _, c := range manifest.Categories {
		if c.Label() == "" {
			t.Errorf("%s has no label", c)
		}
	}
}

// Every contract is either offered or refused with the words for it, never unknown.
func TestEveryContractOfTheProductIsKnown(t *testing.T) {
	data, err := os.ReadFile("testdata/good/minimal.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range manifest.Contracts {
		s := strings.Replace(string(data), `contract = "token"`, `contract = "`+string(c)+`"`, 1)
		if c == manifest.OAuth2 { // it fills in no field of its own and names no header
			s = regexp.MustCompile(`(?s)\[\[setup\.fields\]\].*?(\[\[auth\]\].*?\n)header.*?\n\n`).ReplaceAllString(s, "$1\n")
		}
		_, err := manifest.Parse("minimal.toml", []byte(s), registry.Trusted())
		switch c {
		case manifest.PAT:
			if err == nil || !strings.Contains(err.Error(), `goes_to = "pat"`) {
				t.Errorf("%s: %v", c, err)
			}
		case manifest.Token, manifest.OAuth2:
			if err != nil {
				t.Errorf("%s: %v", c, err)
			}
		case manifest.None:
		case manifest.ServiceAccount: // whether the runtime takes one is a rule of its own
			if err == nil || !strings.Contains(err.Error(), "takes no service account") {
				t.Errorf("%s: %v", c, err)
			}
		case manifest.ConnectionString:
			if err == nil || !strings.Contains(err.Error(), "takes no connection string") {
				t.Errorf("%s: %v", c, err)
			}
		}
	}
}

func TestFaultsComeInFileOrder(t *testing.T) {
	_, err := manifest.Parse("x.toml", []byte("key = \"y\"\nname = \" a\"\nkind = \"no\"\n"), registry.Trusted())
	last := 0
	for _, f := range err.(fault.List) {
		n := atoi(strings.Split(f.What, ":")[1])
		if n < last {
			t.Errorf("line %d after %d:\n%v", n, last, err)
		}
		last = n
	}
	if last != 3 {
		t.Errorf("%v", err)
	}
}
