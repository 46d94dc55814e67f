package crm

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestRunListensWhereItIsTold(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	if err := New(Config{Listen: address}).Run(t.Context(), nil); err == nil {
		t.Error("it ran on an address that is taken")
	}
	_ = ln.Close()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(Config{Listen: address}).Run(ctx, nil) }()
	c := &running{t: t}
	c.eventually("it is healthy", func() bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		status, _, err := send(r)
		return err == nil && status == http.StatusOK
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("a clean stop answered %v", err)
	}
}

func TestTheEdgeSpeaksTheNewestProtocol(t *testing.T) {
	c := start(t)
	for _, tc := range []struct {
		era, method, params string
		status              int
		part                string
	}{
		{eras[0], "server/discover", "{}", 200, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18"]`},
		{eras[0], "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, 404, `-32601`},
		{eras[0], "resources/list", "{}", 200, `"resources":[]`},
		{eras[0], "tools/list", `{"cursor":"2"}`, 400, `-32602`},
		{eras[2], "ping", "{}", 200, `"result":{}`},
		{"2030-01-01", "tools/list", "{}", 400, `-32022`},
	} {
		status, body, err := send(c.request(t.Context(), tc.era, tc.method, tc.params))
		if err != nil || status != tc.status || !strings.Contains(body, tc.part) {
			t.Errorf("%s as %s: %d %s %v", tc.method, tc.era, status, body, err)
		}
	}
}

// A caller behind a proxy on this machine sends the public name; the credential, not the Host header, is what protects the CRM.
func TestAForeignHostIsServed(t *testing.T) {
	c := start(t)
	r := c.request(t.Context(), eras[0], "tools/list", "{}")
	r.Host = "crm.example.com"
	if status, body, err := send(r); err != nil || status != http.StatusOK {
		t.Errorf("%d %s %v", status, body, err)
	}
}
