package questions

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"countersign/internal/gitgateway"
	"countersign/internal/unseen"
)

// Form is what an agent asks.
type Form struct {
	Question string  `json:"question" jsonschema:"what you want to know and why, as the person reads it"`
	Fields   []Field `json:"fields" jsonschema:"one to eight things to fill in"`
}

// Field is one thing to fill in.
type Field struct {
	Name     string   `json:"name" jsonschema:"the name of the answer: a lower-case letter, then letters, digits and _"`
	Label    string   `json:"label" jsonschema:"the words beside it"`
	Hint     string   `json:"hint,omitempty" jsonschema:"one sentence that helps to answer"`
	Type     Type     `json:"type" jsonschema:"text, number, integer, yes_no, choice or choices"`
	Options  []string `json:"options,omitempty" jsonschema:"what a choice or choices is made from"`
	Optional bool     `json:"optional,omitempty" jsonschema:"true where it may be left empty"`
	Least    *float64 `json:"least,omitempty" jsonschema:"the smallest number"`
	Most     *float64 `json:"most,omitempty" jsonschema:"the largest number, or the most characters of a text"`
}

// Type is how a field is answered.
type Type string

// The types. A choice is one of its options, choices are any of them.
const (
	Text    Type = "text"
	Number  Type = "number"
	Integer Type = "integer"
	YesNo   Type = "yes_no"
	Choice  Type = "choice"
	Choices Type = "choices"
)

// Types lists every type.
var Types = []Type{Text, Number, Integer, YesNo, Choice, Choices}

// bounds of a form: a person reads all of it.
const (
	maxFields   = 8
	maxOptions  = 20
	maxQuestion = 1000
	maxLabel    = 200
	maxText     = 4000
)

var fieldName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Check says what is wrong with a form; empty where it may be asked.
func (f Form) Check() string {
	if why := words("The question", f.Question, maxQuestion); why != "" {
		return why
	}
	if len(f.Fields) == 0 || len(f.Fields) > maxFields {
		return fmt.Sprintf("A form has 1 to %d fields; this one has %d.", maxFields, len(f.Fields))
	}
	seen := map[string]bool{}
	for _, field := range f.Fields {
		if !fieldName.MatchString(field.Name) || seen[field.Name] {
			return "“" + clip(field.Name) + "” cannot be the name of a field, or is there twice."
		}
		seen[field.Name] = true
		if why := field.check(); why != "" {
			return why
		}
	}
	if asked := f.asksForSecret(); asked != "" {
		return "“" + clip(asked) + "” asks for a secret. Nobody is asked for passwords, keys, tokens or codes here: a model reads the answer, and its transcript may be kept. What needs a credential is connected by an admin, and no agent ever gets it."
	}
	return ""
}

func (f Field) check() string {
	if why := words("The label of “"+f.Name+"”", f.Label, maxLabel); why != "" {
		return why
	}
	if f.Hint != "" {
		if why := words("The hint of “"+f.Name+"”", f.Hint, maxLabel); why != "" {
			return why
		}
	}
	chooses := f.Type == Choice || f.Type == Choices
	switch {
	case !slices.Contains(Types, f.Type):
		return "“" + f.Name + "” has the type “" + clip(string(f.Type)) + "”; the types are text, number, integer, yes_no, choice and choices."
	case chooses && (len(f.Options) < 2 || len(f.Options) > maxOptions):
		return fmt.Sprintf("“%s” is made from 2 to %d options.", f.Name, maxOptions)
	case !chooses && len(f.Options) > 0:
		return "“" + f.Name + "” has options and is no choice."
	case f.Least != nil && f.Most != nil && *f.Least > *f.Most:
		return "The smallest answer of “" + f.Name + "” is larger than the largest."
	case f.Type == Text && f.Most != nil && (*f.Most < 1 || *f.Most > maxText || *f.Most != math.Trunc(*f.Most)):
		return fmt.Sprintf("“%s” is a text of 1 to %d characters.", f.Name, maxText)
	}
	for i, o := range f.Options {
		if why := words("An option of “"+f.Name+"”", o, maxLabel); why != "" {
			return why
		}
		if slices.Contains(f.Options[:i], o) {
			return "“" + clip(o) + "” is an option of “" + f.Name + "” twice."
		}
	}
	return ""
}

// words judges a text that a person reads: there, bounded, and without characters that hide others.
func words(what, text string, most int) string {
	_, hidden := unseen.InProse(strings.ReplaceAll(text, "\n", " "))
	switch {
	case strings.TrimSpace(text) == "":
		return what + " is empty."
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("%s is longer than %d characters.", what, most)
	case !utf8.ValidString(text) || hidden:
		return what + " holds characters that cannot be seen."
	}
	return ""
}

// lookAlikes are letters of other scripts that people read as those below them.
var lookAlikes = func() map[rune]rune {
	out := map[rune]rune{}
	drawn, plain := []rune("аαɑеёεіıιїоοօсςϲрρѕԁкκтτуγвьпνмϻωԝхχ"), []rune("aaaeeeiiiiooocccppsdkkttyybbnvmmwwxx")
	for n, r := range drawn {
		out[r] = plain[n]
	}
	return out
}()

// plainly writes a text with the letters that people take its letters for: full-width, mathematical, and of other scripts. It only serves to
// find words.
func plainly(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xff01 && r <= 0xff5e:
			return r - 0xfee0
		case r >= 0x1d400 && r <= 0x1d6a3:
			n := (r - 0x1d400) % 52
			return 'a' + n%26
		case unicode.Is(unicode.Mn, r) || r != '\n' && unseen.Is(r):
			return -1
		}
		if plain, ok := lookAlikes[unicode.ToLower(r)]; ok {
			return plain
		}
		return r
	}, text)
}

// secretWords are what secrets are called. They are looked for in whatever of a form says what is wanted; a question about tokens that wants
// none is refused as well, which costs a sentence and no secret.
var secretWords = regexp.MustCompile(`(?i)passw(?:or)?d|passphrase|pass[ _-]?code|\bpwd\b|\bpin\b|secret|credential|\b(?:api|access|private|ssh|signing|encryption)[ _-]?key|\btokens?\b|\bPAT\b|\b(?:otp|totp|2fa|mfa)\b|` +
	`one[ -]?time (?:code|password)|(?:verification|security|backup) code|recovery (?:code|phrase|key)|seed phrase|mnemonic|connection string|\bdsn\b|\bcvv\b|\bcvc\b|(?:card|account) number|credit card|\biban\b|social security|\bssn\b|cookie`)

// asksForSecret answers the text that asks for one.
func (f Form) asksForSecret() string {
	texts := []string{f.Question}
	for _, field := range f.Fields {
		texts = append(texts, strings.ReplaceAll(field.Name, "_", " "), field.Label, field.Hint)
	}
	for _, t := range texts {
		if secretWords.MatchString(t) || secretWords.MatchString(plainly(t)) {
			return t
		}
	}
	return ""
}

// Schema is the form as a client draws it. Elicitation knows flat forms alone, and this is one.
func (f Form) Schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, field := range f.Fields {
		s.Properties[field.Name] = field.schema()
		s.PropertyOrder = append(s.PropertyOrder, field.Name)
		if !field.Optional {
			s.Required = append(s.Required, field.Name)
		}
	}
	return s
}

func (f Field) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Title: f.Label, Description: f.Hint}
	switch f.Type {
	case Text:
		most := maxText
		if f.Most != nil {
			most = int(*f.Most)
		}
		s.Type, s.MaxLength = "string", &most
	case Number, Integer:
		s.Type, s.Minimum, s.Maximum = string(f.Type), f.Least, f.Most
	case YesNo:
		s.Type = "boolean"
	case Choice:
		s.Type, s.Enum = "string", anyOf(f.Options)
	case Choices:
		s.Type, s.Items = "array", &jsonschema.Schema{Type: "string", Enum: anyOf(f.Options)}
	}
	return s
}

func anyOf(options []string) (out []any) {
	for _, o := range options {
		out = append(out, o)
	}
	return out
}

// Answers takes what a client brought: the fields of the form, each of its type, and nothing else. A client may send anything.
func (f Form) Answers(content map[string]any) (map[string]any, string) {
	schema, err := f.Schema().Resolve(nil)
	if err == nil {
		err = schema.Validate(content)
	}
	if err != nil {
		return nil, "The answer does not fit the form, so it was not taken."
	}
	out := map[string]any{}
	for _, field := range f.Fields {
		value, ok := content[field.Name]
		if !ok {
			continue
		}
		if text, is := value.(string); is {
			if kind := gitgateway.SecretIn("", text, nil); kind != "" {
				return nil, "The answer to “" + field.Name + "” looks like " + kind + ", so it was not passed on. Do not ask for it again; the person should treat it as seen by their client."
			}
		}
		out[field.Name] = value
	}
	return out, ""
}

// clip bounds a text of the agent's before it is repeated, and shows what cannot be seen.
func clip(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && unseen.Is(r) {
			return '?'
		}
		return r
	}, s)
}
