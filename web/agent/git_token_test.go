package agent_test

import (
	"strings"
	"testing"

	"countersign/internal/policy"
)

// What an admin reads of the token that was pasted: what it is, what it lacks and what it has too much of.
func TestTheTokenIsJudged(t *testing.T) {
	t.Parallel()
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	g.github.Repository("acme/docs", 43)
	c := g.connection
	c.Settings = map[string]string{"repositories": "acme/site acme/docs"}
	all := []string{"is a fine-grained token", "classic token", "It lacks", "It also has", "It also carries", "It reaches every repository", "scope workflow"}
	for name, tt := range map[string]struct {
		token func()
		said  []string // of all; the rest must not be there
		whole string
	}{
		"as asked for": {func() { g.github.Permit(map[string]string{"contents": "write", "pull_requests": "write"}) }, []string{"is a fine-grained token"}, "offers 11 tools. The credential is a fine-grained token."},
		"reads only": {
			func() { g.github.Permit(map[string]string{"contents": "read", "pull_requests": "read"}) },
			[]string{"is a fine-grained token", "It lacks"},
			"It lacks the permission “Contents: Read and write” for acme/site, acme/docs: agents can fetch there and not push.",
		},
		"no pull requests": {
			func() { g.github.Permit(map[string]string{"contents": "write"}) },
			[]string{"is a fine-grained token", "It lacks"},
			"It lacks the permission “Pull requests: Read”: agents cannot see or open pull requests.",
		},
		"too much": {
			func() {
				g.github.Permit(map[string]string{"contents": "write", "pull_requests": "write", "administration": "write", "secrets": "read"})
			},
			[]string{"is a fine-grained token", "It also has"},
			"It also has permissions for Administration, Secrets, which nothing here needs.",
		},
		"classic": {func() { g.github.Classic("repo") }, []string{"classic token", "It reaches every repository"}, "a fine-grained token can be held to those named here."},
		"classic with everything": {
			func() { g.github.Classic("repo", "workflow", "admin:org", "delete_repo") },
			[]string{"classic token", "It reaches every repository", "It also carries", "scope workflow"},
			"It also carries admin:org, delete_repo, which nothing here needs.",
		},
		"classic without scopes": {
			func() { g.github.Classic() }, []string{"classic token", "It lacks", "It reaches every repository"}, "It lacks the scope repo for acme/site, acme/docs: agents can fetch there and not push.",
		},
	} {
		tt.token()
		before := len(g.github.Pushes())
		found := g.Lines.Probe(t.Context(), c)
		if !found.OK || !strings.Contains(found.Found, tt.whole) {
			t.Errorf("%s: %+v", name, found)
		}
		for _, words := range all {
			wanted := false
			for _, w := range tt.said {
				wanted = wanted || w == words
			}
			if strings.Contains(found.Found, words) != wanted {
				t.Errorf("%s: “%s” is there: %t, in %s", name, words, !wanted, found.Found)
			}
		}
		if len(g.github.Pushes()) != before {
			t.Errorf("%s: judging pushed something", name)
		}
	}
	g.github.Permit(map[string]string{"contents": "write", "pull_requests": "write"})
	g.github.Sicken()
	if found := g.Lines.Probe(t.Context(), c); found.OK || strings.Contains(found.Found+found.What, "lacks") {
		t.Errorf("a failure of GitHub's own is taken for a missing right: %+v", found)
	}
}
