package consent_test

import (
	"slices"
	"strings"
	"testing"

	"countersign/internal/action"
	"countersign/internal/consent"
	"countersign/internal/consent/consenttest"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/secret"
)

// tools tests the connection and answers what its page lists.
func (w *world) tools() []installation.Tool {
	w.Helper()
	c, err := w.first.connections.Test(w.Context(), w.owner, keyOf(w.key))
	w.must(err)
	if !c.Health.OK {
		w.Fatalf("the test fails: %s %s", c.Health.What, c.Health.Next)
	}
	tools, err := w.first.connections.Tools(w.Context(), c)
	w.must(err)
	return tools
}

func (w *world) choose(names ...string) error {
	_, err := w.first.connections.SaveAccess(w.Context(), w.owner, installation.Access{
		Key: keyOf(w.key), Choice: policy.Choice{Mode: policy.AskUserOnWrite, Listed: true, Tools: names},
	})
	return err
}

// The minimum comes first. A tool that needs more is there to be seen, and cannot be chosen until a person allowed exactly that.
func TestMoreIsAskedForWhenSomebodyChoosesIt(t *testing.T) {
	w := newWorld(t, "")
	if got := query(w.leave(consent.Leave{}).URL).Get("scope"); got != "contacts:read" {
		t.Errorf("the minimum is %q", got)
	}
	w.consents()
	if c := (installation.Tool{Listed: true, Class: policy.Class{Effect: policy.Read}, Lacks: []manifest.Grant{{Title: "Change contacts"}}}).Candidate(); c.Eligible(policy.AccessFull) {
		t.Error("a list that is older than the consent lets it be chosen")
	}
	tools := w.tools()
	i := slices.IndexFunc(tools, func(tool installation.Tool) bool { return tool.Tool == "contacts_create" })
	if i < 0 || len(tools[i].Lacks) != 1 || tools[i].Lacks[0].ID != "write" {
		t.Fatalf("the tool that needs more: %+v", tools)
	}
	if err := w.choose("contacts_list", "contacts_create"); err == nil || !strings.Contains(err.Error(), "needs “Change contacts”, which nobody has allowed") {
		t.Errorf("it can be chosen: %v", err)
	}
	if names := installation.Selects(tools, policy.Autonomous); slices.Contains(names, "contacts_create") || !slices.Contains(names, "contacts_list") {
		t.Errorf("a mode alone selects %v", names)
	}
	w.must(w.choose("contacts_list"))

	ask, err := w.first.desk.Prepare(t.Context(), w.owner.Org, keyOf(w.key), []string{"write"})
	w.must(err)
	if adds := ask.Adds(); !slices.Equal(adds, []string{"contacts:write"}) {
		t.Errorf("the page says that %v is added", adds)
	}
	w.consents("write")
	if got := w.held().Granted; !slices.Equal(got, []string{"contacts:read", "contacts:write"}) {
		t.Errorf("granted are %v", got)
	}
	w.tools()
	w.must(w.choose("contacts_list", "contacts_create"))

	// And what a person takes back is taken from the tools that need it, chosen or not.
	w.consents()
	line, err := w.first.lines.Open(t.Context(), w.connection())
	w.must(err)
	if d, ok, err := line.Live(t.Context(), "contacts_create", 0); ok || err != nil || !strings.Contains(d.Problem, "nobody has allowed") {
		t.Errorf("it is offered on: %+v %t %v", d, ok, err)
	}
}

// A vendor that keeps what was allowed before is asked for the addition alone; any other for everything, or it would take the rest away.
func TestTheAdditionAlone(t *testing.T) {
	w := newWorld(t, "adds_scopes = true\nalways_scopes = [\"offline_access\"]")
	w.consents()
	if got := query(w.leave(consent.Leave{Chosen: []string{"write"}}).URL).Get("scope"); got != "contacts:write offline_access" {
		t.Errorf("asked for is %q", got)
	}
	w.server.Rule(func(r *consenttest.Rules) { // the vendor answers with all that the account allowed
		r.Grants = func(asked []string) []string { return append([]string{"contacts:read"}, asked...) }
	})
	if r := w.consents("write"); len(r.Withheld) != 0 || len(r.Without) != 0 {
		t.Errorf("%+v", r)
	}
	if got := w.held().Granted; !slices.Contains(got, "contacts:read") || !slices.Contains(got, "contacts:write") {
		t.Errorf("granted are %v", got)
	}
}

func TestWhatSomebodyUnticksIsNotThere(t *testing.T) {
	w := newWorld(t, "")
	w.server.Rule(func(r *consenttest.Rules) { r.Grants = func([]string) []string { return []string{"contacts:read"} } })
	r := w.consents("write")
	if !slices.Equal(r.Withheld, []string{"contacts:write"}) || len(r.Without) != 1 || r.Without[0].ID != "write" {
		t.Errorf("nobody is told: %+v", r)
	}
	tools := w.tools()
	i := slices.IndexFunc(tools, func(tool installation.Tool) bool { return tool.Tool == "contacts_create" })
	if len(tools[i].Lacks) != 1 {
		t.Error("the tool can be chosen although its scope was unticked")
	}
}

// Quirks are data: each changes exactly what it names.
func TestQuirksOfARequest(t *testing.T) {
	w := newWorld(t, `scope_parameter = "user_scope"
scope_separator = ","
omit_resource = true
always_scopes = ["offline_access"]
authorize_parameters = { access_type = "offline", prompt = "consent" }`)
	q := query(w.leave(consent.Leave{Chosen: []string{"write"}}).URL)
	for name, want := range map[string]string{"user_scope": "contacts:read,contacts:write,offline_access", "scope": "", "resource": "", "access_type": "offline", "prompt": "consent", "code_challenge_method": "S256"} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
}

// A service that wants more says so once. Nothing is asked, nothing loops, and the other tools go on.
func TestAScopeThatIsMissedMarksTheConnection(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	w.server.Rule(func(r *consenttest.Rules) {
		r.Needs = map[string]string{"contacts_get": "contacts:secret", "notes_add": "notes:write"}
	})
	line, err := w.first.lines.Open(t.Context(), w.connection())
	w.must(err)
	for range 3 {
		if _, err := line.Read(t.Context(), provider.Call{Tool: "contacts_get", Arguments: []byte(`{"contact_id":"c_1001"}`)}); !fault.Is(err, fault.NeedsConsent) {
			t.Errorf("the call is answered %v", err)
		}
	}
	c := w.connection()
	if c.State != installation.Active || !slices.Equal(c.Refused, []string{"contacts:secret"}) {
		t.Errorf("the connection is %s and says %v", c.State, c.Refused)
	}
	if n := w.count("SELECT count(*) FROM audit_entries WHERE event = 'connection.scope_refused'"); n != 1 {
		t.Errorf("the trail says it %d times", n)
	}
	o := line.Provider.Execute(t.Context(), line.Conn, provider.Call{Tool: "notes_add", Arguments: []byte(`{"contact_id":"c_1001","text":"x"}`), Action: "act_1"})
	if o.Kind() != action.OutcomeFailed || o.Code() != fault.NeedsConsent {
		t.Errorf("a write without its scope is %s, %s: %s", o.Kind(), o.Code(), o.Sentence())
	}
	if c := w.connection(); !slices.Equal(c.Refused, []string{"notes:write"}) {
		t.Errorf("after the write it says %v", c.Refused)
	}
	if n := len(w.server.Journal("refresh")) + len(w.server.Journal("authorize")); n != 1 {
		t.Errorf("something was asked because of it: %+v", w.server.Journal(""))
	}
	w.must(w.read(w.first))
	w.consents("write")
	if c := w.connection(); len(c.Refused) != 0 {
		t.Errorf("a new consent still says %v", c.Refused)
	}
}

// Giving back: the service is asked where it takes it, other connections are not ended with it, and the end here never waits for there.
func TestGivingBack(t *testing.T) {
	end := func(w *world) consent.Ended {
		t.Helper()
		e, err := w.first.desk.End(t.Context(), w.owner.Org, keyOf(w.key), func() error {
			c := w.connection()
			_, err := w.first.connections.Disconnect(t.Context(), w.owner, installation.Access{Key: c.Key, Version: c.Version})
			return err
		})
		w.must(err)
		if c := w.connection(); c.State != installation.Disconnected || w.count("SELECT count(*) FROM consents")+w.count("SELECT count(*) FROM credentials") != w.others {
			t.Errorf("after the end the connection is %s and something is kept", c.State)
		}
		return e
	}
	t.Run("taken", func(t *testing.T) {
		w := newWorld(t, "")
		w.consents()
		if e := end(w); e.Return != consent.Given || w.server.Live() != 0 || len(w.server.Journal("revoke")) == 0 {
			t.Errorf("%+v, %d tokens work on", e, w.server.Live())
		}
	})
	t.Run("not offered", func(t *testing.T) {
		w := newWorld(t, "revocation = \"none\"\nmanage = \"https://desk.example.com/apps\"")
		w.consents()
		if e := end(w); e.Return != consent.Impossible || e.Manage != "https://desk.example.com/apps" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("not answered", func(t *testing.T) {
		w := newWorld(t, "")
		w.consents()
		w.server.Close()
		if e := end(w); e.Return != consent.Unclear {
			t.Errorf("%+v", e)
		}
	})
	t.Run("never consented", func(t *testing.T) {
		w := newWorld(t, "")
		if e := end(w); e.Return != consent.Nothing {
			t.Errorf("%+v", e)
		}
	})
	t.Run("shared", func(t *testing.T) {
		w := newWorld(t, "client = \"registered\"\nclient_steps = [\"Enter {redirect_uri} there.\"]\nrevocation = \"grant\"")
		w.server.Rule(func(r *consenttest.Rules) { r.Known = map[string]string{"ours": "key"} })
		second := w.install("Second")
		for _, key := range []string{second, w.key} {
			d := w.leave(consent.Leave{Key: keyOf(key), Entered: consent.Entered{ID: "ours", Secret: secret.New("key")}})
			_, err := w.receive(w.visit(d.URL))
			w.must(err)
		}
		w.others = 4 // the other's consent, and its access token, refresh token and client secret
		if e := end(w); e.Return != consent.Shared || len(w.server.Journal("revoke")) != 0 {
			t.Errorf("%+v, %+v", e, w.server.Journal("revoke"))
		}
		w.key, w.others = second, 0
		if e := end(w); e.Return != consent.Given {
			t.Errorf("the last one: %+v", e)
		}
	})
}

// What somebody who left had allowed is found, and another person takes it over without touching tools or key.
func TestAConsentIsTakenOver(t *testing.T) {
	w := newWorld(t, "")
	w.consents()
	before := w.connection()
	list, err := w.first.desk.Directory.OfPerson(t.Context(), w.owner.Org, w.owner.ID)
	w.must(err)
	if len(list) != 1 || list[0].Connection != keyOf(w.key) {
		t.Fatalf("%+v", list)
	}
	first := w.owner
	w.owner = w.colleague()
	w.consents()
	if list, err := w.first.desk.Directory.OfPerson(t.Context(), first.Org, first.ID); err != nil || len(list) != 0 {
		t.Errorf("it is still theirs: %+v, %v", list, err)
	}
	after := w.connection()
	if w.held().By != w.owner.ID || after.Key != before.Key || after.Standing.Mode != before.Standing.Mode || !after.Standing.Snapshot.Equal(before.Standing.Snapshot) {
		t.Errorf("%+v", w.held())
	}
}
