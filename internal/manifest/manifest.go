// Package manifest owns one file of the catalog: what an integration is called, what it asks of a person, how a credential reaches
// it, and what its tools do according to whoever reviewed them. It parses that file strictly and says, with file and line, what is
// wrong with it. A manifest is words about a runtime of the trusted registry: it never names a command, a package, a path, an
// address or an environment variable, it never holds a credential, and nothing in it is executed.
package manifest

import (
	"encoding/json"
	"regexp"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/registry"
	"countersign/internal/unseen"
)

// Manifest is one catalog file that passed every rule. The toml names are the file's fields; the json ones what stores and lists use.
type Manifest struct {
	Key         string        `toml:"key" json:"key"`                     // the file's name without .toml: [a-z][a-z0-9-]*
	Name        string        `toml:"name" json:"name"`                   // what people call the service
	Category    Category      `toml:"category" json:"category"`           // the area of the catalog page
	Summary     string        `toml:"summary" json:"summary"`             // one sentence: what an agent can do with it
	Description string        `toml:"description" json:"description"`     // paragraphs, separated by an empty line; plain text
	Mark        string        `toml:"mark" json:"mark"`                   // one or two characters shown as its mark
	Docs        string        `toml:"docs" json:"docs,omitempty"`         // the vendor's own page, https; may be empty
	Kind        registry.Kind `toml:"kind" json:"kind"`                   // equals the kind of the runtime
	WhyThisKind string        `toml:"why_this_kind" json:"why_this_kind"` // why no narrower kind would do
	Runtime     registry.Key  `toml:"runtime" json:"runtime"`             // a key of the trusted registry
	Setup       Setup         `toml:"setup" json:"setup"`
	Auth        []Auth        `toml:"auth" json:"auth"`                     // at least one; several are a choice of the installing person
	Grants      []Grant       `toml:"grants" json:"grants,omitempty"`       // what the person is asked to allow at the vendor
	Resources   []Resource    `toml:"resources" json:"resources,omitempty"` // non-secret choices that bound a connection
	Tools       []ToolPolicy  `toml:"-" json:"tools,omitempty"`             // the reviewed tools, in the file's order; a tool not here is not reviewed
	Probe       *Probe        `toml:"probe" json:"probe,omitempty"`         // the call that tests a connection; nil where the kind allows none
}

// Setup is what a person reads and fills in to connect.
type Setup struct {
	Steps  []string `toml:"steps" json:"steps,omitempty"`
	Fields []Field  `toml:"fields" json:"fields,omitempty"`
}

// Field is one input of the setup form.
type Field struct {
	Name     string   `toml:"name" json:"name"`
	Label    string   `toml:"label" json:"label"`
	Hint     string   `toml:"hint" json:"hint,omitempty"`
	Secret   bool     `toml:"secret" json:"secret"` // sealed, write only, never shown again
	Required bool     `toml:"required" json:"required"`
	Pattern  string   `toml:"pattern" json:"pattern,omitempty"` // RE2; the whole value must match
	GoesTo   Contract `toml:"goes_to" json:"goes_to"`           // the auth contract it completes
}

// Contract is how a connection proves itself to the service.
type Contract string

// The auth contracts of the product.
const (
	None             Contract = "none"
	Token            Contract = "token"
	OAuth2           Contract = "oauth2"
	ServiceAccount   Contract = "service_account"
	ConnectionString Contract = "connection_string"
	PAT              Contract = "pat"
)

// Contracts lists every auth contract.
var Contracts = []Contract{None, Token, OAuth2, ServiceAccount, ConnectionString, PAT}

// Auth is one way to authenticate. Header and Format belong to the token and pat contracts and equal an entry of the registry; OAuth belongs to
// the oauth2 contract.
type Auth struct {
	Contract Contract `toml:"contract" json:"contract"`
	Header   string   `toml:"header" json:"header,omitempty"`
	Format   string   `toml:"format" json:"format,omitempty"` // "Bearer {secret}"
	OAuth
}

// Grant is something the manifest asks a person to allow at the vendor, and why.
type Grant struct {
	ID     string   `toml:"id" json:"id"`
	Title  string   `toml:"title" json:"title"`
	Why    string   `toml:"why" json:"why"`
	Scopes []string `toml:"scopes" json:"scopes,omitempty"` // the vendor's own names
	// Optional is asked for when a person chooses it or a tool that needs it; what is not optional is asked for at the first consent.
	Optional bool `toml:"optional" json:"optional,omitempty"`
}

// Resource is one non-secret choice that bounds what a connection may touch.
type Resource struct {
	Name     string `toml:"name" json:"name"`
	Label    string `toml:"label" json:"label"`
	Hint     string `toml:"hint" json:"hint,omitempty"`
	Required bool   `toml:"required" json:"required"`
	Pattern  string `toml:"pattern" json:"pattern,omitempty"` // RE2; the whole value must match
}

// ToolPolicy is the reviewed classification of one tool. It outranks whatever the service says of itself.
type ToolPolicy struct {
	Name           string            `toml:"-" json:"name"`
	Effect         policy.Effect     `toml:"effect" json:"effect"`
	Destructive    bool              `toml:"destructive" json:"destructive,omitempty"`
	Reviewed       string            `toml:"reviewed" json:"reviewed"`             // the day, YYYY-MM-DD
	Why            string            `toml:"why" json:"why"`                       // what the reviewer saw
	Arguments      []string          `toml:"arguments" json:"arguments,omitempty"` // argument names the texts below rely on
	Sentence       string            `toml:"sentence" json:"sentence,omitempty"`   // "Refund {amount_cents} to contact {contact_id}"
	Stakes         string            `toml:"stakes" json:"stakes,omitempty"`       // what cannot be undone, as a sentence
	Money          *Money            `toml:"money" json:"money,omitempty"`
	Resource       *ResourceArgument `toml:"resource" json:"resource,omitempty"`
	DefiniteErrors []string          `toml:"definite_errors" json:"definite_errors,omitempty"` // RE2; see DefinitelyNotApplied
	Needs          []string          `toml:"needs" json:"needs,omitempty"`                     // ids of the optional grants without which the service refuses it
	SettleSeconds  int               `toml:"settle_seconds" json:"settle_seconds,omitempty"`   // how long a lost call may still be applied; 0: the product's own window
	LookUps        []Call            `toml:"look_ups" json:"look_ups,omitempty"`
	Probe          *ToolProbe        `toml:"probe" json:"probe,omitempty"` // settles an uncertain call without a person, where that is beyond doubt
}

// Money says which argument is an amount, in which currency (ISO 4217), and how many decimals of it the argument counts: 2 when
// 24000 means 240.00. A currency written "{argument}" is the one that argument names.
type Money struct {
	Argument   string `toml:"argument" json:"argument"`
	Currency   string `toml:"currency" json:"currency"`
	MinorUnits int    `toml:"minor_units" json:"minor_units"`
}

// ResourceArgument says which argument names the thing acted upon. Setting, when there, is the resource setting whose value it must equal.
type ResourceArgument struct {
	Argument string `toml:"argument" json:"argument"`
	Setting  string `toml:"setting" json:"setting,omitempty"`
}

// Call is one call of a read of the same manifest. Its arguments hold text, numbers, booleans, lists and tables; in a look-up, a
// text that is exactly "{argument}" stands for that argument of the action.
type Call struct {
	Tool      string         `toml:"tool" json:"tool"`
	Arguments map[string]any `toml:"arguments" json:"arguments,omitempty"`
}

// ArgumentsJSON is the arguments as one JSON object.
func (c Call) ArgumentsJSON() json.RawMessage {
	if len(c.Arguments) == 0 {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(c.Arguments)
	if err != nil { // parse refuses whatever has no JSON form
		panic("manifest: arguments that passed the check do not marshal: " + err.Error())
	}
	return b
}

// Probe is the call that shows that a credential works. A service may list its tools to anybody, so listing proves nothing.
type Probe struct {
	Call
	Expect string `toml:"expect" json:"expect,omitempty"` // text the answer must contain; empty: any answer that is no error
}

// Policy returns the reviewed policy of a tool. A tool without one is not reviewed, which the caller must treat as unknown.
func (m Manifest) Policy(tool string) (ToolPolicy, bool) {
	for _, p := range m.Tools {
		if p.Name == tool {
			return p, true
		}
	}
	return ToolPolicy{}, false
}

// Contract returns the manifest's auth of one contract.
func (m Manifest) Contract(c Contract) (Auth, bool) {
	for _, a := range m.Auth {
		if a.Contract == c {
			return a, true
		}
	}
	return Auth{}, false
}

// FieldsFor lists the setup fields that complete one auth contract, in form order.
func (m Manifest) FieldsFor(c Contract) []Field {
	var out []Field
	for _, f := range m.Setup.Fields {
		if f.GoesTo == c {
			out = append(out, f)
		}
	}
	return out
}

// AccountScopes are the scopes a service account asks for: it cannot ask for more later, so all of them.
func (m Manifest) AccountScopes() []string {
	var out []string
	for _, g := range m.Grants {
		out = append(out, g.Scopes...)
	}
	return out
}

// Tally counts the reviewed tools by what they do: reads, consequential ones that are not destructive, destructive ones.
func (m Manifest) Tally() (reads, consequential, destructive int) {
	for _, p := range m.Tools {
		switch {
		case p.Destructive:
			destructive++
		case p.Effect == policy.Read:
			reads++
		default:
			consequential++
		}
	}
	return reads, consequential, destructive
}

// Check judges what a person typed into the field. The fault never repeats the value: it may be a secret in the wrong box.
func (f Field) Check(value string) error { return judge(f.Name, f.Label, f.Pattern, f.Required, value) }

// Check judges what a person chose for the resource setting.
func (r Resource) Check(value string) error {
	return judge(r.Name, r.Label, r.Pattern, r.Required, value)
}

func judge(name, label, pattern string, required bool, value string) error {
	switch {
	case value == "" && required:
		return fault.Field(name, "“"+label+"” is empty; it is needed to connect.")
	case value == "":
		return nil
	case len(value) > 4096:
		return fault.Field(name, "“"+label+"” is longer than 4,096 bytes.")
	case strings.ContainsFunc(value, unseen.Is):
		return fault.Field(name, "“"+label+"” holds a line break or an invisible character; copy it again, alone.")
	case pattern != "" && !regexp.MustCompile(`^(?:`+pattern+`)$`).MatchString(value):
		return fault.Field(name, "“"+label+"” does not look right; the hint below the field says what it looks like.")
	}
	return nil
}

// DefinitelyNotApplied reports whether an error text of the tool is one the reviewer knows to mean that nothing was changed. Any
// other error of a consequential call leaves its outcome unknown.
func (p ToolPolicy) DefinitelyNotApplied(text string) bool {
	for _, pattern := range p.DefiniteErrors {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(text) {
			return true
		}
	}
	return false
}

// Review is the policy as policy.Classify takes it.
func (p ToolPolicy) Review() *policy.Review {
	return &policy.Review{Effect: p.Effect, Destructive: p.Destructive}
}

// Placeholders lists the argument names the sentence shows, in order, each once.
func (p ToolPolicy) Placeholders() []string {
	names, _ := placeholders(p.Sentence)
	return names
}
