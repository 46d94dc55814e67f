package web

import (
	"net/http"

	"countersign/internal/consent"
	"countersign/internal/identity"
	"countersign/internal/servicetoken"
	"countersign/web/admin"
	"countersign/web/agent"
)

// Any is every method: the handler itself refuses what it does not answer.
const Any = "*"

// Route is one line of the sitemap.
type Route struct {
	Method string
	Path   string
	answer answered
}

// Guard says who may use the route.
func (r Route) Guard() Guard { return r.answer.guard }

// Handlers are the parts of the product a route can lead to. A part that is nil has no routes.
type Handlers struct {
	Doors       *admin.Doors
	Overview    *admin.Overview
	People      *admin.People
	Groups      *admin.Groups
	Tokens      *admin.Tokens
	Settings    *admin.Settings
	Audit       *admin.Audit
	Releases    *admin.Releases
	Profiles    *admin.Profiles
	Actions     *admin.Actions
	Runs        *admin.Runs
	Catalog     *admin.Catalog
	Connections *admin.Connections
	Consents    *admin.Consents
	Contexts    *admin.Contexts
	Freezes     *admin.Freezes
	API         *agent.API
	Gateway     *Gateway
}

// Gateway is what a run's agent reaches with its run token.
type Gateway struct {
	MCP, Config, Preflight http.Handler
	Git                    http.Handler // nil: no repositories
}

const (
	get  = http.MethodGet
	post = http.MethodPost
)

// Routes is the sitemap: method, path, who may, and what answers.
func Routes(h Handlers) []Route {
	var routes []Route
	add := func(more ...Route) { routes = append(routes, more...) }
	if d := h.Doors; d != nil {
		add(
			Route{get, "/sign-in", public(d.Form)},
			Route{post, "/sign-in", public(d.SignIn)},
			Route{post, "/sign-out", public(d.SignOut)},
			Route{get, "/join/:link", public(d.Invited)},
			Route{post, "/join/:link", public(d.Join)},
		)
	}
	if o := h.Overview; o != nil {
		add(Route{get, "/", with(identity.View, o.Show)})
	}
	if p := h.Profiles; p != nil {
		add(
			Route{get, "/profiles", with(identity.View, p.List)},
			Route{get, "/profiles/new", with(identity.Manage, p.New)},
			Route{post, "/profiles", with(identity.Manage, p.Create)},
			Route{get, "/profiles/:name", with(identity.View, p.Show)},
			Route{post, "/profiles/:name", with(identity.Manage, p.Save)},
			Route{post, "/profiles/:name/remove", with(identity.Manage, p.Remove)},
		)
	}
	if a := h.Actions; a != nil {
		add(
			Route{get, "/actions", with(identity.View, a.Inbox)},
			Route{get, "/actions/batch", with(identity.View, a.Batch)},
			Route{post, "/actions/batch/approve", with(identity.Decide, a.ApproveBatch)},
			Route{post, "/actions/batch/deny", with(identity.Decide, a.DenyBatch)},
			Route{get, "/actions/:id", with(identity.View, a.Show)},
			Route{post, "/actions/:id/approve", with(identity.Decide, a.Approve)},
			Route{post, "/actions/:id/deny", with(identity.Decide, a.Deny)},
			Route{post, "/actions/:id/cancel", with(identity.Manage, a.Cancel)},
			Route{post, "/actions/:id/settle", with(identity.Decide, a.Settle)},
			Route{post, "/actions/:id/look-ups", with(identity.Decide, a.LookUp)},
		)
	}
	if f := h.Freezes; f != nil {
		add(
			Route{post, "/freezes", with(identity.Manage, f.Freeze)},
			Route{post, "/freezes/:id/lift", with(identity.Manage, f.Lift)},
		)
	}
	if r := h.Runs; r != nil {
		add(
			Route{get, "/runs", with(identity.View, r.List)},
			Route{get, "/runs/:id", with(identity.View, r.Show)},
			Route{post, "/runs/:id/end", with(identity.Manage, r.End)},
		)
	}
	if a := h.Audit; a != nil {
		add(
			Route{get, "/audit", with(identity.ReadAudit, a.List)},
			Route{get, "/audit/export", with(identity.ReadAudit, a.Export)},
			Route{post, "/audit/verify", with(identity.ReadAudit, a.Verify)},
		)
	}
	if r := h.Releases; r != nil {
		add(
			Route{get, "/releases", with(identity.View, r.List)},
			Route{get, "/releases/:digest", with(identity.View, r.Show)},
		)
	}
	if p := h.People; p != nil {
		add(
			Route{get, "/people", with(identity.Manage, p.List)},
			Route{post, "/people", with(identity.Manage, p.Add)},
			Route{get, "/people/:id", with(identity.Manage, p.Show)},
			Route{post, "/people/:id/roles", with(identity.Manage, p.SaveRoles)},
			Route{post, "/people/:id/deactivate", with(identity.Manage, p.Deactivate)},
			Route{post, "/people/:id/reactivate", with(identity.Manage, p.Reactivate)},
			Route{post, "/people/:id/link", with(identity.Manage, p.Link)},
		)
	}
	if g := h.Groups; g != nil {
		add(
			Route{get, "/people/groups", with(identity.Manage, g.List)},
			Route{post, "/people/groups", with(identity.Manage, g.Save)},
			Route{post, "/people/groups/remove", with(identity.Manage, g.Remove)},
		)
	}
	if t := h.Tokens; t != nil {
		add(
			Route{get, "/tokens", with(identity.Manage, t.List)},
			Route{post, "/tokens", with(identity.Manage, t.Create)},
			Route{post, "/tokens/:id/revoke", with(identity.Manage, t.Revoke)},
		)
	}
	if s := h.Settings; s != nil {
		add(
			Route{get, "/settings", with(identity.View, s.Show)},
			Route{post, "/settings/theme", with(identity.View, s.Theme)},
			Route{post, "/settings/password", with(identity.View, s.Password)},
		)
	}
	if c := h.Catalog; c != nil {
		add(
			Route{get, "/catalog", with(identity.View, c.List)},
			Route{get, "/catalog/:integration", with(identity.View, c.Show)},
		)
	}
	if c := h.Connections; c != nil {
		add(
			Route{get, "/connections", with(identity.View, c.List)},
			Route{get, "/connections/new/:integration", with(identity.Manage, c.New)},
			Route{post, "/connections/new/:integration", with(identity.Manage, c.Install)},
			Route{post, "/connections/new/:integration/repositories", with(identity.Manage, c.Choose)},
			Route{get, "/connections/:key", with(identity.View, c.Show)},
			Route{post, "/connections/:key/access", with(identity.Manage, c.SaveAccess)},
			Route{post, "/connections/:key/accept", with(identity.Manage, c.Accept)},
			Route{post, "/connections/:key/reads", with(identity.Manage, c.ConfirmReads)},
			Route{post, "/connections/:key/credential", with(identity.Manage, c.SaveCredential)},
			Route{post, "/connections/:key/test", with(identity.Manage, c.Test)},
			Route{post, "/connections/:key/check", with(identity.Manage, c.Check)},
			Route{post, "/connections/:key/rename", with(identity.Manage, c.Rename)},
			Route{post, "/connections/:key/recording", with(identity.Manage, c.RecordReads)},
			Route{post, "/connections/:key/disconnect", with(identity.Manage, c.Disconnect)},
			Route{post, "/connections/:key/retire", with(identity.Manage, c.Retire)},
			Route{post, "/connections/:key/meaning", with(identity.Manage, c.SaveMeaning)},
		)
	}
	if c := h.Consents; c != nil {
		add(
			Route{get, "/connections/:key/consent", with(identity.Manage, c.Ask)},
			Route{post, "/connections/:key/consent", with(identity.Manage, c.Start)},
			Route{get, consent.CallbackPath, with(identity.Manage, c.Callback)},
			Route{get, consent.DocumentPath, plain(c.Document())},
		)
	}
	if c := h.Contexts; c != nil {
		add(
			Route{get, "/context", with(identity.View, c.Show)},
			Route{post, "/context", with(identity.Manage, c.Save)},
			Route{post, "/context/check", with(identity.Manage, c.Check)},
			Route{get, "/context/export", with(identity.View, c.Export)},
			Route{get, "/context/revisions/:revision", with(identity.View, c.Revision)},
			Route{post, "/context/revisions/:revision/restore", with(identity.Manage, c.Restore)},
		)
	}
	if a := h.API; a != nil {
		add(
			Route{get, "/api/openapi.yaml", plain(agent.OpenAPI())},
			Route{post, "/api/v1/runs", token(servicetoken.RunsWrite, a.StartRun())},
			Route{get, "/api/v1/runs/:id", token(servicetoken.RunsRead, a.Run())},
			Route{post, "/api/v1/runs/:id/end", token(servicetoken.RunsWrite, a.EndRun())},
			Route{get, "/api/v1/actions", token(servicetoken.ActionsRead, a.ListActions())},
			Route{get, "/api/v1/actions/:id", token(servicetoken.ActionsRead, a.OneAction())},
			Route{get, "/api/v1/connections", token(servicetoken.ConnectionsRead, a.ListConnections())},
			Route{get, "/api/v1/audit", token(servicetoken.AuditRead, a.ListAudit())},
		)
	}
	if g := h.Gateway; g != nil {
		add(
			Route{Any, "/gateway/mcp", runToken(g.MCP)},
			Route{Any, "/gateway/mcp/:connection", runToken(g.MCP)},
			Route{get, "/gateway/config", runToken(g.Config)},
			Route{get, "/gateway/preflight", runToken(g.Preflight)},
		)
		if g.Git != nil {
			add(Route{Any, agent.GitPrefix + "*", runToken(g.Git)})
		}
	}
	return routes
}
