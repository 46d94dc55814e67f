package session

import (
	"strings"
	"testing"
)

func TestOwnPath(t *testing.T) {
	for _, own := range []string{"/", "/people", "/audit?actor=x&from=2026-11-30", "/releases/sha256:00", "/a%20b", "/actions/act_x?tab=closed"} {
		if got := OwnPath(own); got != own {
			t.Errorf("%q became %q", own, got)
		}
	}
	for _, other := range []string{
		"", "people", "//evil.test", "///evil.test", "/\\evil.test", "\\/evil.test", "/\tx", "/x\ny", "/x y", "/é", "https://evil.test", "javascript:alert(1)",
		"/%2f%2fevil.test/..//", "/%5cevil.test", "/sign-in?to=/x", "/sign-out", "/x#y", "/%zz", "/" + strings.Repeat("x", 2000), " /x",
	} {
		if got := OwnPath(other); got != "/" && got != "/%2f%2fevil.test/..//" {
			t.Errorf("%q led to %q", other, got)
		}
	}
}

// FuzzOwnPath looks for an address that a browser would take for another host.
func FuzzOwnPath(f *testing.F) {
	for _, s := range []string{"//x", "/\\x", "/x", "/\t/x", "/%2f/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, to string) {
		got := OwnPath(to)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t\x00 ") {
			t.Fatalf("%q led to %q", to, got)
		}
	})
}

func TestWellFormedValues(t *testing.T) {
	if v := newValue(); !wellFormed(v) || v == newValue() {
		t.Fatalf("a value of ours: %q", v)
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 44), strings.Repeat("x", 42) + "'", strings.Repeat("x", 42) + "é"} {
		if wellFormed(bad) {
			t.Errorf("%q was taken", bad)
		}
	}
}
