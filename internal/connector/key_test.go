package connector_test

import (
	"regexp"
	"strings"
	"testing"

	"countersign/internal/connector"
)

// shape is the interface's own: outside checks rely on it.
var shape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}-[a-z2-7]{6}$`)

func TestAGeneratedKeyHasTheShape(t *testing.T) {
	for _, integration := range []string{"a", "sandbox-crm", "exactly-twenty-chars", "cloudflare-observability", "nineteen-and-hyphe-n", strings.Repeat("x", 60)} {
		seen := map[connector.Key]bool{}
		for range 200 {
			k := connector.NewKey(integration)
			if !shape.MatchString(k.String()) || strings.Contains(k.String(), "_") || len(k) > 27 {
				t.Fatalf("%q made %q", integration, k)
			}
			if parsed, err := connector.Parse(k.String()); err != nil || parsed != k {
				t.Fatalf("%q does not parse: %v", k, err)
			}
			seen[k] = true
		}
		if len(seen) < 199 {
			t.Errorf("%q: only %d different keys of 200", integration, len(seen))
		}
	}
}

func TestOnlyKeysParse(t *testing.T) {
	for _, bad := range []string{"", "crm", "crm-abcde", "crm-abcdefg", "Crm-abcdef", "crm-ABCDEF", "crm-abcde1", "-crm-abcdef", "crm_x-abcdef", "crm-abcdef\n", "../crm-abcdef", "a23456789012345678901-abcdef"} {
		if _, err := connector.Parse(bad); err == nil {
			t.Errorf("%q parses", bad)
		}
	}
}
