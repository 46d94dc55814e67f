package admin

import (
	"net/http"
	"slices"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/profile"
	"countersign/views"
	"countersign/views/ui"
)

// Groups is the page about who is asked together.
type Groups struct {
	Store     people.Groups
	Directory PeopleList
	Profiles  profile.Store
}

// List shows every group and the form of a new one.
func (g *Groups) List(r *Request) error { return g.show(r, http.StatusOK, views.GroupsView{}, nil) }

// Save makes a group, or replaces one if it still is as the page showed it.
func (g *Groups) Save(r *Request) error {
	group := people.Group{Org: r.Org(), Name: strings.TrimSpace(r.Posted("name")), Version: atoi(r.Posted("version"))}
	for _, m := range r.Values("members") {
		group.Members = append(group.Members, identity.PersonID(m))
	}
	err := g.Store.SaveGroup(r.Ctx(), group, r.Entry(audit.GroupSaved, "group", group.Name, audit.Fact{Name: "members", Value: strings.Join(r.Values("members"), ", ")}))
	if err == nil {
		return r.Done(ui.OK, "Group "+group.Name+" is saved. What waits for it can be decided by whoever is in it now.", "/people/groups")
	}
	return g.refused(r, group, err)
}

// Remove ends a group that nobody asks.
func (g *Groups) Remove(r *Request) error {
	group := people.Group{Org: r.Org(), Name: r.Posted("name"), Version: atoi(r.Posted("version"))}
	err := g.Store.RemoveGroup(r.Ctx(), r.Org(), group.Name, group.Version, r.Entry(audit.GroupRemoved, "group", group.Name))
	if err == nil {
		return r.Done(ui.OK, "Group "+group.Name+" is removed.", "/people/groups")
	}
	return g.refused(r, people.Group{}, err)
}

// refused shows the page again with what was typed; of a group that somebody else saved meanwhile, what they saved.
func (g *Groups) refused(r *Request, typed people.Group, err error) error {
	fields, whole, again := Problems(err)
	if !again {
		return err
	}
	v := views.GroupsView{Error: what(whole), Next: next(whole)}
	if fault.Is(err, fault.CodeStale) || typed.Name == "" && len(fields) == 0 {
		return g.show(r, statusOf(err), v, nil)
	}
	return g.show(r, statusOf(err), v, &views.GroupForm{Name: typed.Name, Version: typed.Version, Members: r.Values("members"), Errors: fields})
}

func (g *Groups) show(r *Request, status int, v views.GroupsView, typed *views.GroupForm) error {
	groups, err := g.Store.Groups(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	if v.Offered, err = g.Directory.People(r.Ctx(), r.Org()); err != nil {
		return err
	}
	profiles, err := g.Profiles.Profiles(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	v.Asked = askedBy(profiles)
	for _, group := range groups {
		f := views.GroupForm{Name: group.Name, Version: group.Version}
		for _, m := range group.Members {
			f.Members = append(f.Members, string(m))
		}
		if typed != nil && typed.Version != 0 && typed.Name == group.Name {
			f = *typed
		}
		v.Groups = append(v.Groups, f)
	}
	if typed != nil && typed.Version == 0 {
		v.New = *typed
	}
	return r.Show(status, views.GroupsPage(r.Frame("Groups of approvers", "people"), v))
}

// askedBy says which profiles ask which group.
func askedBy(profiles []profile.Profile) map[string][]string {
	out := map[string][]string{}
	for _, p := range profiles {
		for _, u := range p.Uses {
			if u.Approvers != "" && !slices.Contains(out[u.Approvers], p.Name) {
				out[u.Approvers] = append(out[u.Approvers], p.Name)
			}
		}
	}
	return out
}
