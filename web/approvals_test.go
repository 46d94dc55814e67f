package web_test

import (
	"net/http"
	"strconv"
	"testing"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/people"
)

func (d *desk) group(name string, members ...identity.Person) {
	d.T.Helper()
	g := people.Group{Org: d.Org.ID, Name: name}
	for _, m := range members {
		g.Members = append(g.Members, m.ID)
	}
	d.Must(d.Groups.SaveGroup(d.T.Context(), g, scene.Note(d.Org.ID, audit.GroupSaved, "group", name)))
}

func tick(a action.Action) string {
	return string(a.ID) + " " + strconv.Itoa(a.Version) + " " + a.ArgsDigest
}

func (d *desk) twoRefunds() (first, second action.Action) {
	return d.refund(), d.asks("refund_issue", `{"contact_id":"c_0311","amount_cents":1250,"reason":"<b>Late</b>"}`, "")
}

const refunds = "/actions/batch?tool=refund_issue&connection="

func TestDecidingTogether(t *testing.T) {
	d := newDesk(t)
	a, b := d.twoRefunds()
	in := d.as("approver@harbor.test")
	in.get("/actions").is(t, http.StatusOK, "2 calls of <code>refund_issue</code>", "read and decide them together")
	shown := in.get(refunds+d.connection.Key.String()).is(t, http.StatusOK, "€240.00</span> to contact c_1042", "€12.50</span> to contact c_0311", `value="`+tick(a)+`"`, `value="`+tick(b)+`"`,
		`data-test="approve-batch"`, `data-test="deny-batch"`, "&lt;b&gt;Late&lt;/b&gt;", "amount_cents")
	shown.lacks(t, "<b>Late</b>")
	post := func(verb string, more ...string) page {
		return in.post("/actions/batch/"+verb, append([]string{"connection", d.connection.Key.String(), "tool", "refund_issue"}, more...)...)
	}
	post("deny", "member", tick(a), "member", tick(b)).is(t, http.StatusUnprocessableEntity, "Say why: the agent reads it", `data-test="deny-batch"`)
	post("approve").is(t, http.StatusUnprocessableEntity, "No action was chosen")
	stale := b
	stale.Version = 9
	post("approve", "member", tick(a), "member", tick(stale), "reason", "kept words").is(t, http.StatusConflict, "Nothing was decided, because of "+string(b.ID), "This one stood in the way.", "kept words")
	post("approve", "member", "nonsense").is(t, http.StatusNotFound)
	d.isIn(a.ID, action.StateStaged)
	d.isIn(b.ID, action.StateStaged)

	post("approve", "member", tick(a), "member", tick(b)).goes(t, "/actions")
	d.isIn(a.ID, action.StateApproved)
	d.isIn(b.ID, action.StateApproved)
	if len(d.bell.woken) != 2 {
		t.Errorf("woken: %v", d.bell.woken)
	}
	in.get("/actions").is(t, http.StatusOK, "You approved 2 actions.")
	post("approve", "member", tick(a), "member", tick(b)).is(t, http.StatusConflict, "Nothing was decided", "approved this at ")
	if len(d.bell.woken) != 2 {
		t.Errorf("a second press woke: %v", d.bell.woken)
	}
}

func TestAFrozenBatchSaysSo(t *testing.T) {
	d := newDesk(t)
	a, b := d.twoRefunds()
	admin, in := d.as("admin@harbor.test"), d.as("approver@harbor.test")
	key := d.connection.Key.String()
	admin.post("/freezes", "scope", "connection", "key", key, "reason", "looking into it").goes(t, "/connections/"+key)
	in.get(refunds+key).is(t, http.StatusOK, "Frozen: not to be approved now.", "looking into it", "Nobody approves while this is frozen.", `data-test="approve-batch" disabled`)
	members := []string{"connection", key, "tool", "refund_issue", "member", tick(a), "member", tick(b), "reason", "No."}
	in.post("/actions/batch/approve", members...).is(t, http.StatusConflict, "Nothing was decided")
	d.isIn(a.ID, action.StateStaged)
	in.post("/actions/batch/deny", members...).goes(t, "/actions")
	d.isIn(b.ID, action.StateDenied)
}

func TestDenyingTogetherAndWhoMayNot(t *testing.T) {
	d := newDesk(t)
	a, b := d.twoRefunds()
	members := []string{"connection", d.connection.Key.String(), "tool", "refund_issue", "member", tick(a), "member", tick(b), "reason", "Ask on Monday."}
	d.as("owner@elsewhere.test").get(refunds+d.connection.Key.String()).is(t, http.StatusNotFound)
	d.as("owner@elsewhere.test").post("/actions/batch/approve", members...).is(t, http.StatusNotFound)
	d.as("admin@harbor.test").post("/actions/batch/approve", members...).is(t, http.StatusForbidden)
	d.as("owner@harbor.test").post("/actions/batch/approve", members...).is(t, http.StatusForbidden, "Your service token started this run")
	d.as("owner@harbor.test").get(refunds+d.connection.Key.String()).is(t, http.StatusOK, "Nothing of this tool waits for you")
	d.isIn(a.ID, action.StateStaged)
	d.as("second@harbor.test").post("/actions/batch/deny", members...).goes(t, "/actions")
	for _, x := range []action.Action{a, b} {
		d.isIn(x.ID, action.StateDenied)
		if got := d.Action(x.ID); got.Reason != "Ask on Monday." {
			t.Errorf("%+v", got)
		}
	}
}

func TestTwoSignatures(t *testing.T) {
	d := newDesk(t)
	d.group("finance", d.People[identity.Approver], d.second)
	third := d.Person("third@harbor.test", identity.Approver)
	d.SQL(`UPDATE profile_uses SET approvers = 'finance', signatures = 2, daily_actions = 5, daily_amount = 10000000, daily_currency = 'EUR'`)
	a := d.spending(24000)
	one, two, out := d.as("approver@harbor.test"), d.as("second@harbor.test"), d.as(third.Email)
	path := "/actions/" + string(a.ID)
	one.get(path).is(t, http.StatusOK, "Signature 1 of 2", "Signature 2 of 2", "Sign, as the 1st of 2", "Nothing is sent before the last one.", "The group <b>finance</b> was asked",
		"1 of 5 taken; resets at 00:00 UTC", "EUR 240 of 1000 taken; resets at 00:00 UTC")
	out.get(path).is(t, http.StatusOK, "The group “finance” decides on this, and you are not in it.", "approver@harbor.test or second@harbor.test can.").lacks(t, `data-test="approve"`, `data-test="deny"`)
	out.presses(a, "approve").is(t, http.StatusForbidden, "you are not in it")

	one.presses(a, "approve").goes(t, path)
	d.isIn(a.ID, action.StateStaged)
	one.get(path).is(t, http.StatusOK, "You signed this. It waits for 1 more signature", "second@harbor.test can give one.", `data-test="deny"`).lacks(t, `data-test="approve"`)
	one.presses(a, "approve").is(t, http.StatusConflict, "You signed this at ")
	one.get("/actions").is(t, http.StatusOK, "1 of 2 signed", "For someone else", "You signed this. It waits for 1 more signature.")
	two.get("/actions").is(t, http.StatusOK, "1 of 2 signed", "1 action waits")
	two.get(path).is(t, http.StatusOK, "Approve and refund €240.00", "Signature 2 of 2").lacks(t, "Signature 1 of 2")
	if len(d.bell.woken) != 0 {
		t.Error("half a signature woke the worker")
	}
	two.presses(a, "approve").goes(t, path)
	d.isIn(a.ID, action.StateApproved)
	two.get(path).is(t, http.StatusOK, "approver@harbor.test", "second@harbor.test", "Others are still asked, and nothing was sent.")
}

// spending stages a refund whose amount is counted, as the gateway does.
func (d *desk) spending(cents int) action.Action {
	d.T.Helper()
	p := d.Proposal(d.run, d.connection, "refund_issue", `{"contact_id":"c_1042","amount_cents":`+strconv.Itoa(cents)+`,"reason":"Parcel lost"}`)
	var err error
	p.Spends, err = manifest.Money{Argument: "amount_cents", Currency: "EUR", MinorUnits: 2}.In(p.Arguments)
	d.Must(err)
	return d.Stage(p)
}

func TestGroupsJourney(t *testing.T) {
	d := newDesk(t)
	in := d.as("admin@harbor.test")
	approver := string(d.People[identity.Approver].ID)
	in.get("/people").is(t, http.StatusOK, `href="/people/groups"`)
	in.get("/people/groups").is(t, http.StatusOK, "No groups yet", "approver@harbor.test", "second@harbor.test").lacks(t, "auditor@harbor.test", "owner@elsewhere.test")
	in.post("/people/groups", "version", "0", "name", "Bad Name").is(t, http.StatusUnprocessableEntity, "lower-case letters", "1 to 100 members", `value="Bad Name"`)
	in.post("/people/groups", "version", "0", "name", "finance", "members", string(d.People[identity.Admin].ID)).is(t, http.StatusUnprocessableEntity, "approver or the owner role")
	in.post("/people/groups", "version", "0", "name", "finance", "members", approver).goes(t, "/people/groups")
	in.post("/people/groups", "version", "0", "name", "finance", "members", approver).is(t, http.StatusConflict, "already")
	version := in.get("/people/groups").is(t, http.StatusOK, "No profile asks it.").between(t, `name="version" value="`, `"`)
	in.post("/people/groups", "version", version, "name", "finance", "members", approver, "members", string(d.second.ID)).goes(t, "/people/groups")
	in.post("/people/groups", "version", version, "name", "finance", "members", approver).is(t, http.StatusConflict, "Somebody else changed the group")
	d.as("approver@harbor.test").get("/people/groups").is(t, http.StatusForbidden)
	d.as("owner@elsewhere.test").get("/people/groups").is(t, http.StatusOK).lacks(t, "finance")

	d.SQL(`UPDATE profile_uses SET approvers = 'finance'`)
	version = in.get("/people/groups").is(t, http.StatusOK, "Asked by the profile support.").between(t, `name="version" value="`, `"`)
	in.post("/people/groups/remove", "version", version, "name", "finance").is(t, http.StatusConflict, "A profile asks the group")
	d.SQL(`UPDATE profile_uses SET approvers = NULL`)
	in.post("/people/groups/remove", "version", version, "name", "finance").goes(t, "/people/groups")
	in.post("/people/groups/remove", "version", version, "name", "finance").is(t, http.StatusNotFound)
}

func TestTheLimitsOfAProfile(t *testing.T) {
	d := newDesk(t)
	d.group("finance", d.People[identity.Approver], d.second)
	in, key := d.as("admin@harbor.test"), d.connection.Key.String()
	version := in.get("/profiles/support").is(t, http.StatusOK, "Limits and approvers", "The group finance", "How many must sign").between(t, `name="version" value="`, `"`)
	save := func(more ...string) page {
		return in.post("/profiles/support", append([]string{"version", version, "budget", "10", "use", key}, more...)...)
	}
	save("actions."+key, "many").is(t, http.StatusUnprocessableEntity, "whole number, 0 to 1,000,000", `value="many"`)
	save("amount."+key, "12,50", "currency."+key, "EUR").is(t, http.StatusUnprocessableEntity, "at most four decimals", `value="12,50"`)
	save("amount."+key, "12.50", "currency."+key, "euro").is(t, http.StatusUnprocessableEntity, "three letters")
	save("signatures."+key, "9").is(t, http.StatusUnprocessableEntity, "1 to 5 people sign")
	save("approvers."+key, "nobody").is(t, http.StatusUnprocessableEntity, "There is no group “nobody”")
	save("approvers."+key, "finance", "signatures."+key, "3").is(t, http.StatusUnprocessableEntity, "3 people of the group “finance” would have to sign, and it has 2")
	save("actions."+key, "25", "amount."+key, "1000.50", "currency."+key, "eur", "approvers."+key, "finance", "signatures."+key, "1", "quorum."+key, "2 refund_issue", "quorum."+key, "", "quorum."+key, "3 contacts_search").goes(t, "/profiles/support")
	p, err := d.Profiles.Profile(t.Context(), d.Org.ID, "support")
	d.Must(err)
	u := p.Uses[0]
	if u.DailyActions != 25 || u.DailyAmount != (manifest.Amount{Currency: "EUR", Units: 10_005_000}) || u.Approvers != "finance" || u.SignaturesFor("refund_issue") != 2 || u.SignaturesFor("contacts_create") != 1 || len(u.Quorum) != 1 {
		t.Errorf("%+v", u)
	}
	in.get("/profiles/support").is(t, http.StatusOK, `value="25"`, `value="1000.50"`, `value="EUR"`)
	in.get("/profiles").is(t, http.StatusOK, "25 actions a day", "EUR 1000.50 a day", "finance decides", "up to 2 sign")
	if a := d.refund(); a.Needed != 2 || a.Approvers != "finance" {
		t.Errorf("%+v", a)
	}
}

func TestWhatNobodyDecidedOnStandsApart(t *testing.T) {
	d := newDesk(t)
	a, b := d.twoRefunds()
	in := d.as("approver@harbor.test")
	in.presses(a, "deny", "reason", "No.").goes(t, "/actions/"+string(a.ID))
	d.SQLAsSuper(`UPDATE actions SET requested_at = now() - interval '2 minutes', expires_at = now() - interval '1 second' WHERE id = $1`, b.ID)
	in.get("/").is(t, http.StatusOK, "1 denied, 1 expired undecided, 0 cancelled")
	in.get("/actions?tab=closed").is(t, http.StatusOK, "Expired undecided", "Nobody decided in time. Nothing was sent.", "Denied by approver@harbor.test: No.")
	in.get("/actions?tab=closed&end=denied").is(t, http.StatusOK, string(a.ID), "Expired undecided").lacks(t, string(b.ID))
	in.get("/actions?tab=closed&end=expired").is(t, http.StatusOK, string(b.ID)).lacks(t, string(a.ID))
}
