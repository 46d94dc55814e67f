package agentside

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Say writes the facts in words, for a person. Modules is where packages of npm were looked for.
func (f *Facts) Say(modules string, out io.Writer) {
	if f.Git != "" {
		fmt.Fprintf(out, "Git %s can be used.\n", f.Git)
	}
	switch {
	case f.TakesToken:
		fmt.Fprintf(out, "The gateway %s answers, and takes the run token.\n", f.Gateway)
	case f.Answers:
		fmt.Fprintf(out, "The gateway %s answers.\n", f.Gateway)
	}
	if f.Clock {
		fmt.Fprintln(out, "The clock agrees with the gateway's.")
	}
	for _, sentence := range f.Wrong {
		fmt.Fprintln(out, "WRONG: "+sentence)
	}
	if f.cause != nil {
		fmt.Fprintf(out, "  cause: %v\n", f.cause)
	}
	if f.Run == nil {
		return
	}
	f.sayRun(out)
	f.sayTools(out)
	if len(f.Repositories) > 0 {
		fmt.Fprintln(out, "\nRepositories, with ordinary remotes and an unmodified git")
	}
	for _, r := range f.Repositories {
		fmt.Fprintf(out, "  %s: clone and fetch are allowed. %s\n", r.Remotes[0], r.push())
	}
	f.sayRuntimes(modules, out)
}

func (f *Facts) sayRun(out io.Writer) {
	r := f.Run
	fmt.Fprintf(out, "\nThis is a %s run. It ends at %s, in %s.\n", r.Surface, r.ExpiresAt.Format(time.RFC3339), time.Duration(r.SecondsLeft)*time.Second)
	if r.Surface == "chat" {
		fmt.Fprintln(out, "A chat run only reads: whatever changes something is refused, and nothing is staged.")
	} else {
		fmt.Fprintf(out, "It may ask for %d more changes; %d of %d are used.\n", max(0, r.Changes-r.ChangesUsed), r.ChangesUsed, r.Changes)
	}
	for _, d := range f.Days {
		var left []string
		if d.Changes != nil {
			left = append(left, fmt.Sprintf("%d of %d changes are used", *d.ChangesUsed, *d.Changes))
		}
		if d.Currency != "" {
			left = append(left, fmt.Sprintf("%s of %s %s are spent", d.AmountUsed, d.Amount, d.Currency))
		}
		fmt.Fprintf(out, "Today on %s: %s; it begins anew at %s.\n", d.Connection, strings.Join(left, ", and "), d.ResetsAt.Format(time.RFC3339))
	}
}

// verdictWords say what becomes of a call.
var verdictWords = map[string]string{"allow": "allowed", "stage": "waits for a person", "refuse": "refused"}

// sayTools groups the tools by connection and by what becomes of them.
func (f *Facts) sayTools(out io.Writer) {
	if len(f.Tools) == 0 {
		fmt.Fprintln(out, "\nThe run has no tools.")
	}
	before := ""
	for _, t := range f.Tools {
		if t.Connection != before {
			fmt.Fprintf(out, "\n%s\n", t.Connection)
			before = t.Connection
		}
		word, ok := verdictWords[t.Verdict]
		if !ok {
			word = visible(t.Verdict)
		}
		fmt.Fprintf(out, "  %-32s %-18s %s", visible(t.Tool), word, t.Reason)
		if t.Code != "" {
			fmt.Fprintf(out, " (%s)", t.Code)
		}
		if t.Next != "" {
			fmt.Fprintf(out, " %s", t.Next)
		}
		fmt.Fprintln(out)
	}
}

// push says what becomes of a push to a repository.
func (r RepositoryFacts) push() string {
	words := "A push"
	if len(r.Branches) > 0 {
		words += " to " + strings.Join(r.Branches, ", ")
	}
	switch r.Push {
	case "allow":
		words += " is delivered at once"
	case "stage":
		words += " waits for a person, and the gateway delivers it then"
	default:
		return "A push is refused: " + r.Reason
	}
	return words + "; never to the default branch, never a tag, a deletion or a rewrite."
}

func (f *Facts) sayRuntimes(modules string, out io.Writer) {
	if len(f.Runtimes) > 0 {
		fmt.Fprintln(out, "\nServers that are started here, beside the agent")
	}
	for _, r := range f.Runtimes {
		switch {
		case !r.Fine:
			fmt.Fprintf(out, "  %s: not started; why stands above.\n", visible(r.Runtime))
		case r.Package == "":
			fmt.Fprintf(out, "  %s: a part of this program.\n", r.Runtime)
		default:
			fmt.Fprintf(out, "  %s: %s in %s is what this program was built with.\n", r.Runtime, r.Package, modules)
		}
	}
}
