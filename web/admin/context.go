package admin

import (
	"net/http"
	"strconv"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/preferences"
	"countersign/internal/profile"
	"countersign/views"
	"countersign/views/ui"
)

// revisionsShown is how many revisions stand on a page.
const revisionsShown = 20

// Contexts are the pages of preferences.toml. Connections and profiles are read to say which of its names lead nowhere, and for
// nothing else.
type Contexts struct {
	Store       preferences.Store
	Connections ConnectionList
	Profiles    profile.Store
}

// Show is the document with its history; an editor for whoever may change it.
func (p *Contexts) Show(r *Request) error {
	return p.show(r, http.StatusOK, nil)
}

// show reads the document as it is now. What stands in the editor is edit, or else what is saved.
func (p *Contexts) show(r *Request, status int, edit *views.ContextEdit) error {
	current, err := p.Store.Context(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	known, err := p.known(r)
	if err != nil {
		return err
	}
	v := views.ContextView{Current: current, Now: time.Now(), MayManage: r.Person().May(identity.Manage)}
	if current.Number > 0 {
		var saved preferences.Document
		saved, v.Unread = preferences.Parse(current.Text)
		v.Dangling = known.dangling(saved)
		if err := p.history(r, &v); err != nil {
			return err
		}
	}
	switch {
	case edit != nil:
		v.Edit = *edit
		v.Edit.Checked = true
		var written preferences.Document
		written, v.Edit.Findings = preferences.Parse(preferences.Normal(edit.Text))
		if len(v.Edit.Findings) == 0 {
			v.Edit.Dangling = known.dangling(written)
		}
	case current.Number > 0:
		v.Edit = views.ContextEdit{Text: current.Text, Base: current.Number}
	default:
		v.Edit = views.ContextEdit{Text: preferences.Starter(known.present())}
	}
	if v.Edit.Stale {
		v.Edit.Base = current.Number // the difference to that one is on the page
	}
	if edit != nil && status == http.StatusOK && len(v.Edit.Findings) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return r.Show(status, views.ContextPage(r.Frame("Context", "context"), v))
}

func (p *Contexts) history(r *Request, v *views.ContextView) (err error) {
	v.History, err = p.Store.ContextRevisions(r.Ctx(), r.Org(), max(0, atoi(r.QueryParam("before"))), revisionsShown+1)
	if len(v.History) > revisionsShown {
		v.History = v.History[:revisionsShown]
		v.Older = v.History[revisionsShown-1].Number
	}
	return err
}

// names are what the names of a document may lead to.
type names struct {
	connections []installation.Connection
	departments []string
}

func (p *Contexts) known(r *Request) (n names, err error) {
	if n.connections, err = p.Connections.Connections(r.Ctx(), r.Org()); err != nil {
		return n, err
	}
	profiles, err := p.Profiles.Profiles(r.Ctx(), r.Org())
	for _, pr := range profiles {
		n.departments = append(n.departments, pr.Department)
	}
	return n, err
}

func (n names) dangling(d preferences.Document) preferences.Findings {
	return d.Dangling(func(key connector.Key) preferences.Standing { return standingOf(n.connections, key) }, n.departments)
}

func standingOf(all []installation.Connection, key connector.Key) preferences.Standing {
	for _, c := range all {
		switch {
		case c.Key != key:
		case c.State == installation.Retired:
			return preferences.Retired
		default:
			return preferences.Present
		}
	}
	return preferences.Unknown
}

func (n names) present() (keys []connector.Key) {
	for _, c := range n.connections {
		if c.State != installation.Retired {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// Check says what is wrong with a text, what of it leads nowhere, and what it would change. It saves nothing.
func (p *Contexts) Check(r *Request) error {
	return p.show(r, http.StatusOK, &views.ContextEdit{Text: r.Posted("text"), Base: atoi(r.Posted("base"))})
}

// Save keeps a text as the next revision.
func (p *Contexts) Save(r *Request) error {
	edit := views.ContextEdit{Text: r.Posted("text"), Base: atoi(r.Posted("base"))}
	if strconv.Itoa(edit.Base) != r.Posted("base") || edit.Base < 0 {
		edit.Base, edit.Refused = 0, "The form does not say which revision it was begun from. Load the page again."
		return p.show(r, http.StatusUnprocessableEntity, &edit)
	}
	saved, err := p.Store.SaveContext(r.Ctx(), preferences.Edition{
		Org: r.Org(), Base: edit.Base, Text: edit.Text, How: preferences.Written, By: audit.Person(r.Person()),
	})
	switch {
	case fault.Is(err, fault.CodeStale):
		edit.Stale = true
		return p.show(r, http.StatusConflict, &edit)
	case fault.Is(err, fault.CodeInvalid):
		return p.show(r, http.StatusUnprocessableEntity, &edit)
	case err != nil:
		return err
	case saved.Number == edit.Base:
		return r.Done(ui.Plain, "Nothing to change: the text is that of revision "+strconv.Itoa(saved.Number)+".", "/context")
	}
	return r.Done(ui.OK, "Saved as revision "+strconv.Itoa(saved.Number)+".", "/context")
}

// Export is the saved text as a file, byte for byte.
func (p *Contexts) Export(r *Request) error {
	current, err := p.Store.Context(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	if current.Number == 0 {
		return fault.Absent("context")
	}
	h := r.Response().Header()
	h.Set("Content-Disposition", `attachment; filename="preferences.toml"`)
	return r.Blob(http.StatusOK, "application/toml; charset=utf-8", []byte(current.Text))
}

// Revision is one revision beside the one before it and the newest.
func (p *Contexts) Revision(r *Request) error { return p.revision(r, http.StatusOK, false) }

func (p *Contexts) revision(r *Request, status int, stale bool) error {
	n, err := revisionNumber(r)
	if err != nil {
		return err
	}
	v := views.RevisionView{MayManage: r.Person().May(identity.Manage), Stale: stale}
	if v.Revision, err = p.Store.ContextRevision(r.Ctx(), r.Org(), n); err != nil {
		return err
	}
	if v.Current, err = p.Store.Context(r.Ctx(), r.Org()); err != nil {
		return err
	}
	if n > 1 {
		before, err := p.Store.ContextRevision(r.Ctx(), r.Org(), n-1)
		if err != nil {
			return err
		}
		v.Before = before.Text
	}
	_, v.Unread = preferences.Parse(v.Revision.Text)
	return r.Show(status, views.RevisionPage(r.Frame("Revision "+strconv.Itoa(n), "context"), v))
}

func revisionNumber(r *Request) (int, error) {
	n := atoi(r.Param("revision"))
	if n < 1 || strconv.Itoa(n) != r.Param("revision") {
		return 0, fault.Absent("revision")
	}
	return n, nil
}

// Restore saves an earlier revision again, over the one that the page showed as the newest.
func (p *Contexts) Restore(r *Request) error {
	n, err := revisionNumber(r)
	if err != nil {
		return err
	}
	old, err := p.Store.ContextRevision(r.Ctx(), r.Org(), n)
	if err != nil {
		return err
	}
	base := atoi(r.Posted("base"))
	saved, err := p.Store.SaveContext(r.Ctx(), preferences.Edition{
		Org: r.Org(), Base: base, Text: old.Text, How: preferences.Restored, By: audit.Person(r.Person()), From: n,
	})
	switch {
	case fault.Is(err, fault.CodeStale):
		return p.revision(r, http.StatusConflict, true)
	case fault.Is(err, fault.CodeInvalid):
		return p.revision(r, http.StatusUnprocessableEntity, false)
	case err != nil:
		return err
	case saved.Number == base:
		return r.Done(ui.Plain, "Nothing to restore: the newest revision says the same.", "/context")
	}
	return r.Done(ui.OK, "Revision "+strconv.Itoa(n)+" is restored as revision "+strconv.Itoa(saved.Number)+".", "/context")
}
