package admin

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider/github"
	"countersign/internal/registry"
	"countersign/internal/secret"
	"countersign/views"
)

// Choose shows the install form again with a page of what the entered token sees, to choose from. Nothing is stored. The token comes back
// sealed, and what was chosen on other pages stays chosen.
func (p *Connections) Choose(r *Request) error {
	o, _, err := offered(r, p.Service.Releases, p.Service.Read)
	if err != nil {
		return err
	}
	if o.Manifest.Kind != registry.Git {
		return fault.Absent("list to choose from")
	}
	q := posted(r, o.Manifest)
	v := views.InstallView{Form: q.ID, Contract: q.Contract, Name: q.Name, Settings: q.Settings}
	if q.Secrets, err = p.entered(r, q); err == nil {
		err = p.choices(r, q, &v)
	}
	if err == nil {
		return p.form(r, http.StatusOK, v)
	}
	fields, whole, _ := Problems(err)
	f := fault.Of(err)
	switch {
	case f.Kind == fault.Internal || fault.Is(err, fault.CodeNotFound):
		return err
	case whole != nil:
		v.Error, v.Next = whole.What, whole.Next
	case fields == nil: // what GitHub answered
		v.Error, v.Next = f.What, f.Next
	}
	v.Errors = fields
	return p.form(r, http.StatusUnprocessableEntity, v)
}

// entered are the secrets of a posted form: typed in now, or carried by it from before.
func (p *Connections) entered(r *Request, q installation.Setup) (map[string]secret.Value, error) {
	if text := r.Posted("carried"); text != "" && len(q.Secrets) == 0 {
		return p.Service.Carried(r.Person(), q, text)
	}
	return q.Secrets, nil
}

func (p *Connections) choices(r *Request, q installation.Setup, v *views.InstallView) error {
	page := 1
	if text := r.Posted("page"); text != "" {
		var err error
		if page, err = strconv.Atoi(text); err != nil {
			page = 0 // which is none
		}
	}
	found, err := p.Service.Choose(r.Ctx(), r.Person(), q, page)
	if err != nil {
		return err
	}
	if v.Carried, err = p.Service.Carry(r.Person(), q); err != nil {
		return err
	}
	v.Choice = &views.RepositoryChoice{Choices: found, Chosen: chosen(q.Settings)}
	if v.Settings = map[string]string{}; len(q.Settings) > 0 {
		for name, value := range q.Settings {
			v.Settings[name] = value
		}
	}
	v.Settings[github.RepositoriesSetting] = strings.Join(v.Choice.Elsewhere(), " ")
	return nil
}

// chosen are the names that a setting holds.
func chosen(settings map[string]string) []string {
	return strings.FieldsFunc(settings[github.RepositoriesSetting], func(c rune) bool { return c == ' ' || c == ',' })
}

// union adds the ticked repositories to those that were typed, each once.
func union(typed string, ticked []string) string {
	out := chosen(map[string]string{github.RepositoriesSetting: typed})
	for _, name := range ticked {
		if !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, name) }) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// choosable reports whether repositories of a manifest are ticked.
func choosable(m manifest.Manifest) bool { return m.Kind == registry.Git }
