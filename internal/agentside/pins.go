package agentside

import (
	_ "embed"
	"slices"
	"strings"
)

// pin is one server that may be started beside an agent: a part of this program, or a script of a package whose every file is known.
type pin struct {
	key  string // as the gateway names it
	name string // what clients call it

	part string // the command of this program that is the server

	pack   string // else the npm package
	script string // and its script
	bytes  string // what the package and whatever it depends on consist of: a line each, "name version digest"
}

// sequentialThinking is made from an installed copy by go test ./internal/agentside -run TestThePins -update, after its package-lock.json was
// read: npm compares what it installs with the integrity that stands there.
//
//go:embed pins/sequential_thinking.v1.txt
var sequentialThinking string

// pins is everything that may be started beside an agent. The gateway's configuration names a key of it and nothing else: no command, no
// package, no path and no variable comes from there.
var pins = []pin{
	{key: "structured_questions.v1", name: "structured-questions", part: "questions"},
	{key: "sequential_thinking.v1", name: "sequential-thinking", pack: "@modelcontextprotocol/server-sequential-thinking", script: "dist/index.js", bytes: sequentialThinking},
}

// Pinned names the runtimes that this program holds.
func Pinned() []string {
	out := make([]string, len(pins))
	for i, p := range pins {
		out[i] = p.key
	}
	return out
}

// pinned finds what a key stands for.
func pinned(key string) (pin, error) {
	i := slices.IndexFunc(pins, func(p pin) bool { return p.key == key })
	if i < 0 {
		return pin{}, cannot("This image does not hold the runtime “"+visible(key)+"”.", "It holds "+strings.Join(Pinned(), ", ")+". Update countersign-agent, or take the connection out of the profile.")
	}
	return pins[i], nil
}

// visible bounds a name that somebody else wrote before it is shown.
func visible(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 80)]
}
