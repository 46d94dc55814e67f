package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"countersign/internal/audit"
	"countersign/internal/consent"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/secret"
	"countersign/views"
	"countersign/views/ui"
)

// People are the pages about who can get in.
type People struct {
	Directory   people.Directory
	Roster      people.Roster
	Invitations people.Invitations
	Consents    consent.Directory // nil: there are none
	PublicURL   string            // origin of the links it hands out
}

// List shows everybody.
func (p *People) List(r *Request) error {
	return p.list(r, http.StatusOK, views.PeopleView{Form: views.NewPersonForm{Roles: []string{string(identity.Member)}}})
}

func (p *People) list(r *Request, status int, v views.PeopleView) error {
	all, err := p.Directory.People(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	v.People, v.Now, v.MayOwner = all, time.Now(), isOwner(r.Person())
	return r.Show(status, views.PeoplePage(r.Frame("People", "people"), v))
}

func isOwner(p identity.Person) bool { return slices.Contains(p.Roles, identity.Owner) }

// Add makes a person and, unless a password was set, the link that lets them in. Pressed twice, the second finds the address taken.
func (p *People) Add(r *Request) error {
	form := views.NewPersonForm{Email: r.Posted("email"), Name: r.Posted("name"), Roles: r.Values("roles"), WithPassword: r.Posted("with") == "password"}
	person, hash, err := p.newPerson(r, form)
	if err == nil {
		err = p.Roster.AddPerson(r.Ctx(), person, hash, r.Entry(audit.PersonAdded, "person", string(person.ID), rolesFact(person.Roles)))
	}
	if fields, whole, again := Problems(err); err != nil && again {
		form.Errors, form.Error, form.Next = fields, what(whole), next(whole)
		return p.list(r, http.StatusUnprocessableEntity, views.PeopleView{Form: form})
	}
	if err != nil {
		return err
	}
	if form.WithPassword {
		return r.Done(ui.OK, person.Display()+" can sign in now.", "/people/"+string(person.ID))
	}
	handed, err := p.hand(r, person, true)
	if err != nil {
		return err
	}
	return p.list(r, http.StatusOK, views.PeopleView{Handed: &handed, Form: views.NewPersonForm{Roles: []string{string(identity.Member)}}})
}

// newPerson checks the form, and that the viewer may give these roles.
func (p *People) newPerson(r *Request, form views.NewPersonForm) (identity.Person, string, error) {
	person, err := people.NewPerson(r.Org(), form.Email, form.Name, form.Roles)
	faults, _ := err.(fault.List)
	hash := ""
	if form.WithPassword {
		hashErr := bounded(r.Ctx(), func() (err error) {
			hash, err = people.HashPassword(secret.New(r.Posted("password")))
			return err
		})
		f, ok := fault.As(hashErr)
		if hashErr != nil && !ok {
			return person, "", hashErr
		}
		if ok {
			faults = append(faults, f)
		}
	}
	if err := faults.Err(); err != nil {
		return person, "", err
	}
	return person, hash, people.MayChange(r.Person(), person, person.Roles)
}

// Show is one person.
func (p *People) Show(r *Request) error {
	target, err := p.target(r.Ctx(), r.Org(), r.Param("id"))
	if err != nil {
		return err
	}
	return p.show(r, http.StatusOK, views.PersonView{Person: target})
}

func (p *People) show(r *Request, status int, v views.PersonView) error {
	v.Now, v.MayOwner = time.Now(), isOwner(r.Person())
	if v.Roles == nil {
		v.Roles = roleNames(v.Person.Roles)
	}
	if err := people.MayChange(r.Person(), v.Person.Person, v.Person.Roles); err != nil {
		v.Fixed = err.Error()
	}
	if p.Consents != nil {
		var err error
		if v.Consents, err = p.Consents.OfPerson(r.Ctx(), r.Org(), v.Person.ID); err != nil {
			return err
		}
	}
	return r.Show(status, views.PersonPage(r.Frame(v.Person.Display(), "people"), v))
}

// target is one row of the people page; another organization's person is absent.
func (p *People) target(ctx context.Context, org identity.OrgID, id string) (people.Listed, error) {
	all, err := p.Directory.People(ctx, org)
	if err != nil {
		return people.Listed{}, err
	}
	i := slices.IndexFunc(all, func(l people.Listed) bool { return string(l.ID) == id })
	if i < 0 {
		return people.Listed{}, fault.Absent("person")
	}
	return all[i], nil
}

// SaveRoles replaces the roles of a person.
func (p *People) SaveRoles(r *Request) error {
	target, err := p.target(r.Ctx(), r.Org(), r.Param("id"))
	if err != nil {
		return err
	}
	roles, err := people.ParseRoles(r.Values("roles"))
	if err == nil {
		err = people.MayChange(r.Person(), target.Person, roles)
	}
	if err == nil {
		err = p.Roster.SetRoles(r.Ctx(), r.Org(), target.ID, roles, r.Entry(audit.PersonRoles, "person", string(target.ID), rolesFact(roles)))
	}
	return p.answer(r, target, err, target.Display()+" is now "+RoleWords(roles)+".")
}

// Deactivate signs a person out and keeps them out.
func (p *People) Deactivate(r *Request) error {
	return p.setActive(r, false, audit.PersonDeactivated, " is deactivated and signed out everywhere.")
}

// Reactivate lets a person in again.
func (p *People) Reactivate(r *Request) error {
	return p.setActive(r, true, audit.PersonReactivated, " can sign in again.")
}

func (p *People) setActive(r *Request, active bool, event audit.Event, words string) error {
	target, err := p.target(r.Ctx(), r.Org(), r.Param("id"))
	if err != nil {
		return err
	}
	if err = people.MayChange(r.Person(), target.Person, target.Roles); err == nil && target.Active != active {
		err = p.Roster.SetActive(r.Ctx(), r.Org(), target.ID, active, r.Entry(event, "person", string(target.ID)))
	}
	return p.answer(r, target, err, target.Display()+words)
}

// Link makes a new link by which a person sets a password; the links before it stop working.
func (p *People) Link(r *Request) error {
	target, err := p.target(r.Ctx(), r.Org(), r.Param("id"))
	if err != nil {
		return err
	}
	if err := people.MayChange(r.Person(), target.Person, target.Roles); err != nil {
		return err
	}
	if !target.Active {
		return p.answer(r, target, fault.New(fault.Conflict, fault.CodeConflict, "A deactivated person cannot set a password.", "Reactivate them first."), "")
	}
	handed, err := p.hand(r, target.Person, target.Invited)
	if err != nil {
		return err
	}
	return p.show(r, http.StatusOK, views.PersonView{Person: target, Handed: &handed})
}

// hand makes the link. It exists in this answer and, as a hash, in the store; nowhere else.
func (p *People) hand(r *Request, person identity.Person, invited bool) (views.HandedLink, error) {
	link, hash := people.NewLink()
	purpose := "invitation"
	if !invited {
		purpose = "new password"
	}
	e := r.Entry(audit.PersonInvited, "person", string(person.ID), audit.Fact{Name: "for", Value: purpose})
	if err := p.Invitations.SaveInvitation(r.Ctx(), r.Org(), person.ID, hash, people.InvitationLife, e); err != nil {
		return views.HandedLink{}, err
	}
	return views.HandedLink{URL: p.PublicURL + "/join/" + link, Person: person.Display(), Reset: !invited, Until: time.Now().Add(people.InvitationLife)}, nil
}

// answer ends a change of one person: words on their page, or the page as it is with what stood in the way.
func (p *People) answer(r *Request, target people.Listed, err error, words string) error {
	if err == nil {
		return r.Done(ui.OK, words, "/people/"+string(target.ID))
	}
	fields, whole, again := Problems(err)
	if !again {
		return err
	}
	v := views.PersonView{Person: target, RoleError: fields["role"], Error: what(whole), Next: next(whole)}
	if roles := r.Values("roles"); len(roles) > 0 {
		v.Roles = roles
	}
	return p.show(r, statusOf(err), v)
}

func rolesFact(roles []identity.Role) audit.Fact {
	return audit.Fact{Name: "roles", Value: RoleWords(roles)}
}

func roleNames(roles []identity.Role) []string {
	out := make([]string, len(roles))
	for i, r := range roles {
		out[i] = string(r)
	}
	return out
}
