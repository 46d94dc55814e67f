// Package wording owns the words an action is decided on: one sentence, made from the template that was reviewed with the tool and from
// the argument bytes, and from nothing else. What an agent wrote keeps its own pieces, so that a page can draw it in another voice than
// ours. It is pure; it never asks anybody, never cuts a value short, and never guesses: where a template and the bytes do not fit
// together, the tool's name stands instead and the arguments speak for themselves.
package wording

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"countersign/internal/manifest"
)

// Voice says whose words a piece is.
type Voice string

// The voices.
const (
	Ours      Voice = ""          // the reviewed template, or our own words
	Value     Voice = "value"     // an argument that can only be read as a key or a number: c_1042, 3, true
	Quoted    Voice = "quoted"    // an argument that is text: anything can stand in it
	Amount    Voice = "amount"    // money, made of the exact digits of an argument
	Described Voice = "described" // our description of an argument that is too long to stand in a sentence
	Name      Voice = "name"      // a tool's name
)

// Piece is a part of a sentence.
type Piece struct {
	Voice    Voice
	Text     string
	Argument string // whose value it is; empty for our own words
}

// Sentence is what an action would do, in pieces.
type Sentence struct {
	Pieces   []Piece
	Reviewed bool // made from a reviewed template; else it only names the tool
}

// longest is how many characters of an argument stand in a sentence. A longer one is described there and shown in full below it.
const longest = 80

// Say makes the sentence of an action. p is the reviewed policy of its tool, the zero value where there is none; connection is the
// connection's display name.
func Say(p manifest.ToolPolicy, arguments []Argument, tool, connection string) Sentence {
	if pieces, ok := fill(p, arguments); ok {
		return Sentence{Pieces: pieces, Reviewed: true}
	}
	return Sentence{Pieces: []Piece{{Voice: Name, Text: tool}, {Text: " on " + connection}}}
}

// fill puts the arguments into the template. One that is missing, null or no scalar leaves the sentence untrue, so there is none.
func fill(p manifest.ToolPolicy, arguments []Argument) ([]Piece, bool) {
	if p.Sentence == "" {
		return nil, false
	}
	p = For(p, arguments)
	var pieces []Piece
	rest := p.Sentence
	for rest != "" {
		before, after, found := strings.Cut(rest, "{")
		if before != "" {
			pieces = append(pieces, Piece{Text: before})
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		a, there := find(arguments, name)
		if !closed || !there {
			return nil, false
		}
		piece, ok := say(p, a)
		if !ok {
			return nil, false
		}
		pieces, rest = append(pieces, piece), tail
	}
	return pieces, true
}

func say(p manifest.ToolPolicy, a Argument) (Piece, bool) {
	if p.Money != nil && p.Money.Argument == a.Name {
		amount, ok := Money(*p.Money, a)
		return Piece{Voice: Amount, Text: amount, Argument: a.Name}, ok
	}
	switch a.Kind {
	case Number, Truth:
		if len(a.Raw) > longest {
			return Piece{Voice: Described, Text: "a number of " + count(len(a.Raw), "digit"), Argument: a.Name}, true
		}
		return Piece{Voice: Value, Text: a.Raw, Argument: a.Name}, true
	case Text:
		return sayText(a), true
	}
	return Piece{}, false
}

func sayText(a Argument) Piece {
	switch n := utf8.RuneCountInString(a.Text); {
	case n == 0:
		return Piece{Voice: Described, Text: "an empty text", Argument: a.Name}
	case n > longest || strings.ContainsAny(a.Text, "\r\n"):
		return Piece{Voice: Described, Text: "a text of " + count(n, "character"), Argument: a.Name}
	case isKey(a.Text):
		return Piece{Voice: Value, Text: a.Text, Argument: a.Name}
	}
	return Piece{Voice: Quoted, Text: a.Text, Argument: a.Name}
}

// isKey reports whether a text cannot be taken for words of ours: no blank, nothing outside plain ASCII. “c_1042”, “a@b.example”.
func isKey(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.:@/+-#", r)
	}) < 0
}

// String is the sentence as one line, for a title or a log of ours. It may hold what an agent wrote: draw it through a renderer that
// shows what hides.
func (s Sentence) String() string {
	var b strings.Builder
	for _, p := range s.Pieces {
		b.WriteString(p.String())
	}
	return b.String()
}

// String is a piece in a line: what is text stands in quotes.
func (p Piece) String() string {
	if p.Voice == Quoted {
		return "“" + p.Text + "”"
	}
	return p.Text
}

// shortest is how many characters a button has room for.
const shortest = 48

// Verb is what a button says the press does: "refund €240.00". It is empty where the sentence would not fit, or holds anything but
// our words, keys and amounts: no agent writes on a button.
func (s Sentence) Verb() string {
	if !s.Reviewed || len(s.Pieces) == 0 {
		return ""
	}
	var b strings.Builder
	for _, p := range s.Pieces {
		if p.Voice != Ours && p.Voice != Value && p.Voice != Amount {
			return ""
		}
		b.WriteString(p.Text)
		if p.Voice == Amount {
			break // whom it goes to stands in the sentence above the button
		}
	}
	if utf8.RuneCountInString(b.String()) > shortest {
		return ""
	}
	return lowered(strings.TrimSpace(b.String()))
}

// lowered starts with a small letter, unless the first word is an abbreviation.
func lowered(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	second, _ := utf8.DecodeRuneInString(s[n:])
	if unicode.IsUpper(second) {
		return s
	}
	return string(unicode.ToLower(first)) + s[n:]
}
