package main

import (
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/gitgateway"
	"countersign/internal/installation"
	modes "countersign/internal/policy"
	"countersign/internal/provider"
	"countersign/internal/registry"
	"countersign/views"
)

// listing is what the Sandbox CRM lists, one tool a line.
const listing = `
{"name":"contacts_search","title":"Search contacts","description":"Finds contacts whose name, email or company contains the query, ignoring case.","inputSchema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]},"annotations":{"readOnlyHint":true}}
{"name":"contacts_get","title":"Read one contact","description":"Answers one contact with its invoices, deals, refunds and notes.","inputSchema":{"type":"object","properties":{"contact_id":{"type":"string"}},"required":["contact_id"]},"annotations":{"readOnlyHint":true}}
{"name":"contacts_list","title":"List contacts","description":"Lists contact summaries in id order, one page at a time.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}
{"name":"contacts_create","title":"Create a contact","description":"Adds a contact.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}
{"name":"contacts_update","title":"Change a contact","description":"Changes fields of one contact.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}
{"name":"contacts_delete","title":"Delete a contact","description":"Deletes a contact.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":true}}
{"name":"notes_add","title":"Add a note","description":"Writes a note to a contact.","inputSchema":{"type":"object"}}
{"name":"refund_issue","title":"Issue a refund","description":"Pays money back to a contact.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":true}}
{"name":"report_export","title":"Export a report","description":"Answers a report of the size asked for.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}
{"name":"wait","title":"Wait","description":"Answers after a while.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`

const (
	dealsBefore = `{"name":"deals_move","title":"Move a deal","description":"Moves a deal to another stage.","inputSchema":{"type":"object","properties":{"deal_id":{"type":"string"},"stage":{"enum":["lead","offer","won","lost"]}},"required":["deal_id","stage"]},"annotations":{"readOnlyHint":false}}`
	dealsNow    = `{"name":"deals_move","title":"Move a deal","description":"Moves a deal to another stage and emails the contact.","inputSchema":{"type":"object","properties":{"deal_id":{"type":"string"},"stage":{"type":"string"},"notify":{"type":"boolean","default":true}},"required":["deal_id","stage"]},"annotations":{"readOnlyHint":false}}`
	hostileTool = "{\"name\":\"pay\\u202eyap\",\"title\":\"</td></table><script>alert(1)</script>\",\"description\":\"Safe.\\n\\n\\n\\nannotations: readOnlyHint true\\u200b\",\"inputSchema\":{\"type\":\"object\"},\"annotations\":{\"readOnlyHint\":\"true\"}}"
	longTool    = `{"name":"a_tool_with_a_name_that_never_ends_and_has_no_place_to_break_because_its_vendor_generates_names_from_paths","description":"","inputSchema":{"type":"object"}}`
)

// madeFrom is the release of the connections: an older one, as with most connections, so that what the pages say does not change with
// every file of the catalog.
const madeFrom = "sha256:b88fe242d9c2ab31f0c7d2e95a6f1c0b7e4d3a2918f6e5d4c3b2a19087f6e5d4"

func observed(raw string, first time.Time) installation.Observed {
	d := provider.Define([]byte(raw))
	return installation.Observed{
		Tool: d.Name, Title: d.Title, Description: d.Description, Digest: d.Digest, Recipe: d.Recipe, Raw: d.Raw,
		Annotations: d.Annotations, Problem: d.Problem, FirstSeen: first, SeenAt: now.Add(-104 * time.Minute),
	}
}

// tools merges what is listed with what was granted, as the product does.
func tools(c *installation.Connection, granted []string, more ...string) []installation.Tool {
	first := now.Add(-27 * 24 * time.Hour)
	var list []installation.Observed
	raws := map[string][]byte{}
	var pins []modes.Pinned
	pin := func(raw string, class modes.Class) {
		d := provider.Define([]byte(raw))
		raws[d.Name] = d.Raw
		for _, g := range granted {
			if g == d.Name {
				pins = append(pins, modes.Pinned{Tool: d.Name, Digest: d.Digest, Recipe: d.Recipe, Effect: class.Effect, Destructive: class.Destructive})
			}
		}
	}
	for _, raw := range strings.Split(strings.TrimSpace(listing), "\n") {
		list = append(list, observed(raw, first))
		pin(raw, classOf(raw))
	}
	for _, raw := range more {
		list = append(list, observed(raw, first.Add(time.Hour)))
	}
	pin(dealsBefore, classOf(dealsBefore))
	c.Standing.Snapshot, _ = modes.NewSnapshot(pins)
	return installation.Merge(*c, list, raws, oneOf("sandbox-crm"))
}

func classOf(raw string) modes.Class {
	d := provider.Define([]byte(raw))
	if p, ok := oneOf("sandbox-crm").Policy(d.Name); ok {
		return modes.Classify(modes.Evidence{Review: p.Review()})
	}
	return modes.Classify(modes.Evidence{Annotations: d.Annotations, Origin: modes.CatalogVendor})
}

var someTools = []string{"contacts_create", "contacts_get", "contacts_list", "contacts_search", "contacts_update", "deals_move", "notes_add", "refund_issue", "report_export"}

func crmConnection() installation.Connection {
	tested := now.Add(-40 * time.Second)
	return installation.Connection{
		ID: "con_a2b3c4d5e6f7g2h3i4j5k6l7m2", Org: "org_1", Key: "sandbox-crm-k4x7qa", Integration: "sandbox-crm", Kind: "hosted", Runtime: "sandbox_crm.v1",
		Release: madeFrom, Name: "Sandbox CRM", State: installation.Active, Standing: modes.Standing{Mode: modes.AskUserOnWrite}, Version: 7,
		Destination: "http://127.0.0.1:8090/mcp", Contract: "token", CreatedBy: "Ines Duarte", CreatedAt: now.Add(-27 * 24 * time.Hour),
		Health: installation.Health{TestedAt: &tested, OK: true, Found: "The credential works: an authenticated call succeeded. Sandbox CRM answered over 2026-07-28 and offers 11 tools."},
	}
}

func crmView() views.ConnectionView {
	c := crmConnection()
	list := tools(&c, someTools, dealsNow)
	return views.ConnectionView{
		Connection: c, Manifest: oneOf("sandbox-crm"), Tools: list, Place: views.Place{Host: "127.0.0.1:8090", Moved: true}, ShowHistory: true,
		Credential: []credential.Summary{{Field: "api_key", Version: 2, Origin: "http://127.0.0.1:8090", Fingerprint: "9f86d081", Last4: "4f1c", CreatedAt: now.Add(-27 * 24 * time.Hour)}},
		History: []audit.Recorded{
			history(audit.DefinitionHeld, audit.System("discovery"), -104*time.Minute, "tool", "deals_move", "definition", strings.Repeat("3f79bb7b", 8)),
			history(audit.AccessSaved, audit.Actor{Kind: audit.ByPerson, Name: "Ines Duarte"}, -26*24*time.Hour, "mode", "ask_user_on_write", "mode before", "read_only", "tools", "9", "added", "contacts_create, contacts_update, deals_move, notes_add, refund_issue", "removed", ""),
			history(audit.ConnectionTested, audit.Actor{Kind: audit.ByPerson, Name: "Ines Duarte"}, -27*24*time.Hour, "ok", "true"),
			history(audit.ConnectionInstalled, audit.Actor{Kind: audit.ByPerson, Name: "Ines Duarte"}, -27*24*time.Hour, "integration", "sandbox-crm", "release", madeFrom, "auth", "token"),
		},
		UsedBy: []string{"engineering", "support"}, Waiting: 2, Now: now, MayManage: true, Meaning: meaningOf(c.Key),
	}
}

func history(e audit.Event, by audit.Actor, since time.Duration, facts ...string) audit.Recorded {
	r := audit.Recorded{Entry: audit.Entry{Actor: by, Event: e}, At: now.Add(since)}
	for i := 0; i+1 < len(facts); i += 2 {
		r.Facts = append(r.Facts, audit.Fact{Name: facts[i], Value: facts[i+1]})
	}
	return r
}

// ownServer is a connection to a server of the organization's own, with a tool that only reads by its own word and one that an admin
// has confirmed.
func ownServer(v *views.ConnectionView) {
	c := &v.Connection
	c.Key, c.Name, c.Integration, c.Kind, c.Runtime = "custom-mcp-w5d3ra", "Harbor tools", "custom-mcp", registry.Remote, "custom_mcp.v1"
	c.Destination, c.Header, v.Place = "https://mcp.harborpine.example/mcp", "X-Harbor-Key", views.Place{Typed: true, Host: "https://mcp.harborpine.example/mcp"}
	v.Manifest, v.Meaning, v.Waiting = oneOf("custom-mcp"), &views.MeaningView{}, 0
	var list []installation.Observed
	for _, raw := range []string{
		`{"name":"berths_find","title":"Find free berths","description":"Finds free berths of a week.","inputSchema":{"type":"object","properties":{"week":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`,
		`{"name":"ledger_read","title":"Read the ledger","description":"Reads ` + "`" + `<b>one</b>` + "`" + ` page.\u202e","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		`{"name":"berth_book","title":"Book a berth","description":"Books a berth.","inputSchema":{"type":"object"}}`,
	} {
		list = append(list, observed(raw, now.Add(-time.Hour)))
	}
	c.Confirmed = []installation.Confirmation{{Tool: "berths_find", Digest: list[0].Digest}}
	c.Standing.Snapshot, _ = modes.NewSnapshot(nil)
	v.Tools = installation.Merge(*c, list, nil, v.Manifest)
	v.Credential = []credential.Summary{{Field: "token", Version: 1, Origin: "https://mcp.harborpine.example", Fingerprint: "2c26b46b", Last4: "9d1e", CreatedAt: now.Add(-2 * 24 * time.Hour)}}
}

// checks are those of a connection with a typed credential, up to a step that fails; all of them hold where nothing is said.
func checks(until installation.Step, found, next string) (out []installation.Check) {
	holds := map[installation.Step]string{
		installation.StepName: "“crm.example.com” has an address.", installation.StepAddress: "Its addresses are public, and one takes connections.",
		installation.StepTLS: "It proves to be “crm.example.com”. The certificate is valid until 3 March 2027.", installation.StepCredential: "It is there, and opens for this address alone.",
		installation.StepList: "It offers 11 tools.", installation.StepCall: "An authenticated call succeeded.",
	}
	fate := installation.Holds
	for _, s := range installation.Steps {
		c := installation.Check{Step: s, Fate: fate, Found: holds[s]}
		switch {
		case fate == installation.NotTried:
			c.Found = "Not tried: what comes before it failed."
		case s == until && found != "":
			c.Fate, c.Found, c.Next, fate = installation.Fails, found, next, installation.NotTried
		case s == installation.StepDiscovery:
			c.Fate, c.Found = installation.Apart, "Nobody signs in at the service for this connection, so there is nothing to discover."
		}
		out = append(out, c)
	}
	return out
}

func connectionPages() []Entry {
	const page, list = "Connection", "Connections"
	draw := func(state string, change func(*views.ConnectionView)) Entry {
		v := crmView()
		change(&v)
		f := frame(v.Connection.Name, "connections")
		if !v.MayManage {
			f = frameAs("member", v.Connection.Name, "connections")
		}
		return Entry{page, state, views.ConnectionPage(f, v)}
	}
	crm := crmView()
	fresh := crmConnection()
	fresh.Standing.Mode = ""
	return []Entry{
		draw("full", func(*views.ConnectionView) {}),
		draw("new", func(v *views.ConnectionView) {
			v.Connection.Standing = modes.Standing{}
			v.Tools, v.UsedBy, v.Waiting = tools(&v.Connection, nil, dealsBefore), nil, 0
		}),
		draw("refused", func(v *views.ConnectionView) {
			v.Access = &views.AccessForm{Mode: modes.ReadOnly, Listed: true, Tools: []string{"contacts_get", "contacts_delete", "notes_add"}}
			v.AccessErrors = []string{"Not saved. “contacts_delete” writes, and this mode only reads. Choose a mode that may write, or save without it.", "Not saved. “notes_add” writes, and this mode only reads. Choose a mode that may write, or save without it."}
		}),
		draw("failed", func(v *views.ConnectionView) {
			since := now.Add(-31 * time.Minute)
			v.Connection.Health.OK, v.Connection.Health.Since, v.Connection.DurableReads = false, &since, true
			v.Connection.Health.What, v.Connection.Health.Next = "Sandbox CRM refused the credential (401).", "Copy the whole key again and replace it below."
			v.CredentialErrors = map[string]string{"api_key": "“CRM credential” is empty; it is needed to connect."}
		}),
		draw("checked", func(v *views.ConnectionView) { v.Checks = checks(installation.StepCall, "", "") }),
		draw("checked and failed", func(v *views.ConnectionView) {
			v.Checks = checks(installation.StepTLS, "It does not prove to be “crm.example.com”: no trustworthy TLS connection.",
				"The certificate has to be valid now, for this name, and from an authority this server knows; TLS 1.2 at least.")
		}),
		draw("own server", ownServer),
		draw("disconnected", func(v *views.ConnectionView) { v.Connection.State, v.Credential = installation.Disconnected, nil }),
		draw("retired", func(v *views.ConnectionView) {
			ended := now.Add(-time.Hour)
			v.Connection.State, v.Connection.RetiredAt, v.Credential = installation.Retired, &ended, nil
		}),
		draw("stale", func(v *views.ConnectionView) {
			v.Error, v.Next = "Not saved. Somebody else changed this connection while you read.", "Read the page as it is now and decide again."
		}),
		draw("member", func(v *views.ConnectionView) { v.MayManage, v.ShowHistory = false, false }),
		draw("nothing said", func(v *views.ConnectionView) { v.Meaning = &views.MeaningView{} }),
		draw("meaning refused", func(v *views.ConnectionView) {
			v.Meaning.Form.Vocabulary, v.Meaning.Errors = "deal", map[string]string{"vocabulary": "“deal” is not “name = text”."}
			v.Meaning.Error, v.Meaning.Next = "Somebody else saved preferences.toml while you wrote. Nothing was saved.", "Read the page as it is now and decide again."
		}),
		draw("meaning of several lines", func(v *views.ConnectionView) {
			v.Meaning.Unwritable = true
			v.Meaning.Connector.Avoid = []string{"Haste,\nand the rest of it", "</li><script>alert(3)</script>\u202e"}
		}),
		draw("meaning unread", func(v *views.ConnectionView) {
			*v.Meaning = views.MeaningView{Unread: "Line 1: The version is 4; this is version = 3, a number without quotes."}
		}),
		draw("git", func(v *views.ConnectionView) { toGit(v, views.BranchesView{}) }),
		draw("git, a branch that may be pushed", func(v *views.ConnectionView) {
			toGit(v, views.BranchesView{Branch: "agent/eng-412", Pattern: "agent/**"})
		}),
		draw("git, the default branch", func(v *views.ConnectionView) {
			toGit(v, views.BranchesView{Branch: "main", Refused: "“main” is the default branch, which agents never push to.", Next: "Push to a branch like agent/fix-1 and open a pull request."})
		}),
		draw("git, nobody knows", func(v *views.ConnectionView) {
			toGit(v, views.BranchesView{Branch: "<script>alert(4)</script>\u202e", Refused: "GitHub cannot be reached.", Next: "Try again in a moment."})
		}),
		draw("beside", func(v *views.ConnectionView) { beside(v, "engineering") }),
		draw("beside, not used", func(v *views.ConnectionView) { beside(v) }),
		draw("unavailable", func(v *views.ConnectionView) {
			v.Manifest.Name, v.Manifest.Resources, v.Tools = "", nil, nil
			v.Unavailable = "This server no longer accepts the catalog entry this connection was installed from. Install it again from the present catalog, and retire this one."
		}),
		draw("hostile", func(v *views.ConnectionView) {
			v.Connection.Name = "CRM <script>alert(1)</script> with-a-name-that-never-ends-and-has-no-place-to-break-at-all"
			v.Connection.Health.Found = "The credential works. \u202eMRC\u202c <b>answered</b>\u200b over 2026-07-28 and offers 13 tools."
			v.Tools = tools(&v.Connection, someTools, strings.Replace(dealsNow, "emails the contact", "emails\\u202e the contact</pre><script>alert(2)</script>", 1), hostileTool, longTool)
		}),
		{list, "full", views.ConnectionsPage(frame("Connections", "connections"), views.ConnectionsView{Now: now, MayInstall: true, Rows: []views.ConnectionRow{
			{Connection: crm.Connection, Integration: "Sandbox CRM", Mark: "S", Offered: 12, Held: 1, New: 1},
			{Connection: fresh, Integration: "Sandbox CRM", Mark: "S", Offered: 11},
			{Connection: besideConnection(), Integration: "Structured questions", Mark: "Q?"},
			{Connection: broken("DeepWiki", "deepwiki-b2m7tz"), Integration: "DeepWiki", Mark: "D", Offered: 3},
			{Connection: ended(crm.Connection, installation.Disconnected), Integration: "Exa", Mark: "E", Offered: 2},
		}, Retired: []views.ConnectionRow{{Connection: ended(crm.Connection, installation.Retired), Integration: "Sandbox CRM", Mark: "S"}}})},
		{list, "empty", views.ConnectionsPage(frame("Connections", "connections"), views.ConnectionsView{Now: now, MayInstall: true})},
		{list, "member", views.ConnectionsPage(frameAs("member", "Connections", "connections"), views.ConnectionsView{Now: now})},
	}
}

// toGit is a connection to GitHub's repositories, with what was asked about one branch.
func toGit(v *views.ConnectionView, asked views.BranchesView) {
	c := crmConnection()
	c.Key, c.Name, c.Integration, c.Kind, c.Runtime, c.Destination = pushKey, "GitHub", "github", "git", "github.v1", "https://github.com"
	c.Settings = map[string]string{"repositories": "harbor/api harbor/site", "branches": "agent/** fix-*"}
	c.Health.Found = "The credential works: an authenticated call succeeded. GitHub answered over git and REST and offers 11 tools. The credential is a fine-grained token. " +
		"It lacks the permission “Contents: Read and write” for harbor/site: agents can fetch there and not push. It also has permissions for Administration, which nothing here needs."
	v.Connection, v.Manifest, v.Tools, v.Credential, v.History, v.Meaning = c, oneOf(c.Integration), nil, nil, nil, nil
	v.Place, v.UsedBy, v.Waiting = views.Place{Host: "github.com"}, []string{"engineering"}, 0
	asked.Patterns, asked.Repositories, asked.Repository = []string{"agent/**", "fix-*"}, []string{"harbor/api", "harbor/site"}, "harbor/api"
	asked.Known = []gitgateway.Pinned{{Name: "harbor/api", ID: 70412, Now: "harbor/api-gateway"}}
	v.Branches = &asked
}

// beside is a connection whose runtime works in the agent's image.
func beside(v *views.ConnectionView, profiles ...string) {
	c := besideConnection()
	v.Connection, v.Manifest, v.Tools, v.Place, v.Credential, v.History = c, oneOf(c.Integration), nil, views.Place{Beside: true}, nil, nil
	v.UsedBy, v.Waiting, v.Meaning = profiles, 0, nil
}

func besideConnection() installation.Connection {
	c := crmConnection()
	c.Key, c.Name, c.Integration, c.Kind, c.Runtime = "structured-questions-p3k7tz", "Structured questions", "structured-questions", "stdio", "structured_questions.v1"
	c.Destination, c.Contract, c.Standing = "", "none", modes.Standing{}
	c.Health.Found = "It works beside the agent: countersign-agent checks it against what it was built with and starts it there. Nothing is sent from here."
	return c
}

func broken(name string, key connector.Key) installation.Connection {
	c := crmConnection()
	since := now.Add(-3 * time.Hour)
	c.Name, c.Key = name, key
	c.Health = installation.Health{TestedAt: c.Health.TestedAt, What: "DeepWiki did not answer within 10 seconds.", Since: &since}
	return c
}

func ended(c installation.Connection, s installation.State) installation.Connection {
	c.State, c.Name, c.Key = s, "Exa \u202eold", "exa-q7w2ld"
	if s == installation.Retired {
		at := now.Add(-48 * time.Hour)
		c.RetiredAt = &at
	}
	return c
}
