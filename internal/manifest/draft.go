package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"countersign/internal/fault"
	"countersign/internal/unseen"
)

// maxEntry bounds an entry of an MCP registry.
const maxEntry = 256 << 10

// published is what is read of an entry of an MCP registry, a server.json. Packages, addresses, headers, arguments and variables are counted
// and never read: what may be run or reached is Go, after somebody looked at it.
type published struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Version     string            `json:"version"`
	Packages    []json.RawMessage `json:"packages"`
	Remotes     []json.RawMessage `json:"remotes"`
}

var publishedName = regexp.MustCompile(`^[A-Za-z0-9.-]+/[A-Za-z0-9._-]+$`) // at most 200 bytes

// Draft makes the beginning of a catalog file from an entry of an MCP registry, for a person to review. It takes over words alone, and the
// check refuses it until that person has decided what only a person can: the runtime, the kind and why, the way to authenticate, and what
// each tool does.
func Draft(entry []byte) ([]byte, error) {
	if len(entry) > maxEntry {
		return nil, fault.New(fault.TooLarge, fault.CodeTooLarge, "The entry is larger than 256 KiB.", "Name one server.json.")
	}
	var wrapped struct{ Server *json.RawMessage }
	if json.Unmarshal(entry, &wrapped) == nil && wrapped.Server != nil { // as a registry's own API answers
		entry = *wrapped.Server
	}
	var p published
	if err := json.Unmarshal(entry, &p); err != nil || len(p.Name) > 200 || !publishedName.MatchString(p.Name) {
		return nil, fault.New(fault.Invalid, fault.CodeInvalid, "This is not an entry of an MCP registry: it has no name like io.github.owner/server.", "Name the server.json of one server.").Wrap(err)
	}
	key := draftKey(p.Name)
	name := shownPlain(p.Title, 40)
	if name == "" {
		name = key
	}
	kind, why := "hosted", "the entry names an address where its vendor may run it"
	if len(p.Remotes) == 0 {
		kind, why = "stdio", "the entry names no address, so the server runs where somebody starts it"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# A draft from the registry entry %s, version %s. Its words are its publisher's: read them as such.\n", p.Name, shownPlain(p.Version, 40))
	fmt.Fprintf(&b, "# Not taken over: %d packages and %d addresses, with their headers, arguments and variables.\n", len(p.Packages), len(p.Remotes))
	b.WriteString("# catalog check says what is left to decide; catalog/README.md says how.\n\n")
	for _, line := range [][2]string{
		{"key", key}, {"name", name}, {"category", ""}, {"summary", shownPlain(p.Description, 140)}, {"description", ""}, {"mark", strings.ToUpper(key[:1])},
	} {
		fmt.Fprintf(&b, "%s = %s\n", line[0], quote(line[1]))
	}
	fmt.Fprintf(&b, "kind = %s # a guess: %s\nruntime = \"\" # a key of internal/registry/table.go, which names what is run or reached\nwhy_this_kind = \"\"\n", quote(kind), why)
	return []byte(b.String()), nil
}

// draftKey is the server's own part of its name, as a key.
func draftKey(name string) string {
	_, own, _ := strings.Cut(name, "/")
	key := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(own), "-"), "-")
	if key == "" || key[0] < 'a' {
		key = "server-" + key
	}
	return strings.Trim(key[:min(len(key), 40)], "-")
}

// shownPlain is one line of somebody else's text that shows everything it holds, without addresses: nobody should follow one from a draft.
func shownPlain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unseen.Is(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	s = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S*`).ReplaceAllString(s, "…")
	runes := []rune(strings.Join(strings.Fields(s), " "))
	return strings.TrimSpace(string(runes[:min(len(runes), most)]))
}

// quote is a TOML basic string of a text without control characters.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
