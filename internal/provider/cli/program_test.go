package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"countersign/internal/fault"
)

const (
	marked = "the bytes that were read and pinned"
	others = "the bytes that somebody put there!!"
)

// put writes a file and answers the pin of what it holds.
func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// holds is what a loaded program would run.
func holds(t *testing.T, l *loaded) string {
	t.Helper()
	raw, err := io.ReadAll(io.NewSectionReader(l.file, 0, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Who can write to the folder of installed commands can have nothing run but what was pinned, whenever they write and whatever they link.
func TestOnlyPinnedBytesAreRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "toy", "toy")
	digest := put(t, path, marked)
	p := &programs{at: dir, pin: Program{Native: map[string]Bytes{runtime.GOARCH: {File: "toy/toy", SHA256: digest}}}}
	first, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.load(); err != nil || again != first {
		t.Errorf("an untouched program was loaded again: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}

	// Other bytes of the same length, in the same file, with its time set back: only the kernel's own time tells.
	put(t, path, others)
	if err := os.Chtimes(path, time.Now(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(); !fault.Is(err, fault.ConnectionUnavailable) || !strings.Contains(err.Error(), "was altered") {
		t.Errorf("altered and set back: %v", err)
	}
	if got := holds(t, first); got != marked {
		t.Errorf("a run under way would read %q", got)
	}
	if _, err := first.file.WriteAt([]byte("x"), 0); err == nil {
		t.Error("what was compared can be written to")
	}

	// A link to other bytes is other bytes; a link to the pinned ones runs those, and them alone.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(dir, "elsewhere")
	put(t, elsewhere, others)
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "was altered") {
		t.Errorf("a link to other bytes: %v", err)
	}
}

// toy lays out a package with one that it depends on, and answers what they are pinned as.
func toy(t *testing.T) (dir string, s *Script) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "node_modules")
	put(t, filepath.Join(dir, "toy", "package.json"), `{"name":"toy","version":"1.0.0","dependencies":{"part":"1"}}`)
	put(t, filepath.Join(dir, "toy", "cli.js"), marked)
	put(t, filepath.Join(dir, "part", "package.json"), `{"name":"part","version":"1.0.0"}`)
	put(t, filepath.Join(dir, "part", "index.js"), marked)
	s = &Script{Package: "toy", Entry: "cli.js"}
	pins, err := Pinned(dir, *s)
	if err != nil {
		t.Fatal(err)
	}
	s.Pins = pins
	return dir, s
}

// The same for a package: a file of it or of what it depends on that is another, more or a link is a refusal.
func TestOnlyAPinnedPackageIsRun(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(t *testing.T, dir string){
		"a script":      func(t *testing.T, dir string) { put(t, filepath.Join(dir, "toy", "cli.js"), others) },
		"a dependency":  func(t *testing.T, dir string) { put(t, filepath.Join(dir, "part", "index.js"), others) },
		"one file more": func(t *testing.T, dir string) { put(t, filepath.Join(dir, "part", "index.json"), "{}") },
		"a package more": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "toy", "node_modules", "part", "package.json"), `{"name":"part","version":"1.0.0"}`)
		},
		"a file that is a link": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "toy", "cli.js")
			if err := os.Rename(path, dir+"-aside"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(dir+"-aside", path); err != nil {
				t.Fatal(err)
			}
		},
		"a folder that is a link": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "part")
			if err := os.Rename(path, dir+"-aside"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(dir+"-aside", path); err != nil {
				t.Fatal(err)
			}
		},
		"a dependency that is gone": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "part")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, s := toy(t)
			p := &programs{at: dir, pin: Program{Script: s}}
			t.Cleanup(p.close)
			if _, err := p.load(); err != nil {
				t.Fatal(err)
			}
			alter(t, dir)
			if l, err := p.load(); !fault.Is(err, fault.ConnectionUnavailable) {
				t.Errorf("%+v %v", l, err)
			}
		})
	}
}

// What runs is the private copy; when somebody has touched that, it is made anew from what is compared again.
func TestAPrivateCopyThatWasTouchedIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(entry string) error{
		"altered":   func(entry string) error { return os.WriteFile(entry, []byte(others), 0o644) },
		"tidied up": func(entry string) error { return os.RemoveAll(filepath.Dir(entry)) },
		"added to": func(entry string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(entry), "package.json.js"), []byte(others), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, s := toy(t)
			p := &programs{at: dir, pin: Program{Script: s}}
			t.Cleanup(p.close)
			first, err := p.load()
			if err != nil {
				t.Fatal(err)
			}
			entry := first.args[1]
			if err := os.Chmod(entry, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := touch(entry); err != nil {
				t.Fatal(err)
			}
			again, err := p.load()
			if err != nil {
				t.Fatal(err)
			}
			if raw, err := os.ReadFile(again.args[1]); err != nil || string(raw) != marked || again == first {
				t.Errorf("it would run %q, %v", raw, err)
			}
		})
	}
}
