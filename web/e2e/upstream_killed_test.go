package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAnUpstreamIsKilled is a vendor whose server dies under the product again and again, while another one lives on. What was only read
// is refused with a reason, what was being sent is told truthfully, what had not been sent waits; and once the vendor is back everything
// goes on by itself.
func TestAnUpstreamIsKilled(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	for _, chapter := range []struct {
		name string
		told func(*testing.T)
	}{
		{"it dies in the middle of a read; others go on, and the next read after it is back works", o.whileReading},
		{"it dies while it works on an approved action: uncertain, and never sent again", o.whileSending},
		{"it dies after it applied and before it answered: uncertain all the same", o.beforeAnswering},
		{"it takes no new connection when the action is sent: failed, and nothing happened", o.beforeTheFirstByte},
		{"it is dead when somebody approves: the approval waits, and is sent once when it is back", o.whileApproved},
		{"it stays away so long that nobody asks any more: it is found again by itself", o.leftAlone},
	} {
		if !t.Run(chapter.name, chapter.told) {
			t.FailNow()
		}
	}
	select {
	case <-o.s.exited:
		t.Errorf("the server ended:\n%s", o.s.output)
	default:
	}
}

// outage is a server with two vendors: the CRM, which dies, and server-everything, which does not; but before that one stands a door that
// can be shut.
type outage struct {
	s        *server
	vendor   *vendor
	door     *balancer
	key      string // of the CRM's connection
	other    string // of the other one's
	agent    agent
	approver *wire
	names    []string // what the agent is offered while all is well
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	dir := t.TempDir()
	v := newVendorCRM(t, dir)
	everything, err := url.Parse(startEverything(t))
	must(t, err)
	door := newBalancer(t, freeAddress(t), everything.Host)
	s := prepare(t, dir, "COUNTERSIGN_DEMO=1", endpointsFile(t, "sandbox_crm.v1", "http://"+v.address+"/mcp", "deepwiki.v1", door.url+everything.Path))
	t.Cleanup(s.end)
	s.start(t)
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	other := connects(t, admin, "deepwiki", "Everything")
	admin.opens(t, "/profiles/engineering")
	admin.ticks(t, "use", other, true)
	admin.presses(t, "save-profile")
	o := &outage{
		s: s, vendor: v, door: door, key: s.sandbox.Connections[0].Key, other: other,
		agent:    s.runtime().starts(t, task("engineering", "OUT-1")).connects(t, eras[0]),
		approver: s.signedIn(t, "approver@sandbox.test", s.password(t, "approver@sandbox.test")),
	}
	o.names = o.agent.tools(t)
	if !slices.Contains(o.names, other+"__echo") || !slices.Contains(o.names, o.on("contacts_get")) {
		t.Fatalf("the agent is offered %v", o.names)
	}
	return o
}

func (o *outage) on(tool string) string { return o.key + "__" + tool }

const oneContact = `{"contact_id":"c_1001"}`

// othersGoOn makes sure that the outage hides and stops nothing else.
func (o *outage) othersGoOn(t *testing.T) {
	t.Helper()
	if text := o.agent.reads(t, o.other+"__echo", `{"message":"still here"}`); !strings.Contains(text, "still here") {
		t.Errorf("the other service answers %s", text)
	}
	if names := o.agent.tools(t); !slices.Equal(names, o.names) {
		t.Errorf("the agent is now offered %v", names)
	}
}

// back starts the vendor; from then on the very next read must work.
func (o *outage) back(t *testing.T) {
	t.Helper()
	o.vendor.start(t)
	if text := o.agent.reads(t, o.on("contacts_get"), oneContact); !strings.Contains(text, "c_1001") {
		t.Errorf("back again it answers %s", text)
	}
}

// approves presses the button.
func (o *outage) approves(t *testing.T, id string) {
	t.Helper()
	p := decides(t, o.approver, id, "approve")
	o.approver.form(t, p.path, p.form).clear(t, "approving", http.StatusSeeOther)
}

// creating is a call whose effect can be told apart.
func creating(name string) string {
	return fmt.Sprintf(`{"name":%q,"email":%q}`, name, strings.ReplaceAll(strings.ToLower(name), " ", ".")+"@example.com")
}

// created is how often the CRM that runs now created that contact. It forgets when it dies.
func (o *outage) created(t *testing.T, name string) (n int) {
	t.Helper()
	for _, e := range o.vendor.crm(t, o.s).Journal() {
		if e.Tool == "contacts_create" && strings.Contains(string(e.Arguments), `"`+name+`"`) {
			n++
		}
	}
	return n
}

func (o *outage) whileReading(t *testing.T) {
	type answer struct {
		result *mcp.CallToolResult
		err    error
	}
	answered := make(chan answer, 1)
	caught := o.vendor.holds(t, o.s, "contacts_get", "hang")
	go func() {
		r, err := o.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: o.on("contacts_get"), Arguments: json.RawMessage(oneContact)})
		answered <- answer{r, err}
	}()
	caught()
	o.vendor.dies(t)
	a := <-answered
	must(t, a.err)
	if text := a.result.Content[0].(*mcp.TextContent).Text; !a.result.IsError || !strings.Contains(text, "broke the connection") {
		t.Errorf("the read it died in is answered %s", text)
	}
	o.agent.refused(t, "connection_unavailable", o.on("contacts_get"), oneContact)
	o.othersGoOn(t)
	o.back(t)
	o.othersGoOn(t)
}

// whileSending lets the CRM take the call and neither apply nor answer it.
func (o *outage) whileSending(t *testing.T) {
	const name = "Taken And Lost"
	id := o.agent.stages(t, o.on("contacts_create"), creating(name))
	caught := o.vendor.holds(t, o.s, "contacts_create", "hang")
	o.approves(t, id)
	caught()
	if a := o.s.runtime().action(t, id); a.State != "executing" {
		t.Errorf("while the vendor holds it, it is %s", a.State)
	}
	o.vendor.dies(t)
	o.uncertain(t, id, name)
}

func (o *outage) beforeAnswering(t *testing.T) {
	const name = "Applied And Lost"
	id := o.agent.stages(t, o.on("contacts_create"), creating(name))
	caught := o.vendor.holds(t, o.s, "contacts_create", "apply_then_hang")
	o.approves(t, id)
	caught()
	if n := o.created(t, name); n != 1 {
		t.Errorf("the vendor applied it %d times", n)
	}
	o.vendor.dies(t)
	o.uncertain(t, id, name)
}

// uncertain makes sure that nobody claims to know, that an equal call is refused until a person has looked, and that it is not sent again
// when the vendor is back, nor when something else is.
func (o *outage) uncertain(t *testing.T, id, name string) {
	t.Helper()
	a := o.s.runtime().settles(t, id, "uncertain")
	if a.Resolution != "" {
		t.Errorf("it is resolved already: %+v", a)
	}
	o.othersGoOn(t)
	o.back(t)
	o.agent.refused(t, "uncertain_pending", o.on("contacts_create"), creating(name))
	o.succeeds(t, "After "+name)
	if got := o.s.runtime().action(t, id); got.State != "uncertain" || o.created(t, name) != 0 {
		t.Errorf("back again, it is %s and was sent %d times more", got.State, o.created(t, name))
	}
	p := decides(t, o.approver, id, "settle")
	p.form.Set("answer", "unknown")
	o.approver.form(t, p.path, p.form).clear(t, "saying that nobody can tell", http.StatusSeeOther)
}

// succeeds is the whole way of one action while the vendor is well.
func (o *outage) succeeds(t *testing.T, name string) {
	t.Helper()
	id := o.agent.stages(t, o.on("contacts_create"), creating(name))
	o.approves(t, id)
	o.s.runtime().settles(t, id, "succeeded")
	if n := o.created(t, name); n != 1 {
		t.Errorf("%s was created %d times", name, n)
	}
}

// beforeTheFirstByte shuts the door between the last look at the vendor, which goes over a connection that is open already, and the
// sending, which makes one of its own.
func (o *outage) beforeTheFirstByte(t *testing.T) {
	const tool = "toggle-simulated-logging"
	id := o.agent.stages(t, o.other+"__"+tool, `{}`)
	o.door.shut()
	o.approves(t, id)
	if a := o.s.runtime().settles(t, id, "failed"); a.Resolution != "direct" {
		t.Errorf("it failed as %+v", a)
	}
	sent := func() int { return strings.Count(o.door.heard.String(), `"name":"`+tool+`"`) }
	if n := sent(); n != 0 {
		t.Errorf("it failed and was sent %d times", n)
	}
	o.door.opens(t)
	// Nothing happened, so it may be tried again, with a new yes.
	again := o.agent.calls(t, "countersign__actions_retry", `{"action_id":"`+id+`","justification":"Nothing was sent."}`)
	next := again.word("action_id")
	if again.failed || next == "" || next == id {
		t.Fatalf("trying again is answered %s %v", again.text, again.data)
	}
	o.approves(t, next)
	o.s.runtime().settles(t, next, "succeeded")
	if n := sent(); n != 1 {
		t.Errorf("tried again it was sent %d times", n)
	}
}

func (o *outage) whileApproved(t *testing.T) {
	const name = "Waits For The Vendor"
	id := o.agent.stages(t, o.on("contacts_create"), creating(name))
	o.vendor.dies(t)
	o.approves(t, id)
	eventually(t, "the log says that it could not be sent yet", func() bool {
		return strings.Contains(o.s.output.String(), `"msg":"action not sent yet","action":"`+id)
	})
	if a := o.s.runtime().action(t, id); a.State != "approved" {
		t.Errorf("with a dead vendor it is %s", a.State)
	}
	o.vendor.start(t)
	o.s.runtime().settles(t, id, "succeeded")
	if n := o.created(t, name); n != 1 {
		t.Errorf("it was applied %d times", n)
	}
}

func (o *outage) leftAlone(t *testing.T) {
	o.vendor.dies(t)
	eventually(t, "nobody asks it any more", func() bool {
		answer := o.agent.calls(t, o.on("contacts_get"), oneContact)
		if answer.code() != "connection_unavailable" {
			t.Fatalf("a read is answered %s %v", answer.text, answer.data)
		}
		return strings.Contains(answer.text, "left alone")
	})
	o.othersGoOn(t)
	o.vendor.start(t)
	eventually(t, "it is asked again", func() bool { return !o.agent.calls(t, o.on("contacts_get"), oneContact).failed })
	o.succeeds(t, "Found Again")
}
