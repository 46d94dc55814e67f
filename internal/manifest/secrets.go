package manifest

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"

	"countersign/internal/secret"
)

// A published catalog is read by everybody and kept for ever, so a credential pasted into a file is a leak even if nothing uses it.
var (
	vendorSecret = regexp.MustCompile(`\b(?:[spr]k_(?:live|test)_[0-9A-Za-z]{8,}|sk-[0-9A-Za-z_-]{16,}|ctx7sk-[0-9A-Za-z-]{8,}|fc-[0-9a-f]{16,}|gh[opsur]_[0-9A-Za-z]{20,}|github_pat_[0-9A-Za-z_]{20,}|glpat-[0-9A-Za-z_-]{16,}|xox[abeprs]-[0-9A-Za-z-]{10,}|AKIA[0-9A-Z]{12,}|AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{16,}|ph[cx]_[0-9A-Za-z]{16,}|sbp_[0-9a-f]{16,}|rnd_[0-9A-Za-z]{16,}|pat[A-Za-z0-9]{14}\.[0-9a-f]{16,}|eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,})|-----BEGIN [A-Z ]*PRIVATE KEY`)
	bearerSecret = regexp.MustCompile(`(?i)\b(?:bearer|basic|token)[ =:]+([0-9A-Za-z._~+/-]{12,}=*)`)
	longWord     = regexp.MustCompile(`[0-9A-Za-z_+/=-]{32,}`)
	urlSecret    = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^/\s"'<>@]*@|[?&#][0-9a-z_-]*(?:key|token|auth|secret|password|passwd|pwd|sig|signature)=[^&\s"'{]`)
)

const (
	keepOut   = "Remove it and revoke it at the vendor; a credential is typed into the setup form and sealed there."
	keepOutOf = "Remove it; a credential never belongs in a URL. Describe it as a secret setup field instead."
)

// secretLines looks at the file as written, comments included. What it finds is never repeated in the fault.
func (c *check) secretLines(data []byte) {
	for i, line := range bytes.Split(data, []byte("\n")) {
		c.secretIn(string(line), i+1)
	}
}

func (c *check) secretIn(text string, line int) {
	if (strings.Contains(text, "://") || strings.ContainsAny(text, "?&#")) && urlSecret.MatchString(text) {
		c.row(line, "", "The line holds an address with a credential in it.", keepOutOf)
	}
	if looksSecret(text) {
		c.row(line, "", "The line holds something that looks like a real credential.", keepOut)
	}
}

func looksSecret(text string) bool {
	// Every server reads its whole catalog when it starts, and almost no line has a word that is long enough for any of the patterns.
	longest := longestWord(text)
	if longest < shortestSecret && !strings.Contains(text, "PRIVATE KEY") {
		return false
	}
	if vendorSecret.MatchString(text) {
		return true
	}
	for _, m := range bearerSecret.FindAllStringSubmatch(text, -1) {
		if strings.ContainsFunc(m[1], unicode.IsDigit) {
			return true
		}
	}
	if longest < 32 {
		return false
	}
	for _, word := range longWord.FindAllString(text, -1) {
		if strings.ContainsFunc(word, unicode.IsDigit) && strings.ContainsFunc(word, unicode.IsLetter) && secret.Entropy(word) > 3 {
			return true
		}
	}
	return false
}

// shortestSecret is the length of the shortest word that a pattern above can match: what follows "Bearer ".
const shortestSecret = 12

// longestWord is the length of the longest run of characters that any pattern above takes for part of a credential.
func longestWord(text string) (longest int) {
	run := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', strings.IndexByte("_.~+/=-", c) >= 0:
			run++
			longest = max(longest, run)
		default:
			run = 0
		}
	}
	return longest
}
