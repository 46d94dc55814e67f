package agent_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
)

// Where a connection asks for it, an answer means that the trail has the read, and a trail that takes nothing means no answer.
func TestADurableReadIsInTheTrailBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.install("sandbox-crm", "CRM", policy.ReadOnly)
	w.profile("support", c)
	r := w.start(policy.Task, "support")
	session := w.client(r, eras[0], c.Key)
	reads := func() int {
		t.Helper()
		found, err := w.Trail.Entries(t.Context(), w.Org.ID, audit.Filter{Event: string(audit.ToolRead), Limit: 100})
		check(t, err)
		return len(found)
	}
	c, err := w.Service.RecordReads(t.Context(), w.People[identity.Admin], installation.Access{Key: c.Key, Version: c.Version}, true)
	check(t, err)
	for n := range 20 {
		if got := call(t, session, "contacts_search", `{"query":"a"}`); got.IsError || reads() != n+1 {
			t.Fatalf("after %d answers the trail has %d reads: %s", n+1, reads(), got.text)
		}
	}
	w.SQL(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$`)
	w.SQL(`CREATE TRIGGER full_disk BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	status, _, body := w.post(r, "/gateway/mcp/"+c.Key.String(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"contacts_search","arguments":{"query":"Ada"}}}`)
	if status != http.StatusServiceUnavailable || strings.Contains(body, "c_10") {
		t.Errorf("a read that could not be recorded is answered %d, %s", status, body)
	}
	w.SQL(`DROP TRIGGER full_disk ON audit_entries`)
	_, err = w.Service.RecordReads(t.Context(), w.People[identity.Admin], installation.Access{Key: c.Key, Version: c.Version}, false)
	check(t, err)
	if changes := w.trail(audit.ReadRecording); len(changes) != 2 || fact(changes[0], "durable") != "false" || fact(changes[1], "durable") != "true" {
		t.Errorf("the choices in the trail: %+v", changes)
	}
}
