package mcpclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/crm"
	"countersign/internal/egress"
	"countersign/internal/identity"
	"countersign/internal/provider"
	"countersign/internal/provider/mcpclient"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

var client = mcpclient.New("test")

const (
	bearer  = "crm-secret-0123456789abcdef"
	control = "crm-control-token"
)

// world is an upstream of which the truth can be read.
type world struct {
	url      string
	requests atomic.Int64
}

func startCRM(t *testing.T) *world {
	t.Helper()
	w := &world{}
	h := crm.New(crm.Config{BearerToken: bearer, ControlToken: control}).Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.requests.Add(1)
		}
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

func (w *world) conn(t *testing.T, s provider.Settings) *provider.Conn {
	t.Helper()
	if s.Timeout == 0 {
		s.Timeout = 2 * time.Second
	}
	return connTo(t, w.url+"/mcp", bearer, s)
}

// connTo is a connection as the server builds it, for an endpoint that the operator overrode.
func connTo(t testing.TB, url, token string, s provider.Settings) *provider.Conn {
	t.Helper()
	d, err := egress.Operator(url)
	if err != nil {
		t.Fatal(err)
	}
	target := provider.Target{Destination: d}
	if token != "" {
		contract, err := credential.Token("Authorization", "Bearer {secret}")
		if err != nil {
			t.Fatal(err)
		}
		a, err := credential.Bind(contract, map[string]secret.Value{credential.TokenField: secret.New(token)}, d)
		if err != nil {
			t.Fatal(err)
		}
		target.Editor = a
	}
	c := provider.NewConn(identity.OrgID("org_1"), connector.NewKey("sandbox-crm"), s, map[registry.Role]provider.Target{registry.MCP: target})
	t.Cleanup(c.Close)
	return c
}

func (w *world) order(t *testing.T, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+control)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatal(resp.Status, string(out), err)
	}
	return string(out)
}

func (w *world) fault(t *testing.T, tool, mode string) {
	t.Helper()
	w.order(t, http.MethodPost, "/faults", fmt.Sprintf(`{"tool":%q,"mode":%q,"times":1,"seconds":1}`, tool, mode))
}
