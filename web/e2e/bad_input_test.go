package e2e

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/identity"
	"countersign/web"
)

// scene is the sandbox beside a second organization, with one of everything in each.
type scene struct {
	s              *server
	owner, auditor *wire
	approver       *wire // who may decide: not the owner, whose token started the run
	own, others    things
	db             *pgx.Conn
}

// things are what one organization has: the values of path parameters, by the path before them.
type things struct {
	at    map[string]string
	token string // service token
	run   started
}

// newScene furnishes both organizations through the product's own pages.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := sharedServer(t)
	sc := &scene{
		s: s, db: s.database(t), owner: s.signedIn(t, "owner@sandbox.test", s.password(t, "owner@sandbox.test")),
		auditor:  s.signedIn(t, "auditor@sandbox.test", s.password(t, "auditor@sandbox.test")),
		approver: s.signedIn(t, "approver@sandbox.test", s.password(t, "approver@sandbox.test")),
	}
	sc.own = sc.furnish(t, sc.owner, "support", s.sandbox.Connections[0].Key, s.sandbox.Token, "admin@sandbox.test")

	const email = "owner@beyond.example"
	if r := s.operator(ownerPassword).runs(t, "org", "create", "--slug", "beyond", "--name", "Beyond", "--owner-email", email, "--password-stdin"); r.code != 0 {
		t.Fatalf("org create: %v", r)
	}
	made := s.operator("").runs(t, "token", "create", "--org", "beyond", "--name", "theirs", "--scopes", "runs:write,runs:read,actions:read,connections:read,audit:read")
	alien := s.signedIn(t, email, ownerPassword)
	key := sc.installs(t, alien)
	if got := alien.form(t, "/profiles", url.Values{"name": {"theirs"}, "budget": {"5"}, "version": {"0"}, "use": {key}}); got.status != http.StatusSeeOther {
		t.Fatalf("a profile of theirs: %d %s", got.status, plainText(got.body))
	}
	sc.others = sc.furnish(t, alien, "theirs", key, strings.TrimSpace(made.stdout), email)
	return sc
}

// installs connects the Sandbox CRM for another organization and returns the key.
func (sc *scene) installs(t *testing.T, w *wire) string {
	t.Helper()
	page := w.get(t, "/connections/new/sandbox-crm").body
	got := w.form(t, "/connections/new/sandbox-crm", url.Values{"form": {hidden(t, page, "form")}, "contract": {"token"}, "name": {"Theirs"}, "api_key": {sc.s.crmCredential(t)}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("installing answers %d: %s", got.status, plainText(got.body))
	}
	path := got.header.Get("Location")
	got = w.form(t, path+"/access", url.Values{"version": {hidden(t, w.get(t, path).body, "version")}, "mode": {"ask_user_on_write"}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("granting answers %d: %s", got.status, plainText(got.body))
	}
	return lastPart(path)
}

// furnish starts a run, stages an action, and looks the ids up.
func (sc *scene) furnish(t *testing.T, w *wire, profile, key, token, email string) things {
	t.Helper()
	o := task(profile, "BAD-1")
	o["on_behalf_of"] = email
	run := agentRuntime{sc.s.url, token}.starts(t, o)
	action := run.connects(t, eras[0]).stages(t, key+"__notes_add", `{"contact_id":"c_1001","text":"of `+profile+`"}`)
	return things{token: token, run: run, at: map[string]string{
		"/people/": first(t, w.get(t, "/people").body, `/people/(per_[a-z0-9]+)`), "/tokens/": first(t, w.get(t, "/tokens").body, `/tokens/([^/"]+)/revoke`),
		"/profiles/": profile, "/context/revisions/": sc.writes(t, w), "/connections/": key, "/actions/": action, "/runs/": run.ID, "/api/v1/runs/": run.ID,
		"/releases/": first(t, w.get(t, "/releases").body, `/releases/([a-z0-9:]+)`), "/api/v1/actions/": action,
	}}
}

// writes makes sure that there is a context, and returns its first revision.
func (sc *scene) writes(t *testing.T, w *wire) string {
	t.Helper()
	if hidden(t, w.get(t, "/context").body, "base") != "0" {
		return "1"
	}
	if got := w.form(t, "/context", url.Values{"base": {"0"}, "text": {"version = 3\n# written\n"}}); got.status != http.StatusSeeOther {
		t.Fatalf("a context: %d %s", got.status, plainText(got.body))
	}
	return "1"
}

// hidden is the value of a hidden field.
func hidden(t *testing.T, page, name string) string {
	t.Helper()
	return first(t, page, `name="`+name+`" value="([^"]*)"`)
}

func first(t *testing.T, text, expression string) string {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no %s in: %.600s", expression, plainText(text))
	}
	return m[1]
}

var parameter = regexp.MustCompile(`:[a-z]+`)

// fill puts a value in the place of a route's parameter.
func fill(path, value string) string { return parameter.ReplaceAllLiteralString(path, value) }

// before is the part of a route in front of its parameter; "" where it has none.
func before(path string) string {
	at := parameter.FindStringIndex(path)
	if at == nil {
		return ""
	}
	return path[:at[0]]
}

// path is the route's path with a value of the sandbox organization.
func (sc *scene) path(r web.Route) string {
	if before(r.Path) == "/connections/new/" || before(r.Path) == "/catalog/" {
		return fill(r.Path, "sandbox-crm")
	}
	value, ok := sc.own.at[before(r.Path)]
	if !ok {
		value = "no-such-link" // an invitation: every link is somebody's secret
	}
	return fill(r.Path, value)
}

// TestBadInput sends every page, form and endpoint of the sitemap what it must not take: each is answered clearly, and no row of any
// table is different afterwards.
func TestBadInput(t *testing.T) {
	sc := newScene(t)
	for _, r := range routes() {
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			before := fingerprint(t, sc.db)
			switch {
			case r.Guard().Scope != "":
				sc.endpoint(t, r)
			case r.Guard().Run:
				sc.gateway(t, r)
			case r.Method == http.MethodPost:
				sc.posts(t, r)
			default:
				sc.page(t, r)
			}
			if differs := changed(before, fingerprint(t, sc.db)); len(differs) > 0 {
				t.Errorf("something was written: %v", differs)
			}
		})
	}
}

// strangers are ids that are no id of this organization.
func (sc *scene) strangers(r web.Route) []string {
	out := []string{"no-such-thing", "..%2f..%2fetc", "%27%20OR%201=1--", "%00", "%ff", strings.Repeat("a", 5000)}
	if other := sc.others.at[before(r.Path)]; other != sc.own.at[before(r.Path)] { // a release is everybody's
		out = append(out, other)
	}
	return out
}

func (sc *scene) page(t *testing.T, r web.Route) {
	path := sc.path(r)
	if r.Guard().Right != "" {
		if got := sc.s.wire(t).get(t, path); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/sign-in") {
			t.Errorf("without a session it answers %d", got.status)
		}
		if lacks(sc.auditor, r) {
			sc.auditor.get(t, path).clear(t, "a person without the right", http.StatusForbidden)
		}
	}
	if before(r.Path) != "" {
		for _, id := range sc.strangers(r) {
			sc.owner.get(t, fill(r.Path, id)).clear(t, "the id "+id[:min(len(id), 30)], http.StatusNotFound, http.StatusGone, http.StatusRequestURITooLong)
		}
	}
	for _, query := range []string{"?q=%ff%fe", "?q=%00", "?cursor=no-such", "?before=-1&before=x", "?from=yesterday", "?" + strings.Repeat("a=b&", 3000)} {
		if got := sc.owner.get(t, path+query); got.status >= 500 {
			t.Errorf("%.40s breaks the server: %d", query, got.status)
		}
	}
	for _, method := range []string{http.MethodDelete, http.MethodPut, "BREW"} {
		sc.owner.send(t, method, path, "", nil).clear(t, method, http.StatusMethodNotAllowed)
	}
}

// lacks reports whether an auditor may not use the route.
func lacks(_ *wire, r web.Route) bool {
	return !(identity.Person{Active: true, Roles: []identity.Role{identity.Auditor}}).May(r.Guard().Right)
}

// refusedForms are what each form must refuse although it is text and of the right size. A form that has no field has nothing to refuse.
var refusedForms = map[string][]url.Values{
	"/sign-in":                      {{}, {"email": {"nobody@nowhere.example"}, "password": {"x"}}, {"email": {strings.Repeat("a", 5000)}, "password": {"x"}}},
	"/sign-out":                     nil,
	"/join/:link":                   {{}, {"name": {"x"}, "password": {"a password of many words"}}},
	"/profiles":                     {{}, {"name": {"Upper Case"}, "budget": {"5"}}, {"name": {"new"}, "budget": {"many"}}, {"name": {"new"}, "budget": {"-1"}}, {"name": {"new"}, "budget": {"5"}, "use": {"no-such-aaaaaa"}}, {"name": {"support"}, "budget": {"5"}, "version": {"0"}}},
	"/profiles/:name":               {{}, {"version": {"1"}, "budget": {"99999999999999999999"}}, {"version": {"1"}, "budget": {"5"}, "use": {"x"}}, {"version": {"77"}, "budget": {"5"}}},
	"/profiles/:name/remove":        nil,
	"/actions/:id/approve":          {{}, {"args_digest": {"0000"}, "version": {"1"}}, {"version": {"x"}}},
	"/actions/:id/deny":             {{}, {"args_digest": {"0000"}, "version": {"1"}, "reason": {"no"}}, {"reason": {strings.Repeat("r", 100_000)}}},
	"/actions/:id/cancel":           {{"version": {"99"}}},
	"/actions/:id/settle":           {{}, {"answer": {"perhaps"}, "reason": {"x"}}, {"answer": {"applied"}, "reason": {"it is not even sent"}, "version": {"1"}}},
	"/runs/:id/end":                 nil,
	"/audit/verify":                 nil,
	"/people":                       {{}, {"email": {"no address"}, "roles": {"member"}, "with": {"link"}}, {"email": {"x@y.example"}, "roles": {"emperor"}, "with": {"link"}}, {"email": {"x@y.example"}, "with": {"link"}}, {"email": {"x@y.example"}, "roles": {"member"}, "with": {"password"}, "password": {"short"}}, {"email": {"admin@sandbox.test"}, "roles": {"member"}, "with": {"link"}}, {"email": {"owner@beyond.example"}, "roles": {"member"}, "with": {"link"}}},
	"/people/:id/roles":             {{}, {"roles": {"emperor"}}, {"roles": {"owner", "emperor"}}},
	"/people/:id/deactivate":        nil,
	"/people/:id/reactivate":        nil,
	"/people/:id/link":              nil,
	"/tokens":                       {{}, {"name": {"x"}, "days": {"0"}, "scopes": {"runs:write"}}, {"name": {"x"}, "days": {"1e3"}, "scopes": {"runs:write"}}, {"name": {"x"}, "days": {"5"}}, {"name": {"x"}, "days": {"5"}, "scopes": {"actions:approve"}}},
	"/tokens/:id/revoke":            nil,
	"/settings/theme":               {{"theme": {"plaid"}}},
	"/settings/password":            {{}, {"current": {"wrong"}, "password": {"a password of many words"}}},
	"/connections/new/:integration": {{}, {"form": {"x"}, "contract": {"token"}, "name": {"x"}}, {"form": {"x"}, "contract": {"oauth9"}, "name": {"x"}, "api_key": {"k"}}, {"contract": {"token"}, "name": {strings.Repeat("n", 5000)}, "api_key": {"k"}}},
	"/connections/new/:integration/repositories": {{}, {"form": {"x"}, "contract": {"pat"}, "access_token": {"k"}}},
	"/connections/:key/access":                   {{}, {"version": {"x"}, "mode": {"read_only"}}, {"version": {"1"}, "mode": {"god"}}, {"version": {"999"}, "mode": {"read_only"}}, {"mode": {"ask_user_on_write"}, "tools_supplied": {"1"}, "tools": {"no_such_tool"}}},
	"/connections/:key/accept":                   {{}, {"tool": {"contacts_get"}, "digest": {"00"}, "version": {"1"}}},
	"/connections/:key/reads":                    {{}, {"version": {"1"}, "read": {"no colon"}}, {"version": {"999"}, "read": {"00:contacts_get"}}, {"version": {"1"}}},
	"/connections/:key/credential":               {{}, {"api_key": {""}}},
	"/connections/:key/test":                     nil,
	"/connections/:key/check":                    nil,
	"/connections/:key/consent":                  {{}, {"client_id": {"two words"}}, {"grant": {"no-such"}}},
	"/connections/:key/recording":                {{}, {"version": {"1"}}, {"durable": {"perhaps"}, "version": {"1"}}, {"durable": {"yes"}, "version": {"999"}}},
	"/connections/:key/rename":                   {{}, {"name": {""}, "version": {"1"}}, {"name": {"x"}, "version": {"999"}}},
	"/connections/:key/disconnect":               {{}, {"version": {"999"}}},
	"/connections/:key/retire":                   {{}, {"version": {"999"}}},
	"/connections/:key/meaning":                  {{}, {"base": {"77"}, "purpose": {"x"}}, {"base": {"1"}, "vocabulary": {"no sign"}}, {"base": {"1"}, "avoid": {strings.Repeat("x", 5000)}}, {"base": {"1"}, "purpose": {"a\u202eb"}}},
	"/context":                                   {{}, {"base": {"1"}, "text": {"version = 2"}}, {"base": {"77"}, "text": {"version = 3"}}, {"base": {"x"}, "text": {"version = 3"}}, {"base": {"1"}, "text": {"version = 3\n#" + strings.Repeat("x", 200_000)}}, {"base": {"1"}, "text": {"version = 3\nx = " + strings.Repeat("[", 10_000)}}},
	"/context/check":                             {{}, {"text": {"version = 2"}}, {"text": {strings.Repeat("[", 10_000)}}},
	"/context/revisions/:revision/restore":       {{}, {"base": {"77"}}, {"base": {"-1"}}},
	"/actions/batch/approve":                     {{}, {"member": {"no-such-thing"}}, {"connection": {"x"}, "tool": {"refund_issue"}, "member": {"act_x 1 0000"}}},
	"/actions/batch/deny":                        {{}, {"member": {"no-such-thing"}, "reason": {"no"}}, {"connection": {"x"}, "tool": {"refund_issue"}, "member": {"act_x 1 0000"}, "reason": {"no"}}},
	"/actions/:id/look-ups":                      {{}, {"look_up": {"first"}}, {"look_up": {"99"}}, {"look_up": {"-1"}}},
	"/freezes":                                   {{}, {"scope": {"organization"}}, {"scope": {"planet"}, "reason": {"x"}}, {"scope": {"connection"}, "key": {"no-such-aaaaaa"}, "reason": {"x"}}, {"scope": {"profile"}, "key": {"theirs"}, "reason": {"x"}}},
	"/freezes/:id/lift":                          {{}},
	"/people/groups":                             {{}, {"name": {"Upper Case"}, "members": {"x"}}, {"name": {"finance"}, "members": {"per_nobody"}}, {"name": {"finance"}, "version": {"77"}}},
	"/people/groups/remove":                      {{}, {"name": {"no-such"}, "version": {"1"}}},
}

func (sc *scene) posts(t *testing.T, r web.Route) {
	path := sc.path(r)
	if r.Guard().Right != "" {
		if got := sc.s.wire(t).form(t, path, nil); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/sign-in") {
			t.Errorf("without a session it answers %d", got.status)
		}
		if lacks(sc.auditor, r) {
			sc.auditor.form(t, path, nil).clear(t, "a person without the right", http.StatusForbidden)
		}
	}
	sc.owner.form(t, path, nil, "Sec-Fetch-Site", "cross-site").clear(t, "another site's form", http.StatusForbidden)
	sc.owner.form(t, path, nil, "Origin", "https://evil.example").clear(t, "another origin's form", http.StatusForbidden)
	sc.owner.send(t, http.MethodPost, path, formType, []byte("name="+strings.Repeat("a", 5<<20))).clear(t, "5 MB", http.StatusRequestEntityTooLarge)
	sc.owner.send(t, http.MethodPost, path, formType, []byte("name=%ff%fe")).clear(t, "invalid UTF-8", http.StatusUnprocessableEntity)
	sc.owner.send(t, http.MethodPost, path, formType, []byte("a%00b=1")).clear(t, "a NUL", http.StatusUnprocessableEntity)
	sc.owner.send(t, http.MethodPost, path, formType, []byte("name=%zz")).clear(t, "a broken escape", http.StatusUnprocessableEntity)
	sc.owner.send(t, http.MethodPost, path, "application/json", []byte(`{"name":1}`)).clear(t, "JSON", http.StatusUnsupportedMediaType)
	sc.owner.send(t, http.MethodPost, path, "multipart/form-data; boundary=x", []byte("--x--")).clear(t, "multipart", http.StatusUnsupportedMediaType)
	if before(r.Path) != "" && r.Path != "/join/:link" {
		for _, id := range sc.strangers(r) {
			form := url.Values{"version": {"1"}, "reason": {"none"}, "roles": {"member"}, "mode": {"read_only"}, "budget": {"1"}, "args_digest": {"x"}, "answer": {"applied"}, "name": {"x"}, "api_key": {"k"}}
			sc.owner.form(t, fill(r.Path, id), form).clear(t, "the id "+id[:min(len(id), 30)], http.StatusNotFound, http.StatusRequestURITooLong)
		}
	}
	forms, known := refusedForms[r.Path]
	if !known {
		t.Errorf("%s is a form that this test does not know: say in refusedForms what it must refuse", r.Path)
	}
	for _, form := range forms {
		who := sc.owner
		if r.Guard().Right == identity.Decide {
			who = sc.approver
		}
		who.form(t, path, form).clear(t, "the form "+cut(form.Encode()), http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests)
	}
}

func cut(s string) string { return s[:min(len(s), 90)] }

// brokenJSON are bodies that are no one unambiguous JSON object of text.
func brokenJSON() map[string][]byte {
	deep := func(open, shut string) []byte {
		return []byte(strings.Repeat(open, 10_000) + strings.Repeat(shut, 10_000))
	}
	return map[string][]byte{
		"nothing": nil, "no JSON": []byte("hello"), "half an object": []byte(`{"surface":`), "two values": []byte(`{} {}`), "an array": []byte(`[]`), "null": []byte(`null`),
		"10,000 deep arrays": deep("[", "]"), "10,000 deep objects": append(bytes.Repeat([]byte(`{"a":`), 10_000), append([]byte("1"), bytes.Repeat([]byte("}"), 10_000)...)...),
		"10,000 open brackets": []byte(strings.Repeat("[", 10_000)), "a duplicate key": []byte(`{"surface":"chat","profile":"support","surface":"task"}`),
		"a duplicate key in other letters": []byte(`{"surface":"chat","profile":"support","Surface":"task"}`), "an escaped duplicate": []byte(`{"surface":"chat","profile":"support","surfac\u0065":"task"}`),
		"invalid UTF-8": []byte("{\"surface\":\"chat\",\"profile\":\"sup\xffport\"}"), "a lone surrogate": []byte(`{"surface":"chat","profile":"\ud800"}`), "NaN": []byte(`{"surface":NaN}`),
	}
}

func (sc *scene) endpoint(t *testing.T, r web.Route) {
	path := sc.path(r)
	bare := sc.s.wire(t)
	for _, token := range []string{"", "Bearer cst_wrong", "Bearer " + sc.own.run.Token, "Basic " + sc.own.token, "Bearer " + sc.own.token + "x"} {
		got := bare.send(t, r.Method, path, "application/json", []byte(`{}`), "Authorization", token)
		got.clear(t, "the bearer "+cut(token), http.StatusUnauthorized)
	}
	bearer := "Bearer " + sc.own.token
	if before(r.Path) != "" {
		for _, id := range sc.strangers(r) {
			bare.send(t, r.Method, fill(r.Path, id), "application/json", nil, "Authorization", bearer).clear(t, "the id "+id[:min(len(id), 30)], http.StatusNotFound, http.StatusRequestURITooLong)
		}
	}
	if r.Method == http.MethodGet {
		for _, query := range []string{"?state=flying", "?cursor=%00", "?cursor=nope", "?run=%ff", "?limit=-1", "?from=never"} {
			if got := bare.send(t, r.Method, path+query, "", nil, "Authorization", bearer); got.status >= 500 {
				t.Errorf("%s breaks the server: %d %s", query, got.status, got.body)
			}
		}
		return
	}
	if r.Path != "/api/v1/runs" {
		return // it takes no body
	}
	for name, body := range brokenJSON() {
		bare.send(t, r.Method, path, "application/json", body, "Authorization", bearer).clear(t, name, http.StatusBadRequest, http.StatusUnprocessableEntity)
	}
	bare.send(t, r.Method, path, "application/json", []byte(`{"surface":"`+strings.Repeat("a", 5<<20)+`"}`), "Authorization", bearer).clear(t, "5 MB", http.StatusRequestEntityTooLarge)
	for _, body := range []string{
		`{}`, `{"surface":7,"profile":"support"}`, `{"surface":"chat"}`, `{"surface":"chat","profile":"no-such"}`, `{"surface":"chat","profile":"theirs"}`, `{"surface":"dance","profile":"support"}`,
		`{"surface":"task","profile":"support"}`, `{"surface":"task","profile":"support","task":"T","on_behalf_of":"nobody@nowhere.example"}`, `{"surface":"task","profile":"support","task":"T","on_behalf_of":"owner@beyond.example"}`,
		`{"surface":"chat","profile":"support","connections":["` + sc.others.at["/connections/"] + `"]}`, `{"surface":"chat","profile":"support","connections":"all"}`, `{"surface":"chat","profile":"support","ttl_seconds":-1}`,
		`{"surface":"chat","profile":"support","ttl_seconds":1e99}`, `{"surface":"chat","profile":"support","budget":{"consequential":-5}}`, `{"surface":"chat","profile":"support","org":"beyond"}`,
	} {
		bare.send(t, r.Method, path, "application/json", []byte(body), "Authorization", bearer).clear(t, cut(body), http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotFound)
	}
}

func (sc *scene) gateway(t *testing.T, r web.Route) {
	path := fill(r.Path, sc.own.at["/connections/"])
	bare := sc.s.wire(t)
	method := r.Method
	if method == web.Any {
		method = http.MethodPost
		for _, other := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
			bare.send(t, other, path, "", nil, "Authorization", "Bearer "+sc.own.run.Token).clear(t, other, http.StatusMethodNotAllowed)
		}
	}
	bodies := map[string]bool{}
	for _, token := range []string{"", "Bearer csr_" + strings.Repeat("A", 43), "Bearer " + sc.own.token, "Bearer x"} {
		got := bare.send(t, method, path, "application/json", []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), "Authorization", token, "Accept", "application/json, text/event-stream")
		got.clear(t, "the bearer "+cut(token), http.StatusUnauthorized)
		bodies[got.body] = true
	}
	if len(bodies) != 1 {
		t.Errorf("a bad run token is answered with %d different bodies", len(bodies))
	}
	if method != http.MethodPost {
		return
	}
	for name, body := range brokenJSON() {
		got := bare.send(t, method, path, "application/json", body, "Authorization", "Bearer "+sc.own.run.Token, "Accept", "application/json, text/event-stream")
		got.clear(t, name, http.StatusBadRequest)
		if !strings.Contains(got.body, `"error"`) {
			t.Errorf("%s is answered %s", name, cut(got.body))
		}
	}
	bare.send(t, method, path, "application/json", []byte(`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("a", 5<<20)+`"}`), "Authorization", "Bearer "+sc.own.run.Token).clear(t, "5 MB", http.StatusRequestEntityTooLarge)
	sc.arguments(t)
}

// arguments are calls whose arguments are ambiguous or wrong: none stages anything.
func (sc *scene) arguments(t *testing.T) {
	name := sc.own.at["/connections/"] + "__notes_add"
	for _, arguments := range []string{
		`{"contact_id":"c_1001","text":"a","text":"b"}`, `{"contact_id":"c_1001","text":"a","tex\u0074":"b"}`, `{"contact_id":1,"text":"a"}`, `{}`, `[]`, `"x"`, `{"contact_id":"c_1001","text":"\ud800"}`,
		`{"contact_id":"c_1001","text":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
	} {
		status, body := sc.own.run.posts(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`, "MCP-Protocol-Version", "2025-11-25")
		if !strings.Contains(body, `"error"`) || status >= 500 {
			t.Errorf("the arguments %s are answered %d %s", cut(arguments), status, cut(body))
		}
	}
}

// TestEveryFormIsKnown keeps the table above free of forms that are no more.
func TestEveryFormIsKnown(t *testing.T) {
	all := routes()
	for path := range refusedForms {
		if !slices.ContainsFunc(all, func(r web.Route) bool { return r.Path == path && r.Method == http.MethodPost }) {
			t.Errorf("%s is no form", path)
		}
	}
}
