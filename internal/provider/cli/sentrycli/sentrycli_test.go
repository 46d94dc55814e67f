package sentrycli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/cli/sentrycli"
	"countersign/internal/provider/cli/sentrycli/sentrytest"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/provider/providertest"
	"countersign/internal/registry"
)

const (
	modules = "../../../../node_modules"
	token   = sentrytest.Token
)

var sentry = sentrycli.New(modules)

func at(t *testing.T, url, key string, s provider.Settings) *provider.Conn {
	t.Helper()
	return directtest.Connect(t, s, map[registry.Role]directtest.At{registry.API: {URL: url, Editor: directtest.Bearer(t, url, key)}})
}

func call(tool, arguments string) provider.Call {
	return provider.Call{Tool: tool, Arguments: json.RawMessage(arguments), Action: "act_1"}
}

const v1 = `{"org":"acme","project":"web","version":"v1"}`

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	m := directtest.Agrees(t, sentry.Provider, catalog.Files(), "sentry-cli.toml")
	if m.Runtime != sentrycli.Key {
		t.Errorf("the catalog's runtime is %s", m.Runtime)
	}
}

// The real command passes the exam of every provider: a write is applied once, whatever becomes of its answer.
func TestTheExam(t *testing.T) {
	s := sentrytest.New(t)
	providertest.Run(t, &providertest.World{
		Provider: sentry,
		Connect:  func(t *testing.T, set provider.Settings) *provider.Conn { return at(t, s.URL, token, set) },
		Dead: func(t *testing.T) *provider.Conn {
			return at(t, directtest.Nowhere(t), token, provider.Settings{Timeout: time.Second})
		},
		Revoked: func(t *testing.T) *provider.Conn { return at(t, s.URL, "another-token", provider.Settings{}) },
		Secret:  token,
		Read:    call("organizations_list", `{}`), Write: call("releases_new", v1), Large: call("issues_list", `{"org":"acme","project":"web"}`),
		Requests:  func() int { return len(s.Requests()) },
		Applied:   func(*testing.T) int { return len(s.Effects("releases_new")) },
		Break:     func(_ *testing.T, tool string, m providertest.Fault) { s.Break(tool, directtest.Mode(m)) },
		Restore:   func(*testing.T) { s.Mend() },
		Faults:    directtest.Faults,
		Truncated: action.OutcomeSucceeded,
	})
}

// Whatever stands in an argument, it stays one value in one place, or nothing runs.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	s := sentrytest.New(t)
	c := at(t, s.URL, token, provider.Settings{})
	for name, value := range map[string]string{
		"a flag": "--help", "a short flag": "-x", "a file": "@/etc/passwd", "a path": "../../etc/passwd", "a line": "v1\n--url=http://198.51.100.7", "a null": "v1\x00",
		"a pair": "v1=--finalize", "a space": " v1", "a shell": "$(id)", "hidden": "v1\u202e", "another script": "ｖ1", "an address": "http://198.51.100.7/", "nothing": "", "long": strings.Repeat("v", 300),
	} {
		arguments, err := json.Marshal(map[string]string{"org": "acme", "project": "web", "version": value})
		if err != nil {
			t.Fatal(err)
		}
		o := sentry.Execute(t.Context(), c, call("releases_new", string(arguments)))
		if o.Kind() != action.OutcomeFailed || o.Code() != fault.InvalidArguments {
			t.Errorf("%s: %s %s %s", name, o.Kind(), o.Code(), o.Sentence())
		}
		asked, _ := json.Marshal(map[string]string{"org": "acme", "project": "web", "query": value})
		if name == "a pair" || name == "a shell" || name == "an address" || name == "another script" || name == "a path" || name == "long" {
			continue // free text may hold them: it is one value of one flag, and no shell reads it
		}
		if _, err := sentry.Read(t.Context(), c, call("issues_list", string(asked))); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s in a search: %v", name, err)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were made: %v", n, s.Requests())
	}
}

func TestALostDeleteIsLookedFor(t *testing.T) {
	t.Parallel()
	s := sentrytest.New(t)
	c := at(t, s.URL, token, provider.Settings{Timeout: 500 * time.Millisecond})
	s.Break("releases_delete", directtest.ApplyThenHang)
	o := sentry.Execute(t.Context(), c, call("releases_delete", v1))
	if o.Kind() != action.OutcomeUncertain || len(s.Effects("releases_delete")) != 1 {
		t.Fatalf("%s %s, %d effects", o.Kind(), o.Sentence(), len(s.Effects("")))
	}
	seen, err := sentry.Reconcile(t.Context(), c, call("releases_delete", v1), o.Evidence())
	if err != nil || seen.Sight != provider.Applied {
		t.Errorf("%+v %v", seen, err)
	}
}

func TestAMissingOrAlteredProgramIsNotStarted(t *testing.T) {
	t.Parallel()
	s := sentrytest.New(t)
	c := at(t, s.URL, token, provider.Settings{})
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	dir := t.TempDir()
	p := sentrycli.New(dir)
	if _, err := p.Tools(t.Context(), c); !fault.Is(err, fault.ConnectionUnavailable) || !strings.Contains(err.Error(), "is not installed") {
		t.Errorf("missing: %v", err)
	}
	program := filepath.Join("@sentry", "cli-linux-"+arch, "bin", "sentry-cli")
	raw, err := os.ReadFile(filepath.Join(modules, program))
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, program)
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(t.Context(), c, call("organizations_list", `{}`)); err != nil {
		t.Errorf("its own bytes: %v", err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(mine, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	asked := len(s.Requests())
	if _, err := p.Test(t.Context(), c); !fault.Is(err, fault.ConnectionUnavailable) || !strings.Contains(err.Error(), "was altered") {
		t.Errorf("altered: %v", err)
	}
	if o := p.Execute(t.Context(), c, call("releases_new", v1)); o.Kind() != action.OutcomeFailed || !strings.Contains(o.Sentence(), "altered") {
		t.Errorf("altered: %s %s", o.Kind(), o.Sentence())
	}
	if len(s.Requests()) != asked {
		t.Error("an altered program was started")
	}
}
