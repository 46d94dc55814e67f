// Package layout owns the page around every page: head, navigation, notices on top, and the door that stands before signing in.
// It shows only what the viewer's roles may open; hiding a link is courtesy, the route's guard is the rule. It never reads a
// request and never decides anything.
package layout

import (
	"countersign/internal/action"
	"countersign/views/ui"
)

// Frame is what every page tells the layout.
type Frame struct {
	Title   string // without the product's name
	Current string // id of the navigation entry this page belongs to: overview, inbox, catalog, connections, …
	Viewer  Viewer
	Theme   string // light, dark, or empty: as the system says
	Flash   *Flash // what the last post did; the same words a toast would say
	Freeze  string // set while everything consequential is stopped: since when, by whom, why
}

// Viewer is who is signed in, what they may open, and what waits.
type Viewer struct {
	Name    string
	Email   string
	OrgName string
	Roles   string // "owner", "approver and auditor"

	MayManage bool
	MayAudit  bool
	MayDecide bool

	InboxWaiting int // actions this person may decide
	NeedsReview  int // connections with something held back
	RunsLive     int

	Freezes []action.Freeze // the kill switches that are on
}

// Flash is the result of the last post.
type Flash struct {
	Tone ui.Tone
	Text string
}

// entry is one line of the navigation.
type entry struct {
	id, label, href, icon string
}

// group is a titled part of the navigation.
type group struct {
	id, title string
	entries   []entry
}

// navigation lists what this viewer may open, in the order of use.
func navigation(v Viewer) []group {
	groups := []group{
		{"", "", []entry{
			{"overview", "Overview", "/", "overview"},
			{"inbox", "Inbox", "/actions", "inbox"},
		}},
		{"nav-setup", "Set up", []entry{
			{"catalog", "Catalog", "/catalog", "catalog"},
			{"connections", "Connections", "/connections", "conn"},
			{"profiles", "Profiles", "/profiles", "profile"},
			{"context", "Context", "/context", "context"},
		}},
		{"nav-back", "Look back", []entry{
			{"runs", "Runs", "/runs", "run"},
		}},
		{"nav-org", "Organization", nil},
	}
	if v.MayAudit {
		groups[2].entries = append(groups[2].entries, entry{"audit", "Audit", "/audit", "audit"})
	}
	groups[2].entries = append(groups[2].entries, entry{"releases", "Releases", "/releases", "release"})
	if v.MayManage {
		groups[3].entries = append(groups[3].entries,
			entry{"people", "People", "/people", "people"},
			entry{"tokens", "Tokens", "/tokens", "token"})
	}
	groups[3].entries = append(groups[3].entries, entry{"settings", "Settings", "/settings", "settings"})
	return groups
}

// display is the name, or the email where no name is known.
func (v Viewer) display() string {
	if v.Name != "" {
		return v.Name
	}
	return v.Email
}

// htmxConfig keeps htmx inside the content security policy: no style of its own, requests to this origin only.
const htmxConfig = `{"includeIndicatorCSS":false,"mode":"same-origin","history":true,"noSwap":[204,304]}`
