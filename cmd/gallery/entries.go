package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"countersign/views/layout"
)

// Entry is one page in one state.
type Entry struct {
	Name      string // the page: "Sign in"
	State     string // the state: "empty", "full", "failed", "hostile", or what is special about it
	Component templ.Component
}

// groups lists every page group, one a line; each lives in its own file.
var groups = [][]Entry{
	parts(),
	signIn(),
	errorPages(),
	catalogPages(),
	connectionPages(),
	consentPages(),
	consentStates(),
	overviewPages(),
	inboxPages(),
	approvalPages(),
	freezePages(),
	pushPages(), previewPages(),
	actionPages(),
	runPages(),
	profilePages(),
	contextPages(),
	auditPages(),
	releasePages(),
	peoplePages(),
	tokenPages(),
	settingsPages(),
}

// now is the moment all entries are drawn at, so that the gallery never changes by itself.
var now = time.Date(2026, time.November, 30, 13, 54, 11, 0, time.UTC)

// frame is the frame of a person who may do everything.
func frame(title, current string) layout.Frame {
	return layout.Frame{Title: title, Current: current, Viewer: layout.Viewer{
		Name: "Ines Duarte", Email: "ines@harborpine.test", OrgName: "Harbor & Pine", Roles: "owner",
		MayManage: true, MayAudit: true, MayDecide: true, InboxWaiting: 3, NeedsReview: 1, RunsLive: 2,
	}}
}

// frameAs is the frame of a person with one role.
func frameAs(role, title, current string) layout.Frame {
	f := frame(title, current)
	v := &f.Viewer
	v.Name, v.Email, v.Roles = "Tomas Lindqvist", "tomas@harborpine.test", role
	v.MayManage = role == "owner" || role == "admin"
	v.MayDecide = role == "owner" || role == "approver"
	v.MayAudit = role == "owner" || role == "auditor"
	return f
}

// file is the name an entry is written and served under.
func (e Entry) file() string { return dashed(e.Name) + "--" + dashed(e.State) + ".html" }

// dashed writes words as a file name.
func dashed(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}

// allEntries is every entry whose file name contains only. Two entries of one name would hide each other, so that is an error.
func allEntries(only string) ([]Entry, error) {
	var out []Entry
	seen := map[string]bool{}
	for _, g := range groups {
		for _, e := range g {
			if e.Name == "" || e.State == "" || e.Component == nil {
				return nil, fmt.Errorf("entry %q, %q has no name, state or component", e.Name, e.State)
			}
			if seen[e.file()] {
				return nil, fmt.Errorf("two entries are called %q, %q", e.Name, e.State)
			}
			seen[e.file()] = true
			if strings.Contains(e.file(), only) {
				out = append(out, e)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no entry's file name contains %q", only)
	}
	return out, nil
}
