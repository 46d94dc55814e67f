package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/views"
)

// Catalog are the pages of what could be connected.
type Catalog struct {
	Releases CurrentRelease
	Read     installation.Reader
	Registry registry.Table
	Ready    func(registry.Key) error // says what this server lacks for a runtime; nil: nothing is lacking
}

// List is the catalog as it was asked for, from memory: a question costs no query beyond the organization's own connections.
func (p *Catalog) List(r *Request) error {
	current, err := p.Releases.Current(r.Ctx())
	if fault.Is(err, fault.CodeNotFound) {
		return r.Show(http.StatusOK, views.CatalogPage(r.Frame("Catalog", "catalog"), views.CatalogView{}))
	}
	if err != nil {
		return err
	}
	q := release.Query{
		Text: r.QueryParam("q"), Category: manifest.Category(r.QueryParam("category")), Kind: registry.Kind(r.QueryParam("kind")), Auth: manifest.Contract(r.QueryParam("auth")),
	}
	installed, err := installedBy(r.Ctx(), p.Read, r.Org())
	if err != nil {
		return err
	}
	v := views.CatalogView{
		Release: string(current.Digest()), Query: q, Total: current.Size(), Left: len(current.Unavailable()), MayInstall: r.Person().May(identity.Manage),
	}
	v.Page, _ = strconv.Atoi(r.QueryParam("page")) // anything else is the first
	for _, m := range current.Search(q) {
		v.Offers = append(v.Offers, views.Offer{Manifest: m, Installed: installed[m.Key]})
	}
	return r.Show(http.StatusOK, views.CatalogPage(r.Frame("Catalog", "catalog"), v))
}

// Show is one integration.
func (p *Catalog) Show(r *Request) error {
	o, digest, err := offered(r, p.Releases, p.Read)
	if err != nil {
		return err
	}
	v := views.IntegrationView{Offer: o, Release: digest, Place: placeToInstall(p.Registry, p.Ready, o.Manifest.Runtime), MayInstall: r.Person().May(identity.Manage)}
	return r.Show(http.StatusOK, views.IntegrationPage(r.Frame(o.Manifest.Name, "catalog"), v))
}

// offered finds the integration a path names in the current release, with what the organization has made of it.
func offered(r *Request, releases CurrentRelease, read installation.Reader) (views.Offer, string, error) {
	current, err := releases.Current(r.Ctx())
	if fault.Is(err, fault.CodeNotFound) {
		err = fault.Absent("integration")
	}
	if err != nil {
		return views.Offer{}, "", err
	}
	m, ok := current.Manifest(r.Param("integration"))
	if !ok {
		return views.Offer{}, "", fault.Absent("integration")
	}
	installed, err := installedBy(r.Ctx(), read, r.Org())
	return views.Offer{Manifest: m, Installed: installed[m.Key]}, string(current.Digest()), err
}

// installedBy groups an organization's connections by integration; what is retired is no longer installed.
func installedBy(ctx context.Context, read installation.Reader, org identity.OrgID) (map[string][]views.Installed, error) {
	all, err := read.Connections(ctx, org)
	if err != nil {
		return nil, err
	}
	listed, err := read.Listings(ctx, org)
	if err != nil {
		return nil, err
	}
	out := map[string][]views.Installed{}
	for _, c := range all {
		if c.State == installation.Retired {
			continue
		}
		held := installation.HeldNames(c, listed[c.Key])
		out[c.Integration] = append(out[c.Integration], views.Installed{Key: c.Key, Name: c.Name, Held: len(held), Ended: c.State == installation.Disconnected})
	}
	return out, nil
}

// placeOf is where the registry leads a runtime now, in the words of a page.
func placeOf(table registry.Table, runtime registry.Key) views.Place {
	e, known := table.Lookup(runtime)
	switch {
	case known && e.Kind == registry.Remote:
		return views.Place{Typed: true}
	case known && e.ConnectionString && !e.Endpoints[e.Primary()].Overridden:
		return views.Place{Named: true}
	}
	d, err := installation.DestinationOf(table, runtime)
	if err != nil {
		return views.Place{Missing: fault.Of(err).Error()}
	}
	v := views.Place{Host: hostOf(d.URL())}
	if known {
		v.Moved, v.Beside = e.Endpoints[e.Primary()].Overridden, e.Kind == registry.Stdio
	}
	return v
}

// placeToInstall is the place of a connection that is still to be made: one that cannot work on this server has none.
func placeToInstall(table registry.Table, ready func(registry.Key) error, runtime registry.Key) views.Place {
	v := placeOf(table, runtime)
	if v.Missing == "" && ready != nil {
		if err := ready(runtime); err != nil {
			f := fault.Of(err)
			v.Missing = f.What + " " + f.Next
		}
	}
	return v
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

// Summaries tells what is stored of a credential; credential.Vault implements it.
type Summaries interface {
	Summaries(ctx context.Context, p credential.Place) ([]credential.Summary, error)
}
