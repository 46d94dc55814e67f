package main

import (
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/preferences"
	"countersign/views"
)

const written = `# Kept by the operations team; ask Maya before changing what support may rely on.
version = 3

[connectors.sandbox-crm-k4x7qa]
purpose = "Contacts, deals and refunds of the shop. The invoices themselves are in Stripe."
avoid = [
  "Refunds over 500 EUR",   # finance does those
  "Deleting contacts",
]

[connectors.sandbox-crm-k4x7qa.vocabulary]
deal = "A quote that was sent, whether or not anybody answered"
"won deal" = "A quote somebody has paid"

[connectors.sandbox-crm-k4x7qa.defaults]
currency = "EUR"

[departments.support.connectors.sandbox-crm-k4x7qa]
meaning = "Where a customer is looked up before anybody answers them."

[connectors.exa-q7w2ld]
purpose = "Searching the web. No customer's name goes into a query."

[workflows.refund]
uses = ["sandbox-crm-k4x7qa", "stripe-nzq2bd"]
`

func revisionOf(n int, text string, how preferences.How, by string, ago time.Duration) preferences.Revision {
	return preferences.Revision{Number: n, Text: text, Bytes: len(text), How: how, By: audit.Actor{Kind: audit.ByPerson, Name: by}, SavedAt: earlier(ago)}
}

// contextPages are preferences.toml as nobody has written it, as it is kept, as it is wrong, and as hostile as it can be.
func contextPages() []Entry {
	list := []preferences.Revision{
		revisionOf(7, written, preferences.Written, "Ines Duarte", 3*time.Hour), revisionOf(6, written, preferences.Filled, "Maya Okafor", 50*time.Hour),
		revisionOf(5, written, preferences.Restored, "Ines Duarte", 70*time.Hour),
		{Number: 4, Bytes: 702, How: preferences.Pushed, By: audit.Operator, SavedAt: earlier(90 * time.Hour)},
	}
	leads := parsedOf(written).Dangling(func(k connector.Key) preferences.Standing {
		return map[connector.Key]preferences.Standing{"sandbox-crm-k4x7qa": preferences.Present, "exa-q7w2ld": preferences.Retired}[k]
	}, []string{"engineering", "support"})
	saved := func() views.ContextView {
		return views.ContextView{
			Current: list[0], History: list, Older: 4, Now: now, MayManage: true, Dangling: leads, Edit: views.ContextEdit{Text: written, Base: 7},
		}
	}
	draw := func(state string, change func(*views.ContextView)) Entry {
		v := saved()
		change(&v)
		f := frame("Context", "context")
		if !v.MayManage {
			f = frameAs("member", "Context", "context")
		}
		return Entry{"Context", state, views.ContextPage(f, v)}
	}
	wrong := strings.NewReplacer("purpose = \"Contacts", "mode = \"autonomous\"\npurpos = \"Contacts", "sandbox-crm-k4x7qa\", \"stripe", "crm\", \"stripe").Replace(written)
	_, found := preferences.Parse(wrong)
	better := strings.Replace(written, "No customer's name goes into a query.", "No customer's name goes into a query, and no address.", 1)
	return []Entry{
		draw("empty", func(v *views.ContextView) {
			*v = views.ContextView{MayManage: true, Now: now, Edit: views.ContextEdit{Text: preferences.Starter([]connector.Key{"sandbox-crm-k4x7qa", "stripe-nzq2bd"})}}
		}),
		draw("empty, to read", func(v *views.ContextView) { *v = views.ContextView{Now: now} }),
		draw("full", func(*views.ContextView) {}),
		draw("full, to read", func(v *views.ContextView) { v.MayManage = false }),
		draw("failed", func(v *views.ContextView) {
			v.Edit = views.ContextEdit{Text: wrong, Base: 7, Checked: true, Findings: found}
		}),
		draw("checked", func(v *views.ContextView) {
			v.Edit = views.ContextEdit{Text: better, Base: 7, Checked: true, Dangling: leads}
		}),
		draw("the same", func(v *views.ContextView) {
			v.Dangling = nil
			v.Edit = views.ContextEdit{Text: written, Base: 7, Checked: true}
		}),
		draw("stale", func(v *views.ContextView) {
			v.Edit = views.ContextEdit{Text: better, Base: 7, Checked: true, Dangling: leads, Stale: true}
		}),
		draw("unread", func(v *views.ContextView) {
			v.Unread = preferences.Findings{{Line: 2, What: "The version is 4; this is version = 3, a number without quotes."}}
			v.Edit.Refused = "The form does not say which revision it was begun from. Load the page again."
		}),
		draw("hostile", func(v *views.ContextView) {
			v.MayManage = false
			v.Current.By.Name = hostileName
			v.Current.Text = "version = 3 # </pre><script>alert(1)</script>\n" + strings.Repeat("x", 400) + "\u202e\n"
			v.Dangling = preferences.Findings{{Line: 3, What: "No profile belongs to the department “</ul><script>alert(1)</script>" + strings.Repeat("long", 60) + "”."}}
		}),
		revisionEntry("full", views.RevisionView{Revision: list[1], Before: strings.Replace(written, "EUR", "USD", 2), Current: revisionOf(7, better, preferences.Written, "Ines Duarte", 3*time.Hour), MayManage: true}),
		revisionEntry("newest and first", views.RevisionView{Revision: revisionOf(1, written, preferences.Pushed, "operator", time.Hour), Current: revisionOf(1, written, preferences.Pushed, "operator", time.Hour), MayManage: true}),
		revisionEntry("stale", views.RevisionView{
			Revision: revisionOf(2, "version = 2\n", preferences.Written, hostileName, 200*time.Hour), Before: "version = 1\n", Current: list[0], MayManage: true, Stale: true,
			Unread: preferences.Findings{{Line: 1, What: "The version is 2; this is version = 3, a number without quotes."}},
		}),
	}
}

func revisionEntry(state string, v views.RevisionView) Entry {
	return Entry{"Context revision", state, views.RevisionPage(frame("Revision", "context"), v)}
}

func parsedOf(text string) preferences.Document {
	d, _ := preferences.Parse(text)
	return d
}

// meaningOf is what the document above says of a connection, in its form.
func meaningOf(key connector.Key) *views.MeaningView {
	d := parsedOf(written)
	m := views.MeaningView{Base: 7, Connector: d.Connector(key), Means: d.Means(key), Workflows: d.UsedIn(key)}
	m.Form, _ = preferences.FormOf(m.Connector)
	return &m
}
