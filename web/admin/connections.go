package admin

import (
	"net/http"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/consent"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/people"
	"countersign/internal/preferences"
	"countersign/internal/profile"
	"countersign/internal/registry"
	"countersign/views"
)

// Connections are the pages of what is connected. Service decides everything; the rest is what a page shows beside it.
type Connections struct {
	Service  *installation.Connections
	Desk     *consent.Desk    // nil: no connection is made by consent
	People   people.Directory // says whether who gave a consent is still here
	Vault    Summaries
	Trail    audit.Reader
	Profiles profile.Store
	Actions  action.Reader
	Contexts preferences.Store        // what connections mean; nil: nothing is said of them
	Ready    func(registry.Key) error // says what this server lacks for a runtime; nil: nothing is lacking

	Pins         Pins         // nil: nobody knows the numbers of repositories
	Repositories Repositories // nil: nobody can be asked for a default branch
}

// List is every connection of the organization.
func (p *Connections) List(r *Request) error {
	all, err := p.Service.Read.Connections(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	listed, err := p.Service.Read.Listings(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	v := views.ConnectionsView{Now: time.Now(), MayInstall: r.Person().May(identity.Manage)}
	for _, c := range all {
		row := p.row(r, c, listed[c.Key])
		if c.State == installation.Retired {
			v.Retired = append(v.Retired, row)
		} else {
			v.Rows = append(v.Rows, row)
		}
	}
	return r.Show(http.StatusOK, views.ConnectionsPage(r.Frame("Connections", "connections"), v))
}

// row counts a connection's tools. A manifest that cannot be read hides no connection.
func (p *Connections) row(r *Request, c installation.Connection, observed []installation.Observed) views.ConnectionRow {
	row := views.ConnectionRow{Connection: c, Integration: c.Integration, Mark: c.Integration[:min(1, len(c.Integration))]}
	m, err := p.Service.Manifest(r.Ctx(), c)
	if err == nil {
		row.Integration, row.Mark = m.Name, m.Mark
	}
	row.Offered = len(observed)
	for _, t := range installation.Merge(c, observed, nil, m) {
		if t.Held {
			row.Held++
		}
		if t.New {
			row.New++
		}
	}
	return row
}

func connectionPath(key connector.Key) string { return "/connections/" + key.String() }
