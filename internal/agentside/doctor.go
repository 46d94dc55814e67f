package agentside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/fault"
)

// oldestGit is the first git that takes its configuration from GIT_CONFIG_COUNT.
const oldestGit = "2.31"

// maxSkew is how far this machine's clock may be off before times in sentences mislead.
const maxSkew = time.Minute

// Diagnosis is what doctor found. Wrong holds a sentence for whatever has to be changed before a run can work here.
type Diagnosis struct {
	Wrong []string
}

// Doctor says in words what works here and what the run may do, without calling a service.
func Doctor(ctx context.Context, g *Gateway, plain bool, modules string, out io.Writer) (d Diagnosis) {
	d.git(ctx, out)
	p, at, err := g.Preflight(ctx)
	if err != nil {
		d.refused(err, g.origin, out)
		return d
	}
	fmt.Fprintf(out, "The gateway %s answers, and takes the run token.\n", g.origin)
	d.clock(at, time.Now(), out)
	c, err := g.Config(ctx, plain)
	if err != nil {
		d.refused(err, g.origin, out)
		return d
	}
	explainRun(p, at, out)
	explainTools(p, out)
	explainRepositories(c, p, out)
	d.runtimes(c, modules, out)
	return d
}

func (d *Diagnosis) wrong(out io.Writer, sentence string) {
	d.Wrong = append(d.Wrong, sentence)
	fmt.Fprintln(out, "WRONG: "+sentence)
}

func (d *Diagnosis) refused(err error, origin string, out io.Writer) {
	if errors.Is(err, ErrToken) {
		fmt.Fprintf(out, "The gateway %s answers.\n", origin)
	}
	d.wrong(out, err.Error())
	if f, ok := fault.As(err); ok && f.Cause != nil && !errors.Is(err, ErrToken) {
		fmt.Fprintf(out, "  cause: %v\n", f.Cause)
	}
}

var gitVersion = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

func (d *Diagnosis) git(ctx context.Context, out io.Writer) {
	raw, err := exec.CommandContext(ctx, "git", "version").Output()
	m := gitVersion.FindStringSubmatch(string(raw))
	switch {
	case err != nil || m == nil:
		d.wrong(out, "There is no git here. Install git "+oldestGit+" or newer in this image.")
	case older(m[1], m[2]):
		d.wrong(out, "Git is "+m[1]+"."+m[2]+" here, which cannot be set up for one command. Install git "+oldestGit+" or newer in this image.")
	default:
		fmt.Fprintf(out, "Git %s.%s can be used.\n", m[1], m[2])
	}
}

func older(major, minor string) bool {
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	wantMajor, wantMinor, _ := strings.Cut(oldestGit, ".")
	x, _ := strconv.Atoi(wantMajor)
	y, _ := strconv.Atoi(wantMinor)
	return a < x || a == x && b < y
}

// clock compares the gateway's time with ours. A run ends by the gateway's.
func (d *Diagnosis) clock(theirs, ours time.Time, out io.Writer) {
	off := ours.Sub(theirs)
	switch {
	case theirs.IsZero():
		d.wrong(out, "The gateway does not say what time it is. Check that nothing in between removes the header Date.")
	case off.Abs() > maxSkew:
		d.wrong(out, fmt.Sprintf("The clock of this machine is %s off. Set it by a time server; certificates and limits of time are judged by it.", off.Round(time.Second).Abs()))
	default:
		fmt.Fprintln(out, "The clock agrees with the gateway's.")
	}
}

func explainRun(p Preflight, at time.Time, out io.Writer) {
	fmt.Fprintf(out, "\nThis is a %s run. It ends at %s, in %s.\n", p.Surface, p.ExpiresAt.UTC().Format(time.RFC3339), p.ExpiresAt.Sub(at).Round(time.Second))
	if p.Surface == "chat" {
		fmt.Fprintln(out, "A chat run only reads: whatever changes something is refused, and nothing is staged.")
	} else {
		fmt.Fprintf(out, "It may ask for %d more changes; %d of %d are used.\n", max(0, p.Budget.Consequential-p.Budget.Used), p.Budget.Used, p.Budget.Consequential)
	}
	for _, day := range p.Days {
		explainDay(day, out)
	}
}

func explainDay(d Day, out io.Writer) {
	var left []string
	if a := d.Actions; a != nil {
		left = append(left, fmt.Sprintf("%d of %d changes are used", a.Used, a.Most))
	}
	if a := d.Amount; a != nil {
		left = append(left, fmt.Sprintf("%s of %s %s are spent", a.Used, a.Most, a.Currency))
	}
	fmt.Fprintf(out, "Today on %s: %s; it begins anew at %s.\n", d.Connection, strings.Join(left, ", and "), d.ResetsAt.UTC().Format(time.RFC3339))
}

// verdictWords say what becomes of a call.
var verdictWords = map[string]string{"allow": "allowed", "stage": "waits for a person", "refuse": "refused"}

// explainTools groups the tools by connection and by what becomes of them.
func explainTools(p Preflight, out io.Writer) {
	if len(p.Tools) == 0 {
		fmt.Fprintln(out, "\nThe run has no tools.")
	}
	before := ""
	for _, t := range p.Tools {
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

func explainRepositories(c Config, p Preflight, out io.Writer) {
	if len(c.Git) == 0 {
		return
	}
	fmt.Fprintln(out, "\nRepositories, with ordinary remotes and an unmodified git")
	for _, r := range c.Git {
		fmt.Fprintf(out, "  %s: clone and fetch are allowed. %s\n", r.InsteadOf, pushWords(r, p))
	}
}

// pushWords say what becomes of a push to a repository.
func pushWords(r Repository, p Preflight) string {
	const push = "git_push_branch"
	for _, t := range p.Tools {
		if t.Connection != r.Connection || t.Tool != push {
			continue
		}
		if t.Verdict == "refuse" {
			return "A push is refused: " + t.Reason
		}
		words := "A push"
		for _, g := range p.Git {
			if g.Connection == r.Connection {
				words += " to " + strings.Join(g.Branches, ", ")
			}
		}
		if t.Verdict == "stage" {
			words += " waits for a person, and the gateway delivers it then"
		} else {
			words += " is delivered at once"
		}
		return words + "; never to the default branch, never a tag, a deletion or a rewrite."
	}
	return "A push is refused: the run was not given it."
}

func (d *Diagnosis) runtimes(c Config, modules string, out io.Writer) {
	if len(c.Stdio) == 0 {
		return
	}
	fmt.Fprintln(out, "\nServers that are started here, beside the agent")
	keys := make([]string, len(c.Stdio))
	for i, r := range c.Stdio {
		keys[i] = r.Key
	}
	slices.Sort(keys)
	for _, key := range keys {
		p, err := pinned(key)
		if err == nil && p.pack != "" {
			_, err = p.check(modules)
		}
		switch {
		case err != nil:
			d.wrong(out, err.Error())
		case p.part != "":
			fmt.Fprintf(out, "  %s: a part of this program.\n", key)
		default:
			fmt.Fprintf(out, "  %s: %s in %s is what this program was built with.\n", key, p.pack, modules)
		}
	}
}
