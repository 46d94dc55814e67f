package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func (j *journey) shrinks(t *testing.T) {
	run := j.s.runtime().starts(t, task("support", "SUP-4716"))
	a := run.connects(t, eras[0])
	get, note := j.on(j.second, "contacts_get"), j.on(j.second, "notes_add")
	a.reads(t, get, `{"contact_id":"c_1001"}`)

	j.grants(t, j.second, "autonomous", true, "contacts_list", "notes_add")
	a.refused(t, "tool_not_granted", get, `{"contact_id":"c_1001"}`)
	a.reads(t, j.on(j.second, "contacts_list"), `{"limit":1}`)
	j.grants(t, j.second, "read_only", true, "contacts_list")
	a.refused(t, "tool_not_granted", get, `{"contact_id":"c_1001"}`)
	j.grants(t, j.second, "ask_user_on_write", true, "contacts_get", "contacts_list", "notes_add")
	waiting := a.stages(t, note, `{"contact_id":"c_1001","text":"to be cancelled by the retirement"}`)

	j.admin.opens(t, "/connections/"+j.second)
	j.admin.presses(t, "disconnect")
	j.admin.reads(t, "Disconnected")
	a.refused(t, "connection_unavailable", get, `{"contact_id":"c_1001"}`)
	a.reads(t, j.on(j.main, "contacts_get"), `{"contact_id":"c_1001"}`) // the other connection goes on
	j.admin.fills(t, "api_key", j.s.crmCredential(t))
	j.admin.presses(t, "save-credential")
	j.admin.reads(t, "Working")
	a.reads(t, get, `{"contact_id":"c_1001"}`)

	j.admin.opens(t, "/connections/"+j.second)
	j.admin.presses(t, "retire")
	j.admin.reads(t, "This connection is retired.")
	a.refused(t, "connection_unavailable", get, `{"contact_id":"c_1001"}`)
	j.s.runtime().settles(t, waiting, "cancelled")
	for _, button := range []string{"retire", "save-access", "save-credential", "disconnect"} {
		if j.admin.offers(t, button) {
			t.Errorf("a retired connection offers %s", button)
		}
	}
	for _, name := range j.s.runtime().starts(t, task("support", "SUP-4717")).connects(t, eras[1]).tools(t) {
		if strings.HasPrefix(name, j.second) {
			t.Errorf("a new run gets %s of a retired connection", name)
		}
	}
	j.shreds(t)
}

// shreds looks into the database: the retired connection's credential is gone, and its key is taken for ever.
func (j *journey) shreds(t *testing.T) {
	conn := j.s.database(t)
	var credentials int
	must(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM credentials JOIN connections c ON c.id = connection_id WHERE c.key = $1`, j.second).Scan(&credentials))
	if credentials != 0 {
		t.Errorf("%d sealed credentials of the retired connection are left", credentials)
	}
	j.admin.opens(t, "/connections/new/sandbox-crm")
	j.admin.fills(t, "name", "Training CRM, again")
	j.admin.fills(t, "api_key", j.s.crmCredential(t))
	j.admin.presses(t, "install")
	j.admin.reads(t, "Working")
	if again := lastPart(j.admin.URL()); again == j.second || again == j.main {
		t.Errorf("the key %s was given again", again)
	}
}

func (j *journey) audits(t *testing.T) {
	auditor := j.s.signsIn(t, "auditor@sandbox.test", desk)
	auditor.opens(t, "/audit")
	auditor.reads(t, "Entries, newest first")
	auditor.opens(t, "/audit?object="+j.refund)
	auditor.reads(t, "Ines Duarte", j.refund)
	auditor.readsNot(t, j.second)
	auditor.opens(t, "/audit?event=connection.retired")
	auditor.reads(t, j.second)
	auditor.readsNot(t, j.refund)
	auditor.presses(t, "verify-chain")
	auditor.reads(t, "Unbroken:")

	var list struct{ Entries []struct{ Event string } }
	j.s.runtime().asks(t, http.MethodGet, "/api/v1/audit?object="+j.refund, nil, &list)
	if len(list.Entries) < 4 { // staged, approved, executing, succeeded
		t.Errorf("the refund has the entries %v", list.Entries)
	}
	j.keepsSecrets(t)
	j.tampers(t)
}

// keepsSecrets searches what the server wrote down for what must not be there.
func (j *journey) keepsSecrets(t *testing.T) {
	for name, secret := range map[string]string{"the CRM's credential": j.s.crmCredential(t), "a run token": j.run.Token} {
		if strings.Contains(j.s.output.String(), secret) {
			t.Errorf("the log holds %s", name)
		}
	}
	if strings.Contains(j.s.output.String(), "Parcel 4711 never arrived") {
		t.Error("the log holds arguments")
	}
}

// tampers is somebody with the database's superuser: each change is found by name, and undone it is forgotten.
func (j *journey) tampers(t *testing.T) {
	verify := func() ran { return j.s.operator("").runs(t, "audit", "verify", "--org", "sandbox") }
	if r := verify(); r.code != 0 || !strings.Contains(r.stdout, "whole") {
		t.Fatalf("an untouched trail: %v", r)
	}
	conn := j.s.database(t)
	run := func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...)
		must(t, err)
	}
	run(`SET session_replication_role = replica`)
	run(`CREATE TEMP TABLE kept_entries AS SELECT * FROM audit_entries`)
	run(`CREATE TEMP TABLE kept_seals AS SELECT * FROM audit_seals`)
	restore := func() {
		t.Helper()
		run(`DELETE FROM audit_seals`)
		run(`DELETE FROM audit_entries`)
		run(`INSERT INTO audit_entries OVERRIDING SYSTEM VALUE SELECT * FROM kept_entries`)
		run(`INSERT INTO audit_seals SELECT * FROM kept_seals`)
		if r := verify(); r.code != 0 {
			t.Fatalf("the restored trail: %v", r)
		}
	}
	var entry int64
	must(t, conn.QueryRow(t.Context(), `SELECT id FROM audit_entries WHERE object_id = $1 ORDER BY id LIMIT 1`, j.refund).Scan(&entry))
	for _, c := range []struct{ name, sql string }{
		{"edited", `UPDATE audit_entries SET actor_name = 'Somebody Else' WHERE id = $1`},
		{"deleted", `DELETE FROM audit_entries WHERE id = $1`},
		{"deleted with its seal", `WITH gone AS (DELETE FROM audit_seals WHERE entry_id = $1) DELETE FROM audit_entries WHERE id = $1`},
	} {
		run(c.sql, entry)
		if r := verify(); r.code != 1 || !strings.Contains(r.stderr, fmt.Sprint(entry)) && !strings.Contains(r.stderr, "position") {
			t.Errorf("an entry that was %s: want exit 1 and its number %d, got %v", c.name, entry, r)
		}
		restore()
	}
	j.truncates(t, verify, run)
	restore()
	_ = conn.Close(t.Context())
	j.admin.opens(t, "/") // the server lived through all of it
	j.admin.reads(t, "Sign out")
}

// truncates cuts the newest entries off. A checkpoint the operator kept elsewhere names the loss.
func (j *journey) truncates(t *testing.T, verify func() ran, run func(string, ...any)) {
	run(`DELETE FROM audit_entries WHERE id IN (SELECT entry_id FROM audit_seals ORDER BY seq DESC LIMIT 5)`)
	run(`DELETE FROM audit_seals WHERE seq > (SELECT max(seq) - 5 FROM audit_seals)`)
	if r := verify(); r.code != 1 {
		t.Errorf("a truncated trail: want exit 1, got %v", r)
	}
}
