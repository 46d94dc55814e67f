package e2e

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/consent/consenttest"
)

// troubled is a connection by consent whose vendor, and whose people, do what they do; and the owner who looks after it.
type troubled struct {
	s      *server
	vendor *consenttest.Server
	key    string
	owner  *wire
	db     *pgx.Conn
	run    started
}

// inTrouble is what can become of a consent beside its end, as a page and an agent are told of it, and how each is put right without
// touching the tools, the mode or the key.
func inTrouble(t *testing.T, s *server, vendor *consenttest.Server, key string) {
	c := &troubled{s: s, vendor: vendor, key: key, owner: s.signedIn(t, "owner@sandbox.test", s.password(t, "owner@sandbox.test")), db: s.database(t)}
	o := task("engineering", "CONSENT-2")
	o["on_behalf_of"] = "owner@sandbox.test"
	c.run = s.runtime().starts(t, o)
	before := c.granted(t)
	t.Run("a scope is missed", c.scopeMissed)
	t.Run("somebody leaves", c.handedOver)
	t.Run("the client is gone", c.clientGone)
	if after := c.granted(t); after != before {
		t.Errorf("mode and tools were %s, and are %s", before, after)
	}
}

// calls is an agent's read.
func (c *troubled) calls(t *testing.T, tool string) string {
	t.Helper()
	arguments := map[string]string{"contacts_list": `{"limit":1}`, "contacts_search": `{"query":"a"}`}[tool]
	status, body := c.run.posts(t, toolCall(c.key+"__"+tool, arguments))
	if status != http.StatusOK {
		t.Fatalf("%s answers %d %s", tool, status, body)
	}
	return body
}

func (c *troubled) page(t *testing.T) string {
	t.Helper()
	return html.UnescapeString(plainText(c.owner.get(t, "/connections/"+c.key).body))
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say “%s”: %.1500s", w, text)
		}
	}
}

// granted is what agents may do over the connection, as the database has it.
func (c *troubled) granted(t *testing.T) (text string) {
	t.Helper()
	must(t, c.db.QueryRow(t.Context(), `SELECT concat_ws(' ', key, mode, snapshot_version, (SELECT string_agg(tool || '=' || digest || effect, ',' ORDER BY tool) FROM pinned_tools t WHERE t.connection_id = c.id))
		FROM connections c WHERE key = $1`, c.key).Scan(&text))
	return text
}

// signsIn is the owner who consents at the vendor.
func (c *troubled) signsIn(t *testing.T) {
	t.Helper()
	page := c.owner.form(t, "/connections/"+c.key+"/consent", nil)
	if page.status != http.StatusOK {
		t.Fatalf("asking answers %d %s", page.status, plainText(page.body))
	}
	res, err := oneByOne().Get(html.UnescapeString(first(t, page.body, `href="([^"]+)"[^>]*data-test="leave"`)))
	must(t, err)
	must(t, res.Body.Close())
	c.owner.get(t, strings.TrimPrefix(res.Header.Get("Location"), c.s.url)).clear(t, "the way back", http.StatusSeeOther)
	says(t, c.page(t), "Working", "Read only")
	if body := c.calls(t, "contacts_list"); strings.Contains(body, `"isError":true`) {
		t.Errorf("after signing in again a read answers %s", body)
	}
}

func (c *troubled) scopeMissed(t *testing.T) {
	c.vendor.Rule(func(r *consenttest.Rules) { r.Needs = map[string]string{"contacts_search": "contacts:deep"} })
	defer c.vendor.Rule(func(r *consenttest.Rules) { r.Needs = nil })
	asked := len(c.vendor.Journal("authorize")) + len(c.vendor.Journal("refresh"))
	says(t, c.calls(t, "contacts_search"), "needs_consent")
	says(t, c.page(t), "Working", "refused a call as beyond the consent", "contacts:deep", "Other tools go on working")
	if body := c.calls(t, "contacts_list"); strings.Contains(body, `"isError":true`) {
		t.Errorf("another tool answers %s", body)
	}
	if n := len(c.vendor.Journal("authorize")) + len(c.vendor.Journal("refresh")); n != asked {
		t.Error("the vendor was asked for more by itself")
	}
}

// handedOver has the person leave whose account the connection acts with: it goes on, is found on their page, and changes hands.
func (c *troubled) handedOver(t *testing.T) {
	var id string
	must(t, c.db.QueryRow(t.Context(), `SELECT id FROM people WHERE email = 'admin@sandbox.test'`).Scan(&id))
	c.owner.form(t, "/people/"+id+"/deactivate", url.Values{}).clear(t, "deactivating", http.StatusSeeOther)
	says(t, plainText(c.owner.get(t, "/people/"+id).body), "Consents they gave", c.key, "They can no longer sign in here", "Take it over")
	says(t, c.page(t), "Who gave this consent is no longer active here.", "Somebody else can take it over")
	if body := c.calls(t, "contacts_list"); strings.Contains(body, `"isError":true`) {
		t.Errorf("with the account of who left a read answers %s", body)
	}
	c.signsIn(t)
	if text := plainText(c.owner.get(t, "/people/"+id).body); strings.Contains(text, c.key) {
		t.Errorf("the consent is still theirs: %s", text)
	}
}

// clientGone has the vendor forget the client, as when somebody removes it there.
func (c *troubled) clientGone(t *testing.T) {
	made := c.vendor.Journal("register")
	for _, r := range made {
		c.vendor.Forget(r.Client)
	}
	c.vendor.Expire()
	_, err := c.db.Exec(t.Context(), "UPDATE consents SET expires_at = clock_timestamp() - interval '1 second', issued_at = clock_timestamp() - interval '1 hour'")
	must(t, err)
	says(t, c.calls(t, "contacts_list"), "needs_consent")
	says(t, c.page(t), "Needs consent again", "no longer knows the client", "Sign in again")
	c.signsIn(t)
	if n := len(c.vendor.Journal("register")); n != len(made)+1 {
		t.Errorf("%d clients were registered, want one more than %d", n, len(made))
	}
}
