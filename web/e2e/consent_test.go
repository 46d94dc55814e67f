package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/db/embedded"
	"countersign/internal/consent/consenttest"
	sandboxcrm "countersign/internal/crm"
)

// newVendor is a vendor with an authorization server of its own, as the endpoints file of an operator names it.
func newVendor(t *testing.T) (*consenttest.Server, string) {
	t.Helper()
	v := consenttest.New(t, sandboxcrm.New(sandboxcrm.Config{BearerToken: "behind-the-consent", ControlToken: "control"}).Handler(), "behind-the-consent")
	file := filepath.Join(t.TempDir(), "endpoints.toml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "[endpoints]\n\"linear.v1\" = %q\n", v.MCP()), 0o600))
	return v, "COUNTERSIGN_ENDPOINTS_FILE=" + file
}

// TestConsent is an admin who connects a vendor by signing in there, in browsers with and without a script, and a second server on the
// same database that renews with the first one.
func TestConsent(t *testing.T) {
	t.Parallel()
	vendor, file := newVendor(t)
	s := newServer(t, "COUNTERSIGN_DEMO=1", file)
	s.start(t)
	plain := desk
	plain.noScript = true
	var key string
	for name, v := range map[string]view{"with a script": desk, "without": plain} {
		t.Run(name, func(t *testing.T) { key = consents(t, s, vendor, v) })
	}
	t.Run("in two processes", func(t *testing.T) { renewOnce(t, s, vendor, file, key) })
	t.Run("until it is over", func(t *testing.T) { overAndAgain(t, s, vendor, key) })
	t.Run("in trouble", func(t *testing.T) { inTrouble(t, s, vendor, key) })
}

// consents installs, reads, declines once, and then allows.
func consents(t *testing.T, s *server, vendor *consenttest.Server, v view) string {
	t.Helper()
	admin := s.signsIn(t, "admin@sandbox.test", v)
	admin.opens(t, "/connections/new/linear?contract=oauth2")
	admin.fills(t, "name", "Linear by consent")
	admin.presses(t, "install")
	admin.reads(t, "What Linear will ask you to allow", "Nothing has been asked yet", "Use one Linear workspace as yourself")
	key := strings.Split(strings.TrimPrefix(admin.URL(), s.url+"/connections/"), "/")[0]
	if n := len(vendor.Journal("authorize")); n%2 != 0 {
		t.Fatalf("the vendor was asked %d times before anybody said so", n)
	}
	admin.presses(t, "start-consent")
	admin.reads(t, "You will sign in at "+strings.TrimPrefix(vendor.URL, "http://"))
	vendor.Rule(func(r *consenttest.Rules) { r.Deny = "access_denied" })
	admin.presses(t, "leave")
	admin.reads(t, "No consent was stored", "was declined at the service")
	vendor.Rule(func(r *consenttest.Rules) { r.Deny = "" })
	admin.follows(t, "Start again")
	admin.presses(t, "start-consent")
	admin.presses(t, "leave")
	admin.reads(t, "Consent stored.", "Working", "Renewed by itself until somebody ends it")
	if at := admin.URL(); at != s.url+"/connections/"+key {
		t.Errorf("the admin ends up at %s", at)
	}
	admin.ticks(t, "mode", "read_only", true)
	admin.presses(t, "save-access")
	admin.reads(t, "Saved.")
	return key
}

// reader is an agent that reads over any server of the installation.
func reader(t *testing.T, s *server, key string) func(url string) (int, string) {
	t.Helper()
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	admin.opens(t, "/profiles/engineering")
	admin.ticks(t, "use", key, true)
	admin.presses(t, "save-profile")
	run := s.runtime().starts(t, task("engineering", "CONSENT-1"))
	return func(url string) (int, string) {
		status, body, err := answerOf(request(http.MethodPost, url+"/gateway/mcp", "application/json", toolCall(key+"__contacts_list", `{"limit":1}`), run.Token))
		if err != nil {
			return 0, err.Error()
		}
		return status, body
	}
}

// renewOnce has two processes find at once that the access has ended.
func renewOnce(t *testing.T, s *server, vendor *consenttest.Server, file, key string) {
	access, ok := embedded.Attach(t.Context(), s.dir)
	if !ok {
		t.Fatal("the embedded database does not answer")
	}
	other := newServer(t, "DATABASE_URL="+access.DSN(embedded.Database), "COUNTERSIGN_KEYSET_FILE="+filepath.Join(s.dir, "keyset.json"), file)
	other.start(t)
	read := reader(t, s, key)
	for _, at := range []string{s.url, other.url} {
		if status, body := read(at); status != http.StatusOK || strings.Contains(body, `"isError":true`) {
			t.Fatalf("before anything ended a read answers %d %s", status, body)
		}
	}
	conn, err := pgx.Connect(t.Context(), access.SuperDSN(embedded.Database))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for round := range 3 {
		vendor.Expire()
		_, err := conn.Exec(t.Context(), "UPDATE consents SET expires_at = clock_timestamp() - interval '1 second', issued_at = clock_timestamp() - interval '1 hour'")
		must(t, err)
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				at := []string{s.url, other.url}[i%2]
				if status, body := read(at); status != http.StatusOK || strings.Contains(body, `"isError":true`) {
					t.Errorf("a read fails while the other process renews: %d %s", status, body)
				}
			})
		}
		all.Wait()
		if n := len(vendor.Journal("refresh")); n != round+1 {
			t.Fatalf("after %d ends the consent was renewed %d times", round+1, n)
		}
	}
	if n := len(vendor.Journal("reuse")); n != 0 {
		t.Errorf("a consumed refresh token was sent %d times", n)
	}
}

// overAndAgain is the vendor's side ending it, what an agent and a person are told, another person taking it over, and giving it back.
func overAndAgain(t *testing.T, s *server, vendor *consenttest.Server, key string) {
	read := reader(t, s, key)
	vendor.RevokeAll()
	if _, body := read(s.url); !strings.Contains(body, "needs_consent") {
		t.Errorf("the agent is told: %s", body)
	}
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	admin.opens(t, "/connections/"+key)
	admin.reads(t, "Needs consent again", "no longer accepts the consent", "Sign in again")
	admin.presses(t, "consent")
	admin.presses(t, "start-consent")
	admin.presses(t, "leave")
	admin.reads(t, "Consent stored.", "Working", "Read only")
	if status, body := read(s.url); status != http.StatusOK || strings.Contains(body, `"isError":true`) {
		t.Errorf("after signing in again a read answers %d %s", status, body)
	}
	live := vendor.Live()
	admin.presses(t, "disconnect")
	admin.reads(t, "Disconnected.", "The service confirmed that the consent is given back")
	if n := vendor.Live(); n != live-1 {
		t.Errorf("%d access tokens work after giving one of %d back", n, live)
	}
	admin.follows(t, "Sign in at the service again")
	admin.presses(t, "start-consent")
	admin.presses(t, "leave")
	admin.reads(t, "Consent stored.", "Working")
}

// answerOf sends a request on a connection of its own.
func answerOf(r *http.Request) (int, string, error) {
	res, err := oneByOne().Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}
