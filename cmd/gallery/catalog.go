package main

import (
	"fmt"
	"strings"
	"sync"

	"countersign/catalog"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/registry"
	"countersign/internal/release"
	"countersign/views"
)

// built is the catalog this program was compiled with, checked once.
var built = sync.OnceValue(func() release.Release {
	r, err := release.Build(catalog.Files(), registry.Trusted())
	if err != nil {
		panic(fmt.Sprintf("the built-in catalog does not pass its own check: %v", err))
	}
	return r
})

// oneOf is a manifest of the built-in catalog.
func oneOf(key string) manifest.Manifest {
	m, ok := built().Manifest(key)
	if !ok {
		panic("the built-in catalog has no " + key)
	}
	return m
}

func offersOf(q release.Query) []views.Offer {
	installed := map[string][]views.Installed{
		"sandbox-crm": {{Key: "sandbox-crm-k4x7qa", Name: "Sandbox CRM", Held: 1}},
		"deepwiki":    {{Key: "deepwiki-b2m7tz", Name: "DeepWiki"}},
		"exa":         {{Key: "exa-q7w2ld", Name: "Exa", Ended: true}},
	}
	var out []views.Offer
	for _, m := range built().Search(q) {
		out = append(out, views.Offer{Manifest: m, Installed: installed[m.Key]})
	}
	return out
}

func catalogPages() []Entry {
	const page, one, form = "Catalog", "Integration", "Install"
	digest, total := string(built().Digest()), len(built().Manifests())
	view := func(q release.Query) views.CatalogView {
		return views.CatalogView{Release: digest, Query: q, Offers: offersOf(q), Total: total, MayInstall: true}
	}
	unread := view(release.Query{})
	unread.Left = 2
	asked := release.Query{Text: "refund a customer"}
	none := release.Query{Text: "<b>nothing</b> \u202elike this", Kind: registry.Git}
	crm, wiki := oneOf("sandbox-crm"), oneOf("context7")
	place := views.Place{Host: "127.0.0.1:8090", Moved: true}
	missing := views.Place{Missing: "The runtime “sandbox_crm.v1” has no address of its own; only the operator of this server can supply one. Add \"sandbox_crm.v1\" = \"https://…\" under [endpoints] in the file COUNTERSIGN_ENDPOINTS_FILE names, and restart."}
	install := views.InstallView{Offer: views.Offer{Manifest: crm}, Form: "con_a2b3c4d5e6f7g2h3i4j5k6l7m2", Contract: manifest.Token, Name: crm.Name, Place: place}
	failed := install
	failed.Name, failed.Errors = "Sandbox CRM of the sales people", map[string]string{"name": "A name is one line of at most 80 characters, all of them visible.", "api_key": "“CRM credential” is empty; it is needed to connect."}
	choice := views.InstallView{Offer: views.Offer{Manifest: wiki, Installed: []views.Installed{{Key: "context7-k4x7qa", Name: "Context7"}}}, Form: install.Form, Contract: wiki.Auth[0].Contract, Name: wiki.Name, Place: views.Place{Host: "mcp.context7.com"}}
	custom := oneOf("custom-mcp")
	own := views.InstallView{Offer: views.Offer{Manifest: custom}, Form: install.Form, Contract: manifest.Token, Name: custom.Name, Place: views.Place{Typed: true}}
	ownWrong := own
	ownWrong.Remote = installation.Remote{Address: "http://10.0.0.7/mcp?key=1", Named: true, Header: "Authorization"}
	ownWrong.Errors = map[string]string{
		"url":    "The address carries a query (?…). Addresses are shown on pages and written to logs; a credential has a field of its own.",
		"header": "“Authorization” has a form of its own; choose a bearer token, or the header that the server names.", "token": "“Credential” is empty; it is needed to connect.",
	}
	tokens := views.InstallView{Offer: views.Offer{Manifest: oneOf("github")}, Form: install.Form, Contract: manifest.PAT, Name: "GitHub", Place: views.Place{Host: "github.com"}}
	listed := tokens
	listed.Carried, listed.Settings = "1796140800.sealed", map[string]string{"repositories": "harbor/typed"}
	listed.Choice = &views.RepositoryChoice{Chosen: []string{"harbor/api", "harbor/typed"}, Choices: installation.Choices{Page: 2, More: true, Listed: []installation.Choice{
		{Name: "harbor/api", Private: true, Writable: true}, {Name: "harbor/attic", Archived: true}, {Name: "harbor/handbook"}, {Name: "harbor/" + strings.Repeat("long-", 19) + "name", Private: true, Writable: true},
	}}}
	barren := tokens
	barren.Carried, barren.Choice = listed.Carried, &views.RepositoryChoice{Choices: installation.Choices{Page: 1}}
	refusedToken := tokens
	refusedToken.Error, refusedToken.Next = "GitHub does not accept this token.", "Check that it was copied whole, has not expired and was not revoked."
	gone := install
	gone.Place = missing
	return []Entry{
		{page, "full", views.CatalogPage(frame("Catalog", "catalog"), unread)},
		{page, "asked", views.CatalogPage(frame("Catalog", "catalog"), view(asked))},
		{page, "hostile", views.CatalogPage(frame("Catalog", "catalog"), view(none))},
		{page, "empty", views.CatalogPage(frameAs("member", "Catalog", "catalog"), views.CatalogView{})},
		{one, "full", views.IntegrationPage(frame(crm.Name, "catalog"), views.IntegrationView{Offer: offersOf(asked)[0], Release: digest, Place: place, MayInstall: true})},
		{one, "failed", views.IntegrationPage(frame(crm.Name, "catalog"), views.IntegrationView{Offer: views.Offer{Manifest: crm}, Release: digest, Place: missing, MayInstall: true})},
		{one, "member", views.IntegrationPage(frameAs("member", wiki.Name, "catalog"), views.IntegrationView{Offer: views.Offer{Manifest: wiki}, Release: digest, Place: views.Place{Host: "mcp.context7.com"}})},
		{one, "consent", views.IntegrationPage(frame("Slack", "catalog"), views.IntegrationView{Offer: views.Offer{Manifest: oneOf("slack")}, Release: digest, Place: views.Place{Host: "mcp.slack.com"}, MayInstall: true})},
		{one, "beside", views.IntegrationPage(frame("Structured questions", "catalog"), views.IntegrationView{Offer: views.Offer{Manifest: oneOf("structured-questions")}, Release: digest, Place: views.Place{Beside: true}, MayInstall: true})},
		{one, "long", views.IntegrationPage(frame("PagerDuty", "catalog"), views.IntegrationView{Offer: views.Offer{Manifest: oneOf("pagerduty")}, Release: digest, Place: views.Place{Host: "mcp.pagerduty.com"}, MayInstall: true})},
		{form, "empty", views.InstallPage(frame("Install", "catalog"), install)},
		{form, "failed", views.InstallPage(frame("Install", "catalog"), failed)},
		{form, "token", views.InstallPage(frame("Install", "catalog"), tokens)},
		{form, "repositories", views.InstallPage(frame("Install", "catalog"), listed)},
		{form, "no repositories", views.InstallPage(frame("Install", "catalog"), barren)},
		{form, "token refused", views.InstallPage(frame("Install", "catalog"), refusedToken)},
		{form, "choice", views.InstallPage(frame("Install", "catalog"), choice)},
		{one, "own", views.IntegrationPage(frame(custom.Name, "catalog"), views.IntegrationView{Offer: views.Offer{Manifest: custom}, Release: digest, Place: own.Place, MayInstall: true})},
		{form, "own server", views.InstallPage(frame("Install", "catalog"), own)},
		{form, "own server failed", views.InstallPage(frame("Install", "catalog"), ownWrong)},
		{form, "no address", views.InstallPage(frame("Install", "catalog"), gone)},
	}
}
