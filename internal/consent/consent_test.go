package consent_test

import (
	"slices"
	"strings"
	"testing"

	"countersign/internal/connector"
	"countersign/internal/consent"
	"countersign/internal/consent/consenttest"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/secret"
)

func keyOf(s string) connector.Key { return connector.Key(s) }

func TestAConsentIsAskedForByTheBookAndUsed(t *testing.T) {
	w := newWorld(t, "")
	d := w.leave(consent.Leave{})
	q := query(d.URL)
	for name, want := range map[string]string{
		"response_type": "code", "code_challenge_method": "S256", "resource": w.server.MCP(), "scope": "contacts:read", "redirect_uri": "http://127.0.0.1:8080/oauth/callback",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) < 43 || len(q.Get("code_challenge")) != 43 || d.Origin != w.server.URL || d.Was != "" {
		t.Errorf("state %q, challenge %q, origin %q, was %q", q.Get("state"), q.Get("code_challenge"), d.Origin, d.Was)
	}
	r, err := w.receive(w.visit(d.URL))
	w.must(err)
	if r.Key != keyOf(w.key) || len(r.Withheld) != 0 || r.Unrenewed {
		t.Errorf("%+v", r)
	}
	codes := w.server.Journal("code")
	if len(codes) != 1 || codes[0].Form.Get("resource") != w.server.MCP() || len(codes[0].Form.Get("code_verifier")) != 43 {
		t.Errorf("the token request: %+v", codes)
	}
	c := w.connection()
	if c.State != installation.Active || !slices.Equal(c.Granted, []string{"contacts:read"}) {
		t.Errorf("the connection is %s with %v", c.State, c.Granted)
	}
	w.must(w.read(w.first))
	held := w.held()
	if held.By != w.owner.ID || held.Client.Identity != consent.Dynamic || held.Server.Issuer != w.server.URL || !held.Renews || held.Expires == nil {
		t.Errorf("%+v", held)
	}
}

// A stolen or repeated answer is worth nothing.
func TestAnAnswerIsForOnePersonOneBrowserAndOneTime(t *testing.T) {
	w := newWorld(t, "")
	other := w.owner
	other.ID = identity.PersonID(identity.NewID("usr_"))
	for name, receive := range map[string]func(a consent.Answer) (consent.Received, error){
		"another person": func(a consent.Answer) (consent.Received, error) {
			return w.first.desk.Receive(t.Context(), other, w.session, a)
		},
		"another browser": func(a consent.Answer) (consent.Received, error) {
			return w.first.desk.Receive(t.Context(), w.owner, []byte("another-browser"), a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.visit(w.leave(consent.Leave{}).URL)
			if _, err := receive(a); err != consent.ErrOtherPerson {
				t.Errorf("it got in: %v", err)
			}
			if _, err := w.receive(a); err != consent.ErrNotStarted {
				t.Errorf("after that the answer can still be used: %v", err)
			}
		})
	}
	a := w.visit(w.leave(consent.Leave{}).URL)
	_, err := w.receive(a)
	w.must(err)
	if _, err := w.receive(a); err != consent.ErrNotStarted {
		t.Errorf("an answer is taken twice: %v", err)
	}
	if _, err := w.receive(consent.Answer{State: strings.Repeat("x", 43), Code: "c"}); err != consent.ErrNotStarted {
		t.Errorf("a state from nowhere: %v", err)
	}
	if n := len(w.server.Journal("code")); n != 1 {
		t.Errorf("%d codes were traded", n)
	}
}

func TestAnAnswerIsRefusedForWhatItSays(t *testing.T) {
	w := newWorld(t, "")
	for name, c := range map[string]struct {
		rule  func(*consenttest.Rules)
		after func(*consent.Answer)
		want  string
	}{
		"another issuer":                    {rule: func(r *consenttest.Rules) { r.WrongIssue = "https://evil.example.com" }, want: "does not come from the authorization server"},
		"no issuer, though it names itself": {after: func(a *consent.Answer) { a.Issue, a.Named = "", false }, want: "does not come from the authorization server"},
		"declined":                          {rule: func(r *consenttest.Rules) { r.Deny = "access_denied" }, want: "was declined"},
		"a word of its own":                 {rule: func(r *consenttest.Rules) { r.Deny = "<b>approve</b>" }, want: "“refused”"},
		"an unknown scope":                  {rule: func(r *consenttest.Rules) { r.Deny = "invalid_scope" }, want: "fewer grants"},
		"a code nobody issued":              {after: func(a *consent.Answer) { a.Code = "made-up" }, want: "no longer accepts the code"},
		"no code":                           {after: func(a *consent.Answer) { a.Code = "" }, want: "no code"},
		"a token endpoint that is ill":      {rule: func(r *consenttest.Rules) { r.TokenFault, r.TokenFaults = "500", 1 }, want: "start again later"},
		"a lost answer":                     {rule: func(r *consenttest.Rules) { r.TokenFault, r.TokenFaults = "lost", 1 }, want: "no usable tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			defer w.server.Rule(func(r *consenttest.Rules) { r.WrongIssue, r.Deny, r.TokenFaults = "", "", 0 })
			d := w.leave(consent.Leave{})
			if c.rule != nil {
				w.server.Rule(c.rule)
			}
			a := w.visit(d.URL)
			if c.after != nil {
				c.after(&a)
			}
			r, err := w.receive(a)
			f, ok := fault.As(err)
			if !ok || !strings.Contains(f.Error(), c.want) || !strings.Contains(f.Error(), "Nothing was stored") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if r.Key != keyOf(w.key) {
				t.Error("the failure does not know which connection to go back to")
			}
			if strings.Contains(err.Error(), "<b>") || strings.Contains(err.Error(), "ignore all") {
				t.Errorf("the other side speaks in our voice: %v", err)
			}
		})
	}
	if c := w.connection(); c.State != installation.NeedsConsent {
		t.Errorf("after all that the connection is %s", c.State)
	}
}

// What a service says of itself is not followed anywhere it may not lead.
func TestDiscoveryRefuses(t *testing.T) {
	w := newWorld(t, "")
	for name, c := range map[string]struct {
		rule func(*consenttest.Rules)
		want string
	}{
		"no PKCE":                        {func(r *consenttest.Rules) { r.Challenges = nil }, "PKCE"},
		"plain PKCE":                     {func(r *consenttest.Rules) { r.Challenges = []string{"plain"} }, "PKCE"},
		"a server of another name":       {func(r *consenttest.Rules) { r.Issuer = "https://elsewhere.example.com" }, "another name"},
		"a document of another resource": {func(r *consenttest.Rules) { r.Resource = "https://mcp.example.com/mcp" }, "another address"},
		"a sibling as resource":          {func(r *consenttest.Rules) { r.Resource = w.server.URL + "/mc" }, "another address"},
		"a token endpoint inside":        {func(r *consenttest.Rules) { r.Metadata = map[string]any{"token_endpoint": "http://127.0.0.1:1/token"} }, "not allowed"},
		"a registration endpoint inside": {func(r *consenttest.Rules) {
			r.Metadata = map[string]any{"registration_endpoint": "https://169.254.169.254/"}
		}, "not allowed"},
		"a revocation endpoint inside": {func(r *consenttest.Rules) {
			r.Metadata = map[string]any{"revocation_endpoint": "https://localhost/revoke"}
		}, "not allowed"},
		"an authorize endpoint of script": {func(r *consenttest.Rules) {
			r.Metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"}
		}, "not allowed"},
		"nothing to ask at": {func(r *consenttest.Rules) { r.Metadata = map[string]any{"token_endpoint": ""} }, "does not say where to ask"},
	} {
		t.Run(name, func(t *testing.T) {
			normal := consenttest.Rules{}
			w.server.Rule(func(r *consenttest.Rules) { normal = *r; c.rule(r) })
			defer w.server.Rule(func(r *consenttest.Rules) { *r = normal })
			_, err := w.first.desk.Start(t.Context(), w.owner, consent.Leave{Key: keyOf(w.key), Session: w.session})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if n := len(w.server.Journal("")); n != 0 {
		t.Errorf("the server was asked %d times for something", n)
	}
}

func TestAResourceMayBeAFolderAboveTheAddress(t *testing.T) {
	w := newWorld(t, "")
	w.server.Rule(func(r *consenttest.Rules) { r.Resource = w.server.URL })
	if got := query(w.leave(consent.Leave{}).URL).Get("resource"); got != w.server.URL {
		t.Errorf("the resource is asked for as %q", got)
	}
}

// The order of docs/adr/0008: a client somebody made, our document, a registration, and only then a person.
func TestWhoAsks(t *testing.T) {
	w := newWorld(t, "")
	w.server.Rule(func(r *consenttest.Rules) { r.Register = false })
	_, err := w.first.desk.Start(t.Context(), w.owner, consent.Leave{Key: keyOf(w.key), Session: w.session})
	if err != consent.ErrNoClient {
		t.Fatalf("nobody is asked for a client: %v", err)
	}
	w.server.Rule(func(r *consenttest.Rules) { r.Known = map[string]string{"made-by-hand": "its-secret"} })
	d := w.leave(consent.Leave{Entered: consent.Entered{ID: "made-by-hand", Secret: secret.New("its-secret")}})
	_, err = w.receive(w.visit(d.URL))
	w.must(err)
	if held := w.held(); held.Client.Identity != consent.Registered || held.Client.Auth != "client_secret_basic" {
		t.Errorf("%+v", held.Client)
	}
	d = w.leave(consent.Leave{}) // the client is known from now on
	if query(d.URL).Get("client_id") != "made-by-hand" {
		t.Error("the admin is asked for the same client again")
	}
	_, err = w.receive(w.visit(d.URL))
	w.must(err)
	w.must(w.read(w.first))
}

func TestTheDocumentComesBeforeARegistration(t *testing.T) {
	w := newWorld(t, "")
	ours := consent.Ours{PublicURL: "https://countersign.example.com"}
	w.first.desk.Ours = ours
	text, err := ours.Document()
	w.must(err)
	w.server.Rule(func(r *consenttest.Rules) {
		r.Documents, r.Fetch = true, publisher(t, map[string]string{ours.DocumentURL(): string(text)})
	})
	d := w.leave(consent.Leave{})
	if id := query(d.URL).Get("client_id"); id != "https://countersign.example.com/.well-known/oauth-client.json" {
		t.Errorf("the client is %q", id)
	}
	_, err = w.receive(w.visit(d.URL))
	w.must(err)
	if len(w.server.Journal("document")) != 1 || len(w.server.Journal("register")) != 0 {
		t.Errorf("%+v", w.server.Journal(""))
	}
	w.must(w.read(w.first))
}

func TestAVendorWithoutOtherClientsAsksAtOnce(t *testing.T) {
	w := newWorld(t, "client = \"registered\"\nclient_steps = [\"Enter {redirect_uri} there.\"]")
	_, err := w.first.desk.Start(t.Context(), w.owner, consent.Leave{Key: keyOf(w.key), Session: w.session})
	if err != consent.ErrNoClient || len(w.server.Journal("register")) != 0 {
		t.Errorf("%v, %+v", err, w.server.Journal(""))
	}
}
