package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/run"
	"countersign/views"
	"countersign/views/ui"
)

// Profiles are the pages about what kinds of agents there are.
type Profiles struct {
	Store       profile.Store
	Connections ConnectionList
	Groups      GroupList
	Releases    ReleaseReader // whose manifests say what a connection's tools are bounded by
}

// GroupList lists the groups of approvers; people.Groups implements it.
type GroupList interface {
	Groups(ctx context.Context, org identity.OrgID) ([]people.Group, error)
}

// ConnectionList lists an organization's connections; installation.Reader implements it.
type ConnectionList interface {
	Connections(ctx context.Context, org identity.OrgID) ([]installation.Connection, error)
}

// List shows every profile.
func (p *Profiles) List(r *Request) error {
	all, err := p.Store.Profiles(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	connections, err := p.Connections.Connections(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, c := range connections {
		names[c.Key.String()] = c.Name
	}
	v := views.ProfilesView{Profiles: all, Names: names, MayManage: r.Person().May(identity.Manage)}
	return r.Show(http.StatusOK, views.ProfilesPage(r.Frame("Profiles", "profiles"), v))
}

// New is the form of a profile that is not there yet.
func (p *Profiles) New(r *Request) error {
	return p.show(r, http.StatusOK, profile.Profile{Budget: run.DefaultBudget}, views.ProfileView{New: true})
}

// Show is one profile: a form for whoever may change it, the same read only for the others.
func (p *Profiles) Show(r *Request) error {
	pr, err := p.Store.Profile(r.Ctx(), r.Org(), r.Param("name"))
	if err != nil {
		return err
	}
	return p.show(r, http.StatusOK, pr, views.ProfileView{})
}

// Create makes a profile. Pressed twice, the second finds the name taken.
func (p *Profiles) Create(r *Request) error {
	pr, err := p.read(r, r.Posted("name"))
	if err == nil {
		err = p.Store.SaveProfile(r.Ctx(), pr, r.Entry(audit.ProfileSaved, "profile", pr.Name, profileFacts(pr)...))
	}
	return p.answer(r, pr, err, views.ProfileView{New: true}, "Profile "+pr.Name+" is made. Runs can name it now.")
}

// Save replaces a profile, if it still is as the form showed it.
func (p *Profiles) Save(r *Request) error {
	pr, err := p.read(r, r.Param("name"))
	if _, absent := p.Store.Profile(r.Ctx(), r.Org(), pr.Name); absent != nil {
		return absent
	}
	if pr.Version == 0 {
		return p.stale(r, pr.Name) // zero would make one
	}
	if err == nil {
		err = p.Store.SaveProfile(r.Ctx(), pr, r.Entry(audit.ProfileSaved, "profile", pr.Name, profileFacts(pr)...))
	}
	if fault.Is(err, fault.CodeStale) {
		return p.stale(r, pr.Name)
	}
	return p.answer(r, pr, err, views.ProfileView{}, "Saved. Runs that start from now on get it like this.")
}

// Remove ends a profile, if it still is as the page showed it.
func (p *Profiles) Remove(r *Request) error {
	name, version := r.Param("name"), atoi(r.Posted("version"))
	err := p.Store.RemoveProfile(r.Ctx(), r.Org(), name, version, r.Entry(audit.ProfileRemoved, "profile", name))
	if fault.Is(err, fault.CodeStale) {
		return p.stale(r, name)
	}
	if err != nil {
		return err
	}
	return r.Done(ui.OK, "Profile "+name+" is removed.", "/profiles")
}

// read turns the form into a profile. The profile comes back also when something is wrong with it, so that the form can show it again.
func (p *Profiles) read(r *Request, name string) (profile.Profile, error) {
	pr := profile.Profile{Org: r.Org(), Name: name, Department: strings.TrimSpace(r.Posted("department")), Version: atoi(r.Posted("version"))}
	var faults fault.List
	budget, err := strconv.Atoi(strings.TrimSpace(r.Posted("budget")))
	if err != nil {
		faults = append(faults, fault.Field("budget", "The budget is a whole number, 0 to 10000."))
	}
	if pr.Budget = budget; utf8.RuneCountInString(pr.Department) > 80 {
		faults = append(faults, fault.Field("department", "A department has at most 80 characters."))
	}
	connections, err := p.Connections.Connections(r.Ctx(), r.Org())
	if err != nil {
		return pr, err
	}
	groups, err := p.Groups.Groups(r.Ctx(), r.Org())
	if err != nil {
		return pr, err
	}
	for _, key := range r.Values("use") {
		use, err := readUse(r, key, connections)
		if f, ok := fault.As(err); ok {
			faults = append(faults, f)
		}
		if i := slices.IndexFunc(connections, func(c installation.Connection) bool { return c.Key == use.Connection }); i >= 0 {
			if f := p.readLimits(r, &use, connections[i], groups); f != nil {
				faults = append(faults, f)
			}
		}
		if use.Connection != "" {
			pr.Uses = append(pr.Uses, use)
		}
	}
	if list, ok := pr.Check().(fault.List); ok {
		faults = append(faults, list...)
	}
	return pr, faults.Err()
}

// readUse reads how a connection of this organization is used. Only tools it grants can be named. A browser without script can post
// ticks with “every tool” chosen: which of the two was meant is asked, not guessed.
func readUse(r *Request, key string, connections []installation.Connection) (profile.Use, error) {
	i := slices.IndexFunc(connections, func(c installation.Connection) bool { return c.Key.String() == key })
	if i < 0 || connections[i].State == installation.Retired {
		return profile.Use{}, fault.Field("uses", "There is no connection “"+key+"” to use; it may have been retired.")
	}
	use := profile.Use{Connection: connector.Key(key)}
	if mode := r.Posted("mode." + key); mode != "" {
		m, err := policy.ParseMode(mode)
		if err != nil {
			return use, fault.Field("uses", "There is no mode “"+mode+"”.")
		}
		use.Mode = m
	}
	ticked := r.Values("tools." + key)
	if r.Posted("listed."+key) != "1" && len(ticked) == 0 {
		return use, nil
	}
	use.Tools = []string{}
	for _, tool := range ticked {
		if _, granted := connections[i].Standing.Snapshot.Find(tool); granted && !slices.Contains(use.Tools, tool) {
			use.Tools = append(use.Tools, tool) // what the connection grants no more is left out: that only narrows
		}
	}
	if r.Posted("listed."+key) != "1" {
		return use, fault.Field("uses", "You ticked tools of “"+connections[i].Name+"”, but left “every tool” chosen. Choose “only the ones ticked here”, or untick them.")
	}
	return use, nil
}

func (p *Profiles) answer(r *Request, pr profile.Profile, err error, v views.ProfileView, words string) error {
	if err == nil {
		return r.Done(ui.OK, words, "/profiles/"+pr.Name)
	}
	fields, whole, again := Problems(err)
	if !again {
		return err
	}
	v.Errors, v.Error, v.Next, v.Budget = fields, what(whole), next(whole), r.Posted("budget")
	return p.show(r, statusOf(err), pr, v)
}

// stale shows the profile as somebody else saved it meanwhile; nothing of the form is kept, since it was made against another one.
func (p *Profiles) stale(r *Request, name string) error {
	pr, err := p.Store.Profile(r.Ctx(), r.Org(), name)
	if err != nil {
		return err
	}
	return p.show(r, http.StatusConflict, pr, views.ProfileView{Error: "Not saved. Somebody else changed this profile while you read.", Next: "This is how it stands now; make your change again."})
}

func (p *Profiles) show(r *Request, status int, pr profile.Profile, v views.ProfileView) error {
	connections, err := p.Connections.Connections(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	groups, err := p.Groups.Groups(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	for _, g := range groups {
		v.Groups = append(v.Groups, g.Name)
	}
	v.Name, v.Version, v.Department, v.MayManage = pr.Name, pr.Version, pr.Department, r.Person().May(identity.Manage)
	if v.Budget == "" {
		v.Budget = strconv.Itoa(pr.Budget)
	}
	for _, c := range connections {
		use, used := pr.Use(c.Key)
		if c.State == installation.Retired && !used {
			continue
		}
		o := views.ProfileOffer{Connection: c, Used: used, Mode: use.Mode, Listed: use.Tools != nil, Ticked: use.Tools, Limits: p.limitsOf(r, use, c)}
		if status == http.StatusUnprocessableEntity {
			o.Limits = p.typedLimits(r, o.Limits, c.Key.String())
		}
		v.Offers = append(v.Offers, o)
	}
	title := "New profile"
	if !v.New {
		title = pr.Name
	}
	return r.Show(status, views.ProfilePage(r.Frame(title, "profiles"), v))
}

func profileFacts(pr profile.Profile) []audit.Fact {
	facts := []audit.Fact{{Name: "budget", Value: strconv.Itoa(pr.Budget)}}
	for _, u := range pr.Uses {
		how := "as the connection"
		if u.Mode != "" {
			how = "at most " + string(u.Mode)
		}
		if u.Tools != nil {
			how += ", " + ui.Count(len(u.Tools), "tool", "tools")
		}
		if limits := views.LimitWords(u); limits != "" {
			how += ", " + limits
		}
		facts = append(facts, audit.Fact{Name: "uses " + u.Connection.String(), Value: how})
	}
	return facts
}

// atoi is a number of a form, or zero: no version is zero.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
