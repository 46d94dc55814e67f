package cli

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// Word is a name of the vendor's: letters, digits and a few marks, never a flag, a path or a file to read.
func Word(description string) Value {
	return Value{field: direct.Field{Type: "string", Description: description, Pattern: `^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`}}
}

// maxValue bounds the bytes of any one value, whatever its own form allows: a kernel starts nothing whose arguments are too long.
const maxValue = 4 << 10

// Shaped is a text of a form of its own. The pattern must be anchored at both ends, in each of its alternatives.
func Shaped(description, pattern string) Value {
	return Value{field: direct.Field{Type: "string", Description: description, Pattern: pattern}}
}

// Line is one line of free text that begins with none of the signs that some program gives a meaning.
func Line(description string, most int) Value {
	return Value{field: direct.Field{Type: "string", Description: description, MinLength: 1, MaxLength: most}}
}

// Several is free text whose words are operands of their own, for a command that takes an operand with a blank in it for a phrase.
func Several(description string, most int) Value {
	v := Line(description, most)
	v.several = true
	return v
}

// OneOf is one of several words.
func OneOf(description string, of ...string) Value {
	return Value{field: direct.OneOf(description, of...)}
}

// Number is a whole number between two bounds.
func Number(description string, least, most int) Value {
	return Value{field: direct.Number(description, least, most)}
}

// Switch is a flag without a value: there, or not.
func Switch(description string) Value { return Value{field: direct.Truth(description)} }

// argv makes the argument vector of an invocation from checked arguments. Nothing in it is a caller's text but single values, each bound to
// its place.
func (c Command) argv(i Invocation, a direct.Arguments) ([]string, error) {
	out := slices.Concat(c.Ahead, i.Words, i.Fixed)
	for _, f := range i.Flags {
		if !a.Has(f.Argument) {
			continue
		}
		if f.Value.field.Type == "boolean" {
			if a.True(f.Argument) {
				out = append(out, f.Name)
			}
			continue
		}
		v, err := f.Value.render(f.Argument, a)
		if err != nil {
			return nil, err
		}
		out = append(out, f.Name+"="+v)
	}
	if c.Closed && len(i.Operands) > 0 {
		out = append(out, "--")
	}
	for _, f := range i.Operands {
		v, err := f.Value.render(f.Argument, a)
		if err != nil {
			return nil, err
		}
		parts := []string{v}
		if f.Value.several {
			parts = strings.Fields(v)
		}
		if slices.ContainsFunc(parts, signed) {
			return nil, unfit(f.Argument, "holds a word that "+signs)
		}
		out = append(out, parts...)
	}
	return out, nil
}

const signs = "begins with a sign that commands give a meaning: - begins a flag, @ names a file"

func signed(s string) bool { return strings.HasPrefix(s, "-") || strings.HasPrefix(s, "@") }

// render writes one value anew from what it means.
func (v Value) render(name string, a direct.Arguments) (string, error) {
	if v.field.Type == "integer" {
		n, err := strconv.ParseInt(string(a[name]), 10, 64)
		if err != nil || v.field.Minimum == nil || n < int64(*v.field.Minimum) || n > int64(*v.field.Maximum) {
			return "", unfit(name, "is no whole number within its bounds")
		}
		return strconv.FormatInt(n, 10), nil
	}
	s := a.Text(name)
	if why := v.unfit(s); why != "" {
		return "", unfit(name, why)
	}
	return s, nil
}

// unfit says why a text may not stand in this place. The schema has said most of it already; what it cannot say is here, and nothing
// relies on its having been asked.
func (v Value) unfit(s string) string {
	switch {
	case s == "" || !utf8.ValidString(s):
		return "is empty or no text"
	case len(s) > maxValue:
		return "is too long"
	case provider.Printable(s) != s:
		return "holds a line break, or a control or invisible character"
	case signed(s):
		return signs
	case s != strings.TrimSpace(s):
		return "begins or ends with a space"
	case v.field.MaxLength > 0 && utf8.RuneCountInString(s) > v.field.MaxLength:
		return "is too long"
	case len(v.field.Enum) > 0 && !slices.Contains(v.field.Enum, s):
		return "is none of the words that may stand here"
	case v.field.Pattern != "" && !regexp.MustCompile(v.field.Pattern).MatchString(s):
		return "has not the form that it must have"
	}
	return ""
}

func unfit(name, why string) error {
	return fault.New(fault.Invalid, fault.InvalidArguments, "The argument “"+name+"” "+why+".", "Correct it; the tool's schema says what may stand there.")
}

// anchored reports whether a pattern holds a text from its beginning to its end. ^a|b$ does not: each alternative has one end open.
func anchored(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat {
		return false
	}
	return re.Sub[0].Op == syntax.OpBeginText && re.Sub[len(re.Sub)-1].Op == syntax.OpEndText
}

var (
	flagShape = regexp.MustCompile(`^--[a-z][a-z-]*$`)
	wordShape = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// check holds a declaration to what makes its grammar closed. It is code, so a contradiction is a panic at start.
func (c Command) check() {
	for _, i := range c.Tools {
		bad := func(why string) { panic("cli: " + c.Name + " declares " + i.Tool + " badly: " + why) }
		switch {
		case len(i.Words) == 0 || slices.ContainsFunc(i.Words, func(w string) bool { return !wordShape.MatchString(w) }):
			bad("its subcommand is no plain word")
		case i.Effect != policy.Read && i.Effect != policy.Consequential:
			bad("its effect is not decided")
		case i.Effect == policy.Read && (i.Destructive || i.Gone != ""):
			bad("it is a read that changes something")
		case len(i.Asks) == 0:
			bad("it does not say what it asks")
		}
		for _, f := range slices.Concat(i.Flags, i.Operands) {
			field := f.Value.field
			closed := field.Type == "boolean" || field.Type == "integer" || len(field.Enum) > 0 || field.MaxLength > 0 ||
				anchored(field.Pattern) && !regexp.MustCompile(field.Pattern).MatchString("-x")
			if !closed {
				bad(f.Argument + " is not bounded")
			}
			if f.Name != "" && (!flagShape.MatchString(f.Name) || f.Value.several) {
				bad(fmt.Sprintf("%q is no flag with one value", f.Name))
			}
		}
		writes := slices.ContainsFunc(i.Asks, func(ask string) bool { return !strings.HasPrefix(ask, "GET ") })
		if writes != (i.Effect == policy.Consequential) {
			bad("what it asks and its effect contradict each other")
		}
		for _, f := range i.Operands {
			if !f.Required || f.Name != "" || f.Value.field.Type == "boolean" || !c.Closed && f.Value.field.Pattern == "" {
				bad(f.Argument + " cannot be an operand")
			}
		}
	}
}
