// Package ui owns the small parts every page is made of: buttons, fields, notices, rows, times, differences and the renderer for
// text that somebody else wrote. It never knows a word of the trade (no action, no connection), reads nothing and decides nothing.
package ui

import "strconv"

// Tone is what colour repeats; the words and the icon already say it.
type Tone string

// The tones. Unknown is violet, "nobody knows yet", and is used for nothing else.
const (
	Plain   Tone = ""
	OK      Tone = "ok"
	Look    Tone = "look"
	Bad     Tone = "bad"
	Unknown Tone = "unknown"
)

// toneIcon is the icon that stands for a tone, so that colour is never alone.
func toneIcon(t Tone) string {
	switch t {
	case OK:
		return "succeeded"
	case Look:
		return "warn"
	case Bad:
		return "failed"
	case Unknown:
		return "uncertain"
	default:
		return "info"
	}
}

// noteRole makes a refusal heard at once; everything else is read in its place.
func noteRole(t Tone) string {
	if t == Bad {
		return "alert"
	}
	return ""
}

// Weight is how a button looks. One Primary a page.
type Weight string

// The weights of a button.
const (
	Normal   Weight = ""
	Primary  Weight = "primary"
	Danger   Weight = "danger"  // cannot be undone
	Doubtful Weight = "unknown" // settles an unknown outcome without an answer
	Quiet    Weight = "quiet"   // small, beside something
)

// Press describes a submit button. Label is the verb and its object ("Approve and refund $240.00").
type Press struct {
	Label  string
	Weight Weight
	Icon   string
	Test   string // data-test: outside checks press it by this name
	Action string // formaction, where one form has two answers
	Name   string // name and value, where the button itself is an answer
	Value  string
	Off    bool // cannot be pressed now; say why beside it
	Small  bool
}

func (p Press) class() string {
	c := "btn"
	if p.Weight != Normal {
		c += " " + string(p.Weight)
	}
	if p.Small && p.Weight != Quiet {
		c += " quiet"
	}
	return c
}

// Input describes one labelled control. Value is kept on a failed save; leave it empty for secrets, always.
type Input struct {
	ID           string // also the fragment that an error list links to; Name when empty
	Name         string
	Label        string
	Type         string // text when empty
	Value        string
	Hint         string
	Error        string // what is wrong, and what stayed as it was
	Autocomplete string
	Placeholder  string
	InputMode    string
	Required     bool
	Focus        bool // autofocus: the first control with an error
	ReadOnly     bool
	Mono         bool // keys, URLs, digests
	Rows         int  // TextArea only
	MaxLength    int
	Options      []Option // Select only
}

// Option is one choice of a Select.
type Option struct {
	Value, Label string
	Off          bool
}

func (in Input) id() string {
	if in.ID != "" {
		return in.ID
	}
	return in.Name
}

func (in Input) kind() string {
	if in.Type != "" {
		return in.Type
	}
	return "text"
}

// describedBy ties hint and error to the control, error first: it is what a person needs to hear.
func (in Input) describedBy() string {
	switch {
	case in.Error != "" && in.Hint != "":
		return in.id() + "-e " + in.id() + "-h"
	case in.Error != "":
		return in.id() + "-e"
	case in.Hint != "":
		return in.id() + "-h"
	}
	return ""
}

func (in Input) rows() string {
	if in.Rows > 0 {
		return strconv.Itoa(in.Rows)
	}
	return "3"
}

// Choice is a checkbox or a radio with its label, and what choosing it means.
type Choice struct {
	ID, Name, Value string
	Label           string
	Hint            string
	Checked         bool
	Off             bool
	Radio           bool
	Test            string
}

func (c Choice) kind() string {
	if c.Radio {
		return "radio"
	}
	return "checkbox"
}

// Crumb is one step of the path to this page; the last has no Href.
type Crumb struct {
	Label, Href string
	Mono        bool
}

// Tab is a link to one part of a page. Count below zero is not shown; CountWords is what a screen reader hears after it.
type Tab struct {
	Label, Href string
	Current     bool
	Count       int
	CountWords  string
	NeedsLook   bool
}

// Cursor is a page of a list that is walked by key, not by number: rows that arrive meanwhile shift nothing.
type Cursor struct {
	First string // link to the newest page; empty when this is it
	Next  string // link to the older page; empty at the end
	Words string // "40 entries, 29 to 30 November"
}

// Problem is one line of the list on top of a form with several errors.
type Problem struct{ ID, Text string }
