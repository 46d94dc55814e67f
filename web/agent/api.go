package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/canonical"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
	"countersign/web/answer"
)

// maxBody bounds the body of a service call, in bytes. The largest real one is a run's list of connections.
const maxBody = 64 << 10

// API is the service API: an organization's own programs start runs and read. It offers no way to decide on an action.
type API struct {
	Tokens      servicetoken.Store
	Runs        capability.Store
	Actions     action.Reader
	Connections installation.Reader
	Trail       audit.Reader
	PublicURL   string
}

// call is one authenticated request.
type call struct {
	*http.Request
	token servicetoken.Token
}

// answers computes what a call is answered with: a status and a value to be sent as JSON.
type answers func(call) (status int, body any, err error)

// with authenticates the bearer, asks for the scope and sends the answer. A token without the scope is told which one it lacks: the caller
// holds the token already.
func (a *API) with(scope servicetoken.Scope, do answers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := a.authenticate(r)
		if err == nil && !token.May(scope) {
			err = fault.New(fault.Forbidden, fault.CodeForbidden, "This token lacks the scope “"+string(scope)+"”.", "Create a token with it on the tokens page.")
		}
		if err != nil {
			answer.JSON(w, r, err)
			return
		}
		if err := textOnly(r.URL.Query()); err != nil {
			answer.JSON(w, r, err)
			return
		}
		status, body, err := do(call{r, token})
		if err != nil {
			answer.JSON(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(body) // the status is sent; a reader that went away cannot be told
	})
}

// textOnly refuses query values that PostgreSQL could not take as text.
func textOnly(q url.Values) error {
	for name, values := range q {
		for _, v := range append(values, name) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return answer.NotText
			}
		}
	}
	return nil
}

// unknownToken is the one answer to every bearer that is not a live service token.
var unknownToken = fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "This needs a live service token.", "Send it as Authorization: Bearer cst_…; an admin creates one on the tokens page.")

func (a *API) authenticate(r *http.Request) (servicetoken.Token, error) {
	clear, ok := bearer(r)
	if !ok || !strings.HasPrefix(clear, servicetoken.Prefix) {
		return servicetoken.Token{}, unknownToken
	}
	token, err := a.Tokens.TokenByHash(r.Context(), servicetoken.Hash(clear))
	if f, isFault := fault.As(err); isFault && f.Kind != fault.Unavailable {
		return servicetoken.Token{}, unknownToken
	}
	return token, err
}

// StartRun answers POST /api/v1/runs.
func (a *API) StartRun() http.Handler {
	return a.with(servicetoken.RunsWrite, func(c call) (int, any, error) {
		mint, err := readStart(c)
		if err != nil {
			return 0, nil, err
		}
		clear, hash := run.NewToken()
		mint.TokenHash = hash
		live, created, err := a.Runs.Mint(c.Context(), mint, startedBy(c.token, mint.Order))
		if fault.Is(err, fault.IdempotencyConflict) { // 422, as the header's draft has it
			return 0, nil, fault.New(fault.Invalid, fault.IdempotencyConflict, "This Idempotency-Key was used for another request.", "Use a fresh key for a new run.")
		}
		if err != nil {
			return 0, nil, err
		}
		document := runDocument(live, a.PublicURL)
		if created {
			document.Token = clear
		}
		return http.StatusCreated, document, nil
	})
}

func readStart(c call) (capability.Order, error) {
	raw, err := jsonBody(c.Request)
	if err != nil {
		return capability.Order{}, err
	}
	var request run.Request
	if err := decodeStrictly(raw, &request); err != nil {
		return capability.Order{}, err
	}
	order, err := request.Check()
	if err != nil {
		return capability.Order{}, err
	}
	mint := capability.Order{Order: order, Token: c.token}
	if mint.IdempotencyKey, err = idempotencyKey(c.Header); err != nil {
		return capability.Order{}, err
	}
	if mint.IdempotencyKey != "" {
		mint.RequestDigest = canonical.Digest(raw)
	}
	return mint, nil
}

// startedBy is the audit entry of a new run; the store fills in the run's id.
func startedBy(t servicetoken.Token, o run.Order) audit.Entry {
	return audit.Entry{
		Org: t.Org, Actor: audit.Actor{Kind: audit.ByService, ID: t.ID, Name: t.Name}, Event: audit.RunStarted, Object: audit.Object{Kind: "run"},
		Facts: []audit.Fact{{Name: "surface", Value: string(o.Surface)}, {Name: "profile", Value: o.Profile}, {Name: "task", Value: o.Task}, {Name: "on behalf of", Value: o.OnBehalfOf}},
	}
}

// Run answers GET /api/v1/runs/{id}.
func (a *API) Run() http.Handler {
	return a.with(servicetoken.RunsRead, func(c call) (int, any, error) {
		live, err := a.Runs.Run(c.Context(), c.token.Org, run.ID(c.PathValue("id")))
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, runDocument(live, a.PublicURL), nil
	})
}

// EndRun answers POST /api/v1/runs/{id}/end.
func (a *API) EndRun() http.Handler {
	return a.with(servicetoken.RunsWrite, func(c call) (int, any, error) {
		id := run.ID(c.PathValue("id"))
		e := audit.Entry{Org: c.token.Org, Actor: audit.Actor{Kind: audit.ByService, ID: c.token.ID, Name: c.token.Name}, Event: audit.RunEnded, Object: audit.Object{Kind: "run", ID: string(id)}}
		if _, err := a.Runs.End(c.Context(), c.token.Org, id, e); err != nil {
			return 0, nil, err
		}
		live, err := a.Runs.Run(c.Context(), c.token.Org, id)
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, runDocument(live, a.PublicURL), nil
	})
}

// ListActions answers GET /api/v1/actions?run=…&state=…&cursor=….
func (a *API) ListActions() http.Handler {
	return a.with(servicetoken.ActionsRead, func(c call) (int, any, error) {
		filter, err := actionFilter(c.URL.Query())
		if err != nil {
			return 0, nil, err
		}
		found, err := a.Actions.Actions(c.Context(), c.token.Org, filter)
		if err != nil {
			return 0, nil, err
		}
		list := struct {
			Actions []action.Document `json:"actions"`
			Cursor  string            `json:"cursor,omitempty"`
		}{Actions: []action.Document{}}
		for _, one := range found {
			document, err := a.describe(c.Context(), one)
			if err != nil {
				return 0, nil, err
			}
			list.Actions = append(list.Actions, document)
		}
		if len(found) == filter.Limit {
			list.Cursor = string(found[len(found)-1].ID)
		}
		return http.StatusOK, list, nil
	})
}

// OneAction answers GET /api/v1/actions/{id}.
func (a *API) OneAction() http.Handler {
	return a.with(servicetoken.ActionsRead, func(c call) (int, any, error) {
		one, err := a.Actions.Action(c.Context(), c.token.Org, action.ID(c.PathValue("id")))
		if err != nil {
			return 0, nil, err
		}
		document, err := a.describe(c.Context(), one)
		return http.StatusOK, document, err
	})
}

func (a *API) describe(ctx context.Context, one action.Action) (action.Document, error) {
	now, timeline, err := a.Actions.Story(ctx, one.Org, one.ID)
	return action.Describe(now, timeline, a.PublicURL), err
}

// ListConnections answers GET /api/v1/connections.
func (a *API) ListConnections() http.Handler {
	return a.with(servicetoken.ConnectionsRead, func(c call) (int, any, error) {
		found, err := a.Connections.Connections(c.Context(), c.token.Org)
		if err != nil {
			return 0, nil, err
		}
		list := struct {
			Connections []connectionDocument `json:"connections"`
		}{Connections: []connectionDocument{}}
		for _, one := range found {
			list.Connections = append(list.Connections, describeConnection(one))
		}
		return http.StatusOK, list, nil
	})
}

// ListAudit answers GET /api/v1/audit.
func (a *API) ListAudit() http.Handler {
	return a.with(servicetoken.AuditRead, func(c call) (int, any, error) {
		filter, err := auditFilter(c.URL.Query())
		if err != nil {
			return 0, nil, err
		}
		found, err := a.Trail.Entries(c.Context(), c.token.Org, filter)
		if err != nil {
			return 0, nil, err
		}
		list := struct {
			Entries []auditDocument `json:"entries"`
			Cursor  string          `json:"cursor,omitempty"`
		}{Entries: []auditDocument{}}
		for _, one := range found {
			list.Entries = append(list.Entries, describeEntry(one))
		}
		if len(found) == filter.Limit {
			list.Cursor = strconv.FormatInt(found[len(found)-1].ID, 10)
		}
		return http.StatusOK, list, nil
	})
}

const pageSize = 50

func actionFilter(q url.Values) (action.Filter, error) {
	f := action.Filter{Run: run.ID(q.Get("run")), Before: action.ID(q.Get("cursor")), Limit: pageSize}
	for _, s := range q["state"] {
		state := action.State(s)
		if !knownState(state) {
			return f, fault.Field("state", "There is no state “"+s+"”.")
		}
		f.States = append(f.States, state)
	}
	if k := q.Get("connection"); k != "" {
		key, err := connector.Parse(k)
		if err != nil {
			return f, fault.Field("connection", "“"+k+"” is not a connection key.")
		}
		f.Connection = key
	}
	return f, nil
}

func knownState(s action.State) bool {
	for _, known := range action.States {
		if s == known {
			return true
		}
	}
	return false
}

func auditFilter(q url.Values) (audit.Filter, error) {
	f := audit.Filter{Actor: q.Get("actor"), Event: q.Get("event"), Object: q.Get("object"), Limit: pageSize}
	var err error
	for name, into := range map[string]*time.Time{"from": &f.From, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return f, fault.Field(name, "“"+name+"” is a time like 2026-11-30T14:00:00Z.")
			}
		}
	}
	if text := q.Get("cursor"); text != "" {
		if f.Before, err = strconv.ParseInt(text, 10, 64); err != nil || f.Before < 1 {
			return f, fault.Field("cursor", "This cursor is not one that a list has answered.")
		}
	}
	return f, nil
}

// jsonBody reads a body that must be one unambiguous JSON object and answers its canonical form, so that two spellings of a request are
// one request.
func jsonBody(r *http.Request) ([]byte, error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return nil, fault.New(fault.Invalid, answer.CodeMediaType, "The body is sent as application/json.", "Set the header Content-Type: application/json.")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	form, err := canonical.Limits{Depth: 8}.Object(raw)
	if err != nil {
		return nil, fault.New(fault.Invalid, fault.CodeInvalid, "The body cannot be used: "+fault.Of(err).What, "Send one JSON object without duplicate keys.")
	}
	return form, nil
}

// decodeStrictly refuses fields that do not exist: a misspelt limit must not be silently no limit.
func decodeStrictly(raw []byte, into any) error {
	if err := plainNames(raw); err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fault.Field(strings.Trim(name, `"`), "There is no field "+name+" here.")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fault.Field(wrong.Field, "“"+wrong.Field+"” must not be a JSON "+wrong.Value+".")
	}
	return fault.New(fault.Invalid, fault.CodeInvalid, "The body does not have the described shape.", "See /api/openapi.yaml.").Wrap(err)
}

// plainNames refuses member names that are not spelt as ours are: the decoder takes "Surface" for "surface", so that a body could hold
// both, and two readers would see two requests.
func plainNames(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return fault.New(fault.Invalid, fault.CodeInvalid, "The body does not have the described shape.", "See /api/openapi.yaml.").Wrap(err)
	}
	return plainNamesIn(value)
}

func plainNamesIn(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
				return fault.Field(name, "There is no field “"+name+"” here.")
			}
			if err := plainNamesIn(member); err != nil {
				return err
			}
		}
	case []any:
		for _, member := range v {
			if err := plainNamesIn(member); err != nil {
				return err
			}
		}
	}
	return nil
}

// idempotencyKey reads the header as the IETF draft has it (a quoted string), and also the bare form that most clients send.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := strings.Trim(values[0], `"`)
	if len(values) > 1 || key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return "", fault.New(fault.Invalid, fault.CodeInvalid, "The Idempotency-Key header is not one string of 1 to 255 printable ASCII characters.", "Send a fresh UUID for each new run.")
	}
	return key, nil
}
