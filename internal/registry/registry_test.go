package registry

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/fault"
)

// What the server trusts by itself is public: https, a name with a dot, no port, no user, nothing in the query. A private address
// can only come from the operator.
func TestCompiledEndpointsArePublicHTTPS(t *testing.T) {
	for _, k := range Trusted().Keys() {
		e, _ := Trusted().Lookup(k)
		for role, ep := range e.Endpoints {
			if ep.Overridden {
				t.Errorf("%s/%s is compiled in as an override", k, role)
			}
			if ep.URL == "" {
				continue
			}
			u, err := url.Parse(settingInHost.ReplaceAllString(ep.URL, "${1}sample$3"))
			if err != nil || u.Scheme != "https" || u.User != nil || u.Port() != "" || u.RawQuery != "" || u.Fragment != "" || !strings.Contains(u.Hostname(), ".") {
				t.Errorf("%s/%s: %s is not a plain public https address", k, role, ep.URL)
			}
			if _, err := netip.ParseAddr(u.Hostname()); err == nil {
				t.Errorf("%s/%s: %s names an address instead of a host", k, role, ep.URL)
			}
			for _, private := range []string{"localhost", ".local", ".internal", ".test", ".home.arpa", ".onion"} {
				if strings.HasSuffix(u.Hostname(), private) {
					t.Errorf("%s/%s: %s is a private name", k, role, ep.URL)
				}
			}
		}
	}
}

func TestTableIsWellFormed(t *testing.T) {
	shape := regexp.MustCompile(`^[a-z][a-z0-9_]*\.v[1-9][0-9]*$`)
	header := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	for _, k := range Trusted().Keys() {
		e, ok := Trusted().Lookup(k)
		if !ok || e.Key != k || !shape.MatchString(string(k)) {
			t.Errorf("%q is not a runtime key", k)
		}
		if !slices.Contains(Kinds, e.Kind) {
			t.Errorf("%s has the kind %q", k, e.Kind)
		}
		if (len(e.Endpoints) == 0) != (e.Kind == Stdio) {
			t.Errorf("%s is of the kind %s and has %d endpoints", k, e.Kind, len(e.Endpoints))
		}
		if e.Kind == Stdio && (len(e.Credentials) > 0 || len(e.Headers) > 0 || len(e.Parts) > 0 || e.OAuth || e.ServiceAccount) {
			t.Errorf("%s runs beside the agent and takes a credential", k)
		}
		for r := range e.Endpoints {
			if !slices.Contains(Roles, r) {
				t.Errorf("%s has the role %q", k, r)
			}
		}
		_, authorize := e.Endpoints[Authorize]
		_, token := e.Endpoints[Token]
		if authorize != token && !e.ServiceAccount {
			t.Errorf("%s has one of the two endpoints a consent needs", k)
		}
		for _, r := range []Role{Issuer, Authorize, Register, Revoke} {
			if _, ok := e.Endpoints[r]; ok && !e.OAuth {
				t.Errorf("%s has the role %s and takes no OAuth token", k, r)
			}
		}
		for _, c := range e.Credentials {
			if !header.MatchString(c.Header) || strings.Count(c.Format, "{secret}") != 1 || strings.ContainsAny(c.Format, "\r\n") {
				t.Errorf("%s takes a credential as %q: %q", k, c.Header, c.Format)
			}
			if slices.Contains([]string{"host", "cookie", "content-length", "transfer-encoding", "connection"}, strings.ToLower(c.Header)) {
				t.Errorf("%s takes a credential in %s, which belongs to HTTP", k, c.Header)
			}
		}
		for _, p := range e.Parts {
			if _, ok := e.Endpoints[p.Role]; !ok || !header.MatchString(p.Header) || strings.Count(p.Format, "{") != 1 || e.Kind != Direct {
				t.Errorf("%s has a part that goes nowhere: %+v", k, p)
			}
		}
		for name := range e.Headers {
			if !header.MatchString(name) {
				t.Errorf("%s sends the header %q", k, name)
			}
		}
	}
}

// What a connection chooses is one label below a domain of ours, whatever it looks like.
func TestASettingIsOneLabelOfTheHost(t *testing.T) {
	e := Endpoint{URL: "https://{database}.upstash.io"}
	if at, ok := e.At(map[string]string{"database": "eu2-orders-1"}); !ok || at.URL != "https://eu2-orders-1.upstash.io" {
		t.Errorf("%+v %v", at, ok)
	}
	for _, label := range []string{"", "a.b", "a/b", "evil.example/", "a@b", "a:1", "A", "-a", "a-", "a b", "a#", "{database}", strings.Repeat("a", 64)} {
		if at, ok := e.At(map[string]string{"database": label}); ok {
			t.Errorf("%q leads to %s", label, at.URL)
		}
	}
	moved := Endpoint{URL: "http://127.0.0.1:9002", Overridden: true}
	if at, ok := moved.At(nil); !ok || at != moved {
		t.Errorf("an operator's address: %+v %v", at, ok)
	}
}

func TestLookupAnswersACopy(t *testing.T) {
	table := Trusted()
	e, _ := table.Lookup("context7.v1")
	e.Endpoints[MCP] = Endpoint{URL: "https://elsewhere.example.com"}
	e.Credentials[0].Header = "Cookie"
	again, _ := table.Lookup("context7.v1")
	if again.Endpoints[MCP].URL != "https://mcp.context7.com/mcp" || again.Credentials[0].Header == "Cookie" {
		t.Errorf("a caller changed what is trusted: %+v", again)
	}
	if _, ok := table.Lookup("no_such.v1"); ok {
		t.Error("an unknown key was found")
	}
}

func TestEndpointSaysWhatTheOperatorMustSupply(t *testing.T) {
	e, _ := Trusted().Lookup("sandbox_crm.v1")
	_, err := e.Endpoint(MCP)
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unavailable || f.Code != fault.ConnectionUnavailable || !strings.Contains(f.Next, `"sandbox_crm.v1" = `) || !strings.Contains(f.Next, "COUNTERSIGN_ENDPOINTS_FILE") {
		t.Errorf("%v", err)
	}
	if _, err := e.Endpoint(Admin); err == nil {
		t.Error("a role that is not there has an address")
	}
	o, err := Trusted().NewOverride("sandbox_crm.v1", "http://127.0.0.1:8090/mcp")
	if err != nil {
		t.Fatal(err)
	}
	e, _ = Trusted().With(o).Lookup("sandbox_crm.v1")
	ep, err := e.Endpoint(MCP)
	if err != nil || ep != (Endpoint{URL: "http://127.0.0.1:8090/mcp", Overridden: true}) {
		t.Errorf("%+v, %v", ep, err)
	}
}

func TestAcceptsOnlyItsOwnHeaders(t *testing.T) {
	e, _ := Trusted().Lookup("exa.v1")
	if !e.Accepts("x-api-key", "{secret}") || e.Accepts("Authorization", "Bearer {secret}") || e.Accepts("x-api-key", "Bearer {secret}") {
		t.Error("a manifest could choose where the credential goes")
	}
	open, _ := Trusted().Lookup("deepwiki.v1")
	if open.Accepts("Authorization", "Bearer {secret}") {
		t.Error("a runtime without credentials takes one")
	}
}

// several has what the trusted table does not have yet: more than one role, and the kind whose addresses people type.
var several = tableOf(
	Entry{Key: "desk.v1", Kind: Direct, Endpoints: map[Role]Endpoint{API: {URL: "https://api.desk.example.com"}, Token: {URL: "https://id.desk.example.com/token"}}},
	Entry{Key: "typed.v1", Kind: Remote, Endpoints: map[Role]Endpoint{MCP: {}}},
)

func TestLoadEndpoints(t *testing.T) {
	file := "# our proxy\n[endpoints]\n\"desk.v1/token\" = \"http://10.0.0.7/token\"\n\"desk.v1/api\" = \"https://proxy.example.com/desk\"\n"
	got, err := several.LoadEndpoints("endpoints.toml", strings.NewReader(file))
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0].Target() != "desk.v1/token" || got[0].Key() != "desk.v1" || got[0].Role() != Token || got[0].URL() != "http://10.0.0.7/token" || got[1].Target() != "desk.v1/api" {
		t.Errorf("not in the order of the file: %+v", got)
	}
	e, _ := several.With(got...).Lookup("desk.v1")
	if e.Endpoints[Token] != (Endpoint{"http://10.0.0.7/token", true}) || e.Endpoints[API] != (Endpoint{"https://proxy.example.com/desk", true}) {
		t.Errorf("%+v", e.Endpoints)
	}
	if before, _ := several.Lookup("desk.v1"); before.Endpoints[Token].Overridden {
		t.Error("the table itself was changed")
	}
}

func TestEmptyEndpointsFiles(t *testing.T) {
	for _, file := range []string{"", "# nothing yet\n", "[endpoints]\n"} {
		if got, err := several.LoadEndpoints("e.toml", strings.NewReader(file)); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
}

func TestLoadEndpointsSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"unknown runtime": {"[endpoints]\n\"desk.v9\" = \"https://a.example.com\"", "e.toml:2: There is no runtime “desk.v9”."},
		"unknown role":    {"[endpoints]\n\n\"desk.v1/admin\" = \"https://a.example.com\"", "e.toml:3: The runtime “desk.v1” has no endpoint with the role “admin”. Its endpoints are: \"desk.v1/api\", \"desk.v1/token\"."},
		"unnamed role":    {"[endpoints]\n\"desk.v1\" = \"https://a.example.com\"", "has no endpoint with the role “mcp”"},
		"typed addresses": {"[endpoints]\n\"typed.v1\" = \"http://127.0.0.1/mcp\"", "e.toml:2: The runtime “typed.v1” is for addresses people type, and can never be pointed at one"},
		"not a URL":       {"[endpoints]\n\"desk.v1/api\" = \"http://[::1\"", "e.toml:2: The address of \"desk.v1/api\" is not a URL."},
		"no scheme":       {"[endpoints]\n\"desk.v1/api\" = \"127.0.0.1:9001\"", "is not a URL"},
		"another scheme":  {"[endpoints]\n\"desk.v1/api\" = \"file:///etc/passwd\"", "must start with http:// or https://"},
		"no host":         {"[endpoints]\n\"desk.v1/api\" = \"http:///mcp\"", "has no host"},
		"credential":      {"[endpoints]\n\"desk.v1/api\" = \"http://u:hunter2@a.example.com\"", "a credential never belongs in a URL"},
		"query":           {"[endpoints]\n\"desk.v1/api\" = \"http://a.example.com?token=hunter2\"", "carries a query or fragment"},
		"another table":   {"[endpoints]\n[commands]\nx = \"y\"", "e.toml:"},
		"a command":       {"[endpoints]\n\"desk.v1/api\" = { command = \"sh\" }", "e.toml:2: "},
		"twice":           {"[endpoints]\n\"desk.v1/api\" = \"http://a.example.com\"\n\"desk.v1/api\" = \"http://b.example.com\"", "e.toml:3: "},
		"bare dotted key": {"[endpoints]\ndesk.v1 = \"http://a.example.com\"", "e.toml:2: "},
		"not TOML":        {"[endpoints\n", "e.toml:1: "},
		"too large":       {strings.Repeat("#", maxEndpointsFile+1), "larger than 1 MiB"},
	} {
		got, err := several.LoadEndpoints("e.toml", strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; wanted %q", name, err, c.want)
			continue
		}
		if len(got) != 0 {
			t.Errorf("%s: overrides were returned beside the error", name)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the sentence repeats the secret", name)
		}
		if _, ok := fault.As(err); !ok {
			t.Errorf("%s: %T is not a fault", name, err)
		}
	}
}

func TestEveryWrongLineIsReportedInOrder(t *testing.T) {
	file := "[endpoints]\n\"nine.v1\" = \"https://a.example.com\"\n\"desk.v1/api\" = \"https://fine.example.com\"\n\"desk.v1/token\" = \"ftp://a.example.com\"\n"
	_, err := several.LoadEndpoints("e.toml", strings.NewReader(file))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "e.toml:2: ") || !strings.HasPrefix(lines[1], "e.toml:4: ") {
		t.Errorf("%v", err)
	}
}

// An override made for one table must not reach through another: the kind is judged again where it is applied.
func TestOverrideNeverReachesARemoteRuntime(t *testing.T) {
	o := Override{key: "typed.v1", role: MCP, url: "http://127.0.0.1/mcp"}
	e, _ := several.With(o).Lookup("typed.v1")
	if e.Endpoints[MCP].Overridden || e.Endpoints[MCP].URL != "" {
		t.Errorf("%+v", e.Endpoints)
	}
	if _, ok := Trusted().With(o).Lookup("typed.v1"); ok {
		t.Error("an override added a runtime")
	}
}

// What a person types is the address of their own connection, public by rule, and of nothing else.
func TestWhatIsTypedReachesRemoteRuntimesAlone(t *testing.T) {
	table := Trusted()
	custom, _ := table.Lookup("custom_mcp.v1")
	led := custom.For("https://mcp.example.com/mcp", "X-Key")
	if e := led.Endpoints[MCP]; e.URL != "https://mcp.example.com/mcp" || e.Overridden || len(led.Parts) != 1 || led.Parts[0].Header != "X-Key" || led.Parts[0].Slotted() != "{secret}" {
		t.Errorf("%+v", led)
	}
	if len(custom.For("https://mcp.example.com/mcp", "").Parts) != 0 || custom.Endpoints[MCP].URL != "" {
		t.Errorf("the entry itself became %+v", custom)
	}
	for _, k := range table.Keys() {
		e, _ := table.Lookup(k)
		if got := e.For("https://evil.example.com/mcp", "X-Key"); e.Kind != Remote && (got.Endpoints[MCP] != e.Endpoints[MCP] || len(got.Parts) != len(e.Parts)) {
			t.Errorf("%s was led elsewhere: %+v", k, got)
		}
	}
}
