package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
)

// People keeps organizations, persons and invitations.
type People struct{ *DB }

var (
	_ people.Directory   = People{}
	_ people.Roster      = People{}
	_ people.Invitations = People{}
)

// AnyOrganization reports whether the first organization has been made.
func (p People) AnyOrganization(ctx context.Context) (bool, error) {
	var any bool
	err := p.pool.QueryRow(ctx, "SELECT find_any_org()").Scan(&any)
	return any, translated(err)
}

// OrgBySlug finds an organization by the name operators use; for commands only.
func (p People) OrgBySlug(ctx context.Context, slug string) (identity.Org, error) {
	var id string
	if err := p.pool.QueryRow(ctx, "SELECT org FROM find_org($1)", storable(slug)).Scan(&id); err != nil {
		return identity.Org{}, translated(orAbsent(err, "organization"))
	}
	return p.org(ctx, identity.OrgID(id))
}

// Organizations lists every organization; for commands only.
func (p People) Organizations(ctx context.Context) ([]identity.Org, error) {
	ids, err := p.eachOrg(ctx, "SELECT org FROM each_org()")
	if err != nil {
		return nil, err
	}
	out := make([]identity.Org, len(ids))
	for i, id := range ids {
		if out[i], err = p.org(ctx, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eachOrg runs one of the doors that list organizations.
func (d *DB) eachOrg(ctx context.Context, door string) ([]identity.OrgID, error) {
	found, err := d.pool.Query(ctx, door)
	if err != nil {
		return nil, translated(err)
	}
	ids, err := pgx.CollectRows(found, pgx.RowTo[identity.OrgID])
	return ids, translated(err)
}

func (p People) org(ctx context.Context, id identity.OrgID) (o identity.Org, err error) {
	err = p.readOrg(ctx, id, func(tx pgx.Tx) error {
		r, err := rows.New(tx).OrgByID(ctx, string(id))
		o = identity.Org{ID: identity.OrgID(r.ID), Slug: r.Slug, Name: r.Name}
		return orAbsent(err, "organization")
	})
	return o, err
}

// AccountByEmail finds who signs in with a normalized address.
func (p People) AccountByEmail(ctx context.Context, email string) (people.Account, error) {
	return p.accountBehind(ctx, "SELECT org, person FROM find_person_by_email($1)", storable(email))
}

// Invitee finds who a link was made for, while it can be used.
func (p People) Invitee(ctx context.Context, linkHash []byte) (people.Account, error) {
	a, err := p.accountBehind(ctx, "SELECT org, person FROM find_invitee($1)", linkHash)
	if fault.Is(err, fault.CodeNotFound) {
		return people.Account{}, spent
	}
	return a, err
}

// spent is the answer to a link that was used, has expired, was replaced by a newer one, or never was.
var spent = fault.New(fault.NotFound, fault.CodeNotFound, "This link does not work any more.", "Ask an admin for a new one; each works once and for three days.")

// accountBehind goes through a door that names an organization and a person, and reads the rest inside.
func (p People) accountBehind(ctx context.Context, door string, key any) (people.Account, error) {
	var org, id string
	if err := p.pool.QueryRow(ctx, door, key).Scan(&org, &id); err != nil {
		return people.Account{}, translated(orAbsent(err, "person"))
	}
	var a people.Account
	err := p.readOrg(ctx, identity.OrgID(org), func(tx pgx.Tx) (err error) {
		a, err = account(ctx, tx, org, id)
		return err
	})
	return a, err
}

func account(ctx context.Context, tx pgx.Tx, org, id string) (people.Account, error) {
	r, err := rows.New(tx).PersonByID(ctx, org, id)
	if err != nil {
		return people.Account{}, orAbsent(err, "person")
	}
	return people.Account{
		Person:       person(r.ID, r.OrgID, r.Email, r.Name, r.Roles, r.Active),
		Org:          identity.Org{ID: identity.OrgID(r.OrgID), Slug: r.Slug, Name: r.OrgName},
		PasswordHash: r.PasswordHash,
	}, nil
}

func person(id, org, email, name string, roles []string, active bool) identity.Person {
	return identity.Person{ID: identity.PersonID(id), Org: identity.OrgID(org), Email: email, Name: name, Roles: texts[identity.Role](roles), Active: active}
}

// texts turns one kind of text into another, element by element. None is an empty list: no column of ours holds null for it.
func texts[To, From ~string](in []From) []To {
	out := make([]To, len(in))
	for i, s := range in {
		out[i] = To(s)
	}
	return out
}

// Person reads one person of an organization.
func (p People) Person(ctx context.Context, org identity.OrgID, id identity.PersonID) (identity.Person, error) {
	var a people.Account
	err := p.readOrg(ctx, org, func(tx pgx.Tx) (err error) {
		a, err = account(ctx, tx, string(org), storable(string(id)))
		return err
	})
	return a.Person, err
}

// People lists everybody of an organization by name.
func (p People) People(ctx context.Context, org identity.OrgID) (out []people.Listed, err error) {
	err = p.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).PersonList(ctx, string(org))
		for _, r := range found {
			out = append(out, people.Listed{Person: person(r.ID, r.OrgID, r.Email, r.Name, r.Roles, r.Active), Invited: r.Invited, LastSignedIn: r.LastSignedInAt})
		}
		return err
	})
	return out, err
}

// CreateOrganization makes an organization and its first owner together.
func (p People) CreateOrganization(ctx context.Context, org identity.Org, owner identity.Person, passwordHash string, entries ...audit.Entry) error {
	return p.inOrg(ctx, org.ID, func(tx pgx.Tx) error {
		if err := rows.New(tx).OrgInsert(ctx, string(org.ID), org.Slug, org.Name); err != nil {
			return orgFault(err)
		}
		owner.Org = org.ID
		if err := insertPerson(ctx, tx, owner, passwordHash); err != nil {
			return err
		}
		for _, e := range entries {
			e.Org = org.ID
			if err := insertAudit(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

func orgFault(err error) error {
	switch {
	case violates(err, "orgs_slug_key"):
		return fault.Field("slug", "There is an organization of that short name already.")
	case violates(err, "orgs_slug_check"):
		return fault.Field("slug", "A short name is 1 to 40 lower-case letters, digits and hyphens, starting with a letter.")
	case violates(err, "orgs_name_check"):
		return fault.Field("name", "An organization needs a name.")
	}
	return err
}

// AddPerson adds somebody to an organization. The password hash is empty for somebody who will be invited.
func (p People) AddPerson(ctx context.Context, who identity.Person, passwordHash string, e audit.Entry) error {
	return p.change(ctx, who.Org, e, func(tx pgx.Tx) error { return insertPerson(ctx, tx, who, passwordHash) })
}

func insertPerson(ctx context.Context, tx pgx.Tx, who identity.Person, passwordHash string) error {
	err := rows.New(tx).PersonInsert(ctx, rows.PersonInsertParams{
		ID: string(who.ID), OrgID: string(who.Org), Email: who.Email, Name: who.Name, Roles: texts[string](who.Roles), Active: who.Active, PasswordHash: passwordHash,
	})
	if violates(err, "people_email_key") {
		return fault.Field("email", "Somebody has that email address already.")
	}
	return err
}

// change is one change of one organization with its entry in the trail: both are there or neither is.
func (d *DB) change(ctx context.Context, org identity.OrgID, e audit.Entry, f func(tx pgx.Tx) error) error {
	e.Org = org
	return d.inOrg(ctx, org, func(tx pgx.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// SetRoles replaces somebody's roles.
func (p People) SetRoles(ctx context.Context, org identity.OrgID, id identity.PersonID, roles []identity.Role, e audit.Entry) error {
	return p.change(ctx, org, e, func(tx pgx.Tx) error {
		n, err := rows.New(tx).PersonSetRoles(ctx, texts[string](roles), string(org), storable(string(id)))
		return rosterFault(n, err)
	})
}

// SetActive lets somebody in or keeps them out. Whoever is kept out is signed out at once and holds no link to come back by.
func (p People) SetActive(ctx context.Context, org identity.OrgID, id identity.PersonID, active bool, e audit.Entry) error {
	return p.change(ctx, org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.PersonSetActive(ctx, active, string(org), storable(string(id)))
		if err := rosterFault(n, err); err != nil || active {
			return err
		}
		if err := q.SessionDropOthers(ctx, string(org), string(id), nil); err != nil {
			return err
		}
		return q.InvitationDropOpen(ctx, string(org), string(id))
	})
}

func rosterFault(n int64, err error) error {
	switch {
	case violates(err, "people_keep_an_owner"):
		return fault.New(fault.Conflict, fault.CodeConflict, "This is the last active owner of the organization.", "Make somebody else an owner first.")
	case violates(err, "people_roles_check"):
		return fault.Field("role", "Choose at least one role.")
	case err == nil && n == 0:
		return fault.Absent("person")
	}
	return err
}

// SetPassword replaces somebody's password and ends their sessions but the one named, and every open link: whoever held one of
// those may be the reason for the new password.
func (p People) SetPassword(ctx context.Context, org identity.OrgID, id identity.PersonID, hash string, keep []byte, e audit.Entry) error {
	return p.change(ctx, org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		n, err := q.PersonSetPassword(ctx, hash, string(org), storable(string(id)))
		if err := rosterFault(n, err); err != nil {
			return err
		}
		if err := q.SessionDropOthers(ctx, string(org), string(id), keep); err != nil {
			return err
		}
		return q.InvitationDropOpen(ctx, string(org), string(id))
	})
}

// SaveInvitation makes a link work; older ones of the same person stop working.
func (p People) SaveInvitation(ctx context.Context, org identity.OrgID, id identity.PersonID, linkHash []byte, life time.Duration, e audit.Entry) error {
	return p.change(ctx, org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		if err := q.InvitationDropOpen(ctx, string(org), storable(string(id))); err != nil {
			return err
		}
		n, err := q.InvitationInsert(ctx, rows.InvitationInsertParams{LinkHash: linkHash, Life: life, OrgID: string(org), PersonID: storable(string(id))})
		return rosterFault(n, err)
	})
}

// AcceptInvitation uses a link up. The entry names the organization, which the caller has from Invitee; a link of another one is
// as good as none. Of two who use one link at the same moment the second finds it spent.
func (p People) AcceptInvitation(ctx context.Context, linkHash []byte, name, passwordHash string, e audit.Entry) error {
	return p.change(ctx, e.Org, e, func(tx pgx.Tx) error {
		q := rows.New(tx)
		id, err := q.InvitationUse(ctx, string(e.Org), linkHash)
		if err != nil {
			return orSpent(err)
		}
		n, err := q.PersonAccept(ctx, rows.PersonAcceptParams{PasswordHash: passwordHash, Name: name, OrgID: string(e.Org), ID: id})
		if err != nil {
			return err
		}
		if n == 0 {
			return spent // deactivated since
		}
		return q.SessionDropOthers(ctx, string(e.Org), id, nil)
	})
}

func orSpent(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return spent
	}
	return err
}
