package manifest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
)

var update = flag.Bool("update", false, "write the sentences of testdata/bad as they are now; read the difference before you commit it")

// Each file of testdata/bad breaks one rule; the .want file beside it holds the sentences a contributor reads.
func TestBadFilesSayWhatIsWrong(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d bad files, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(manifest.KeyOf(f), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			_, err = manifest.Parse(filepath.Base(f), data, registry.Trusted())
			if err == nil {
				t.Fatal("the file passes")
			}
			got := err.Error() + "\n"
			wantFile := strings.TrimSuffix(f, ".toml") + ".want"
			if *update {
				if err := os.WriteFile(wantFile, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(wantFile)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

// A sentence is useless without a place and a next step, and a leak when it repeats the secret it found.
func TestEverySentenceHasFileLineAndNextStep(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.toml")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = manifest.Parse(filepath.Base(f), data, registry.Trusted())
		list, ok := err.(fault.List)
		if !ok {
			t.Fatalf("%s: %T is not a list of faults", f, err)
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, e := range list {
			place, _, _ := strings.Cut(e.What, ": ")
			name, line, ok := strings.Cut(place, ":")
			if !ok || name != filepath.Base(f) || line == "" || strings.Trim(line, "0123456789") != "" || len(line) > len("99999") {
				t.Errorf("%s: no file and line in %q", f, e.What)
			}
			if n := atoi(line); n < 1 || n > lines {
				t.Errorf("%s: line %d of %d", f, n, lines)
			}
			if e.Next == "" || !strings.HasSuffix(e.What, ".") || e.Kind != fault.Invalid {
				t.Errorf("%s: not a fault with a next step: %+v", f, e)
			}
			for _, leak := range []string{"notareal", "7f9c2", "hunter2", "abcdef123"} {
				if strings.Contains(e.Error(), leak) {
					t.Errorf("%s: the fault repeats the secret: %s", f, e.Error())
				}
			}
		}
	}
}

func atoi(s string) (n int) {
	for _, r := range s {
		n = n*10 + int(r-'0')
	}
	return n
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.toml", "testdata/good/*.toml", "../../catalog/*.toml"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("tools.a.look_ups = [{tool = 'b', arguments = {c = [{d = '{e}'}]}}]"))
	f.Add([]byte("[[setup.fields]]\n[setup.fields.x]\n[[a]]\n[a.b]\n[[a.b.c]]"))
	reg := registry.Trusted()
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Parse("minimal.toml", data, reg)
		if err != nil {
			list, ok := err.(fault.List)
			if !ok || len(list) == 0 {
				t.Fatalf("%T is not a list of faults", err)
			}
			return
		}
		// What passed can be used without another look.
		if m.Key != "minimal" || len(m.Auth) == 0 {
			t.Fatalf("passed with key %q and %d contracts", m.Key, len(m.Auth))
		}
		for _, tool := range m.Tools {
			tool.Placeholders()
			tool.DefinitelyNotApplied("x")
			for _, c := range tool.LookUps {
				c.ArgumentsJSON()
			}
		}
		for _, field := range m.Setup.Fields {
			_ = field.Check("x")
		}
		if m.Probe != nil {
			m.Probe.ArgumentsJSON()
		}
		again, err := manifest.Parse("minimal.toml", data, reg)
		if err != nil || len(again.Tools) != len(m.Tools) {
			t.Fatalf("the same bytes are judged twice differently: %v", err)
		}
	})
}
