package e2e

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sandboxcrm "countersign/internal/crm"
)

// TestConsentAtAServerNobodyHereWrote is the whole way at oidc-provider, by its own pages: discovery, registration, consent, two renewals
// with rotation, and giving back.
func TestConsentAtAServerNobodyHereWrote(t *testing.T) {
	t.Parallel()
	idp := startIDP(t)
	file := filepath.Join(t.TempDir(), "endpoints.toml")
	must(t, os.WriteFile(file, []byte("[endpoints]\n\"linear.v1\" = \""+idp.url+"/mcp\"\n"), 0o600))
	s := newServer(t, "COUNTERSIGN_DEMO=1", "COUNTERSIGN_ENDPOINTS_FILE="+file)
	s.start(t)
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	admin.opens(t, "/connections/new/linear?contract=oauth2")
	admin.presses(t, "install")
	key := strings.Split(strings.TrimPrefix(admin.URL(), s.url+"/connections/"), "/")[0]
	admin.presses(t, "start-consent")
	admin.presses(t, "leave")
	for _, press := range []func() error{
		func() error { return admin.Locator("[name=login]").Fill("ines") },
		func() error { return admin.Locator("[name=password]").Fill("any") },
		func() error { return admin.Locator("button[type=submit]").Click() },
		func() error { return admin.Locator("button[type=submit]:has-text('Continue')").Click() },
	} {
		if err := press(); err != nil {
			admin.stuck(t, "at the pages of the authorization server", err)
		}
	}
	admin.reads(t, "Consent stored.", "Working", "Renewed by itself until somebody ends it")
	admin.ticks(t, "mode", "read_only", true)
	admin.presses(t, "save-access")

	read := reader(t, s, key)
	seen := map[string]bool{}
	for range 3 { // the provider's tokens last eight seconds
		eventually(t, "a read is made with another token", func() bool {
			if status, body := read(s.url); status != http.StatusOK || strings.Contains(body, `"isError":true`) {
				t.Fatalf("a read answers %d %s", status, body)
			}
			return !seen[idp.last()]
		})
		seen[idp.last()] = true
	}
	if !idp.active(idp.last()) {
		t.Error("the provider knows nothing of the last token")
	}
	admin.opens(t, "/connections/"+key)
	admin.presses(t, "disconnect")
	admin.reads(t, "Disconnected.", "The service confirmed that the consent is given back")
	if idp.active(idp.last()) {
		t.Error("the last token works after the consent was given back")
	}
}

// idp is oidc-provider behind a front that also holds the MCP server it protects.
type idp struct {
	url  string
	used atomic.Value // the last token that was let through
}

func startIDP(t *testing.T) *idp {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	must(t, err)
	p := &idp{}
	upstream, err := url.Parse("http://127.0.0.1:" + port)
	must(t, err)
	crm := sandboxcrm.New(sandboxcrm.Config{BearerToken: "behind-the-consent", ControlToken: "control"}).Handler()
	mux := http.NewServeMux()
	mux.Handle("/", &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}})
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": p.url + "/mcp", "authorization_servers": []string{p.url}, "scopes_supported": []string{"mcp"}})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !p.active(token) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.used.Store(token)
		r.Header.Set("Authorization", "Bearer behind-the-consent")
		crm.ServeHTTP(w, r)
	})
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	p.url = front.URL
	p.run(t, port)
	return p
}

// run starts the provider and waits until it answers for itself.
func (p *idp) run(t *testing.T, port string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(newerNode(t), "node"), filepath.Join(repo, "web", "e2e", "node", "idp.mjs"))
	cmd.Env = append(environment(), "ISSUER="+p.url, "RESOURCE="+p.url+"/mcp", "PORT="+port)
	said := &transcript{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = said, said, 5*time.Second
	must(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	eventually(t, "oidc-provider answers", func() bool {
		res, err := http.Get(p.url + "/.well-known/openid-configuration")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func (p *idp) last() string {
	token, _ := p.used.Load().(string)
	return token
}

// active asks the provider itself about a token.
func (p *idp) active(token string) bool {
	if token == "" {
		return false
	}
	r, err := http.NewRequest(http.MethodPost, p.url+"/token/introspection", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", formType)
	r.SetBasicAuth("resource", "resource-secret")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var said struct {
		Active   bool            `json:"active"`
		Audience json.RawMessage `json:"aud"`
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || json.Unmarshal(body, &said) != nil {
		return false
	}
	var one string
	var many []string
	_ = json.Unmarshal(said.Audience, &one)
	_ = json.Unmarshal(said.Audience, &many)
	return said.Active && (one == p.url+"/mcp" || slices.Contains(many, p.url+"/mcp"))
}
