// Package web owns the HTTP face: which routes exist and who may use each (routes.go), the fences every request passes before a
// handler sees it (fences.go, guard.go), and the one server they make. It never reads a form, decides about an action, or touches SQL:
// pages do that in web/admin, agents and programs in web/agent.
package web

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/internal/fault"
	"countersign/web/admin"
	"countersign/web/session"
)

// Config is what the server needs besides its pages.
type Config struct {
	PublicURL string                          // origin people use, e.g. "https://countersign.example.com"
	Listen    string                          // address the server listens on, "127.0.0.1:8080"
	Sessions  *session.Keeper                 // who a browser is signed in as
	Chrome    admin.Chrome                    // what stands around every page
	Ready     func(ctx context.Context) error // nil means: can do its work now
	Metrics   *prometheus.Registry            // also where the server counts its own requests
}

// names is the set of Host values the server answers to. A page of another name that resolves to us (DNS rebinding) gets nothing.
type names map[string]bool

// allowedNames are the public address, the listen address, and loopback names on the listen port where that is local: operators and
// scrapers use those.
func allowedNames(public *url.URL, listen string) names {
	n := names{strings.ToLower(public.Host): true}
	if p := defaultPort(public.Scheme); p != "" && public.Port() == "" {
		n[strings.ToLower(public.Hostname())+":"+p] = true
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return n
	}
	ip := net.ParseIP(host)
	if host != "" && (ip == nil || !ip.IsUnspecified()) {
		n[strings.ToLower(listen)] = true
	}
	if host == "" || host == "localhost" || (ip != nil && (ip.IsUnspecified() || ip.IsLoopback())) {
		for _, local := range []string{"localhost", "127.0.0.1", "[::1]"} {
			n[local+":"+port] = true
		}
	}
	return n
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// publicURL accepts an origin and nothing else.
func publicURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, fault.CodeInvalid, "COUNTERSIGN_PUBLIC_URL is not an origin: “"+s+"”.", "Write it as https://host, without a path and without a slash at its end.")
	}
	return u, nil
}

// crossOrigin refuses what a browser sends from another site, by Sec-Fetch-Site or Origin. The public origin is always ours, also
// where a proxy in front changed the Host.
func crossOrigin(public *url.URL) (*http.CrossOriginProtection, error) {
	p := http.NewCrossOriginProtection()
	return p, p.AddTrustedOrigin(public.Scheme + "://" + public.Host)
}
