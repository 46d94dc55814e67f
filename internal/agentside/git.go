package agentside

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// gitSetting is one line of git's configuration.
type gitSetting struct{ key, value string }

// gitSettings let unmodified git reach the granted repositories by their ordinary remotes, and nothing else differ. The helper is a shell
// line that names this program and the place; the token is on it no more than in the environment.
func gitSettings(c Config, self string, p *Place) []gitSetting {
	if len(c.Git) == 0 {
		return nil
	}
	origin, _ := originOf(c.MCP.URL, true) // Config has judged it
	out := []gitSetting{
		{"include.path", filepath.Join(p.Dir, siblingsFile)},
		{"credential." + origin + ".helper", ""}, // forgets helpers that would keep the token on a disk
		{"credential." + origin + ".helper", "!" + quoted(self) + " credential --place " + quoted(p.Dir)},
	}
	for _, r := range c.Git {
		for _, written := range spellings(r.InsteadOf) {
			out = append(out, gitSetting{"url." + r.URL + ".insteadOf", written})
		}
	}
	return out
}

// spellings are how people write one remote: its https address, and the two forms of its ssh address, which would go past the gateway with a
// key of this machine. Submodules are often written so.
func spellings(https string) []string {
	host, path, ok := strings.Cut(strings.TrimPrefix(https, "https://"), "/")
	if !ok {
		return []string{https}
	}
	return []string{https, "git@" + host + ":" + path, "ssh://git@" + host + "/" + path}
}

// siblingsFile holds what keeps other repositories where they are.
const siblingsFile = "siblings.gitconfig"

// nameLetters are what a repository's name consists of.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// siblings is git's configuration for repositories whose names begin like a granted one's. Git replaces the longest beginning that matches,
// so that without these lines a grant of acme/site would take acme/site-two to the gateway as well, where it is refused. Each way in which a
// name can go on differently leads back to itself; with .git behind it, the granted one's own does not.
func siblings(c Config) string {
	var b strings.Builder
	for _, r := range c.Git {
		for _, written := range spellings(r.InsteadOf) {
			besideOf(&b, r.URL, written)
		}
	}
	return b.String()
}

func besideOf(b *strings.Builder, url, written string) {
	whole := written + ".git"
	fmt.Fprintf(b, "[url \"%s\"]\n\tinsteadOf = %s\n", url, whole)
	for n := len(written); n <= len(whole); n++ {
		for _, letter := range nameLetters {
			if other := whole[:n] + string(letter); !strings.HasPrefix(whole, other) {
				fmt.Fprintf(b, "[url \"%s\"]\n\tinsteadOf = %s\n", other, other)
			}
		}
	}
}

// gitEnvironment adds settings to those the environment has already.
func gitEnvironment(env []string, settings []gitSetting) []string {
	n := 0
	kept := make([]string, 0, len(env)+2*len(settings)+2)
	for _, e := range env {
		switch name, value, _ := strings.Cut(e, "="); name {
		case "GIT_CONFIG_COUNT":
			n, _ = strconv.Atoi(value)
		case "GIT_TERMINAL_PROMPT":
		default:
			kept = append(kept, e)
		}
	}
	for i, s := range settings {
		kept = append(kept, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n+i, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n+i, s.value))
	}
	// A prompt would wait for a person who is not there.
	return append(kept, "GIT_CONFIG_COUNT="+strconv.Itoa(n+len(settings)), "GIT_TERMINAL_PROMPT=0")
}

// quoted is a word of a shell line.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Credential answers git's question for a credential of the gateway: it is git's credential helper. It knows only to answer; what git asks
// to keep or to forget is nothing to it, and a host that is not the gateway's gets no answer.
func Credential(place, operation string, in io.Reader, out io.Writer) error {
	question := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(in, 64<<10))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		question[name] = value
	}
	if operation != "get" || lines.Err() != nil {
		return lines.Err()
	}
	origin, err := os.ReadFile(filepath.Join(place, originFile))
	if err != nil {
		return cannot("This run is over.", "Start a run and countersign-agent again.").Wrap(err)
	}
	if at := (&url.URL{Scheme: question["protocol"], Host: question["host"]}).String(); at != string(origin) {
		return nil
	}
	token, err := readTokenFile(filepath.Join(place, tokenFile))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "username=run\npassword=%s\n", token.Reveal())
	return err
}

// originFile says which origin the token is for.
const originFile = "origin"
