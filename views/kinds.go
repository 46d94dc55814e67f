package views

import (
	"strings"

	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

var kindWords = map[registry.Kind]string{
	registry.Hosted: "Hosted by the vendor",
	registry.Direct: "Vendor API",
	registry.Remote: "Your own MCP server",
	registry.Stdio:  "Shipped with the agent",
	registry.CLI:    "Vendor command",
	registry.Git:    "Git",
}

// KindWords is a kind as people say it.
func KindWords(k registry.Kind) string { return known(kindWords, k) }

var contractWords = map[manifest.Contract]string{
	manifest.None:             "nothing",
	manifest.Token:            "a key",
	manifest.OAuth2:           "consent in a browser",
	manifest.ServiceAccount:   "a service account",
	manifest.ConnectionString: "a connection string",
	manifest.PAT:              "a personal access token",
}

// ContractWords is what an auth contract asks for: "a key".
func ContractWords(c manifest.Contract) string { return known(contractWords, c) }

// asksFor joins the ways to authenticate: "nothing or a key".
func asksFor(m manifest.Manifest) string {
	words := make([]string, len(m.Auth))
	for i, a := range m.Auth {
		words[i] = ContractWords(a.Contract)
	}
	return strings.Join(words, " or ")
}

var modeWords = map[policy.Mode]string{
	policy.ReadOnly:       "Read only",
	policy.AskUserOnWrite: "Ask before writing",
	policy.Autonomous:     "Act within budget",
}

// ModeWords is a mode as people say it; a connection without one has not been given to agents yet.
func ModeWords(m policy.Mode) string {
	if m == "" {
		return "No mode yet"
	}
	return known(modeWords, m)
}

var modeMeaning = map[policy.Mode]string{
	policy.ReadOnly:       "Agents look things up. They cannot change anything.",
	policy.AskUserOnWrite: "Reads run at once. Anything else waits in the inbox for a person.",
	policy.Autonomous:     "Nobody is asked. Profiles, resources and budgets still apply.",
}

// known says a word of ours, or the value itself: a newer server's value must not read as nothing.
func known[K ~string](words map[K]string, k K) string {
	if w, ok := words[k]; ok {
		return w
	}
	return string(k)
}

// whole joins a sentence with what follows it, each once.
func whole(what, next string) string { return strings.TrimSpace(what + " " + next) }
