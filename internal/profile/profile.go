// Package profile owns what a kind of agent may use, and how much: the connections of a profile, narrower tools, a narrower mode or
// narrower resources per connection, the budget of its runs, the limits of a day, and who must sign. A profile only ever narrows what
// a connection grants.
package profile

import (
	"context"
	"regexp"
	"slices"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/run"
)

// Profile is one profile. Name is unique in the organization and is what a run names.
type Profile struct {
	Org        identity.OrgID
	Name       string
	Department string // the department whose meaning applies, may be empty
	Budget     int    // consequential actions a run may ask for
	Version    int    // grows with each save
	Uses       []Use
}

// Use is one connection of a profile. An empty Mode means the connection's own; a nil Tools means all that the connection grants.
// Everything else that is zero adds no limit of the profile's own.
type Use struct {
	Connection   connector.Key
	Mode         policy.Mode
	Tools        []string
	DailyActions int                 // consequential actions that may be asked for on one day, UTC
	DailyAmount  manifest.Amount     // money they may spend on one day, UTC
	Resources    map[string][]string // of a setting, the values that are allowed; an empty list allows none
	Approvers    string              // the group that decides; empty: anybody who may
	Signatures   int                 // how many people must sign, 1…5; 0 means 1
	Quorum       map[string]int      // of one tool, instead of Signatures
}

// The bounds of a use.
const (
	MostDaily      = 1_000_000
	MostSignatures = 5
)

// SignaturesFor is how many people must sign an action of a tool.
func (u Use) SignaturesFor(tool string) int {
	n, ok := u.Quorum[tool]
	if !ok {
		n = u.Signatures
	}
	return max(1, n)
}

// AsksPeople reports whether the profile asks particular people, or several, about a tool. Then no mode approves in their place.
func (u Use) AsksPeople(tool string) bool { return u.Approvers != "" || u.SignaturesFor(tool) > 1 }

var nameShape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Check says everything that is wrong with a profile before it is saved.
func (p Profile) Check() error {
	var faults fault.List
	if !nameShape.MatchString(p.Name) {
		faults = append(faults, fault.Field("name", "A profile's name is 1 to 40 lower-case letters, digits and hyphens, starting with a letter."))
	}
	if p.Budget < 0 || p.Budget > run.MaxBudget {
		faults = append(faults, fault.Field("budget", "The budget of a run is 0 to 10000 consequential actions."))
	}
	for i, u := range p.Uses {
		if slices.ContainsFunc(p.Uses[:i], func(v Use) bool { return v.Connection == u.Connection }) {
			faults = append(faults, fault.Field("uses", "The connection “"+u.Connection.String()+"” is listed twice."))
		}
		if f := u.check(); f != nil {
			faults = append(faults, f)
		}
	}
	return faults.Err()
}

func (u Use) check() *fault.Error {
	key := "“" + u.Connection.String() + "”"
	counted := func(n int) bool { return n >= 0 && n <= MostSignatures }
	switch {
	case u.DailyActions < 0 || u.DailyActions > MostDaily:
		return fault.Field("uses", "The actions of a day on "+key+" are 0 to 1,000,000; 0 sets no limit.")
	case u.DailyAmount.Units < 0 || u.DailyAmount.Units > manifest.MostUnits || (u.DailyAmount.Units == 0) != u.DailyAmount.None():
		return fault.Field("uses", "The amount of a day on "+key+" is not one that can be counted.")
	case !counted(u.Signatures):
		return fault.Field("uses", "An action on "+key+" needs 1 to 5 signatures.")
	case u.Approvers != "" && !nameShape.MatchString(u.Approvers):
		return fault.Field("uses", "There is no group “"+u.Approvers+"”.")
	}
	for _, n := range u.Quorum {
		if n < 1 || !counted(n) {
			return fault.Field("uses", "An action on "+key+" needs 1 to 5 signatures.")
		}
	}
	return nil
}

// Use returns how the profile uses a connection; false when it may not.
func (p Profile) Use(key connector.Key) (Use, bool) {
	i := slices.IndexFunc(p.Uses, func(u Use) bool { return u.Connection == key })
	if i < 0 {
		return Use{}, false
	}
	return p.Uses[i], true
}

// Narrow applies the profile to what a connection grants: the narrower mode, and the snapshot without the tools it leaves out.
func (u Use) Narrow(now policy.Standing) policy.Standing {
	if u.Mode != "" {
		now.Mode = now.Mode.Within(u.Mode)
	}
	if u.Tools != nil {
		now.Snapshot = now.Snapshot.Only(func(p policy.Pinned) bool { return slices.Contains(u.Tools, p.Tool) })
	}
	return now
}

// Store keeps profiles. Save is compare-and-set on Version (0 creates) and answers a stale fault when somebody else saved first.
type Store interface {
	Profiles(ctx context.Context, org identity.OrgID) ([]Profile, error)
	Profile(ctx context.Context, org identity.OrgID, name string) (Profile, error)
	SaveProfile(ctx context.Context, p Profile, e audit.Entry) error
	RemoveProfile(ctx context.Context, org identity.OrgID, name string, version int, e audit.Entry) error
}
