package admin

import (
	"strconv"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/preferences"
	"countersign/views"
	"countersign/views/ui"
)

// meaning reads what the organization says of a connection. What was posted stays in the form.
func (p *Connections) meaning(r *Request, v *views.ConnectionView) error {
	if p.Contexts == nil {
		return nil
	}
	current, err := p.Contexts.Context(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	m := views.MeaningView{Base: current.Number, Connector: preferences.Connector{Key: v.Connection.Key}}
	doc, unread := spokenIn(current)
	if m.Unread = unread; unread == "" {
		m.Connector, m.Means, m.Workflows = doc.Connector(v.Connection.Key), doc.Means(v.Connection.Key), doc.UsedIn(v.Connection.Key)
	}
	form, fits := preferences.FormOf(m.Connector)
	m.Form, m.Unwritable = form, !fits
	if posted := v.Meaning; posted != nil {
		m.Form, m.Errors, m.Error, m.Next = posted.Form, posted.Errors, posted.Error, posted.Next
	}
	v.Meaning = &m
	return nil
}

// spokenIn is a document as it was saved, or why it cannot be read.
func spokenIn(r preferences.Revision) (doc preferences.Document, unread string) {
	if r.Number == 0 {
		return doc, ""
	}
	doc, found := preferences.Parse(r.Text)
	if len(found) > 0 {
		return preferences.Document{}, found[0].String()
	}
	return doc, ""
}

// SaveMeaning changes what the document says of one connection. The connection itself is read, and never written.
func (p *Connections) SaveMeaning(r *Request) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	c, err := p.Service.Read.Connection(r.Ctx(), r.Org(), key)
	if err != nil {
		return err
	}
	if c.State == installation.Retired {
		return fault.New(fault.Conflict, fault.CodeConflict, "The connection is retired. Nothing was saved.", "Take its words out of preferences.toml, on the page Context.")
	}
	form := preferences.Form{Purpose: r.Posted("purpose"), Vocabulary: r.Posted("vocabulary"), Defaults: r.Posted("defaults"), Avoid: r.Posted("avoid")}
	saved, base, err := p.saveMeaning(r, key, form)
	if err == nil && saved.Number == base {
		return r.Done(ui.Plain, "Nothing to change: that is what the document says.", connectionPath(key)+"#meaning")
	}
	if err == nil {
		return r.Done(ui.OK, "Saved as revision "+strconv.Itoa(saved.Number)+" of preferences.toml.", connectionPath(key)+"#meaning")
	}
	wrong, whole, again := Problems(err)
	if !again {
		return err
	}
	m := views.MeaningView{Form: form, Errors: wrong}
	if text := wrong["text"]; text != "" {
		m.Error = "Nothing was saved. " + text
	} else if whole != nil {
		m.Error, m.Next = whole.What, whole.Next
	}
	return p.show(r, statusOf(err), views.ConnectionView{Meaning: &m})
}

func (p *Connections) saveMeaning(r *Request, key connector.Key, form preferences.Form) (saved preferences.Revision, base int, err error) {
	if base = atoi(r.Posted("base")); strconv.Itoa(base) != r.Posted("base") {
		return saved, base, fault.Field("text", "The form does not say which revision it was begun from. Load the page again.")
	}
	want, err := form.Connector(key)
	if err != nil {
		return saved, base, err
	}
	current, err := p.Contexts.Context(r.Ctx(), r.Org())
	if err != nil {
		return saved, base, err
	}
	if current.Number != base {
		return saved, base, fault.Stale("Somebody else saved preferences.toml while you wrote. Nothing was saved.")
	}
	text, err := preferences.With(current.Text, want)
	if err != nil {
		return saved, base, err
	}
	if current.Number == 0 && want.Empty() {
		return current, base, nil
	}
	saved, err = p.Contexts.SaveContext(r.Ctx(), preferences.Edition{Org: r.Org(), Base: base, Text: text, How: preferences.Filled, By: audit.Person(r.Person())})
	return saved, base, err
}
