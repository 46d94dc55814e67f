package db

import (
	"context"

	"countersign/db/rows"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/profile"
)

// place is one connection of one profile.
type place struct{ profile, connection string }

// limits are what profiles narrow tool by tool and setting by setting.
type limits struct {
	quorums   map[place]map[string]int
	resources map[place]map[string][]string
}

// limitsOf reads the limits of one profile, or of all where name is nil.
func limitsOf(ctx context.Context, q *rows.Queries, org identity.OrgID, name *string) (limits, error) {
	l := limits{map[place]map[string]int{}, map[place]map[string][]string{}}
	quorums, err := q.ProfileQuorumList(ctx, string(org), name)
	if err != nil {
		return l, err
	}
	for _, r := range quorums {
		at := place{r.Profile, r.ConnectionKey}
		if l.quorums[at] == nil {
			l.quorums[at] = map[string]int{}
		}
		l.quorums[at][r.Tool] = int(r.Signatures)
	}
	resources, err := q.ProfileResourceList(ctx, string(org), name)
	for _, r := range resources {
		at := place{r.Profile, r.ConnectionKey}
		if l.resources[at] == nil {
			l.resources[at] = map[string][]string{}
		}
		l.resources[at][r.Setting] = r.Allowed
	}
	return l, err
}

// saveUse writes one use with everything below it. The group it names must be there: the constraint says so.
func saveUse(ctx context.Context, q *rows.Queries, pr profile.Profile, position int, u profile.Use) error {
	err := q.ProfileUseInsert(ctx, useRow(pr, position, u))
	if violates(err, "profile_uses_approvers") {
		return fault.Field("uses", "There is no group “"+u.Approvers+"” any more.")
	}
	if err != nil {
		return err
	}
	for tool, n := range u.Quorum {
		p := rows.ProfileQuorumInsertParams{OrgID: string(pr.Org), Profile: pr.Name, ConnectionKey: u.Connection.String(), Tool: storable(tool), Signatures: int16(n)}
		if err := q.ProfileQuorumInsert(ctx, p); err != nil {
			return err
		}
	}
	for setting, allowed := range u.Resources {
		values := make([]string, len(allowed))
		for i, v := range allowed {
			values[i] = storable(v)
		}
		p := rows.ProfileResourceInsertParams{OrgID: string(pr.Org), Profile: pr.Name, ConnectionKey: u.Connection.String(), Setting: storable(setting), Allowed: values}
		if err := q.ProfileResourceInsert(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
