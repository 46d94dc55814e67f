package web_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/reach"
	"countersign/web"
)

// ownServer stands where the lines stand: a custom server is public by rule, so a test of the pages says what one lists, and the way to one
// is tested in a network of its own, from outside.
type ownServer struct{ tools []string }

func (o *ownServer) Probe(context.Context, installation.Connection) installation.Finding {
	var list []provider.Definition
	for _, raw := range o.tools {
		list = append(list, provider.Define([]byte(raw)))
	}
	return installation.Finding{OK: true, Found: "It answers.", Tools: reach.Observed(list)}
}

func (o *ownServer) Examine(ctx context.Context, c installation.Connection) ([]installation.Check, installation.Finding) {
	return nil, o.Probe(ctx, c)
}

const (
	finds      = `{"name":"find","description":"Finds things.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	finds2     = `{"name":"find","description":"Finds things, and counts who looked.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	wipes      = `{"name":"wipe","description":"Wipes things.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":true}}`
	silent     = `{"name":"mumble","inputSchema":{"type":"object"}}`
	ownAddress = "https://mcp.harbor.example/mcp"
)

func newOwnServer(t *testing.T) (*shop, *ownServer) {
	s := newShop(t)
	own := &ownServer{tools: []string{finds, wipes, silent}}
	service := *s.Service
	service.Prober = own
	s.serve(func(h *web.Handlers) {
		h.Catalog.Releases, h.Catalog.Registry = s.Releases, s.Table
		h.Connections.Service, h.Connections.Vault = &service, s.Vault
	})
	return s, own
}

// connects makes a connection to a custom server through the form.
func (b *browser) connects(pairs ...string) page {
	b.T.Helper()
	form := b.get("/connections/new/custom-mcp").is(b.T, http.StatusOK).between(b.T, `name="form" value="`, `"`)
	return b.post("/connections/new/custom-mcp", append([]string{"form", form, "name", "Harbor tools"}, pairs...)...)
}

func TestTheFormOfACustomServerSaysWhatIsWrong(t *testing.T) {
	s, _ := newOwnServer(t)
	b := s.as("admin@harbor.test")
	b.get("/catalog/custom-mcp").is(t, 200, "The address you enter", "confirmed that it only reads").lacks(t, "cannot be connected")
	b.get("/connections/new/custom-mcp").is(t, 200, "With a bearer token", "In a header of its own", "By signing in there", "Without a credential", "Address of the MCP server").lacks(t, "Header of the credential")
	b.get("/connections/new/custom-mcp?contract=token&named=1").is(t, 200, "Header of the credential", `name="named" value="1"`)
	b.get("/connections/new/custom-mcp?contract=none&named=1").is(t, 200).lacks(t, "Header of the credential")

	const typed = "typed-secret-4411"
	for _, c := range [][]string{
		{"must start with https://", "contract", "token", "token", typed, "url", "http://127.0.0.1:8090/mcp"},
		{"private network", "contract", "token", "token", typed, "url", "https://crm.internal/mcp"},
		{"carries a query", "contract", "none", "url", ownAddress + "?key=" + typed},
		{"it is needed to connect", "contract", "token", "url", ownAddress},
		{"has no name", "contract", "token", "token", typed, "url", ownAddress, "named", "1"},
		{"belong to the protocol", "contract", "token", "token", typed, "url", ownAddress, "named", "1", "header", "Mcp-Session-Id"},
		{"bearer token", "contract", "token", "token", typed, "url", ownAddress, "header", "authorization"},
		{"does not offer this way", "contract", "pat", "token", typed, "url", ownAddress},
	} {
		got := b.connects(c[1:]...).is(t, http.StatusUnprocessableEntity, c[0], "Harbor tools")
		if c[1] != "contract" || !strings.Contains(c[0], "query") {
			got.lacks(t, typed)
		}
	}
	b.post("/connections/new/sandbox-crm", "contract", "token", "api_key", "k", "url", ownAddress).is(t, http.StatusSeeOther)
	if all, err := s.Connections.Connections(t.Context(), s.Org.ID); err != nil || slices.ContainsFunc(all, func(c installation.Connection) bool {
		return c.Integration == "custom-mcp" || c.Destination == ownAddress
	}) {
		t.Errorf("something was connected: %+v %v", all, err)
	}
}

// The address and the header are as typed for ever, and the credential is sealed for that origin.
func TestACustomServerIsConnectedAsItWasTyped(t *testing.T) {
	s, _ := newOwnServer(t)
	b := s.as("admin@harbor.test")
	for contract, pairs := range map[string][]string{
		"token": {"token", "t0ken-of-theirs"}, "header": {"token", "t0ken-of-theirs", "named", "1", "header", "X-Harbor-Key"}, "none": nil, "oauth2": nil,
	} {
		posted := contract
		if contract == "header" {
			posted = "token"
		}
		p := b.connects(append([]string{"contract", posted, "url", " " + ownAddress + " "}, pairs...)...).is(t, http.StatusSeeOther)
		key, _ := connector.Parse(strings.TrimSuffix(strings.TrimPrefix(p.Header.Get("Location"), "/connections/"), "/consent"))
		c, err := s.Connections.Connection(t.Context(), s.Org.ID, key)
		s.Must(err)
		if c.Destination != ownAddress || c.Kind != "remote" || c.Contract != posted || (c.Header == "X-Harbor-Key") != (contract == "header") {
			t.Errorf("%s: %+v", contract, c)
		}
		page := b.get("/connections/"+key.String()).is(t, 200, ownAddress, "it never changes", "Harbor tools").lacks(t, "t0ken-of-theirs")
		if contract == "header" {
			page.is(t, 200, "The credential travels in the header X-Harbor-Key", "https://mcp.harbor.example")
		}
	}
}

// TestAReadOfACustomServerIsARead only once an admin said so, of that very definition, and until it changes or they think again.
func TestAReadOfACustomServerIsOneOnceAnAdminSaidSo(t *testing.T) {
	s, own := newOwnServer(t)
	b := s.as("admin@harbor.test")
	key := keyOf(t, b.connects("contract", "none", "url", ownAddress))
	path := "/connections/" + key.String()
	b.get(path).is(t, 200, "What counts as a read", "no admin has confirmed that").lacks(t, "An admin confirmed")
	value := b.get(path).between(t, `name="read" value="`, `"`)

	b.save(key, "read_only", "")
	s.grants(key, policy.ReadOnly)
	b.save(key, "read_only", "1", "find").is(t, 422, "this mode only reads")

	reads := func(version string, values ...string) page {
		pairs := []string{"version", version}
		for _, v := range values {
			pairs = append(pairs, "read", v)
		}
		return b.post(path+"/reads", pairs...)
	}
	digest := strings.TrimSuffix(value, ":find")
	reads(b.version(key), digest+":wipe").is(t, 409, "not what it was when you read it")
	list, err := s.Connections.ObservedTools(t.Context(), s.Org.ID, key)
	s.Must(err)
	for _, o := range list {
		if o.Tool != "find" {
			reads(b.version(key), o.Digest+":"+o.Tool).is(t, 409, "does not say that", "only reads")
		}
	}
	reads("1", value).is(t, 409, "Somebody else changed this connection")
	reads("", value).is(t, 422, "which state of the connection")
	s.as("auditor@harbor.test").post(path+"/reads", "version", b.version(key), "read", value).is(t, 403)

	reads(b.version(key), value).goes(t, path)
	b.get(path).is(t, 200, "1 definition counts as a read", "An admin confirmed this definition as a read", "Tool confirmed as a read")
	b.save(key, "read_only", "1", "find").goes(t, path)
	s.grants(key, policy.ReadOnly, "find")
	if p, _ := s.standing(key).Snapshot.Find("find"); p.Effect != policy.Read {
		t.Errorf("it is granted as %s", p.Effect)
	}

	// Another definition is another question, and the old answer stands for the old one alone.
	own.tools[0] = finds2
	b.post(path+"/test").goes(t, path)
	changed := b.get(path).is(t, 200, "changed and is held back", "no admin has confirmed that", "confirm below that it only reads")
	b.post(path+"/accept", "version", b.version(key), "tool", "find", "digest", strings.TrimSuffix(changed.between(t, `name="read" value="`, `"`), ":find")).is(t, 409, "this mode only reads")
	value = changed.between(t, `name="read" value="`, `"`)
	reads(b.version(key), value).goes(t, path)
	b.post(path+"/accept", "version", b.version(key), "tool", "find", "digest", strings.TrimSuffix(value, ":find")).goes(t, path)
	s.grants(key, policy.ReadOnly, "find")

	// Thinking again takes it away where the mode only reads, and makes it consequential where it may stay.
	b.save(key, "ask_user_on_write", "1", "find").goes(t, path)
	reads(b.version(key)).goes(t, path)
	s.grants(key, policy.AskUserOnWrite, "find")
	if p, _ := s.standing(key).Snapshot.Find("find"); p.Effect != policy.Consequential {
		t.Errorf("after thinking again it is %s", p.Effect)
	}
	reads(b.version(key), value).goes(t, path)
	b.save(key, "read_only", "1", "find").goes(t, path)
	reads(b.version(key)).goes(t, path)
	s.grants(key, policy.ReadOnly)
	if n := len(slices.DeleteFunc(s.Events(s.Org.ID), func(e audit.Event) bool { return e != audit.ReadConfirmed })); n != 5 {
		t.Errorf("%d entries of what was confirmed and withdrawn", n)
	}
}
