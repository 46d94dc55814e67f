package agentside

import (
	"context"
	"errors"
	"fmt"
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

// Facts are what doctor found: what works here, and what the run may do. The names are part of the interface of doctor --json.
type Facts struct {
	Wrong        []string          `json:"wrong"` // a sentence for whatever has to be changed before the run can work here
	Git          string            `json:"git"`   // version of the git that is here; empty where none can be used
	Gateway      string            `json:"gateway"`
	Answers      bool              `json:"gateway_answers"`
	TakesToken   bool              `json:"gateway_takes_token"`
	Clock        bool              `json:"clock_agrees"`
	Run          *RunFacts         `json:"run"` // null where the gateway told nothing
	Days         []DayFacts        `json:"days"`
	Tools        []ToolFacts       `json:"tools"`
	Repositories []RepositoryFacts `json:"repositories"`
	Runtimes     []RuntimeFacts    `json:"runtimes"`

	cause error // behind the last wrong sentence
}

// RunFacts are the run itself.
type RunFacts struct {
	Surface     string    `json:"surface"`
	ExpiresAt   time.Time `json:"expires_at"`
	SecondsLeft int       `json:"seconds_left"` // by the gateway's clock
	Changes     int       `json:"changes"`      // how many it may ask for in all
	ChangesUsed int       `json:"changes_used"`
}

// DayFacts are what is left of a connection's limits of the day.
type DayFacts struct {
	Connection  string    `json:"connection"`
	Changes     *int      `json:"changes,omitempty"`
	ChangesUsed *int      `json:"changes_used,omitempty"`
	Amount      string    `json:"amount,omitempty"`
	AmountUsed  string    `json:"amount_used,omitempty"`
	Currency    string    `json:"currency,omitempty"`
	ResetsAt    time.Time `json:"resets_at"`
}

// ToolFacts are what would become of a call.
type ToolFacts struct {
	Name       string `json:"name"` // as the gateway lists it
	Connection string `json:"connection"`
	Tool       string `json:"tool"`
	Effect     string `json:"effect"`
	Verdict    string `json:"verdict"` // allow, stage or refuse
	Code       string `json:"code,omitempty"`
	Reason     string `json:"reason"`
	Next       string `json:"next,omitempty"`
}

// RepositoryFacts are what git may do with a repository. All of them can be fetched.
type RepositoryFacts struct {
	Connection string   `json:"connection"`
	Repository string   `json:"repository"`
	Remotes    []string `json:"remotes"`  // each leads to the gateway
	Push       string   `json:"push"`     // allow, stage or refuse
	Branches   []string `json:"branches"` // that a push may make or continue
	Reason     string   `json:"reason,omitempty"`
}

// RuntimeFacts are a server that is started here.
type RuntimeFacts struct {
	Runtime string `json:"runtime"`
	Package string `json:"package,omitempty"` // empty: a part of countersign-agent
	Fine    bool   `json:"fine"`
}

// Examine finds out what works here and what the run may do, without calling a service.
func Examine(ctx context.Context, g *Gateway, plain bool, modules string) *Facts {
	f := &Facts{Wrong: []string{}, Gateway: g.origin, Days: []DayFacts{}, Tools: []ToolFacts{}, Repositories: []RepositoryFacts{}, Runtimes: []RuntimeFacts{}}
	f.git(ctx)
	p, at, err := g.Preflight(ctx)
	if err != nil {
		f.refused(err)
		return f
	}
	f.Answers, f.TakesToken = true, true
	f.clocks(at, time.Now())
	c, err := g.Config(ctx, plain)
	if err != nil {
		f.refused(err)
		return f
	}
	f.run(p, at)
	for _, r := range c.Git {
		f.Repositories = append(f.Repositories, repositoryFacts(r, p))
	}
	f.runtimes(c, modules)
	return f
}

func (f *Facts) wrong(sentence string) { f.Wrong = append(f.Wrong, sentence) }

func (f *Facts) refused(err error) {
	f.Answers = f.Answers || errors.Is(err, ErrToken)
	f.wrong(err.Error())
	if e, ok := fault.As(err); ok && e.Cause != nil && !errors.Is(err, ErrToken) {
		f.cause = e.Cause
	}
}

var gitVersion = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

func (f *Facts) git(ctx context.Context) {
	raw, err := exec.CommandContext(ctx, "git", "version").Output()
	m := gitVersion.FindStringSubmatch(string(raw))
	switch {
	case err != nil || m == nil:
		f.wrong("There is no git here. Install git " + oldestGit + " or newer in this image.")
	case older(m[1], m[2]):
		f.wrong("Git is " + m[1] + "." + m[2] + " here, which cannot be set up for one command. Install git " + oldestGit + " or newer in this image.")
	default:
		f.Git = m[1] + "." + m[2]
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

// clocks compares the gateway's time with ours. A run ends by the gateway's.
func (f *Facts) clocks(theirs, ours time.Time) {
	off := ours.Sub(theirs)
	switch {
	case theirs.IsZero():
		f.wrong("The gateway does not say what time it is. Check that nothing in between removes the header Date.")
	case off.Abs() > maxSkew:
		f.wrong(fmt.Sprintf("The clock of this machine is %s off. Set it by a time server; certificates and limits of time are judged by it.", off.Round(time.Second).Abs()))
	default:
		f.Clock = true
	}
}

func (f *Facts) run(p Preflight, at time.Time) {
	f.Run = &RunFacts{p.Surface, p.ExpiresAt.UTC(), int(p.ExpiresAt.Sub(at).Round(time.Second).Seconds()), p.Budget.Consequential, p.Budget.Used}
	for _, d := range p.Days {
		day := DayFacts{Connection: d.Connection, ResetsAt: d.ResetsAt.UTC()}
		if a := d.Actions; a != nil {
			day.Changes, day.ChangesUsed = &a.Most, &a.Used
		}
		if a := d.Amount; a != nil {
			day.Amount, day.AmountUsed, day.Currency = a.Most, a.Used, a.Currency
		}
		f.Days = append(f.Days, day)
	}
	for _, t := range p.Tools {
		f.Tools = append(f.Tools, ToolFacts(t))
	}
}

// repositoryFacts finds what becomes of a push to a repository.
func repositoryFacts(r Repository, p Preflight) RepositoryFacts {
	const push = "git_push_branch"
	out := RepositoryFacts{Connection: r.Connection, Repository: r.Name, Remotes: spellings(r.InsteadOf), Push: "refuse", Branches: []string{}, Reason: "the run was not given it."}
	for _, t := range p.Tools {
		if t.Connection == r.Connection && t.Tool == push {
			out.Push, out.Reason = t.Verdict, t.Reason
		}
	}
	for _, g := range p.Git {
		if g.Connection == r.Connection && out.Push != "refuse" {
			out.Branches = g.Branches
		}
	}
	return out
}

func (f *Facts) runtimes(c Config, modules string) {
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
		if err != nil {
			f.wrong(err.Error())
		}
		f.Runtimes = append(f.Runtimes, RuntimeFacts{Runtime: key, Package: p.pack, Fine: err == nil})
	}
}
