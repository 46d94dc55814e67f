package manifest_test

import (
	"strings"
	"testing"

	"countersign/internal/manifest"
	"countersign/internal/registry"
)

const entry = `{"name":"io.github.acme/Ledger.Server","title":"Ledger","description":"Reads \"ledgers\"\nand posts entries; see https://evil.example/run.sh","version":"1.2.0",
 "packages":[{"registryType":"npm","identifier":"@acme/ledger-mcp","version":"1.2.0","runtimeHint":"npx","runtimeArguments":[{"value":"--unsafe"}],"environmentVariables":[{"name":"LEDGER_TOKEN","isSecret":true}]}],
 "remotes":[{"type":"streamable-http","url":"https://ledger.example/mcp","headers":[{"name":"X-Ledger","value":"k"}]}]}`

// A draft is words. Nothing that could be run or reached comes with it, and nothing passes the check before a person has decided.
func TestADraftTakesOverNothingExecutable(t *testing.T) {
	for _, in := range []string{entry, `{"server":` + entry + `,"_meta":{}}`} {
		draft, err := manifest.Draft([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		text := string(draft)
		for _, not := range []string{"@acme", "npx", "--unsafe", "LEDGER_TOKEN", "ledger.example", "evil.example", "X-Ledger", "://"} {
			if strings.Contains(text, not) {
				t.Errorf("the draft holds %q:\n%s", not, text)
			}
		}
		for _, want := range []string{`key = "ledger-server"`, `name = "Ledger"`, `summary = "Reads \"ledgers\" and posts entries; see …"`, `kind = "hosted"`, "1 packages and 1 addresses"} {
			if !strings.Contains(text, want) {
				t.Errorf("the draft does not hold %q:\n%s", want, text)
			}
		}
		if _, err := manifest.Parse("ledger-server.toml", draft, registry.Trusted()); err == nil || !strings.Contains(err.Error(), "runtime") {
			t.Errorf("an undecided draft: %v", err)
		}
	}
}

// Once a person has decided, it is a manifest like any other.
func TestADecidedDraftIsAManifest(t *testing.T) {
	draft, err := manifest.Draft([]byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`runtime = ""`, `runtime = "deepwiki.v1"`, `category = ""`, `category = "own"`, `description = ""`, `description = "Agents read ledgers and post entries after a person has approved them."`,
		`why_this_kind = ""`, `why_this_kind = "Its vendor runs an MCP server whose tools can be picked one by one."`).Replace(string(draft)) +
		"\n[[auth]]\ncontract = \"none\"\n\n[tools.read]\neffect = \"read\"\nreviewed = \"2026-12-01\"\nwhy = \"Reads one ledger and changes nothing.\"\n\n[probe]\ntool = \"read\"\n"
	if _, err := manifest.Parse("ledger-server.toml", []byte(text), registry.Trusted()); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestHostileEntriesGiveNoDraftOrAHarmlessOne(t *testing.T) {
	for _, in := range []string{``, `[]`, `{"name":"no-slash"}`, `{"name":"a/b\nkind = \"cli\""}`, `{"name":7}`, strings.Repeat(" ", 300<<10)} {
		if draft, err := manifest.Draft([]byte(in)); err == nil {
			t.Errorf("%.40q gave\n%s", in, draft)
		}
	}
	draft, err := manifest.Draft([]byte(`{"name":"a/9","title":"x\"\nruntime = \"deepwiki.v1\"","description":"\u202eevil\u0000\\","version":"1\n[auth]"}`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(draft), "\nruntime = ") != 1 || strings.Contains(string(draft), "\n[auth]") || strings.ContainsAny(string(draft), "\u202e\x00") {
		t.Errorf("the entry speaks:\n%s", draft)
	}
}
