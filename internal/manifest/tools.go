package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/internal/policy"
	"countersign/internal/registry"
)

var (
	toolShape     = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
	currencyShape = regexp.MustCompile(`^[A-Z]{3}$`)
)

// longestTool is in bytes: what the protocol's documents call the most a name should have.
const longestTool = 128

func toolRules(c *check) {
	if len(c.m.Tools) > 500 {
		c.at("tools", "There are more than 500 reviewed tools.", "Review what people will use; the rest stays consequential.")
	}
	for _, t := range c.m.Tools {
		p := toolPath(t.Name)
		if len(t.Name) > longestTool || !toolShape.MatchString(t.Name) {
			c.at(p, "“"+t.Name+"” cannot be the name of a tool.", "Use the name exactly as the service lists it: letters, digits, _ . / and -.")
		}
		c.review(p, t)
		c.sentence(p, t)
		c.money(p, t)
		c.resourceArgument(p, t)
		c.needs(p, t)
		c.settleSeconds(p, t)
		c.definiteErrors(p, t)
		c.lookUps(p, t)
		c.toolProbe(p, t)
	}
}

// review holds the classification to what makes it one: an effect, by somebody, on a day, for a reason.
func (c *check) review(p string, t ToolPolicy) {
	switch {
	case t.Effect != policy.Read && t.Effect != policy.Consequential:
		c.at(p+".effect", "The effect of “"+t.Name+"” is “"+string(t.Effect)+"”.", "Write effect = \"read\" or \"consequential\"; leave the whole table out when nobody has reviewed it.")
	case t.Destructive && t.Effect == policy.Read:
		c.at(p+".destructive", "“"+t.Name+"” cannot be a read and destructive.", "Write effect = \"consequential\".")
	}
	if _, err := time.Parse(time.DateOnly, t.Reviewed); err != nil {
		c.at(p+".reviewed", "The effect of “"+t.Name+"” is not reviewed: “reviewed” names no day.",
			"Read the tool's definition and write reviewed = \"2026-11-30\" with that day, or leave the whole table out: an unreviewed tool counts as consequential.")
	}
	c.line(p+".why", t.Why, 10, 300)
	for i, a := range t.Arguments {
		if !argumentName.MatchString(a) || slices.Contains(t.Arguments[:i], a) {
			c.at(fmt.Sprintf("%s.arguments[%d]", p, i), "“"+a+"” is no usable argument name of “"+t.Name+"”, or is there twice.", "List the names as the tool's schema has them.")
		}
	}
}

// sentence holds the words an approver decides on to what they may say. A sentence never starts with an argument: the agent would
// speak first, in our voice.
func (c *check) sentence(p string, t ToolPolicy) {
	if t.Sentence == "" && t.Effect == policy.Consequential {
		c.at(p+".sentence", "“"+t.Name+"” is consequential and has no sentence for the person who decides.", "Write sentence = \"Move deal {deal_id} to {stage}\".")
	}
	if t.Sentence != "" {
		c.line(p+".sentence", t.Sentence, 5, 160)
		names, wrong := placeholders(t.Sentence)
		if wrong != "" {
			c.at(p+".sentence", "The sentence of “"+t.Name+"” "+wrong+".", "Write an argument as {name}.")
		}
		for _, n := range names {
			c.argument(p+".sentence", "The sentence of “"+t.Name+"” shows", n, t)
		}
		if strings.HasPrefix(t.Sentence, "{") || strings.HasSuffix(t.Sentence, ".") {
			c.at(p+".sentence", "The sentence of “"+t.Name+"” must start with our own word and end without a full stop.", "Write it like “Refund {amount_cents} to contact {contact_id}”.")
		}
	}
	switch {
	case t.Destructive && t.Stakes == "":
		c.at(p+".stakes", "“"+t.Name+"” is destructive and does not say what cannot be undone.", "Write stakes = \"The contact and its notes are gone for good.\"")
	case t.Stakes != "" && t.Effect == policy.Read:
		c.at(p+".stakes", "“"+t.Name+"” is a read and has stakes.", "Remove stakes, or review the effect.")
	case t.Stakes != "":
		c.line(p+".stakes", t.Stakes, 10, 160)
	}
}

func (c *check) money(p string, t ToolPolicy) {
	m := t.Money
	if m == nil {
		return
	}
	c.argument(p+".money.argument", "The money of “"+t.Name+"” is", m.Argument, t)
	if name, ok := m.currencyArgument(); ok {
		c.argument(p+".money.currency", "The currency of “"+t.Name+"” is", name, t)
	} else if !currencyShape.MatchString(m.Currency) {
		c.at(p+".money.currency", "“"+m.Currency+"” is not a currency.", "Write its three letters, like \"USD\".")
	}
	if !c.index.has(p+".money.minor_units") || m.MinorUnits < 0 || m.MinorUnits > 4 {
		c.at(p+".money.minor_units", "The money of “"+t.Name+"” does not say how many decimals its argument counts.", "Write minor_units = 2 when 24000 means 240.00, and 0 when it means 24000.")
	}
	if t.Effect == policy.Read {
		c.at(p+".money", "“"+t.Name+"” is a read and moves money.", "Review the effect.")
	}
}

func (c *check) resourceArgument(p string, t ToolPolicy) {
	r := t.Resource
	if r == nil {
		return
	}
	c.argument(p+".resource.argument", "The resource of “"+t.Name+"” is", r.Argument, t)
	if r.Setting != "" && !slices.ContainsFunc(c.m.Resources, func(s Resource) bool { return s.Name == r.Setting }) {
		c.at(p+".resource.setting", "“"+t.Name+"” is bounded by the setting “"+r.Setting+"”, which this manifest does not have.", "Add it as [[resources]], or leave setting out.")
	}
}

// argument holds a name used in the policy to the reviewed arguments of the tool.
func (c *check) argument(path, what, name string, t ToolPolicy) {
	if !slices.Contains(t.Arguments, name) {
		c.at(path, what+" “"+name+"”, which is not among its reviewed arguments.", "Correct the name, or add it to arguments after looking at the tool's schema.")
	}
}

// ambiguous are texts of failures that leave an effect open. A pattern that matches one of them would turn "may have happened"
// into "did not happen", and an agent would do it twice.
var ambiguous = []string{
	"", "error", "Error", "failed", "Internal error", "internal server error", "timeout", "Request timed out", "deadline exceeded", "connection reset by peer",
	"unexpected end of JSON input", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout", "500", "conflict", "An error occurred",
}

func (c *check) settleSeconds(p string, t ToolPolicy) {
	if t.SettleSeconds < 0 || t.SettleSeconds > 86_400 || (t.SettleSeconds > 0 && t.Effect == policy.Read) {
		c.at(p+".settle_seconds", "“"+t.Name+"” has a settle window that is not 1 to 86400 seconds of a consequential tool.", "Write how long the vendor may still apply a call whose answer was lost, or leave it out.")
	}
}

func (c *check) definiteErrors(p string, t ToolPolicy) {
	if t.Effect == policy.Read && len(t.DefiniteErrors) > 0 {
		c.at(p+".definite_errors", "“"+t.Name+"” is a read; its errors never leave an effect open.", "Remove definite_errors.")
	}
	for i, pattern := range t.DefiniteErrors {
		path := fmt.Sprintf("%s.definite_errors[%d]", p, i)
		re, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 200 {
			c.at(path, "“"+t.Name+"” has an error pattern that is no regular expression of at most 200 characters.", "Write it in RE2 syntax.")
			continue
		}
		if at := slices.IndexFunc(ambiguous, re.MatchString); at >= 0 {
			c.at(path, "“"+t.Name+"” has an error pattern that also matches “"+ambiguous[at]+"”, after which the effect may have happened.", "Write the vendor's own words for a refusal, anchored with ^.")
		}
	}
}

func (c *check) lookUps(p string, t ToolPolicy) {
	for i, call := range t.LookUps {
		path := fmt.Sprintf("%s.look_ups[%d]", p, i)
		c.readWith(path, "A look-up of “"+t.Name+"”", call, t)
	}
}

// readWith is read for a call that carries arguments of the action.
func (c *check) readWith(path, what string, call Call, t ToolPolicy) {
	c.read(path, call)
	for _, s := range textsIn(call.Arguments) {
		names, wrong := placeholders(s)
		if wrong != "" || len(names) > 0 && s != "{"+names[0]+"}" {
			c.at(path+".arguments", what+" mixes an argument with other text.", "Write the whole value as \"{name}\".")
			continue
		}
		for _, n := range names {
			c.argument(path+".arguments", what+" uses", n, t)
		}
	}
}

// probeRule demands a proof that a credential works: some services list their tools to anybody.
func probeRule(c *check) {
	p := c.m.Probe
	if p == nil {
		if c.m.Kind == registry.Hosted || c.m.Kind == registry.Direct || c.m.Kind == registry.CLI {
			c.at("probe", "The manifest has no probe, so a connection test would prove nothing: a service may list its tools to anybody.", "Add [probe] with a reviewed read and its arguments.")
		}
		return
	}
	c.read("probe", p.Call)
	if p.Expect != "" {
		c.line("probe.expect", p.Expect, 1, 200)
	}
}

// read holds a call to a reviewed read of the same manifest, with arguments that have a JSON form.
func (c *check) read(path string, call Call) {
	if t, ok := c.m.Policy(call.Tool); !ok || t.Effect != policy.Read {
		c.at(path+".tool", "“"+call.Tool+"” is not a reviewed read of this manifest; a look-up or a connection test never changes anything.", "Name a tool with effect = \"read\".")
	}
	if !hasJSON(call.Arguments) {
		c.at(path+".arguments", "The arguments hold a date or a number that JSON cannot carry.", "Use text, numbers, true, false, lists and tables.")
	}
}
