package static

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// The vendored htmx is the file npm publishes as htmx.org@4.0.1 dist/htmx.min.js, byte for byte.
const htmxSHA256 = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"

func TestHTMXIsThePublishedFile(t *testing.T) {
	sum := sha256.Sum256(byName["htmx.min.js"].body)
	if got := hex.EncodeToString(sum[:]); got != htmxSHA256 {
		t.Fatalf("htmx.min.js has SHA-256 %s, want %s: vendor it again from npm htmx.org@4.0.1", got, htmxSHA256)
	}
}

func get(t *testing.T, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestAHashedNameIsServedForEver(t *testing.T) {
	for name, a := range byName {
		url := URL(name)
		if !regexp.MustCompile(`^/static/[a-z.]+\.[0-9a-f]{16}\.(css|js|svg)$`).MatchString(url) {
			t.Errorf("URL(%q) = %q has not the form /static/name.<hash>.ext", name, url)
		}
		res := get(t, "GET", url)
		if res.StatusCode != 200 || res.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			res.Header.Get("Content-Type") != a.kind || a.kind == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", url, res.StatusCode, res.Header)
		}
		if again := get(t, "GET", url, "If-None-Match", res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its ETag: %d, want 304", url, again.StatusCode)
		}
	}
}

func TestNothingElseExists(t *testing.T) {
	hashed := URL("app.css")
	for _, target := range []string{
		"/static/", "/static/app.css", "/static/css/app.css", "/static/embed.go", hashed + "x", "/static/app.0000000000000000.css",
		"/static/../static/" + strings.TrimPrefix(hashed, Prefix), "/static/%2e%2e/etc/passwd", strings.TrimPrefix(hashed, "/static"),
	} {
		res := get(t, "GET", target)
		if res.StatusCode != http.StatusNotFound || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, Cache-Control %q; want an uncached 404", target, res.StatusCode, res.Header.Get("Cache-Control"))
		}
	}
	if res := get(t, "POST", hashed); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, Allow %q", res.StatusCode, res.Header.Get("Allow"))
	}
}

func TestAnUnknownNamePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("URL of an unknown file did not panic: a typo in a template would go unseen")
		}
	}()
	URL("ap.css")
}

// Our own files must live under a policy without 'unsafe-inline' and 'unsafe-eval', and fetch nothing from elsewhere.
func TestOurFilesNeedNoLooserPolicy(t *testing.T) {
	for name, banned := range map[string]string{
		"app.js":     `\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write|https?://`,
		"app.css":    `@import|https?://|url\(`,
		"tokens.css": `@import|https?://|url\(`,
		"icons.svg":  `<script|<style|style=|javascript:|<foreignObject`,
	} {
		if hit := regexp.MustCompile(banned).Find(byName[name].body); hit != nil {
			t.Errorf("%s holds %q", name, hit)
		}
	}
}
