package manifest

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"countersign/internal/registry"
)

// rules is every rule about one file beyond its form, in the order a reviewer reads. Each has one bad file in testdata/bad.
var rules = []func(*check){
	identityRule, displayRule, docsRule, kindRule, besideRule, commandRule, authRule, setupRule, grantRule, resourceRule, toolRules, probeRule,
}

var (
	keyShape   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	fieldShape = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
)

func identityRule(c *check) {
	want := KeyOf(c.file)
	switch {
	case !keyShape.MatchString(c.m.Key) || strings.HasSuffix(c.m.Key, "-"):
		c.at("key", "“"+c.m.Key+"” cannot be a key.", "Use lower-case letters, digits and dashes, at most 40, starting with a letter and not ending in a dash.")
	case c.m.Key != want:
		c.at("key", "The key “"+c.m.Key+"” is not the file's name.", "Write key = \""+want+"\", or rename the file to "+c.m.Key+".toml.")
	}
}

func displayRule(c *check) {
	c.line("name", c.m.Name, 2, 40)
	c.line("mark", c.m.Mark, 1, 2)
	c.line("summary", c.m.Summary, 10, 140)
	c.prose("description", c.m.Description, 40, 2000)
	c.prose("why_this_kind", c.m.WhyThisKind, 30, 1000)
	if !slices.Contains(Categories, c.m.Category) {
		c.at("category", "There is no category “"+string(c.m.Category)+"”.", "Choose one of "+listed(Categories)+".")
	}
}

func docsRule(c *check) {
	if !c.index.has("docs") {
		return
	}
	u, err := url.Parse(c.m.Docs)
	if err != nil || u.Scheme != "https" || !strings.Contains(u.Hostname(), ".") || u.Port() != "" {
		c.at("docs", "“docs” is not the address of a public page.", "Write the vendor's page as https://…, or leave the field out.")
	}
}

func kindRule(c *check) {
	if !slices.Contains(registry.Kinds, c.m.Kind) {
		c.at("kind", "There is no kind “"+string(c.m.Kind)+"”.", "Choose one of "+listed(registry.Kinds)+"; catalog/README.md says which fits.")
		return
	}
	entry, ok := c.reg.Lookup(c.m.Runtime)
	switch {
	case !ok:
		c.at("runtime", "There is no runtime “"+string(c.m.Runtime)+"” in the trusted registry.", knownRuntime(string(c.m.Runtime), c.reg.Keys()))
	case entry.Kind != c.m.Kind:
		c.at("kind", "The kind is “"+string(c.m.Kind)+"”, but the runtime “"+string(c.m.Runtime)+"” is “"+string(entry.Kind)+"”.",
			"Write kind = \""+string(entry.Kind)+"\", or name a runtime of the other kind.")
	}
}

// besideRule holds a manifest of a runtime that works beside the agent to what is true of one: no credential of the organization goes there,
// and no call comes through this server, so that nothing written about its tools would bind anybody.
func besideRule(c *check) {
	if c.m.Kind != registry.Stdio {
		return
	}
	for i, a := range c.m.Auth {
		if a.Contract != None {
			c.at(fmt.Sprintf("auth[%d].contract", i), "A runtime of kind “stdio” works in the agent's image, where no credential of the organization may be.",
				"Write contract = \"none\"; what needs a credential is another kind.")
		}
	}
	if len(c.m.Tools) > 0 || len(c.m.Resources) > 0 || len(c.m.Grants) > 0 || c.m.Probe != nil {
		c.at("kind", "The calls of a runtime of kind “stdio” do not come through this server, so tools, resources, grants and a probe would bind nobody.",
			"Remove them, and say in description what the runtime does.")
	}
}

// commandRule holds a manifest of a vendor's command to what makes one fit to be run: each invocation is known to read or to write from its
// arguments alone, and it is told who it is at each call. A command that keeps a login lives in a home that nobody can throw away, and one
// whose configuration, input or remote state decides what it does cannot be decided on by a person.
func commandRule(c *check) {
	entry, ok := c.reg.Lookup(c.m.Runtime)
	if c.m.Kind != registry.CLI || !ok || entry.Kind != registry.CLI {
		return
	}
	for i, a := range c.m.Auth {
		if a.Contract != Token {
			c.at(fmt.Sprintf("auth[%d].contract", i), "A command with the contract “"+string(a.Contract)+"” would need a login that it keeps in a home directory; the home of each call is thrown away, so that no call finds what another left.",
				"Take a command that is authorised by one token, with contract = \"token\", or choose another kind.")
		}
	}
	for _, t := range c.m.Tools {
		effect, known := entry.Invocations[t.Name]
		switch {
		case !known:
			c.at(toolPath(t.Name), "Nothing tells from its arguments whether “"+t.Name+"” reads or writes: it is not among the invocations of “"+string(c.m.Runtime)+"”.",
				"Remove it, or give it a closed grammar in its folder below internal/provider/cli and its effect in internal/registry/table.go. A subcommand whose effect a file, an alias, an address or the service decides cannot have one.")
		case string(effect) != string(t.Effect):
			c.at(toolPath(t.Name)+".effect", "“"+t.Name+"” is reviewed as “"+string(t.Effect)+"”, and its grammar says “"+string(effect)+"”.", "Look at what it does, and correct the one that is wrong.")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Invocations)) {
		if _, reviewed := c.m.Policy(name); !reviewed {
			c.at("runtime", "The invocation “"+name+"” of “"+string(c.m.Runtime)+"” is not reviewed, and no vendor marks the tools of a command.", "Add [tools."+name+"].")
		}
	}
}

// knownRuntime says which runtime was meant, where that is a slip away, and where they all stand.
func knownRuntime(wrote string, keys []registry.Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = string(k)
	}
	if near := closest(wrote, names); near != "" {
		return "Write runtime = \"" + near + "\" if that is what was meant, or add an entry to internal/registry/table.go first."
	}
	return "Use a key of internal/registry/table.go, or add an entry there first."
}

func authRule(c *check) {
	if len(c.m.Auth) == 0 {
		c.at("auth", "The manifest does not say how a connection authenticates.", "Add [[auth]] with contract = \"none\", \"token\" or \"oauth2\".")
	}
	seen := map[Contract]bool{}
	for i, a := range c.m.Auth {
		p := fmt.Sprintf("auth[%d]", i)
		switch {
		case !slices.Contains(Contracts, a.Contract):
			c.at(p+".contract", "There is no auth contract “"+string(a.Contract)+"”.", "Choose one of "+listed(Contracts)+".")
		case seen[a.Contract]:
			c.at(p+".contract", "The auth contract “"+string(a.Contract)+"” is there twice.", "Keep one.")
		case a.Contract == Token || a.Contract == PAT:
			c.tokenAuth(p, a)
		case a.Contract == OAuth2:
			c.oauth(p, a)
		case a.Contract == ServiceAccount:
			c.accountAuth(p, a)
		case a.Contract == ConnectionString:
			c.connectionAuth(p, a)
		case a.Header != "" || a.Format != "" || !a.OAuth.empty():
			c.at(p, "The auth contract “"+string(a.Contract)+"” sends no header and asks nobody for consent.", "Remove all but the contract, or use contract = \"token\" or \"oauth2\".")
		}
		seen[a.Contract] = true
	}
}

func (c *check) tokenAuth(p string, a Auth) {
	if !a.OAuth.empty() {
		c.at(p, "A token contract asks nobody for consent.", "Keep header and format, and write the rest under contract = \"oauth2\".")
	}
	if entry, ok := c.reg.Lookup(c.m.Runtime); ok && len(entry.Parts) > 0 {
		c.partedAuth(p, a, entry)
		return
	}
	if a.Header == "" || strings.Count(a.Format, "{secret}") != 1 {
		c.at(p, "A token contract needs a header and a format that holds {secret} once.", "Write header = \"Authorization\" and format = \"Bearer {secret}\", as the vendor asks.")
		return
	}
	if entry, ok := c.reg.Lookup(c.m.Runtime); ok && !entry.Accepts(a.Header, a.Format) {
		c.at(p, "The runtime “"+string(c.m.Runtime)+"” takes no credential as “"+a.Header+": "+a.Format+"”, and a catalog cannot choose where a credential goes.",
			"Use the header and format of its entry in internal/registry/table.go, or change them there.")
	}
	secrets := 0
	for _, f := range c.m.FieldsFor(a.Contract) {
		if f.Secret && f.Required {
			secrets++
		}
	}
	if secrets != 1 || len(c.m.FieldsFor(a.Contract)) != 1 {
		c.at(p, "A token contract needs exactly one setup field: a required secret with goes_to = \""+string(a.Contract)+"\".", "Write one [[setup.fields]] that asks for it.")
	}
}

// partedAuth is a token contract of a runtime whose credential has parts: the registry says where each field goes.
func (c *check) partedAuth(p string, a Auth, entry registry.Entry) {
	if a.Header != "" || a.Format != "" {
		c.at(p, "The credential of “"+string(c.m.Runtime)+"” has parts, and the registry says how each travels.", "Remove header and format.")
	}
	var wanted, asked []string
	for _, part := range entry.Parts {
		wanted = append(wanted, part.Fields()...)
	}
	for _, f := range c.m.FieldsFor(Token) {
		asked = append(asked, f.Name)
	}
	slices.Sort(wanted)
	slices.Sort(asked)
	if !slices.Equal(wanted, asked) {
		c.at(p, "The setup fields for “token” are "+strings.Join(asked, ", ")+"; the runtime takes "+strings.Join(wanted, ", ")+".", "Ask for exactly those.")
	}
}

func (c *check) accountAuth(p string, a Auth) {
	if a.Header != "" || a.Format != "" || !a.OAuth.empty() {
		c.at(p, "The key of a service account is sent to nobody, so it has no header and no consent.", "Remove all but the contract.")
	}
	if entry, ok := c.reg.Lookup(c.m.Runtime); ok && !entry.ServiceAccount {
		c.at(p, "The runtime “"+string(c.m.Runtime)+"” takes no service account.", "Use a contract that its entry in internal/registry/table.go takes.")
	}
	if fields := c.m.FieldsFor(ServiceAccount); len(fields) != 1 || !fields[0].Secret || !fields[0].Required {
		c.at(p, "A service account needs exactly one setup field: a required secret with goes_to = \"service_account\".", "Write one [[setup.fields]] that asks for the key's JSON file.")
	}
	if len(c.m.AccountScopes()) == 0 {
		c.at(p, "No grant names a scope, so a service account could ask for nothing.", "Write the vendor's scopes into the [[grants]].")
	}
}

func (c *check) connectionAuth(p string, a Auth) {
	if a.Header != "" || a.Format != "" || !a.OAuth.empty() {
		c.at(p, "A connection string is taken apart and sent to nobody, so it has no header and no consent.", "Remove all but the contract.")
	}
	if entry, ok := c.reg.Lookup(c.m.Runtime); ok && !entry.ConnectionString {
		c.at(p, "The runtime “"+string(c.m.Runtime)+"” takes no connection string.", "Use a contract that its entry in internal/registry/table.go takes.")
	}
	if fields := c.m.FieldsFor(ConnectionString); len(fields) != 1 || !fields[0].Secret || !fields[0].Required {
		c.at(p, "A connection string needs exactly one setup field: a required secret with goes_to = \"connection_string\".", "Write one [[setup.fields]] that asks for it.")
	}
}

func setupRule(c *check) {
	if len(c.m.Setup.Steps) > 12 {
		c.at("setup.steps", "There are more than 12 setup steps.", "Say it shorter, and point to the vendor's page with docs.")
	}
	for i, s := range c.m.Setup.Steps {
		c.line(fmt.Sprintf("setup.steps[%d]", i), s, 5, 300)
	}
	seen := map[string]bool{}
	for i, f := range c.m.Setup.Fields {
		p := fmt.Sprintf("setup.fields[%d]", i)
		c.input(p, f.Name, f.Label, f.Hint, f.Pattern, seen)
		if _, ok := c.m.Contract(f.GoesTo); !ok || f.GoesTo == None || f.GoesTo == OAuth2 {
			c.at(p+".goes_to", "The field “"+f.Name+"” goes to “"+string(f.GoesTo)+"”, which is no credential of this manifest.",
				"Write goes_to = \"token\" next to [[auth]] contract = \"token\"; a choice that is no credential is a [[resources]] entry.")
		}
	}
}

func resourceRule(c *check) {
	seen := map[string]bool{}
	for _, f := range c.m.Setup.Fields {
		seen[f.Name] = true
	}
	for i, r := range c.m.Resources {
		c.input(fmt.Sprintf("resources[%d]", i), r.Name, r.Label, r.Hint, r.Pattern, seen)
	}
}

// input judges what setup fields and resource settings share. Their names share one form, so they share one name space.
func (c *check) input(p, name, label, hint, pattern string, seen map[string]bool) {
	if !fieldShape.MatchString(name) {
		c.at(p+".name", "“"+name+"” cannot be the name of an input.", "Use lower-case letters, digits and underscores, starting with a letter.")
	}
	if seen[name] {
		c.at(p+".name", "The input “"+name+"” is there twice.", "Give each input its own name.")
	}
	seen[name] = true
	c.line(p+".label", label, 2, 60)
	if hint != "" {
		c.line(p+".hint", hint, 2, 200)
	}
	if _, err := regexp.Compile(pattern); err != nil || len(pattern) > 200 {
		c.at(p+".pattern", "The pattern of “"+name+"” is not a regular expression of at most 200 characters.", "Write it in RE2 syntax; it must match the whole value.")
	}
}

func grantRule(c *check) {
	seen := map[string]bool{}
	for i, g := range c.m.Grants {
		p := fmt.Sprintf("grants[%d]", i)
		if !fieldShape.MatchString(g.ID) || seen[g.ID] {
			c.at(p+".id", "“"+g.ID+"” is no usable grant id, or is there twice.", "Use lower-case letters, digits and underscores, each id once.")
		}
		seen[g.ID] = true
		c.line(p+".title", g.Title, 3, 80)
		c.line(p+".why", g.Why, 10, 300)
		for j, s := range g.Scopes {
			c.line(fmt.Sprintf("%s.scopes[%d]", p, j), s, 1, 200)
			if _, ok := c.m.Contract(OAuth2); ok && !isScope(s) {
				c.at(fmt.Sprintf("%s.scopes[%d]", p, j), "“"+s+"” is no scope.", "Write one scope an entry, as the vendor spells it.")
			}
		}
	}
}

// line judges a text that stands on one line; sizes are characters.
func (c *check) line(path, text string, least, most int) {
	if strings.ContainsAny(text, "\r\n\t") {
		c.at(path, "“"+path+"” must stand on one line.", "Write it as one line.")
		return
	}
	c.prose(path, text, least, most)
}

// prose judges a text of several lines.
func (c *check) prose(path, text string, least, most int) {
	n := utf8.RuneCountInString(text)
	switch {
	case !c.index.has(path):
		c.at(path, "“"+path+"” is missing.", "Write it; catalog/README.md says what it is for.")
	case text != strings.TrimSpace(text):
		c.at(path, "“"+path+"” starts or ends with white space.", "Remove it.")
	case n < least:
		c.at(path, fmt.Sprintf("“%s” has %d characters; at least %d say something.", path, n, least), "Write it for a person who decides whether to connect this.")
	case n > most:
		c.at(path, fmt.Sprintf("“%s” has %d characters; there is room for %d.", path, n, most), "Say it shorter.")
	}
}

func listed[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
