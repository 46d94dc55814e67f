package admin

import (
	"net/http"
	"strings"

	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider/github"
	"countersign/internal/registry"
	"countersign/internal/secret"
	"countersign/views"
	"countersign/views/ui"
)

// New is the form that makes a connection. The id drawn with it makes a second press harmless.
func (p *Connections) New(r *Request) error {
	return p.form(r, http.StatusOK, views.InstallView{
		Form: installation.NewID(), Contract: manifest.Contract(r.QueryParam("contract")), Remote: installation.Remote{Named: r.QueryParam("named") == "1"},
	})
}

func (p *Connections) form(r *Request, status int, v views.InstallView) error {
	o, _, err := offered(r, p.Service.Releases, p.Service.Read)
	if err != nil {
		return err
	}
	if _, ok := o.Manifest.Contract(v.Contract); !ok {
		v.Contract = o.Manifest.Auth[0].Contract
	}
	v.Remote.Named = v.Remote.Named && o.Manifest.Kind == registry.Remote && v.Contract == manifest.Token
	if v.Name == "" && len(v.Errors) == 0 {
		v.Name = o.Manifest.Name
	}
	v.Offer, v.Place = o, placeToInstall(p.Service.Registry, p.Ready, o.Manifest.Runtime)
	return r.Show(status, views.InstallPage(r.Frame("Install "+o.Manifest.Name, "catalog"), v))
}

// Install makes the connection, tests it, and leads to its page, which says what the test found.
func (p *Connections) Install(r *Request) error {
	o, _, err := offered(r, p.Service.Releases, p.Service.Read)
	if err != nil {
		return err
	}
	q := posted(r, o.Manifest)
	v := views.InstallView{Form: q.ID, Contract: q.Contract, Name: q.Name, Settings: q.Settings, Remote: q.Remote}
	var c installation.Connection
	if q.Secrets, err = p.entered(r, q); err == nil {
		v.Carried = r.Posted("carried")
		c, err = p.Service.Install(r.Ctx(), r.Person(), q)
	}
	if err == nil && c.State == installation.NeedsConsent { // what the service will ask for comes first, then a person's yes
		return r.Done(ui.OK, "Installed as "+c.Key.String()+". Agents can use nothing of it until somebody signs in at the service.", connectionPath(c.Key)+"/consent")
	}
	if err == nil {
		return r.Done(foundTone(c), installedSentence(c), connectionPath(c.Key))
	}
	fields, whole, again := Problems(err)
	if !again {
		return err
	}
	v.Errors, v.Error, v.Next = fields, what(whole), next(whole)
	if wrong := fields["contract"]; wrong != "" { // it has no input of its own
		v.Error = wrong
	}
	return p.form(r, statusOf(err), v)
}

// posted reads exactly the fields the manifest asks for; anything else in the form is nobody's.
func posted(r *Request, m manifest.Manifest) installation.Setup {
	q := installation.Setup{
		ID: r.Posted("form"), Integration: m.Key, Name: r.Posted("name"), Contract: manifest.Contract(r.Posted("contract")), Settings: map[string]string{},
	}
	if q.Contract == "" && len(m.Auth) > 0 {
		q.Contract = m.Auth[0].Contract
	}
	if m.Kind == registry.Remote {
		header := strings.TrimSpace(r.Posted("header"))
		q.Remote = installation.Remote{Address: strings.TrimSpace(r.Posted("url")), Named: r.Posted("named") == "1" || header != "", Header: header}
	}
	q.Secrets = secrets(r, m, q.Contract)
	for _, s := range m.Resources {
		q.Settings[s.Name] = r.Posted(views.InputName(s.Name))
	}
	if choosable(m) {
		q.Settings[github.RepositoriesSetting] = union(q.Settings[github.RepositoriesSetting], r.Values(views.TickedRepository))
	}
	return q
}

// secrets are the posted fields of one auth contract. An empty one is left out, so that its absence is judged and nothing empty sealed.
func secrets(r *Request, m manifest.Manifest, c manifest.Contract) map[string]secret.Value {
	out := map[string]secret.Value{}
	for _, f := range m.FieldsFor(c) {
		if v := r.Posted(views.InputName(f.Name)); v != "" {
			out[f.Name] = secret.New(v)
		}
	}
	return out
}

func foundTone(c installation.Connection) ui.Tone {
	switch {
	case c.Health.OK:
		return ui.OK
	case c.Health.TestedAt == nil:
		return ui.Plain
	}
	return ui.Bad
}

// installedSentence leaves what the service said to the page, which draws other people's words as such. A second press of the same form
// may be answered while the first one's test is still under way, of which nothing is known yet.
func installedSentence(c installation.Connection) string {
	switch {
	case c.Health.TestedAt == nil:
		return "Installed as " + c.Key.String() + ". Its first test is still under way: load this page again to see what it found."
	case c.Kind == registry.Stdio:
		return "Installed as " + c.Key.String() + ". Runs of the profiles you add it to are told to start it."
	case c.Health.OK:
		return "Installed as " + c.Key.String() + ", and it works. Agents may use nothing of it until you choose a mode."
	}
	return "Installed as " + c.Key.String() + ", but the test failed."
}
