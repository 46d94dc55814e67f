package admin

import (
	"net/http"
	"slices"

	"countersign/internal/fault"
	"countersign/internal/release"
	"countersign/views"
)

// Releases are the pages of the published catalogs: the same for every organization, and read only.
type Releases struct {
	Store release.Store
}

// List shows every release, newest first.
func (p *Releases) List(r *Request) error {
	all, err := p.Store.All(r.Ctx())
	if err != nil {
		return err
	}
	return r.Show(http.StatusOK, views.ReleasesPage(r.Frame("Releases", "releases"), views.ReleasesView{Releases: all}))
}

// Show is one release and how it differs from the one published before.
func (p *Releases) Show(r *Request) error {
	digest, err := release.ParseDigest(r.Param("digest"))
	if err != nil {
		return err
	}
	all, err := p.Store.All(r.Ctx())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(s release.Summary) bool { return s.Digest == digest })
	if i < 0 {
		return fault.Absent("release")
	}
	this, err := p.Store.ByDigest(r.Ctx(), digest)
	if err != nil {
		return err
	}
	v := views.ReleaseView{Summary: all[i], Entries: this.List(), Unavailable: this.Unavailable()}
	if i+1 < len(all) {
		before, err := p.Store.ByDigest(r.Ctx(), all[i+1].Digest)
		if err != nil {
			return err
		}
		v.Before, v.Changes = &all[i+1], release.Diff(before, this)
	}
	return r.Show(http.StatusOK, views.ReleasePage(r.Frame("Release "+digest.Short(), "releases"), v))
}
