package agentside

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/internal/registry"
)

var update = flag.Bool("update", false, "write what the pinned packages consist of, from the installed copy; read the difference beside that of package-lock.json before you commit it")

const modules = "../../node_modules"

// TestThePins compares each pinned package with the copy that npm installed and checked by the integrity in package-lock.json.
func TestThePins(t *testing.T) {
	t.Parallel()
	for _, p := range pins {
		if p.pack == "" {
			continue
		}
		if *update {
			found, err := closure(modules, p.pack)
			must(t, err)
			var lines []string
			for _, i := range found {
				digest, err := i.digest()
				must(t, err)
				lines = append(lines, fmt.Sprintf("%s %s %s\n", i.Name, i.Version, digest))
			}
			slices.Sort(lines)
			must(t, os.WriteFile("pins/"+p.key+".txt", []byte(strings.Join(slices.Compact(lines), "")), 0o644))
			continue
		}
		if strings.Count(p.bytes, "\n") < 20 {
			t.Errorf("%s is pinned with %d packages", p.key, strings.Count(p.bytes, "\n"))
		}
		script, err := p.check(modules)
		if err != nil {
			t.Errorf("%v (%v)", err, os.Getenv("PWD"))
		}
		if _, err := os.Stat(script); err != nil {
			t.Error(err)
		}
	}
}

// What the server names and what this program holds are the same keys: one that nobody holds would be granted and never there.
func TestEveryRuntimeBesideTheAgentIsPinned(t *testing.T) {
	t.Parallel()
	var named []string
	for _, k := range registry.Trusted().Keys() {
		if e, _ := registry.Trusted().Lookup(k); e.Kind == registry.Stdio {
			named = append(named, string(k))
		}
	}
	held := Pinned()
	slices.Sort(held)
	if !slices.Equal(named, held) {
		t.Errorf("the registry names %v, the pins are %v", named, held)
	}
	if _, err := pinned("structured_questions.v2"); err == nil || !strings.Contains(err.Error(), "does not hold the runtime “structured_questions.v2”") {
		t.Errorf("an unknown key: %v", err)
	}
}

// copied is a folder of packages with a copy of what a pin consists of.
func copied(t *testing.T, p pin) string {
	t.Helper()
	root, err := filepath.Abs(modules)
	must(t, err)
	root, err = filepath.EvalSymlinks(root)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "node_modules")
	found, err := closure(modules, p.pack)
	must(t, err)
	for _, i := range found {
		name, err := filepath.Rel(root, i.dir)
		must(t, err)
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil { // else it came inside another
			must(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(i.dir)))
		}
	}
	return dir
}

// TestWhatWasAlteredIsNotStarted changes one thing at a time, also deep in what the package depends on.
func TestWhatWasAlteredIsNotStarted(t *testing.T) {
	t.Parallel()
	p, err := pinned("sequential_thinking.v1")
	must(t, err)
	dir := copied(t, p)
	if _, err := p.check(dir); err != nil {
		t.Fatalf("an exact copy is refused: %v", err)
	}
	const script = "@modelcontextprotocol/server-sequential-thinking/"
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	change := func(name string, to func(string) string) (undo func()) {
		raw, err := os.ReadFile(at(name))
		must(t, err)
		must(t, os.WriteFile(at(name), []byte(to(string(raw))), 0o644))
		return func() { must(t, os.WriteFile(at(name), raw, 0o644)) }
	}
	add := func(name, text string) (undo func()) {
		must(t, os.MkdirAll(filepath.Dir(at(name)), 0o755))
		must(t, os.WriteFile(at(name), []byte(text), 0o644))
		return func() { must(t, os.RemoveAll(at(name))) }
	}
	const inside = script + "node_modules"
	for name, alter := range map[string]func() func(){
		"a byte of the script":   func() func() { return change(script+"dist/index.js", func(s string) string { return s + "\n" }) },
		"a byte of a dependency": func() func() { return change("chalk/package.json", func(s string) string { return s + " " }) },
		"another version": func() func() {
			return change("chalk/package.json", func(s string) string { return strings.Replace(s, `"version": "`, `"version": "9`, 1) })
		},
		"a file more": func() func() { return add("chalk/index.mjs", "process.exit(1)") },
		"a package in front of ours": func() func() {
			add(inside+"/chalk/package.json", `{"name":"chalk","version":"5.0.0"}`)
			return func() { must(t, os.RemoveAll(at(inside))) }
		},
		"a folder in front of one": func() func() {
			add(inside+"/chalk/index.js", "process.exit(1)")
			return func() { must(t, os.RemoveAll(at(inside))) }
		},
		"a folder for what may be missing": func() func() {
			add("@cfworker/json-schema/index.js", "process.exit(1)")
			return func() { must(t, os.RemoveAll(at("@cfworker"))) }
		},
		"a link": func() func() {
			must(t, os.Symlink("/etc/hosts", at("chalk/hosts")))
			return func() { must(t, os.Remove(at("chalk/hosts"))) }
		},
		"a package less": func() func() {
			must(t, os.Rename(at("yargs"), at("gone")))
			return func() { must(t, os.Rename(at("gone"), at("yargs"))) }
		},
	} {
		undo := alter()
		if _, err := p.check(dir); err == nil || !strings.Contains(err.Error(), "npm ci") {
			t.Errorf("%s: %v", name, err)
		}
		undo()
	}
	if _, err := p.check(dir); err != nil {
		t.Errorf("put back: %v (%v)", err, errors.Unwrap(err))
	}
	if _, err := p.check(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not installed whole") {
		t.Errorf("an empty folder: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
