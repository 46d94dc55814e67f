package people

import (
	"context"
	"regexp"
	"slices"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Group is a set of people who are asked together. Its name is unique in the organization, never changes, and is what profiles name.
type Group struct {
	Org     identity.OrgID
	Name    string
	Members []identity.PersonID
	Version int // grows with each save
}

// MaxMembers bounds a group.
const MaxMembers = 100

var groupShape = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Check says what is wrong with a group before it is saved.
func (g Group) Check() error {
	var faults fault.List
	if !groupShape.MatchString(g.Name) {
		faults = append(faults, fault.Field("name", "A group's name is 1 to 40 lower-case letters, digits and hyphens, starting with a letter."))
	}
	if len(g.Members) == 0 || len(g.Members) > MaxMembers {
		faults = append(faults, fault.Field("members", "A group has 1 to 100 members."))
	}
	for i, m := range g.Members {
		if slices.Contains(g.Members[:i], m) {
			faults = append(faults, fault.Field("members", "Somebody is in the group twice."))
			break
		}
	}
	return faults.Err()
}

// Groups keeps the groups of approvers. SaveGroup is compare-and-set on Version (0 makes one) and takes only active people who may
// decide; RemoveGroup refuses while a profile names the group or an action waits for it.
type Groups interface {
	Groups(ctx context.Context, org identity.OrgID) ([]Group, error)
	SaveGroup(ctx context.Context, g Group, e audit.Entry) error
	RemoveGroup(ctx context.Context, org identity.OrgID, name string, version int, e audit.Entry) error
}
