package catalog_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// toy is what somebody writes who follows one row of the decision guide: for each thing the row says to touch, the text that goes there.
type toy struct {
	key, kind, runtime string
	pieces             map[string]string
}

const (
	aFile   = "one file here"
	anEntry = "one entry in `internal/registry/table.go`"
	aFolder = "one folder of code below `internal/provider/direct`"
	aCage   = "one folder of grammar and pin below `internal/provider/cli`"
	aLine   = "one line in `cmd/countersign/direct.go`"
	aPin    = "one pin in `internal/agentside/pins.go`"
	aForm   = "a form in the product"
)

// toys are one for each row, in the order of the guide.
var toys = []toy{
	{"toy-hosted", "hosted", "toy_hosted.v1", map[string]string{
		aFile: "hosted.toml", anEntry: `Entry{Key: "toy_hosted.v1", Kind: Hosted, Endpoints: mcp("https://mcp.toy.example/mcp"), Credentials: bearer},`,
	}},
	{"toy-consent", "hosted", "toy_consent.v1", map[string]string{
		aFile: "consent.toml", anEntry: `Entry{Key: "toy_consent.v1", Kind: Hosted, Endpoints: mcp("https://consent.toy.example/mcp"), OAuth: true},`,
	}},
	{"toy-direct", "direct", "toy_direct.v1", map[string]string{
		aFile: "direct.toml", anEntry: `Entry{Key: "toy_direct.v1", Kind: Direct, Endpoints: map[Role]Endpoint{API: {URL: "https://api.toy.example"}}, Credentials: bearer},`,
		aFolder: "direct.go.txt", aLine: `toydirect.Key: toydirect.New(),`,
	}},
	{"custom-mcp", "remote", "", map[string]string{aForm: ""}},
	{"toy-beside", "stdio", "toy_beside.v1", map[string]string{
		aFile: "stdio.toml", anEntry: `Entry{Key: "toy_beside.v1", Kind: Stdio},`, aPin: `{key: "toy_beside.v1", name: "toy-beside", part: "toy"},`,
	}},
	{"toy-command", "cli", "toy_command.v1", map[string]string{
		aFile: "cli.toml", aCage: "cli.go.txt", aLine: `toycommand.Key: toycommand.New(commands),`,
		anEntry: `Entry{Key: "toy_command.v1", Kind: CLI, Endpoints: map[Role]Endpoint{API: {URL: "https://toy.example"}}, Credentials: bearer, Invocations: invocations("tickets_list", "tickets_close")},`,
	}},
	{"toy-git", "git", "toy_git.v1", map[string]string{
		aFile: "git.toml", anEntry: `Entry{Key: "toy_git.v1", Kind: Git, Endpoints: map[Role]Endpoint{GitHTTP: {URL: "https://git.toy.example"}, API: {URL: "https://api.git.toy.example"}}, Credentials: []CredentialHeader{{Header: "Authorization", Format: "Basic x-access-token:{secret}"}}},`,
	}},
}

// guide is each row's kind, and what it says to touch.
func guide(t *testing.T) (kinds []string, touches [][]string) {
	t.Helper()
	_, section, _ := strings.Cut(readme(t), "## Which kind fits")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z]+)`[^|]* \\| ([^|]+) \\|$").FindAllStringSubmatch(section, -1)[1:] { // the first is the heads
		kinds, touches = append(kinds, row[1]), append(touches, strings.Split(row[2], ", "))
	}
	return kinds, touches
}

// The guide is followed, row by row, in a copy of the tree: what it says to touch is touched and nothing else, and what comes of it is one
// integration more of each kind, with code that answers. A row that says too little makes no integration; one that says too much names a
// thing that this test knows nothing of.
func TestTheDecisionGuideIsTrue(t *testing.T) {
	t.Parallel()
	kinds, touches := guide(t)
	if len(kinds) != len(toys) {
		t.Fatalf("the guide has %d rows, %v", len(kinds), kinds)
	}
	c := copied(t)
	for n, toy := range toys {
		if toy.kind != kinds[n] {
			t.Errorf("row %d is about %s and not about %s", n+1, kinds[n], toy.kind)
		}
		for _, what := range touches[n] {
			text, known := toy.pieces[what]
			if !known {
				t.Errorf("the row of %s says to touch %q", toy.key, what)
				continue
			}
			c.touch(t, toy, what, text)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	c.judged(t)
}

// tree is a copy of the tree.
type tree struct {
	dir    string
	digest string // of the toy's program
}

func copied(t *testing.T) tree {
	t.Helper()
	c := tree{dir: t.TempDir()}
	for _, name := range []string{"go.mod", "go.sum", "cmd/countersign/direct.go"} {
		c.write(t, name, read(t, "../"+name))
	}
	for _, name := range []string{"catalog", "internal"} {
		if err := os.CopyFS(filepath.Join(c.dir, name), os.DirFS("../"+name)); err != nil {
			t.Fatal(err)
		}
	}
	program := sha256.Sum256([]byte("toy"))
	c.digest = hex.EncodeToString(program[:])
	c.write(t, "commands/toy", "toy")
	return c
}

func (c tree) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// into writes a line behind another one of a file.
func (c tree) into(t *testing.T, name, behind, line string) {
	t.Helper()
	text := read(t, filepath.Join(c.dir, name))
	if strings.Count(text, behind) != 1 {
		t.Fatalf("%s has no one %q", name, behind)
	}
	c.write(t, name, strings.Replace(text, behind, behind+"\n"+line+"\n", 1))
}

func (c tree) touch(t *testing.T, toy toy, what, text string) {
	t.Helper()
	name := strings.ReplaceAll(toy.key, "-", "")
	folder := map[string]string{aFolder: "internal/provider/direct/", aCage: "internal/provider/cli/"}[what]
	switch what {
	case aFile:
		c.write(t, "catalog/"+toy.key+".toml", read(t, "testdata/guide/"+text))
	case anEntry:
		c.into(t, "internal/registry/table.go", "return tableOf(", text)
	case aFolder, aCage:
		c.write(t, folder+name+"/"+name+".go", strings.ReplaceAll(read(t, "testdata/guide/"+text), "{digest}", c.digest))
	case aLine: // with its import, as an editor adds it
		c.into(t, "cmd/countersign/direct.go", "return map[registry.Key]provider.Provider{", text)
		c.into(t, "cmd/countersign/direct.go", "import (", `"countersign/internal/provider/`+map[string]string{"direct": "direct/", "cli": "cli/"}[toy.kind]+name+`"`)
	case aPin:
		c.into(t, "internal/agentside/pins.go", "var pins = []pin{", text)
	}
}

// judged has the copy say what it makes of itself.
func (c tree) judged(t *testing.T) {
	t.Helper()
	c.write(t, "cmd/guide/main.go", read(t, "testdata/guide/judge.go.txt"))
	c.write(t, "cmd/guide/direct.go", read(t, filepath.Join(c.dir, "cmd/countersign/direct.go")))
	cmd := exec.CommandContext(t.Context(), "go", "run", "-trimpath", "./cmd/guide", filepath.Join(c.dir, "commands"))
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = c.dir, &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var told struct {
		Refused, Typed string
		Kinds, Unable  map[string]string
		Tools          map[string][]string
		Beside         []string
	}
	if err := json.Unmarshal(out, &told); err != nil || told.Refused != "" {
		t.Fatalf("%v %s", err, told.Refused)
	}
	for _, toy := range toys {
		if told.Kinds[toy.key] != toy.kind {
			t.Errorf("%s is “%s” in the catalog", toy.key, told.Kinds[toy.key])
		}
		if offered := told.Tools[toy.runtime]; (toy.kind == "direct" || toy.kind == "cli") && !slices.Equal(offered, []string{"tickets_list", "tickets_close"}) {
			t.Errorf("the code of %s offers %v: %s", toy.key, offered, told.Unable[toy.runtime])
		}
	}
	if !slices.Contains(told.Beside, "toy_beside.v1") || told.Typed != "https://mcp.toy.example/mcp" {
		t.Errorf("beside the agent start %v; a typed address leads to %s", told.Beside, told.Typed)
	}
}
