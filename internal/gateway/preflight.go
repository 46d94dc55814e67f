package gateway

import (
	"context"
	"time"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/provider/github"
	"countersign/internal/registry"
	"countersign/internal/run"
)

// Preflight is what would become of each call of a run, as far as that is known without its arguments and without asking an upstream.
// The names are part of the interface.
type Preflight struct {
	Run       run.ID          `json:"run"`
	Surface   policy.Surface  `json:"surface"`
	ExpiresAt time.Time       `json:"expires_at"`
	Budget    PreflightBudget `json:"budget"`
	Tools     []PreflightTool `json:"tools"`
	Days      []PreflightDay  `json:"days"` // of each connection whose profile has a limit of the day
	Git       []PreflightGit  `json:"git"`  // of each connection of repositories
}

// PreflightBudget counts the consequential actions of the run.
type PreflightBudget struct {
	Consequential int `json:"consequential"`
	Used          int `json:"used"`
}

// PreflightTool is one tool that was minted into the run.
type PreflightTool struct {
	Name       string        `json:"name"` // as POST /gateway/mcp lists it
	Connection connector.Key `json:"connection"`
	Tool       string        `json:"tool"` // the service's own name
	Effect     policy.Effect `json:"effect"`
	Verdict    string        `json:"verdict"` // allow: at once; stage: a person decides first; refuse
	Code       fault.Code    `json:"code,omitempty"`
	Reason     string        `json:"reason"`
	Next       string        `json:"next,omitempty"`
}

// PreflightGit is which branches of a connection's repositories a push may make or continue. The default branch is never one of them.
type PreflightGit struct {
	Connection connector.Key    `json:"connection"`
	Branches   gitgateway.Rules `json:"branches"`
}

// PreflightDay is what is left of a limit of the day.
type PreflightDay struct {
	Connection connector.Key    `json:"connection"`
	Actions    *PreflightLimit  `json:"actions,omitempty"`
	Amount     *PreflightAmount `json:"amount,omitempty"`
	ResetsAt   time.Time        `json:"resets_at"`
}

// PreflightLimit counts actions.
type PreflightLimit struct {
	Most int `json:"most"`
	Used int `json:"used"`
}

// PreflightAmount is money, in decimal notation.
type PreflightAmount struct {
	Currency string `json:"currency"`
	Most     string `json:"most"`
	Used     string `json:"used"`
}

// Preflight judges every tool of a run.
func (g *Gateway) Preflight(ctx context.Context, l capability.Live) (Preflight, error) {
	org := l.Org.ID
	now, err := g.Room.Run(ctx, org, l.Run.ID) // what is remembered does not count the budget
	if err != nil {
		return Preflight{}, err
	}
	standing, err := g.Room.Freezes(ctx, org)
	if err != nil {
		return Preflight{}, err
	}
	days, err := g.Room.Days(ctx, org, l.Run.Profile)
	if err != nil {
		return Preflight{}, err
	}
	p, err := g.Room.Profile(ctx, org, l.Run.Profile)
	if err != nil && !fault.Is(err, fault.CodeNotFound) { // one that was removed leaves no use; every verdict says so
		return Preflight{}, err
	}
	out := Preflight{
		Run: l.Run.ID, Surface: l.Run.Surface, ExpiresAt: l.Run.ExpiresAt.UTC(), Budget: PreflightBudget{now.Run.Budget, now.Run.Used},
		Tools: []PreflightTool{}, Days: []PreflightDay{}, Git: []PreflightGit{},
	}
	for _, grant := range l.Grants {
		key := grant.Connection.Key
		for pin := range grant.Minted.All() {
			out.Tools = append(out.Tools, g.foresee(l, targetOf(grant, pin), foreseen{now.Run, standing, days[key], useOf(p, key)}))
		}
		if d, ok := days[key]; ok {
			out.Days = append(out.Days, left(key, d))
		}
		if grant.Connection.Kind == registry.Git {
			rules, err := gitgateway.ParseRules(grant.Connection.Settings[github.BranchesSetting])
			if err != nil { // rules that cannot be read allow no branch
				rules = gitgateway.Rules{}
			}
			out.Git = append(out.Git, PreflightGit{key, rules})
		}
	}
	return out, nil
}

// foreseen is what limits the calls of one connection.
type foreseen struct {
	run      run.Run
	standing []action.Freeze
	day      action.Day
	use      profile.Use
}

func (g *Gateway) foresee(l capability.Live, t target, f foreseen) PreflightTool {
	out := PreflightTool{Name: capability.Name(t.key(), t.tool), Connection: t.key(), Tool: t.tool, Effect: t.effect()}
	do, refusal := g.known(l, t)
	if refusal == nil && do != policy.Pass {
		refusal = g.stopped(t, f)
	}
	switch {
	case refusal != nil:
		out.Verdict, out.Code, out.Reason, out.Next = "refuse", refusal.Code, refusal.What, refusal.Next
	case do == policy.Pass:
		out.Verdict, out.Reason = "allow", "It only reads."
	case do == policy.Run && !f.use.AsksPeople(t.tool):
		out.Verdict, out.Reason = "allow", "It changes something; policy approves it within the limits, and it is sent once."
	default:
		out.Verdict, out.Reason = "stage", "It changes something, so a person decides before it is sent."
	}
	return out
}

// stopped asks the fences about an effect of which nothing but its tool is known.
func (g *Gateway) stopped(t target, f foreseen) *fault.Error {
	if over, ok := action.Covering(f.standing, f.run.Profile, t.key()); ok {
		return over.Refusal()
	}
	return action.Judge(action.AtStage, action.Facts{
		RunLive: true, BehalfActive: true, SameTask: true, ProfileAllows: true, Granted: true, SameDefinition: true, SameDestination: true,
		ConnectionActive: t.grant.Connection.State == installation.Active, Mode: t.grant.Now.Mode,
		Budget: f.run.Budget, Used: f.run.Used, Day: f.day,
	})
}

func useOf(p profile.Profile, key connector.Key) profile.Use {
	for _, u := range p.Uses {
		if u.Connection == key {
			return u
		}
	}
	return profile.Use{}
}

func left(key connector.Key, d action.Day) PreflightDay {
	out := PreflightDay{Connection: key, ResetsAt: d.Date.AddDate(0, 0, 1).UTC()}
	if d.Most > 0 {
		out.Actions = &PreflightLimit{Most: d.Most, Used: d.Actions}
	}
	if limit := d.MostAmount; !limit.None() {
		spent := limit
		spent.Units = d.Spent
		out.Amount = &PreflightAmount{Currency: limit.Currency, Most: limit.String(), Used: spent.String()}
	}
	return out
}
