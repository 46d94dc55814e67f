package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/people"
	"countersign/internal/policy"
	"countersign/views"
	"countersign/views/ui"
)

// Show is one connection.
func (p *Connections) Show(r *Request) error { return p.show(r, http.StatusOK, views.ConnectionView{}) }

// show reads the connection as it is now and lays what was posted over it.
func (p *Connections) show(r *Request, status int, v views.ConnectionView) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	c, err := p.Service.Read.Connection(r.Ctx(), r.Org(), key)
	if err != nil {
		return err
	}
	v.Connection, v.Now, v.MayManage = c, time.Now(), r.Person().May(identity.Manage)
	v.ShowHistory = v.MayManage || r.Person().May(identity.ReadAudit)
	if err := p.fill(r, &v); err != nil {
		return err
	}
	return r.Show(status, views.ConnectionPage(r.Frame(c.Name, "connections"), v))
}

// fill reads what stands on the page beside the connection itself.
func (p *Connections) fill(r *Request, v *views.ConnectionView) (err error) {
	c := v.Connection
	v.Place = placeOf(p.Service.Registry, c.Runtime)
	if v.Place.Host = hostOf(c.Destination); v.Place.Typed {
		v.Place.Host = c.Destination
	}
	if v.Manifest, err = p.Service.Manifest(r.Ctx(), c); err == nil {
		v.Tools, err = p.Service.Tools(r.Ctx(), c)
	}
	if fault.Is(err, fault.ConnectionUnavailable) || fault.Is(err, fault.CodeNotFound) {
		v.Unavailable, err = fault.Of(err).Error(), nil
	}
	if err != nil {
		return err
	}
	if err := p.consented(r, v); err != nil {
		return err
	}
	if v.Credential, err = p.Vault.Summaries(r.Ctx(), credential.Place{Org: c.Org, Connection: c.Key}); err != nil {
		return err
	}
	if v.ShowHistory {
		if v.History, err = p.Trail.Entries(r.Ctx(), c.Org, audit.Filter{Object: c.Key.String(), Limit: 50}); err != nil {
			return err
		}
	}
	if err := p.meaning(r, v); err != nil {
		return err
	}
	if v.Branches, err = p.branches(r, c); err != nil {
		return err
	}
	return p.uses(r, v)
}

// consented reads what a connection that is made by consent was allowed, and whether who allowed it is still here.
func (p *Connections) consented(r *Request, v *views.ConnectionView) error {
	c := v.Connection
	if p.Desk == nil || c.Contract != string(manifest.OAuth2) || c.State == installation.Retired || v.Unavailable != "" {
		return nil
	}
	ask, err := p.Desk.Prepare(r.Ctx(), c.Org, c.Key, nil)
	if err != nil {
		return err
	}
	v.Ask = &ask
	if ask.Before == nil {
		return nil
	}
	all, err := p.People.People(r.Ctx(), c.Org)
	v.GiverGone = !slices.ContainsFunc(all, func(l people.Listed) bool { return l.ID == ask.Before.By && l.Active })
	return err
}

// uses finds what ending the connection would end with it.
func (p *Connections) uses(r *Request, v *views.ConnectionView) error {
	all, err := p.Profiles.Profiles(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	for _, profile := range all {
		if _, ok := profile.Use(v.Connection.Key); ok {
			v.UsedBy = append(v.UsedBy, profile.Name)
		}
	}
	waiting, err := p.Actions.Actions(r.Ctx(), r.Org(), action.Filter{
		Connection: v.Connection.Key, States: []action.State{action.StateStaged, action.StateApproved}, Limit: 200,
	})
	v.Waiting = len(waiting)
	return err
}

// SaveAccess saves mode and tools together.
func (p *Connections) SaveAccess(r *Request) error {
	a, err := access(r)
	if err != nil {
		return err
	}
	listed := r.Posted("tools_supplied") == "1"
	a.Choice = policy.Choice{Mode: policy.Mode(r.Posted("mode")), Listed: listed, Tools: r.Values("tools")}
	c, err := p.save(r, a)
	if err == nil {
		return r.Done(ui.OK, savedSentence(c, a), connectionPath(a.Key))
	}
	_, whole, again := Problems(err)
	if !again {
		return err
	}
	v := views.ConnectionView{AccessErrors: sentences(err), AccessNext: next(whole)}
	if !fault.Is(err, fault.CodeStale) {
		v.Access = &views.AccessForm{Mode: a.Mode, Listed: listed, Tools: a.Tools}
	}
	return p.show(r, statusOf(err), v)
}

func (p *Connections) save(r *Request, a installation.Access) (installation.Connection, error) {
	if a.Mode == "" {
		return installation.Connection{}, fault.Field("mode", "Not saved. Choose how freely agents may act here.")
	}
	if _, err := policy.ParseMode(string(a.Mode)); err != nil {
		return installation.Connection{}, err
	}
	return p.Service.SaveAccess(r.Ctx(), r.Person(), a)
}

// sentences are the faults of a save, each once.
func sentences(err error) []string {
	list, ok := err.(fault.List)
	if !ok {
		return []string{fault.Of(err).What}
	}
	var out []string
	for _, f := range list {
		out = append(out, f.Error())
	}
	return out
}

func savedSentence(c installation.Connection, a installation.Access) string {
	tools := ui.Count(c.Standing.Snapshot.Len(), "tool", "tools")
	if c.Version == a.Version {
		return "Nothing to change: it stays at " + views.ModeWords(c.Standing.Mode) + " with " + tools + "."
	}
	return "Saved. " + views.ModeWords(c.Standing.Mode) + ", " + tools + "."
}

// access reads which connection, and at which version, a form was about. Our forms always say the version; a program that posts
// mode and tools without one means the connection as it is.
func access(r *Request) (installation.Access, error) {
	key, err := connector.Parse(r.Param("key"))
	if err != nil || r.Posted("version") == "" {
		return installation.Access{Key: key}, err
	}
	version, err := strconv.Atoi(r.Posted("version"))
	if err != nil || version < 1 {
		return installation.Access{}, fault.Field("version", "The form does not say which state of the connection it was about. Load the page again.")
	}
	return installation.Access{Key: key, Version: version}, nil
}

// looked refuses to end a connection for somebody who does not say in which state they saw it.
func looked(a installation.Access) error {
	if a.Version == 0 {
		return fault.New(fault.Invalid, fault.CodeInvalid, "Not ended. The form does not say which state of the connection it was about.", "Read the page as it is now and decide again.")
	}
	return nil
}

// change runs one change of a connection: words on its page, or the page as it is now with what stood in the way.
func (p *Connections) change(r *Request, f func(installation.Access) (ui.Tone, string, error)) error {
	a, err := access(r)
	if err != nil {
		return err
	}
	tone, words, err := f(a)
	if err == nil {
		return r.Done(tone, words, connectionPath(a.Key))
	}
	fields, whole, again := Problems(err)
	if !again {
		return err
	}
	v := views.ConnectionView{NameError: fields["name"], Name: r.Posted("name"), Error: what(whole), Next: next(whole)}
	return p.show(r, statusOf(err), v)
}

// Accept pins the changed definition that was shown, named by its digest.
func (p *Connections) Accept(r *Request) error {
	return p.change(r, func(a installation.Access) (ui.Tone, string, error) {
		tool := r.Posted("tool")
		_, err := p.Service.AcceptDefinition(r.Ctx(), r.Person(), a, tool, r.Posted("digest"))
		return ui.OK, "Accepted. Agents get the changed tool back as you read it.", err
	})
}

// ConfirmReads saves which definitions of a custom server count as reads.
func (p *Connections) ConfirmReads(r *Request) error {
	return p.change(r, func(a installation.Access) (ui.Tone, string, error) {
		if a.Version == 0 {
			return ui.OK, "", fault.New(fault.Invalid, fault.CodeInvalid, "Nothing was confirmed. The form does not say which state of the connection it was about.", "Read the page as it is now and decide again.")
		}
		var named []installation.Confirmation
		for _, value := range r.Values("read") {
			digest, tool, ok := strings.Cut(value, ":")
			if !ok || digest == "" || tool == "" {
				return ui.OK, "", fault.New(fault.Invalid, fault.CodeInvalid, "Nothing was confirmed. The form does not say which definition was read.", "Read the page as it is now and decide again.")
			}
			named = append(named, installation.Confirmation{Tool: tool, Digest: digest})
		}
		c, err := p.Service.ConfirmReads(r.Ctx(), r.Person(), a, named)
		return ui.OK, "Saved. " + ui.Count(len(c.Confirmed), "definition counts", "definitions count") + " as a read; everything else is consequential.", err
	})
}

// Rename changes what people call the connection.
func (p *Connections) Rename(r *Request) error {
	return p.change(r, func(a installation.Access) (ui.Tone, string, error) {
		_, err := p.Service.Rename(r.Ctx(), r.Person(), a, r.Posted("name"))
		return ui.OK, "Renamed. The key stays.", err
	})
}

// RecordReads chooses whether reads are recorded before they are answered or soon after.
func (p *Connections) RecordReads(r *Request) error {
	return p.change(r, func(a installation.Access) (ui.Tone, string, error) {
		durable := r.Posted("durable")
		if durable != "yes" && durable != "no" {
			return ui.Bad, "", fault.Field("durable", "Reads are recorded before they are answered (yes) or soon after (no).")
		}
		_, err := p.Service.RecordReads(r.Ctx(), r.Person(), a, durable == "yes")
		if durable == "yes" {
			return ui.OK, "From the next call on, each read is recorded before its answer leaves.", err
		}
		return ui.OK, "From the next call on, reads are recorded within a tenth of a second.", err
	})
}

// Disconnect forgets the credential.
func (p *Connections) Disconnect(r *Request) error {
	return p.end(r, p.Service.Disconnect, "Disconnected. The credential is forgotten; mode and tools are kept.")
}

// Retire ends the connection for good.
func (p *Connections) Retire(r *Request) error {
	return p.end(r, p.Service.Retire, "Retired for good. Its credential is destroyed and its key is never used again.")
}

// end ends a connection as a person saw it and, where it was made by consent, says what became of that at the service.
func (p *Connections) end(r *Request, end func(context.Context, identity.Person, installation.Access) (installation.Connection, error), words string) error {
	return p.change(r, func(a installation.Access) (ui.Tone, string, error) {
		if err := looked(a); err != nil {
			return ui.OK, "", err
		}
		do := func() error {
			_, err := end(r.Ctx(), r.Person(), a)
			return err
		}
		if p.Desk == nil {
			return ui.OK, words, do()
		}
		ended, err := p.Desk.End(r.Ctx(), r.Org(), a.Key, do)
		return ui.OK, words + ended.Sentence(), err
	})
}

// Test calls the service with the stored credential.
func (p *Connections) Test(r *Request) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	c, err := p.Service.Test(r.Ctx(), r.Person(), key)
	return p.tested(r, key, c, err, "Tested. ")
}

// Check takes every step to the service and shows what each found. What it finds of the connection is recorded as a test's.
func (p *Connections) Check(r *Request) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	checks, _, err := p.Service.Examine(r.Ctx(), r.Person(), key)
	if err != nil {
		return err
	}
	return p.show(r, http.StatusOK, views.ConnectionView{Checks: checks})
}

// SaveCredential replaces the credential and tests it.
func (p *Connections) SaveCredential(r *Request) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	c, err := p.Service.Read.Connection(r.Ctx(), r.Org(), key)
	if err != nil {
		return err
	}
	m, err := p.Service.Manifest(r.Ctx(), c)
	if err != nil {
		return err
	}
	c, err = p.Service.ReplaceCredential(r.Ctx(), r.Person(), key, secrets(r, m, manifest.Contract(c.Contract)))
	return p.tested(r, key, c, err, "The new credential is stored. ")
}

func (p *Connections) tested(r *Request, key connector.Key, c installation.Connection, err error, lead string) error {
	if err == nil {
		words := lead + "It works."
		if !c.Health.OK {
			words = lead + "The test failed."
		}
		return r.Done(foundTone(c), words, connectionPath(key))
	}
	fields, whole, again := Problems(err)
	if !again {
		return err
	}
	return p.show(r, statusOf(err), views.ConnectionView{CredentialErrors: fields, Error: what(whole), Next: next(whole)})
}
