package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
)

// Groups keeps the groups of approvers.
type Groups struct{ *DB }

var _ people.Groups = Groups{}

// Groups implements people.Groups.
func (g Groups) Groups(ctx context.Context, org identity.OrgID) (out []people.Group, err error) {
	err = g.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		found, err := q.GroupList(ctx, string(org))
		if err != nil {
			return err
		}
		names := make([]string, len(found))
		for i, r := range found {
			names[i] = r.Name
		}
		members, err := q.GroupMemberList(ctx, string(org), names)
		byGroup := map[string][]identity.PersonID{}
		for _, m := range members {
			byGroup[m.GroupName] = append(byGroup[m.GroupName], identity.PersonID(m.PersonID))
		}
		for _, r := range found {
			out = append(out, people.Group{Org: org, Name: r.Name, Version: int(r.Version), Members: byGroup[r.Name]})
		}
		return err
	})
	return out, err
}

// SaveGroup implements people.Groups.
func (g Groups) SaveGroup(ctx context.Context, gr people.Group, e audit.Entry) error {
	if err := gr.Check(); err != nil {
		return err
	}
	return g.change(ctx, gr.Org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := saveGroupRow(ctx, q, gr); err != nil {
			return err
		}
		if err := q.GroupMemberDrop(ctx, string(gr.Org), gr.Name); err != nil {
			return err
		}
		ids := make([]string, len(gr.Members))
		for i, m := range gr.Members {
			ids[i] = storable(string(m))
		}
		n, err := q.GroupMemberInsert(ctx, gr.Name, string(gr.Org), ids)
		if err == nil && int(n) != len(ids) {
			return fault.Field("members", "Everybody in a group must be active here, with the approver or the owner role.")
		}
		return err
	})
}

func saveGroupRow(ctx context.Context, q *rows.Queries, gr people.Group) error {
	if gr.Version == 0 {
		n, err := q.GroupInsert(ctx, string(gr.Org), gr.Name)
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, fault.CodeConflict, "There is a group “"+gr.Name+"” already.", "Choose another name, or change that group.")
		}
		return err
	}
	n, err := q.GroupUpdate(ctx, string(gr.Org), gr.Name, int64(gr.Version))
	if err == nil && n == 0 {
		return groupFault(ctx, q, gr.Org, gr.Name)
	}
	return err
}

// groupFault tells a group that is gone from one that somebody else saved first.
func groupFault(ctx context.Context, q *rows.Queries, org identity.OrgID, name string) error {
	if _, err := q.GroupKnown(ctx, string(org), name); err != nil {
		return orAbsent(err, "group")
	}
	return fault.Stale("Somebody else changed the group “" + name + "” since you opened it.")
}

// RemoveGroup implements people.Groups.
func (g Groups) RemoveGroup(ctx context.Context, org identity.OrgID, name string, version int, e audit.Entry) error {
	name = storable(name)
	return g.change(ctx, org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.GroupDelete(ctx, string(org), name, int64(version))
		switch {
		case violates(err, "profile_uses_approvers"):
			return fault.New(fault.Conflict, fault.CodeConflict, "A profile asks the group “"+name+"”, so it stays.", "Let the profile ask another group first.")
		case violates(err, "approver_groups_asked"):
			return fault.New(fault.Conflict, fault.CodeConflict, "An action waits for the group “"+name+"”, so it stays.", "Decide on what waits first.")
		case err == nil && n == 0:
			return groupFault(ctx, q, org, name)
		}
		return err
	})
}
