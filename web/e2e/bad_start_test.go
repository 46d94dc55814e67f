package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestABadStart is every way in which a start can be wrong: one sentence with what is wrong and one with the fix, exit code 3, and
// nothing left behind.
func TestABadStart(t *testing.T) {
	sandbox := sharedServer(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	empty, other := sandbox.anotherDatabase(t, "empty"), sandbox.anotherDatabase(t, "other")
	keyset := "COUNTERSIGN_KEYSET_FILE=" + filepath.Join(sandbox.dir, "keyset.json")
	made := operator{[]string{"DATABASE_URL=" + other, keyset}, ownerPassword}.runs(t, "org", "create", "--slug", "harbor", "--name", "Harbor", "--owner-email", "owner@harbor.example", "--password-stdin")
	if made.code != 0 {
		t.Fatalf("org create: %v", made)
	}

	for _, c := range []struct {
		name string
		env  []string
		says []string // each must stand on standard error
	}{
		{"the database does not answer", []string{"DATABASE_URL=postgres://nobody:secret-in-url@127.0.0.1:1/none"}, []string{"database", "DATABASE_URL"}},
		{"the database URL is no URL", []string{"DATABASE_URL=mysql:/:@@"}, []string{"DATABASE_URL"}},
		{"the database wants another password", []string{"DATABASE_URL=" + strings.Replace(empty, "@", "x@", 1)}, []string{"database", "DATABASE_URL"}},
		{"there is no keyset for a production database", []string{"DATABASE_URL=" + empty}, []string{"keyset", "COUNTERSIGN_KEYSET_FILE"}},
		{"the keyset is damaged", []string{"COUNTERSIGN_KEYSET_FILE=" + file("keyset.json", "{}")}, []string{"keyset"}},
		{"the port is occupied", []string{"COUNTERSIGN_LISTEN=" + taken.Addr().String()}, []string{taken.Addr().String(), "COUNTERSIGN_LISTEN"}},
		{"the CRM's port is occupied", []string{"COUNTERSIGN_DEMO=1", "COUNTERSIGN_CRM_LISTEN=" + taken.Addr().String()}, []string{taken.Addr().String(), "COUNTERSIGN_CRM_LISTEN"}},
		{"the address is no address", []string{"COUNTERSIGN_LISTEN=nowhere"}, []string{"COUNTERSIGN_LISTEN"}},
		{"the data directory cannot be written", []string{"COUNTERSIGN_DATA_DIR=/proc/countersign"}, []string{"data directory", "COUNTERSIGN_DATA_DIR"}},
		{"the data directory is a file", []string{"COUNTERSIGN_DATA_DIR=" + file("data", "")}, []string{"data directory", "COUNTERSIGN_DATA_DIR"}},
		{"MCPGODEBUG is set", []string{"MCPGODEBUG=x=1"}, []string{"MCPGODEBUG", "Unset"}},
		{"the endpoints file is missing", []string{"COUNTERSIGN_ENDPOINTS_FILE=/nowhere/endpoints.toml"}, []string{"/nowhere/endpoints.toml", "COUNTERSIGN_ENDPOINTS_FILE"}},
		{"the endpoints file names no runtime of ours", []string{"COUNTERSIGN_ENDPOINTS_FILE=" + file("endpoints.toml", "[endpoints]\n\"no_such.v1\" = \"http://127.0.0.1:1/mcp\"\n")}, []string{"no_such.v1", "endpoints.toml:2"}},
		{"the endpoints file holds a credential", []string{"COUNTERSIGN_ENDPOINTS_FILE=" + file("endpoints.toml", "[endpoints]\n\"deepwiki.v1\" = \"http://user:hunter2@127.0.0.1:1/mcp\"\n")}, []string{"deepwiki.v1"}},
		{"the endpoints file is no TOML", []string{"COUNTERSIGN_ENDPOINTS_FILE=" + file("endpoints.toml", "[endpoints\n")}, []string{"endpoints.toml"}},
		{"the demo on a database with other organizations", []string{"COUNTERSIGN_DEMO=1", "DATABASE_URL=" + other, keyset}, []string{"COUNTERSIGN_DEMO", "“harbor”"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh := prepare(t, t.TempDir(), c.env...)
			r := fresh.operator("").runs(t, "serve")
			if r.code != 3 {
				t.Errorf("want exit 3, got %v", r)
			}
			said := sentences(r.stderr)
			if len(said) != 1 {
				t.Errorf("want one line, got %q", said)
			}
			for _, part := range c.says {
				if !strings.Contains(r.stderr, part) {
					t.Errorf("it does not say %q: %s", part, r.stderr)
				}
			}
			for _, secret := range []string{"secret-in-url", "hunter2", "goroutine "} {
				if strings.Contains(r.stderr+r.stdout, secret) {
					t.Errorf("it says %q: %s", secret, r.stderr)
				}
			}
		})
	}
}

// sentences are the lines of standard error that are no log and no cause.
func sentences(stderr string) (out []string) {
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		if !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "  cause: ") {
			out = append(out, line)
		}
	}
	return out
}
