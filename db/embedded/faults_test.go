package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAMissingOrForeignSecretIsSaidInASentence(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	stop(t, c)
	secret := filepath.Join(c.Directory(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), cfg)
	wantFault(t, err, "does not open the database beside it")
	if err := os.WriteFile(secret, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), cfg)
	wantFault(t, err, "does not hold the database secret")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), cfg)
	wantFault(t, err, "is missing", "backup")
}

func TestADataDirectoryThatIsAFileIsSaidInASentence(t *testing.T) {
	cfg := config(t)
	if err := os.WriteFile(cfg.DataDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), cfg)
	wantFault(t, err, "cannot be written (not a directory)", "COUNTERSIGN_DATA_DIR")
}

func TestANamedFolderWithoutPostgreSQLIsNotPassedOver(t *testing.T) {
	cfg := config(t)
	t.Setenv("PG_BIN_DIR", t.TempDir())
	_, err := Start(t.Context(), cfg)
	wantFault(t, err, "PG_BIN_DIR is", "unset it")
}

func TestAClusterOfAnotherMajorIsNotTouched(t *testing.T) {
	cfg := config(t)
	c := mustStart(t, cfg)
	stop(t, c)
	if err := os.WriteFile(filepath.Join(c.Directory(), "cluster", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), cfg)
	wantFault(t, err, "was made by PostgreSQL 9", "Install PostgreSQL 9")
}

func TestTheRecordedMajorIsPreferredToTheSearchOrder(t *testing.T) {
	found := []binaries{{dir: "/a", major: "18"}, {dir: "/b", major: "15"}}
	for major, want := range map[string]string{"": "/a", "18": "/a", "15": "/b"} {
		if got, err := pick(found, major, nil); err != nil || got.dir != want {
			t.Errorf("major %q: got %q, %v; want %q", major, got.dir, err, want)
		}
	}
	_, err := pick(nil, "", []string{"/x/bin: it does not run"})
	wantFault(t, err, "/x/bin: it does not run", "npm ci")
	_, err = pick(nil, "", nil)
	wantFault(t, err, "No PostgreSQL was found")
}

func TestAStartGivenUpLeavesTheDirectoryFree(t *testing.T) {
	cfg := config(t)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond) // in the middle of initdb
	defer cancel()
	if _, err := Start(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's own error", err)
	}
	c := mustStart(t, cfg)
	if got := ask[int](t, c.DSN(Database), "SELECT 1"); got != 1 {
		t.Error("no answer")
	}
}

func TestParseVersion(t *testing.T) {
	for out, want := range map[string][2]string{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": {"15.18", "15"},
		"postgres (PostgreSQL) 18.4\n":                           {"18.4", "18"},
		"postgres (PostgreSQL) 19beta2\n":                        {"19beta2", "19"},
		"postgres (PostgreSQL) \n":                               {"", ""},
		"something else":                                         {"", ""},
	} {
		version, major, ok := parseVersion(out)
		if version != want[0] || major != want[1] || ok != (want[1] != "") {
			t.Errorf("%q: %q, %q, %v", out, version, major, ok)
		}
	}
}

func TestLinksAreRestoredInsideThePackageOnly(t *testing.T) {
	root := t.TempDir()
	bin := filepath.Join(root, "native", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(list string) {
		if err := os.WriteFile(filepath.Join(root, "native", "pg-symlinks.json"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"source":"native/lib.so.1","target":"native/bin/lib.so"}]`)
	for range 2 {
		if err := restoreLinks(bin); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.Readlink(filepath.Join(bin, "lib.so")); err != nil || got != "../lib.so.1" {
		t.Errorf("link is %q, %v", got, err)
	}
	write(`[{"source":"native/lib.so.1","target":"../outside"}]`)
	if err := restoreLinks(bin); err == nil {
		t.Error("a link outside the package was made")
	}
	write(`{`)
	if err := restoreLinks(bin); err == nil {
		t.Error("a damaged list was taken")
	}
	if err := restoreLinks(t.TempDir()); err != nil {
		t.Errorf("a folder without a list needs nothing: %v", err)
	}
}

func TestServerLogKeepsTheLastComplaintAndBoundsALine(t *testing.T) {
	stops := false
	s := &serverLog{log: quiet, stops: func() bool { return stops }}
	for _, piece := range []string{"LOG:  fine\nFATAL:  the da", "tabase system is starting up\nFATAL:  no space left on device\nLOG:  bye\n"} {
		if n, err := s.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := s.lastComplaint(); got != "no space left on device" {
		t.Errorf("complaint is %q", got)
	}
	const ended = "FATAL:  terminating connection due to administrator command\n"
	for _, stops = range []bool{true, false} { // of our own, and of somebody else
		_, _ = s.Write([]byte(ended))
		if got := strings.Contains(ended, s.lastComplaint()); got == stops {
			t.Errorf("while it stops by our will is %t, the end of a connection is the complaint: %t", stops, got)
		}
	}
	for range 10 {
		_, _ = s.Write([]byte(strings.Repeat("x", longestLine/2)))
	}
	if len(s.partial) > longestLine {
		t.Errorf("an endless line is kept whole: %d bytes", len(s.partial))
	}
}

func TestAccessPrintsWithoutItsPasswords(t *testing.T) {
	a := Access{SocketDir: "/run/x", SuperPassword: "hidden-1", OwnerPassword: "hidden-2"}
	for _, text := range []string{a.String(), a.GoString(), a.LogValue().String()} {
		if strings.Contains(text, "hidden") || !strings.Contains(text, "/run/x") {
			t.Errorf("prints %q", text)
		}
	}
}
