package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/profile"
)

// Profiles keeps what kinds of agents may use.
type Profiles struct{ *DB }

var _ profile.Store = Profiles{}

// Profiles lists an organization's profiles by name.
func (p Profiles) Profiles(ctx context.Context, org identity.OrgID) (out []profile.Profile, err error) {
	err = p.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		found, err := q.ProfileList(ctx, string(org))
		if err != nil {
			return err
		}
		uses, err := q.ProfileUseList(ctx, string(org), nil)
		if err != nil {
			return err
		}
		limits, err := limitsOf(ctx, q, org, nil)
		if err != nil {
			return err
		}
		byProfile := map[string][]profile.Use{}
		for _, u := range uses {
			byProfile[u.Profile] = append(byProfile[u.Profile], use(u, limits))
		}
		for _, r := range found {
			out = append(out, profile.Profile{Org: org, Name: r.Name, Department: r.Department, Budget: int(r.Budget), Version: int(r.Version), Uses: byProfile[r.Name]})
		}
		return nil
	})
	return out, err
}

// Profile reads one profile.
func (p Profiles) Profile(ctx context.Context, org identity.OrgID, name string) (out profile.Profile, err error) {
	name = storable(name)
	err = p.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		r, err := q.ProfileByName(ctx, string(org), name)
		if err != nil {
			return orAbsent(err, "profile")
		}
		out = profile.Profile{Org: org, Name: r.Name, Department: r.Department, Budget: int(r.Budget), Version: int(r.Version)}
		uses, err := q.ProfileUseList(ctx, string(org), &name)
		if err != nil {
			return err
		}
		limits, err := limitsOf(ctx, q, org, &name)
		for _, u := range uses {
			out.Uses = append(out.Uses, use(u, limits))
		}
		return err
	})
	return out, err
}

func use(r rows.ProfileUseListRow, l limits) profile.Use {
	at := place{r.Profile, r.ConnectionKey}
	u := profile.Use{
		Connection: connector.Key(r.ConnectionKey), Tools: r.Tools, DailyActions: int(r.DailyActions),
		DailyAmount: manifest.Amount{Currency: r.DailyCurrency, Units: r.DailyAmount}, Approvers: text(r.Approvers), Quorum: l.quorums[at], Resources: l.resources[at],
	}
	if r.Signatures > 1 {
		u.Signatures = int(r.Signatures)
	}
	if r.Mode != nil {
		u.Mode = policy.Mode(*r.Mode)
	}
	return u
}

// SaveProfile makes (version 0) or replaces a profile. A use of a connection that is not there grants nothing, now or later: keys are
// never given again. The row's lock makes two who save the same version follow each other: the
// second one is told that its page is old.
func (p Profiles) SaveProfile(ctx context.Context, pr profile.Profile, e audit.Entry) error {
	if err := pr.Check(); err != nil {
		return err
	}
	return p.change(ctx, pr.Org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := saveProfileRow(ctx, q, pr); err != nil {
			return err
		}
		if err := q.ProfileUseDrop(ctx, string(pr.Org), pr.Name); err != nil {
			return err
		}
		for i, u := range pr.Uses {
			if err := saveUse(ctx, q, pr, i, u); err != nil {
				return err
			}
		}
		return nil
	})
}

func saveProfileRow(ctx context.Context, q *rows.Queries, pr profile.Profile) error {
	if pr.Version == 0 {
		n, err := q.ProfileInsert(ctx, rows.ProfileInsertParams{OrgID: string(pr.Org), Name: pr.Name, Department: storable(pr.Department), Budget: int32(pr.Budget)})
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, fault.CodeConflict, "There is a profile “"+pr.Name+"” already.", "Choose another name, or change that profile.")
		}
		return err
	}
	n, err := q.ProfileUpdate(ctx, rows.ProfileUpdateParams{Department: storable(pr.Department), Budget: int32(pr.Budget), OrgID: string(pr.Org), Name: pr.Name, Version: int64(pr.Version)})
	if err == nil && n == 0 {
		return profileFault(ctx, q, pr.Org, pr.Name)
	}
	return err
}

// profileFault tells a profile that is gone from one that somebody else saved first.
func profileFault(ctx context.Context, q *rows.Queries, org identity.OrgID, name string) error {
	if _, err := q.ProfileByName(ctx, string(org), name); err != nil {
		return orAbsent(err, "profile")
	}
	return fault.Stale("Somebody else changed the profile “" + name + "” since you opened it.")
}

func useRow(pr profile.Profile, position int, u profile.Use) rows.ProfileUseInsertParams {
	r := rows.ProfileUseInsertParams{
		OrgID: string(pr.Org), Profile: pr.Name, ConnectionKey: u.Connection.String(), Position: int32(position),
		DailyActions: int32(u.DailyActions), DailyAmount: u.DailyAmount.Units, DailyCurrency: u.DailyAmount.Currency, Approvers: optional(u.Approvers), Signatures: int16(max(1, u.Signatures)),
	}
	if u.Mode != "" {
		mode := string(u.Mode)
		r.Mode = &mode
	}
	if u.Tools != nil {
		r.Tools = make([]string, len(u.Tools))
		for i, t := range u.Tools {
			r.Tools[i] = storable(t)
		}
	}
	return r
}

// RemoveProfile removes a profile as somebody saw it.
func (p Profiles) RemoveProfile(ctx context.Context, org identity.OrgID, name string, version int, e audit.Entry) error {
	name = storable(name)
	return p.change(ctx, org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.ProfileDelete(ctx, string(org), name, int64(version))
		if err == nil && n == 0 {
			return profileFault(ctx, q, org, name)
		}
		return err
	})
}
