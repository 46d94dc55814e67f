package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestJourney is the main job from a fresh machine to a proven audit trail, as people, agents and the operator live through it. Each
// chapter goes on where the one before ended, so the first that fails ends the story.
func TestJourney(t *testing.T) {
	t.Parallel()
	j := &journey{s: newServer(t, "COUNTERSIGN_DEMO=1")}
	for _, chapter := range []struct {
		name string
		told func(*testing.T)
	}{
		{"a fresh start says where to sign in and what to paste", j.startsFresh},
		{"Ctrl-C stops everything, and a second start goes on with the same data", j.startsAgain},
		{"an admin browses the catalog", j.browsesTheCatalog},
		{"the admin installs a second connection, and its secret is never shown again", j.installs},
		{"the admin picks tools: by mode, by list, none", j.picksTools},
		{"a runtime starts a run, and clients of every era see exactly its capability", j.startsARun},
		{"reads go through, effects are staged once", j.readsAndStages},
		{"a chat run reads, and stages nothing", j.chats},
		{"a definition that changes upstream is held back until somebody accepts it", j.rugPull},
		{"an approver sees the very bytes and approves; it is done once", j.approves},
		{"denied, cancelled, expired: nothing ever leaves", j.nothingLeaves},
		{"a lost answer is uncertain until a person resolves it", j.losesAnswers},
		{"in mode autonomous the same lifecycle runs without a person", j.actsAutonomously},
		{"narrowing, disconnecting and retiring act on the next call", j.shrinks},
		{"the audit trail is whole, can be filtered, and names what was tampered with", j.audits},
	} {
		if !t.Run(chapter.name, chapter.told) {
			t.FailNow()
		}
	}
}

// journey is what the chapters hand on.
type journey struct {
	s        *server
	main     string // key of the seeded connection
	second   string // key of the one the admin installs
	admin    *person
	approver *person
	run      started // the task run most of the story is about
	agent    agent
	refund   string // id of the action that waits for the approver
}

// connection is one connection as the service API shows it.
type connection struct {
	Key, Name, Integration, State, Mode string
	Tools                               []string
	Healthy                             bool
}

func (j *journey) connection(t *testing.T, key string) connection {
	t.Helper()
	var list struct{ Connections []connection }
	if status := j.s.runtime().asks(t, http.MethodGet, "/api/v1/connections", nil, &list); status != http.StatusOK {
		t.Fatalf("the list of connections answers %d", status)
	}
	for _, c := range list.Connections {
		if c.Key == key {
			return c
		}
	}
	t.Fatalf("there is no connection %s", key)
	return connection{}
}

func (j *journey) startsFresh(t *testing.T) {
	j.s.start(t)
	said := j.s.output.String()
	for _, part := range []string{"Sign in at " + j.s.url + "/sign-in", "admin@sandbox.test", j.s.password(t, "admin@sandbox.test"), j.s.sandbox.Token, j.s.url + "/gateway/mcp"} {
		if !strings.Contains(said, part) {
			t.Errorf("the start does not print %q", part)
		}
	}
	info, err := os.Stat(filepath.Join(j.s.dir, "sandbox.json"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("sandbox.json has the mode %v; it holds passwords", info.Mode())
	}
	if j.s.sandbox.URL != j.s.url || j.s.sandbox.Org != "sandbox" || len(j.s.sandbox.Connections) != 1 || j.s.sandbox.Connections[0].Integration != "sandbox-crm" {
		t.Fatalf("sandbox.json says %+v", j.s.sandbox)
	}
	j.main = j.s.sandbox.Connections[0].Key
	c := j.connection(t, j.main)
	if c.Mode != "ask_user_on_write" || !c.Healthy || len(c.Tools) != 11 {
		t.Errorf("the seeded connection is %+v; want every one of the 11 tools in mode ask_user_on_write", c)
	}
}

func (j *journey) startsAgain(t *testing.T) {
	before, family := j.s.sandbox, j.s.family(t)
	if len(family) < 3 {
		t.Fatalf("the server has the children %v; want the database, its workers and the CRM", family)
	}
	if code := j.s.interrupt(t); code != 0 {
		t.Fatalf("Ctrl-C ends it with %d:\n%s", code, j.s.output)
	}
	eventually(t, "every child is gone", func() bool { return !slices.ContainsFunc(family, alive) })

	j.s.start(t)
	if j.s.sandbox.Token != before.Token || j.s.sandbox.Connections[0] != before.Connections[0] || !slices.Equal(j.s.sandbox.Users, before.Users) {
		t.Error("the second start made another sandbox")
	}
	if c := j.connection(t, j.main); len(c.Tools) != 11 || !c.Healthy {
		t.Errorf("after the second start the connection is %+v", c)
	}
}

func (j *journey) browsesTheCatalog(t *testing.T) {
	j.admin = j.s.signsIn(t, "admin@sandbox.test", desk)
	j.admin.opens(t, "/catalog")
	j.admin.reads(t, "Sandbox CRM", "DeepWiki", "Microsoft Learn", "Exa")

	j.admin.opens(t, "/catalog?q=refund+a+customer")
	j.admin.reads(t, "Best first", "Sandbox CRM")
	j.admin.readsNot(t, "Microsoft's official documentation")
	j.admin.opens(t, "/catalog?category=knowledge")
	j.admin.reads(t, "DeepWiki")
	j.admin.readsNot(t, "practice CRM")
	j.admin.opens(t, "/catalog?kind=git")
	j.admin.reads(t, "GitHub")
	j.admin.readsNot(t, "practice CRM")
	j.admin.opens(t, "/catalog?kind=git&category=messages")
	j.admin.reads(t, "Nothing in this release does that")
	j.admin.opens(t, "/catalog?kind=hosted")
	j.admin.reads(t, "Sandbox CRM", "DeepWiki")

	j.admin.follows(t, "Sandbox CRM")
	j.admin.opens(t, "/catalog/sandbox-crm")
	j.admin.reads(t, "Why it is made this way", "speaks MCP over HTTP", "refund_issue", "Money leaves the account.", "contacts_search", "2026-11-30")
}

func (j *journey) installs(t *testing.T) {
	credential := j.s.crmCredential(t)
	j.admin.opens(t, "/catalog/sandbox-crm")
	j.admin.follows(t, "Install another")
	j.admin.fills(t, "name", "Training CRM")
	j.admin.fills(t, "api_key", "not-the-credential-0000")
	j.admin.presses(t, "install")
	j.admin.reads(t, "The last test failed.")
	j.second = lastPart(j.admin.URL())
	j.admin.readsNot(t, "not-the-credential-0000")

	j.admin.fills(t, "api_key", credential)
	j.admin.presses(t, "save-credential")
	j.admin.reads(t, "Working", "Agents may use nothing here yet.", "never shown again")
	for _, path := range []string{"/connections/" + j.second, "/connections", "/catalog/sandbox-crm"} {
		j.admin.opens(t, path)
		j.admin.readsNot(t, credential)
		j.admin.reads(t, "Training CRM")
	}
	if j.second == j.main || !strings.HasPrefix(j.second, "sandbox-crm-") {
		t.Errorf("the second connection has the key %s", j.second)
	}
	if c := j.connection(t, j.second); c.Mode != "" || len(c.Tools) != 0 || !c.Healthy {
		t.Errorf("a fresh connection grants something: %+v", c)
	}
}

var (
	readTools  = []string{"contacts_get", "contacts_list", "contacts_search", "report_export", "wait"}
	writeTools = []string{"contacts_create", "contacts_delete", "contacts_update", "deals_move", "notes_add", "refund_issue"}
	companions = []string{"actions_cancel", "actions_get", "actions_list", "actions_retry", "actions_wait", "report_block"}
)

func allTools() []string {
	all := slices.Concat(readTools, writeTools)
	slices.Sort(all)
	return all
}

// grants saves mode and, when tools are given, the list on a connection's page.
func (j *journey) grants(t *testing.T, key, mode string, list bool, tools ...string) {
	t.Helper()
	j.admin.opens(t, "/connections/"+key)
	j.admin.ticks(t, "mode", mode, true)
	if list {
		j.admin.ticks(t, "tools_supplied", "1", true)
		for _, tool := range allTools() {
			if on := slices.Contains(tools, tool); on != j.admin.ticked(t, "tools", tool) {
				j.admin.ticks(t, "tools", tool, on)
			}
		}
		j.admin.ticks(t, "tools_supplied", "1", true)
	} else {
		j.admin.ticks(t, "tools_supplied", "", true)
	}
	j.admin.presses(t, "save-access")
	if !list && tools == nil {
		return
	}
	if c := j.connection(t, key); c.Mode != mode || !slices.Equal(slices.Sorted(slices.Values(c.Tools)), slices.Sorted(slices.Values(tools))) {
		t.Fatalf("after saving %s with %v the connection grants %v in %s", mode, tools, c.Tools, c.Mode)
	}
}

func (j *journey) picksTools(t *testing.T) {
	j.admin.opens(t, "/connections/"+j.second)
	j.admin.reads(t, "What choosing a mode selects", "Read only: 5 tools", "notes_add")

	j.grants(t, j.second, "read_only", false, readTools...)
	j.grants(t, j.second, "ask_user_on_write", true, "contacts_get", "contacts_update") // the list wins over the mode's selection
	j.grants(t, j.second, "ask_user_on_write", true)                                    // an empty list means none
	j.grants(t, j.second, "ask_user_on_write", false, []string{}...)                    // the mode unchanged and no list: nothing changes
	if c := j.connection(t, j.second); len(c.Tools) != 0 {
		t.Errorf("saving the unchanged mode without a list selects %v", c.Tools)
	}
	j.grants(t, j.second, "read_only", true, "contacts_get")
	j.grants(t, j.second, "ask_user_on_write", false, allTools()...) // changing only the mode selects what it allows

	j.admin.opens(t, "/profiles/support")
	j.admin.ticks(t, "use", j.second, true)
	j.admin.presses(t, "save-profile")
	j.admin.reads(t, "Training CRM")
}

// lastPart is the last element of a URL's path.
func lastPart(url string) string {
	url, _, _ = strings.Cut(url, "#")
	url, _, _ = strings.Cut(url, "?")
	return url[strings.LastIndex(url, "/")+1:]
}

// expected is the exact list of tool names of a task run with both connections.
func (j *journey) expected() []string {
	var names []string
	for _, key := range []string{j.main, j.second} {
		for _, tool := range allTools() {
			names = append(names, key+"__"+tool)
		}
	}
	for _, c := range companions {
		names = append(names, "countersign__"+c)
	}
	slices.Sort(names)
	return names
}

func (j *journey) startsARun(t *testing.T) {
	j.run = j.s.runtime().starts(t, task("support", "SUP-4711"))
	if want := j.s.url + "/gateway/mcp"; j.run.Gateway.MCP.URL != want {
		t.Fatalf("the agent is sent to %s, want %s", j.run.Gateway.MCP.URL, want)
	}
	for _, era := range eras {
		a := j.run.connects(t, era)
		if got := slices.Sorted(slices.Values(a.tools(t))); !slices.Equal(got, j.expected()) {
			t.Errorf("a %s client sees\n%v\nwant\n%v", era, got, j.expected())
		}
		one := j.run.connects(t, era, "/"+j.second)
		if got := one.tools(t); !slices.Contains(got, "contacts_get") || len(got) != len(allTools())+len(companions) {
			t.Errorf("the endpoint of one connection shows a %s client %v", era, got)
		}
	}
	j.agent = j.run.connects(t, eras[0])
	j.inspects(t)

	wrong := started{Token: "csr_" + strings.Repeat("A", 43), Gateway: j.run.Gateway}
	if status, body := wrong.posts(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusUnauthorized || strings.Contains(body, "tools") {
		t.Errorf("a wrong run token is answered %d %s", status, body)
	}
}

// inspects lists the tools with the MCP Inspector's command line, a client nobody here wrote.
func (j *journey) inspects(t *testing.T) {
	out, err := counterpart(t, t.Context(), "mcp-inspector", "--cli", j.run.Gateway.MCP.URL, "--transport", "http",
		"--header", "Authorization: Bearer "+j.run.Token, "--method", "tools/list").CombinedOutput()
	if err != nil {
		t.Fatalf("the inspector: %v\n%s", err, out)
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("the inspector prints %s", out)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if slices.Sort(names); !slices.Equal(names, j.expected()) {
		t.Errorf("the inspector sees %v", names)
	}
}
