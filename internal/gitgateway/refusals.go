package gitgateway

import (
	"regexp"
	"strings"
)

// Refusal is why a server did not take a push, in words of ours.
type Refusal struct {
	Code string // protected_branch, ruleset, …; upstream_error where the server's words are not known
	What string
	Next string
}

// known are GitHub's refusals by what its own words hold, the most precise first: push protection arrives inside a ruleset's refusal.
var known = []struct {
	words string
	Refusal
}{
	{"GITHUB PUSH PROTECTION", Refusal{"secret_scanning", "GitHub found a secret in the commits and refused them.", "Take the secret out of every commit of the branch, and have it revoked where it is valid."}},
	{"GH001: Large files detected", Refusal{"large_file", "GitHub refused a file of more than 100 MB.", "Take the file out of every commit of the branch."}},
	{"GH003", Refusal{"force_push", "GitHub refused to rewrite the branch.", "Push to another branch."}},
	{"GH006: Protected branch update failed", Refusal{"protected_branch", "The branch is protected on GitHub and does not take this push.", "Push to another branch and open a pull request."}},
	{"GH007", Refusal{"email_privacy", "GitHub refused to publish a private email address that is in a commit.", "Commit again with an address that may be public, such as …@users.noreply.github.com."}},
	{"without `workflow` scope", Refusal{"missing_workflow_scope", "The token of the connection may not change workflow files.", "Leave .github/workflows/ as it is, or ask an admin for a token that may."}},
	{"GH013: Repository rule violations found", Refusal{"ruleset", "A ruleset of the repository does not allow this push.", "Read which rule it is above, and push what it allows."}},
	{"organization SAML enforcement", Refusal{"single_sign_on", "The token of the connection is not authorized for the organization's single sign-on.", "Ask an admin to authorize the token for the organization on GitHub."}},
	{"SAML SSO", Refusal{"single_sign_on", "The token of the connection is not authorized for the organization's single sign-on.", "Ask an admin to authorize the token for the organization on GitHub."}},
	{"Resource not accessible by personal access token", Refusal{"forbidden", "The token of the connection lacks a permission that GitHub asks for here.", "Ask an admin whether the token can be given it; without it, go on in another way."}},
	{"Write access to repository not granted", Refusal{"forbidden", "The token of the connection may not write to this repository.", "Ask an admin for a token with “Contents: Read and write” for it."}},
	{"Permission to", Refusal{"forbidden", "The token of the connection may not push to this repository.", "Ask an admin for a token with “Contents: Read and write” for it."}},
	{"Repository not found", Refusal{"not_found_or_no_access", "GitHub does not show this repository to the token of the connection.", "Ask an admin whether the token covers the repository."}},
	{"Bad credentials", Refusal{"unauthenticated", "GitHub does not accept the token of the connection.", "Ask an admin to enter a new one on the connection's page."}},
	{"Authentication failed", Refusal{"unauthenticated", "GitHub does not accept the token of the connection.", "Ask an admin to enter a new one on the connection's page."}},
	{"Invalid username or ", Refusal{"unauthenticated", "GitHub does not accept the token of the connection.", "Ask an admin to enter a new one on the connection's page."}},
}

// moved are git's own short reasons for a branch that is not where the push expected it.
var moved = []string{"fetch first", "non-fast-forward", "stale info", "cannot lock ref", "failed to update ref", "reference already exists", "incorrect old value provided", "failed to lock"}

// Stale is the code of a push whose branch has moved since it was asked for.
const Stale = "stale"

// Explain says why a push was refused: by the short reason of its status line, and by what the server said to git's user.
func Explain(reason, remote string) Refusal {
	for _, k := range known {
		if strings.Contains(remote, k.words) || strings.Contains(reason, k.words) {
			return k.Refusal
		}
	}
	for _, m := range moved {
		if strings.Contains(reason, m) {
			return Refusal{Stale, "The branch has moved on GitHub since this push was made; nothing was overwritten.", "Fetch, rebase or merge, and push again."}
		}
	}
	switch {
	case strings.Contains(reason, "protected branch hook declined"):
		return Explain("GH006: Protected branch update failed", "")
	case strings.Contains(reason, "repository rule violations"):
		return Explain("GH013: Repository rule violations found", "")
	}
	return Refusal{"upstream_error", "GitHub refused the push (" + Clip(oneLine(reason), 200) + ").", "Read what it says, and push what it allows."}
}

// address is one that GitHub offers to the person whose secret it is, to let the secret through all the same; an agent must not follow it.
var address = regexp.MustCompile(`\S*/security/secret-scanning/\S*`)

// RemoteLines are a server's words as an agent may read them: its lines in order, neutralised, without the way around its refusal.
func RemoteLines(remote string) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(remote, "\r", "\n")) {
		if line = strings.TrimSpace(address.ReplaceAllString(line, "(an address that only people may follow)")); line != "" {
			out = append(out, Clip(Visible(line), 500))
		}
		if len(out) == 60 {
			break
		}
	}
	return out
}
