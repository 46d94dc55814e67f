package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/profile"
)

var _ action.Ledger = Actions{}

// asked is what the profile says about one call at this moment.
type asked struct {
	behalfActive bool
	approvers    string
	signatures   int
	bound        string   // the connection's own setting
	allowed      []string // what the profile leaves of it; nil: all
	day          action.Day
}

// people reports whether particular people, or several, are asked: then no mode approves in their place.
func (a asked) people() bool {
	return profile.Use{Approvers: a.approvers, Signatures: a.signatures}.AsksPeople("")
}

func askedOf(f rows.ActionFactsRow) asked {
	return asked{
		behalfActive: f.BehalfActive, approvers: f.Approvers, signatures: int(f.Signatures), bound: f.Bound, allowed: f.Allowed,
		day: action.Day{
			Date: f.Day, Actions: int(f.DayActions), Most: int(f.DailyActions), Spent: f.DayAmount,
			MostAmount: manifest.Amount{Currency: f.DailyCurrency, Units: f.DailyAmount},
		},
	}
}

// overdrawn turns the ledger's own refusal into the budget fence's. Many who stage at the same moment all read that there is room; the
// ledger's row lets them in one by one and stops the one too many.
func overdrawn(err error, f action.Facts) error {
	var full func(*action.Facts)
	switch {
	case violates(err, "runs_budget_holds"):
		full = func(f *action.Facts) { f.Used = f.Budget }
	case violates(err, "budget_days_hold"):
		full = func(f *action.Facts) { f.Day.Actions, f.Day.Spent = f.Day.Most, f.Day.MostAmount.Units }
	case violates(err, "budget_days_currency"):
		full = func(*action.Facts) {}
	default:
		return nil
	}
	full(&f)
	if refused := action.Judge(action.AtStage, f); refused != nil {
		return refused
	}
	// An admin lowered a limit between the reading and the reservation.
	return fault.New(fault.Forbidden, fault.BudgetExceeded, "The limits of the day on this connection have just changed, and this call does not fit them; nothing was staged.",
		"Call again to read the limit; it resets at 00:00 UTC.")
}

func unitsOf(a manifest.Amount) *int64 {
	if a.None() {
		return nil
	}
	return &a.Units
}

func spendsOf(a rows.Action) manifest.Amount {
	if a.Amount == nil || a.Currency == nil {
		return manifest.Amount{}
	}
	return manifest.Amount{Currency: *a.Currency, Units: *a.Amount}
}

func valueOf(t manifest.Touched) *string {
	if !t.Named {
		return nil
	}
	v := storable(t.Value)
	return &v
}

func touchedOf(a rows.Action) manifest.Touched {
	return manifest.Touched{Setting: a.ResourceSetting, Value: text(a.ResourceValue), Named: a.ResourceValue != nil}
}

// Day implements action.Ledger.
func (s Actions) Day(ctx context.Context, org identity.OrgID, id action.ID) (d action.Day, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		r, err := rows.New(tx).ActionDay(ctx, string(org), string(id))
		d = action.Day{Date: r.Day, Actions: int(r.Actions), Most: int(r.Most), Spent: r.Spent, MostAmount: manifest.Amount{Currency: r.Currency, Units: r.MostAmount}}
		return orAbsent(err, "action")
	})
	return d, err
}

// Days implements action.Ledger.
func (s Actions) Days(ctx context.Context, org identity.OrgID, profile string) (map[connector.Key]action.Day, error) {
	out := map[connector.Key]action.Day{}
	err := s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ProfileDayList(ctx, string(org), storable(profile))
		for _, r := range found {
			out[connector.Key(r.ConnectionKey)] = action.Day{
				Date: r.Day, Actions: int(r.Actions), Most: int(r.DailyActions), Spent: r.Spent, MostAmount: manifest.Amount{Currency: r.DailyCurrency, Units: r.DailyAmount},
			}
		}
		return err
	})
	return out, err
}

// Ended implements action.Ledger.
func (s Actions) Ended(ctx context.Context, org identity.OrgID, since time.Time) (e action.Ended, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).ActionEndCount(ctx, string(org), &since)
		for _, r := range found {
			switch n := int(r.N); action.State(r.State) {
			case action.StateSucceeded:
				e.Succeeded += n
			case action.StateFailed:
				e.Failed += n
			case action.StateDenied:
				e.Denied += n
			case action.StateCancelled:
				e.Cancelled += n
			case action.StateClosedUnknown:
				e.ClosedUnknown += n
			case action.StateExpired:
				if r.Undecided {
					e.ExpiredUndecided += n
				} else {
					e.ExpiredApproved += n
				}
			}
		}
		return err
	})
	return e, err
}

// LastEnded implements action.Ledger.
func (s Actions) LastEnded(ctx context.Context, org identity.OrgID, since time.Time, limit int) (out []action.Action, err error) {
	err = s.readOrg(ctx, org, func(tx pgx.Tx) error {
		q := rows.New(tx)
		found, err := q.ActionListEnded(ctx, string(org), since, limitOf(limit, 50, 200))
		if err != nil {
			return err
		}
		for _, r := range found {
			out = append(out, actionOf(r))
		}
		return signersOfAll(ctx, q, org, out)
	})
	return out, err
}

// signers fills in who has signed an action and who is in the group that was asked.
func signers(ctx context.Context, q *rows.Queries, org identity.OrgID, a *action.Action) error {
	one := []action.Action{*a}
	err := signersOfAll(ctx, q, org, one)
	*a = one[0]
	return err
}

// signersOfAll is signers for a list, with one statement each for all of them, and none where nobody in particular was asked.
func signersOfAll(ctx context.Context, q *rows.Queries, org identity.OrgID, list []action.Action) error {
	var ids, groups []string
	for _, a := range list {
		if a.DecidedBy != "" || a.Needed > 1 {
			ids = append(ids, string(a.ID))
		}
		if a.Approvers != "" {
			groups = append(groups, a.Approvers)
		}
	}
	members := map[string][]identity.PersonID{}
	if len(groups) > 0 {
		found, err := q.GroupMemberList(ctx, string(org), groups)
		if err != nil {
			return err
		}
		for _, m := range found {
			members[m.GroupName] = append(members[m.GroupName], identity.PersonID(m.PersonID))
		}
	}
	signed := map[string][]action.Signature{}
	if len(ids) > 0 {
		found, err := q.SignatureList(ctx, string(org), ids)
		if err != nil {
			return err
		}
		for _, s := range found {
			signed[s.ActionID] = append(signed[s.ActionID], action.Signature{By: identity.PersonID(s.PersonID), Name: s.PersonName, At: s.At, Reason: s.Reason})
		}
	}
	for i := range list {
		list[i].Members, list[i].Signatures = members[list[i].Approvers], signed[string(list[i].ID)]
	}
	return nil
}
