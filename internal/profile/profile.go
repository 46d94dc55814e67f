// Package profile owns what a kind of agent may use, and how much: the connections of a profile, narrower tools or a narrower mode
// per connection, and the budget of its runs. A profile only ever narrows what a connection grants.
package profile

import (
	"context"
	"regexp"
	"slices"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
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
type Use struct {
	Connection connector.Key
	Mode       policy.Mode
	Tools      []string
}

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
	}
	return faults.Err()
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
	if u.Mode != "" && slices.Index(policy.Modes, u.Mode) < slices.Index(policy.Modes, now.Mode) {
		now.Mode = u.Mode
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
