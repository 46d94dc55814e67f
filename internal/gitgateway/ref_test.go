package gitgateway_test

import (
	"strings"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/gitgateway"
)

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rules, branch string
		allowed       bool
	}{
		{"", "agent/fix-1", true},
		{"", "agent/deep/er", true},
		{"", "agent", false},
		{"", "agents/x", false},
		{"", "main", false},
		{"**", "release/1", true},
		{"**", "main", false}, // the default branch, whatever the rules
		{"**", "MAIN", false},
		{"fix-*, bot/*", "fix-12", true},
		{"fix-*, bot/*", "fix-12/x", false},
		{"fix-*, bot/*", "bot/x", true},
		{"fix-*, bot/*", "bot/x/y", false},
		{"team-*/**", "team-a/b/c", true},
		{"team-*/**", "team-a", false},
		{"release.x", "releasezx", false},
		{"", "agent/../main", false},
		{"", "agent/x.lock", false},
	} {
		rules, err := gitgateway.ParseRules(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		refused := rules.Allows(c.branch, "main")
		if (refused == nil) != c.allowed {
			t.Errorf("%q allows %q: %v", c.rules, c.branch, refused)
		}
		if refused != nil && (refused.Code != fault.OutsideResource || refused.Next == "") {
			t.Errorf("%q: %v", c.branch, refused)
		}
	}
	for _, bad := range []string{"a**b", "-x", "refs//x", "a b\x01", "ä", "/", "**/x"} {
		if rules, err := gitgateway.ParseRules(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, rules)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "ä": "ä", "a\u202eb": "a‹U+202E›b", "a\x1b[2Jb": "a‹U+001B›[2Jb", "\xff": `\xff`, "a\u200bb": "a‹U+200B›b", "tab\tstays": "tab\tstays",
	} {
		if got := gitgateway.Visible(in); got != want {
			t.Errorf("%q: %q, wanted %q", in, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	protection := "error: GH013: Repository rule violations found for refs/heads/agent/x.\n- GITHUB PUSH PROTECTION\n  —— Slack API Token ——\n  commit: 12ab\n  path: config.yml:3\n  https://github.com/o/r/security/secret-scanning/unblock-secret/2abc\n"
	for name, c := range map[string]struct{ reason, remote, code string }{
		"push protection":   {"push declined due to repository rule violations", protection, "secret_scanning"},
		"ruleset":           {"push declined due to repository rule violations", "", "ruleset"},
		"protected":         {"protected branch hook declined", "error: GH006: Protected branch update failed for refs/heads/x.", "protected_branch"},
		"large":             {"pre-receive hook declined", "error: GH001: Large files detected.", "large_file"},
		"workflow":          {"refusing to allow a Personal Access Token to create or update workflow `.github/workflows/x.yml` without `workflow` scope", "", "missing_workflow_scope"},
		"the API's":         {"", `{"message":"Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization."}`, "single_sign_on"},
		"a permission":      {"", `{"message":"Resource not accessible by personal access token","status":"403"}`, "forbidden"},
		"email":             {"push declined due to email privacy restrictions", "error: GH007: Your push would publish a private email address.", "email_privacy"},
		"force":             {"push declined", "error: GH003: Sorry, force-pushing to x is not allowed.", "force_push"},
		"moved":             {"fetch first", "", gitgateway.Stale},
		"lock":              {"cannot lock ref 'refs/heads/x': is at aa but expected bb", "", gitgateway.Stale},
		"single sign-on":    {"", "remote: The `acme' organization has enabled or enforced SAML SSO.", "single_sign_on"},
		"nothing we know":   {"weird\x1b[31m", "", "upstream_error"},
		"token not granted": {"", "Write access to repository not granted.", "forbidden"},
	} {
		got := gitgateway.Explain(c.reason, c.remote)
		if got.Code != c.code || got.What == "" || got.Next == "" || strings.ContainsRune(got.What, '\x1b') {
			t.Errorf("%s: %+v", name, got)
		}
	}
	lines := strings.Join(gitgateway.RemoteLines(protection), "\n")
	if strings.Contains(lines, "unblock-secret") || !strings.Contains(lines, "path: config.yml:3") || !strings.Contains(lines, "Slack API Token") {
		t.Errorf("an agent reads:\n%s", lines)
	}
}

func TestSecretIn(t *testing.T) {
	for line, want := range map[string]string{
		"-----BEGIN " + "OPENSSH PRIVATE KEY-----":                                     "a private key",
		"token: gh" + "p_" + strings.Repeat("a1B2", 9):                                 "a GitHub token",
		`aws = "AK` + `IAQWERTYUIOPASDF2` + `3"`:                                       "an AWS access key",
		"url = postgres://app:hunter2hunter2@db.example.com/x":                         "a password in an address",
		`api_key = "k3J9xQ2mVb7LpR8tYw5Zc1Nd"`:                                         "a value that is called a secret",
		"stripe: whsec_" + "k3J9xQ2mVb7LpR8tYw5Zc1NdK3j9Xq2M":                          "",
		`age = "AGE-SECRET-` + "KEY-1" + strings.Repeat("QPZRY9X8GF", 5) + `QPZRY9X8"`: "what has the form of a secret (age secret key)",
		`api_key = "your-api-key-goes-here-please"`:                                    "",
		"commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904":                              "",
		`integrity = "sha512-` + strings.Repeat("k3J9xQ2mVb7LpR8t", 5) + `=="`:         "",
		"postgres://user:$PASSWORD@host/db":                                            "",
	} {
		if got := gitgateway.SecretIn("src/x.go", line, nil); got != want {
			t.Errorf("%q seems to hold %q, wanted %q", line, got, want)
		}
	}
}
