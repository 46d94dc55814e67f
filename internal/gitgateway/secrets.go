package gitgateway

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"countersign/internal/leaks"
	"countersign/internal/secret"
)

// secretRule finds one kind of credential by the form its issuer gave it, and names it in words. What these few do not know, the library's
// rules may: docs/adr/0013-git-push.md.
type secretRule struct {
	name  string
	holds []string // one of which is in whatever has the form; looking for them is a hundred times as fast
	form  *regexp.Regexp
}

// secretRules are compiled when the first push is shown: they are a tenth of what a server at rest would hold.
var secretRules = sync.OnceValue(func() []secretRule {
	return []secretRule{
		{"a private key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)},
		{"a GitHub token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, regexp.MustCompile(`\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})`)},
		{"a GitLab token", []string{"glpat-", "glptt-", "glrt-", "glsoat-", "glcbt-", "gldt-"}, regexp.MustCompile(`\bgl(?:pat|ptt|rt|soat|cbt|dt)-[0-9A-Za-z_-]{20,}`)},
		{"an AWS access key", []string{"AKIA", "ASIA", "ABIA", "ACCA"}, regexp.MustCompile(`\b(?:AKIA|ASIA|ABIA|ACCA)[2-7A-Z]{16}\b`)},
		{"a Google API key", []string{"AIza"}, regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
		{"a Google OAuth secret", []string{"GOCSPX-", "ya29."}, regexp.MustCompile(`\bGOCSPX-[0-9A-Za-z_-]{28}|\bya29\.[0-9A-Za-z_-]{20,}`)},
		{"a Slack token", []string{"xox", "hooks.slack.com"}, regexp.MustCompile(`\bxox[abeoprs]-[0-9A-Za-z-]{10,}|https://hooks\.slack\.com/services/[0-9A-Za-z/]{40,}`)},
		{"a Stripe key", []string{"k_live_", "k_test_"}, regexp.MustCompile(`\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}`)},
		{"an Anthropic key", []string{"sk-ant-"}, regexp.MustCompile(`\bsk-ant-[0-9A-Za-z_-]{32,}`)},
		{"an OpenAI key", []string{"sk-"}, regexp.MustCompile(`\bsk-(?:proj-|svcacct-|admin-)?[0-9A-Za-z_-]{32,}`)},
		{"an npm token", []string{"npm_"}, regexp.MustCompile(`\bnpm_[0-9A-Za-z]{36}\b`)},
		{"a PyPI token", []string{"pypi-AgE"}, regexp.MustCompile(`\bpypi-AgE[0-9A-Za-z_-]{50,}`)},
		{"a SendGrid key", []string{"SG."}, regexp.MustCompile(`\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}`)},
		{"a Twilio key", []string{"SK"}, regexp.MustCompile(`\bSK[0-9a-f]{32}\b`)},
		{"a DigitalOcean token", []string{"_v1_"}, regexp.MustCompile(`\bdo[opr]_v1_[0-9a-f]{64}\b`)},
		{"a Shopify token", []string{"shpat_", "shpca_", "shppa_", "shpss_"}, regexp.MustCompile(`\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b`)},
		{"a Hugging Face token", []string{"hf_"}, regexp.MustCompile(`\bhf_[0-9A-Za-z]{34,}`)},
		{"a signed token (JWT)", []string{"eyJ"}, regexp.MustCompile(`\beyJ[0-9A-Za-z_-]{16,}\.eyJ[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}`)},
		{"a password in an address", []string{"://"}, regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://[^/\s:@"'<>{}$]+:[^/\s:@"'<>{}$]{6,}@[0-9A-Za-z.-]+`)},
	}
})

// assigned is a value that somebody called secret. Its form is nobody's, so it must look random too.
var assigned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:api[_-]?key|secret|token|passw(?:or)?d|credential)[a-z0-9_-]{0,20}["']?\s*(?:=|:|:=|=>)\s*["']([0-9A-Za-z+/_.=-]{20,200})["']`)
})

// calledSecret are the words of assigned.
var calledSecret = []string{"key", "secret", "token", "passw", "credential"}

// SecretIn names what a line of a file seems to hold; empty where nothing looks like a secret. The secret itself is never repeated. Path is
// that of the file, empty where there is none; it can talk away a form of the library, and none of those above.
func SecretIn(path, line string, e *leaks.Effort) string {
	for _, r := range secretRules() {
		if holdsOne(line, r.holds) && e.Spend(len(line)) && r.form.MatchString(line) {
			return r.name
		}
	}
	if holdsOne(strings.ToLower(line), calledSecret) && e.Spend(len(line)) {
		if m := assigned().FindStringSubmatch(line); m != nil && random(m[1]) {
			return "a value that is called a secret"
		}
	}
	if form := leaks.In(path, line, e); form != "" {
		return "what has the form of a secret (" + form + ")"
	}
	return ""
}

func holdsOne(line string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) })
}

// random tells drawn characters from words: digits and letters mixed, and close to the most information so many characters can hold.
func random(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsAny(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz") && secret.Entropy(s) > 3.5
}
