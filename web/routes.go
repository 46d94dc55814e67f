package web

import (
	"net/http"

	"countersign/internal/servicetoken"
	"countersign/web/admin"
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
	Doors   *admin.Doors
	API     *API
	Gateway *Gateway
}

// API is the service API for an organization's own programs. Its handlers read path values with http.Request.PathValue.
type API struct {
	StartRun, Run, EndRun, Actions, Action, Connections, Audit http.Handler
	Description                                                http.Handler // the OpenAPI document
}

// Gateway is what a run's agent reaches with its run token.
type Gateway struct {
	MCP, Config, Git http.Handler
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
	if a := h.API; a != nil {
		add(
			Route{get, "/api/openapi.yaml", plain(a.Description)},
			Route{post, "/api/v1/runs", token(servicetoken.RunsWrite, a.StartRun)},
			Route{get, "/api/v1/runs/:id", token(servicetoken.RunsRead, a.Run)},
			Route{post, "/api/v1/runs/:id/end", token(servicetoken.RunsWrite, a.EndRun)},
			Route{get, "/api/v1/actions", token(servicetoken.ActionsRead, a.Actions)},
			Route{get, "/api/v1/actions/:id", token(servicetoken.ActionsRead, a.Action)},
			Route{get, "/api/v1/connections", token(servicetoken.ConnectionsRead, a.Connections)},
			Route{get, "/api/v1/audit", token(servicetoken.AuditRead, a.Audit)},
		)
	}
	if g := h.Gateway; g != nil {
		add(
			Route{Any, "/gateway/mcp", runToken(g.MCP)},
			Route{Any, "/gateway/mcp/:connection", runToken(g.MCP)},
			Route{get, "/gateway/config", runToken(g.Config)},
			Route{Any, "/gateway/git/*", runToken(g.Git)},
		)
	}
	return routes
}
