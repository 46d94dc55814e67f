package web_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/identity"
	"countersign/internal/policy"
	"countersign/internal/run"
)

func TestTheCardSaysWhatWillBeSent(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	p := d.as("approver@harbor.test").get("/actions/"+string(a.ID)).is(t, http.StatusOK,
		"Refund €240.00 to contact c_1042", "Waiting for approval", "Money leaves the account. Countersign cannot take it back.", "€240.00, euros",
		`name="args_digest" value="`+a.ArgsDigest+`"`, `data-test="approve"`, `data-test="deny"`, "Approve and refund €240.00", "You sign as approver@harbor.test",
		"The carrier confirmed it.", "Nobody has checked this", "Exact bytes: canonical JSON, 67 bytes", "crm.example.com", "1 of 10 taken or asked for", "Pays &lt;b&gt;money&lt;/b&gt; back.", "SUP-481")
	for _, in := range []string{"amount_cents", "contact_id", "reason"} {
		p.is(t, http.StatusOK, "<code>"+in+"</code>")
	}
	if digest := strings.NewReplacer(`<span class="quad">`, "", "</span>", "", "<wbr>", "").Replace(p.between(t, "SHA-256", "</div>")); !strings.Contains(digest, a.ArgsDigest) {
		t.Errorf("the digest is drawn as %q", digest)
	}
	p.lacks(t, `data-test="cancel"`, "hx-trigger")
}

func TestApproving(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	in := d.as("approver@harbor.test")
	in.presses(a, "approve", "reason", "fine").goes(t, "/actions/"+string(a.ID))
	d.isIn(a.ID, action.StateApproved)
	if !slices.Equal(d.bell.woken, []action.ID{a.ID}) {
		t.Errorf("woken: %v", d.bell.woken)
	}
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "You approved this.", "Approved, and not sent yet.", `hx-trigger="every 2s"`, ">Refresh</a>", "#i-mark").lacks(t, `data-test="approve"`)

	// The same press again, and somebody else's, read who was quicker and when. Nothing is woken a second time.
	in.presses(a, "approve").is(t, http.StatusConflict, "approver@harbor.test approved this at ")
	d.as("second@harbor.test").presses(a, "deny", "reason", "too late").is(t, http.StatusConflict, "approver@harbor.test approved this at ").lacks(t, `data-test="deny"`)
	d.isIn(a.ID, action.StateApproved)
	if len(d.bell.woken) != 1 {
		t.Errorf("woken: %v", d.bell.woken)
	}
}

func TestAWakeUpThatFailsCostsNoApproval(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	d.bell.broken = true
	d.as("approver@harbor.test").presses(a, "approve").goes(t, "/actions/"+string(a.ID))
	d.isIn(a.ID, action.StateApproved)
}

func TestTwoApproversAtOnce(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	both := []*browser{d.as("approver@harbor.test"), d.as("second@harbor.test")}
	answers := make([]page, len(both))
	var wg sync.WaitGroup
	for i, b := range both {
		wg.Go(func() { answers[i] = b.presses(a, "approve") })
	}
	wg.Wait()
	slices.SortFunc(answers, func(a, b page) int { return a.StatusCode - b.StatusCode })
	answers[0].is(t, http.StatusSeeOther)
	answers[1].is(t, http.StatusConflict, " approved this at ")
	if len(d.bell.woken) != 1 {
		t.Errorf("woken: %v", d.bell.woken)
	}
}

func TestDenying(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	in := d.as("approver@harbor.test")
	in.presses(a, "deny", "reason", "   ").is(t, http.StatusUnprocessableEntity, "Say why: the agent reads it", `aria-invalid="true"`, "autofocus", `data-test="deny"`)
	long := strings.Repeat("<b>é", 600)
	in.presses(a, "deny", "reason", long).is(t, http.StatusUnprocessableEntity, "at most 2000 characters", strings.Repeat("&lt;b&gt;é", 600))
	d.isIn(a.ID, action.StateStaged)
	in.presses(a, "deny", "reason", "Ask the <owner> first.").goes(t, "/actions/"+string(a.ID))
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "Denied. Nothing was sent.", "Ask the &lt;owner&gt; first.", "What would have been sent", "0 of 10 taken; this one was given back").lacks(t, `data-test="approve"`)
	if got := d.Action(a.ID).Reason; got != "Ask the <owner> first." {
		t.Errorf("the reason is %q", got)
	}
	if len(d.bell.woken) != 0 {
		t.Error("something was woken")
	}
}

func TestAPersonDecidesOnWhatTheySaw(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	in := d.as("approver@harbor.test")
	other := a
	other.ArgsDigest = strings.Repeat("0", 64)
	older := a
	older.Version = 7
	for _, seen := range []action.Action{other, older} {
		for _, verb := range []string{"approve", "deny"} {
			in.presses(seen, verb, "reason", "kept words").is(t, http.StatusConflict, "This changed while you read. Nothing was sent.", "kept words", `value="`+a.ArgsDigest+`"`, `data-test="approve"`)
		}
	}
	in.post("/actions/"+string(a.ID)+"/approve").is(t, http.StatusConflict, "This changed while you read.")
	in.post("/actions/"+string(a.ID)+"/approve", "args_digest", a.ArgsDigest, "version", "one").is(t, http.StatusConflict)
	d.isIn(a.ID, action.StateStaged)
}

func TestWhoMayNotDecide(t *testing.T) {
	d := newDesk(t)
	d.SQL(`UPDATE people SET roles = '{member,approver}' WHERE email = 'member@harbor.test'`)
	a := d.refund()
	for email, why := range map[string]string{
		"member@harbor.test": "This was asked for on your behalf, so somebody else decides.",
		"owner@harbor.test":  "Your service token started this run, so somebody else decides.",
	} {
		in := d.as(email)
		in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, why, "approver@harbor.test or second@harbor.test can.", "Waits for somebody else").lacks(t, `data-test="approve"`, `data-test="deny"`)
		in.presses(a, "approve").is(t, http.StatusForbidden, why)
		in.presses(a, "deny", "reason", "no").is(t, http.StatusForbidden, why)
		in.get("/actions").is(t, http.StatusOK, "For someone else", why)
	}
	for _, email := range []string{"admin@harbor.test", "auditor@harbor.test"} {
		in := d.as(email)
		in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "Your roles do not let you decide on actions.").lacks(t, `data-test="approve"`)
		in.presses(a, "approve").is(t, http.StatusForbidden)
	}
	d.isIn(a.ID, action.StateStaged)
	d.browser().presses(a, "approve").is(t, http.StatusSeeOther)
	d.isIn(a.ID, action.StateStaged)
}

func TestAnotherOrganizationsActionDoesNotExist(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	in := d.as("owner@elsewhere.test")
	for _, id := range []string{string(a.ID), "act_none", "%00", strings.Repeat("x", 4000), "..%2f..%2fsettings"} {
		if status := in.get("/actions/" + id).StatusCode; status != http.StatusNotFound {
			t.Errorf("%.20s answers %d", id, status)
		}
	}
	for _, verb := range []string{"approve", "deny", "cancel", "settle"} {
		in.presses(a, verb, "reason", "mine now", "answer", "applied").is(t, http.StatusNotFound, "There is no such action.")
	}
	in.get("/runs/"+string(d.run.Run.ID)).is(t, http.StatusNotFound)
	in.post("/runs/"+string(d.run.Run.ID)+"/end").is(t, http.StatusNotFound)
	in.get("/actions").is(t, http.StatusOK).lacks(t, string(a.ID), "c_1042")
	in.get("/actions?tab=closed&before="+string(a.ID)).is(t, http.StatusOK).lacks(t, string(a.ID))
	in.get("/runs").is(t, http.StatusOK).lacks(t, "SUP-481")
	d.isIn(a.ID, action.StateStaged)
	if l, err := d.Runs.Run(t.Context(), d.Org.ID, d.run.Run.ID); err != nil || l.Run.EndedAt != nil {
		t.Errorf("the run was ended from elsewhere: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	d.Later(a.ID, action.Life+time.Minute)
	in := d.as("approver@harbor.test")
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "Expired. Nothing was sent.").lacks(t, `data-test="approve"`)
	in.get("/actions").is(t, http.StatusOK, "Nothing waits for your signature").lacks(t, string(a.ID))
	in.presses(a, "approve").is(t, http.StatusConflict, "This expired at ", "Expired. Nothing was sent.")
	if len(d.bell.woken) != 0 {
		t.Error("something was woken")
	}
	in.get("/actions?tab=closed").is(t, http.StatusOK, string(a.ID), "Nobody decided in time.")
}

func TestCancelling(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	d.as("approver@harbor.test").presses(a, "cancel").is(t, http.StatusForbidden)
	in := d.as("admin@harbor.test")
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, `data-test="cancel"`)
	in.presses(a, "cancel").goes(t, "/actions/"+string(a.ID))
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "Cancelled. Nothing was sent.", "An admin cancelled it").lacks(t, `data-test="cancel"`)
	in.presses(a, "cancel").is(t, http.StatusConflict, "This was cancelled at ")
}

func TestAFenceRefusesAnApproval(t *testing.T) {
	d := newDesk(t)
	first := d.asks("contacts_create", `{"name":"A","email":"a@example.com"}`, "")
	d.SQL(`DELETE FROM profile_uses`)
	d.as("approver@harbor.test").presses(first, "approve", "reason", "typed").is(t, http.StatusForbidden, "profile does not allow this tool", "typed", `data-test="approve"`)
	d.isIn(first.ID, action.StateStaged)
}

func TestHostileArgumentsAreDrawnSafely(t *testing.T) {
	d := newDesk(t)
	a := d.asks("contacts_create", `{"name":"\u202egro.live</h1><script>alert(1)</script>","email":"a\u200bb@example.com","\u202enote":"one\n\n\n\n\n\ntwo","<img src=x onerror=alert(1)>":[1,{"deep":"</code>"}],"big":12345678901234567890123}`, "</figure><script>alert(2)</script>\u2028x")
	in := d.as("approver@harbor.test")
	p := in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "U+202E", "U+200B", "Read this one closely.", "&lt;script&gt;alert(1)&lt;/script&gt;", "12345678901234567890123",
		"&lt;img src=x onerror=alert(1)&gt;", "↵ × 6 line breaks", "arguments hide something", "Approve and send once", `<q class="theirs">`, "U+2028")
	p.lacks(t, "<script>alert", "\u202e", "\u200b", "\u2028", "<img src=x", "</code>\"")
	in.get("/actions").is(t, http.StatusOK, "&lt;script&gt;alert(1)&lt;/script&gt;", "U+202E").lacks(t, "<script>alert", "\u202e", "\u200b")
}

func TestAnUncertainActionIsSettledByAPerson(t *testing.T) {
	d := newDesk(t)
	a := d.lost()
	in := d.as("second@harbor.test")
	in.get("/actions").is(t, http.StatusOK, "Outcome unknown", "Nothing waits for your signature; 1 outcome is unknown.")
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "It may or may not have happened.", "14:02:11.204", "Sent once: 412 bytes written to crm.example.com", "14:02:41.207", "no status, no body",
		`data-test="resolve-applied"`, `data-test="resolve-not-applied"`, `data-test="resolve-unknown"`, "Opens at ", "contacts_get", `{&#34;contact_id&#34;:&#34;c_1042&#34;}`, `value="not_applied" disabled`)
	in.presses(a, "settle", "answer", "applied").is(t, http.StatusUnprocessableEntity, "Say why", "Nothing was recorded.")
	in.presses(a, "settle", "answer", "not_applied", "reason", "no refund listed").is(t, http.StatusConflict, "may still be applied until", "no refund listed")
	in.presses(a, "settle", "answer", "perhaps", "reason", "x").is(t, http.StatusUnprocessableEntity, "Say applied, not_applied or unknown.")
	d.as("owner@harbor.test").presses(a, "settle", "answer", "applied", "reason", "mine").is(t, http.StatusForbidden, "Your service token started this run")
	stale := a
	stale.Version--
	in.presses(stale, "settle", "answer", "applied", "reason", "seen").is(t, http.StatusConflict, "This changed while you read.")
	d.isIn(a.ID, action.StateUncertain)

	d.Later(a.ID, action.SettleWindow+time.Minute)
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "no longer, since").lacks(t, "Opens at ", `value="not_applied" disabled`)
	in.presses(a, "settle", "answer", "not_applied", "reason", "no refund listed").goes(t, "/actions/"+string(a.ID))
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "Recorded: it did not happen.", "Not done.", "A person looked it up and recorded it.")
	in.presses(a, "settle", "answer", "applied", "reason", "again").is(t, http.StatusConflict, "it ended as failed")
	d.isIn(a.ID, action.StateFailed)
}

func TestTheOtherTwoAnswers(t *testing.T) {
	d := newDesk(t)
	a := d.lost()
	in := d.as("second@harbor.test")
	in.presses(a, "settle", "answer", "unknown", "reason", "no history").goes(t, "/actions/"+string(a.ID))
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, "It may have happened; nobody could find out.", "Closed, may have happened")
	d.isIn(a.ID, action.StateClosedUnknown)

	other := newDesk(t)
	b := other.lost()
	other.as("second@harbor.test").presses(b, "settle", "answer", "applied", "reason", "the statement shows it").goes(t, "/actions/"+string(b.ID))
	other.isIn(b.ID, action.StateSucceeded)
}

func TestTheInboxIsAFragmentForItself(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	in := d.as("approver@harbor.test")
	in.get("/actions").is(t, http.StatusOK, "<html", "1 action waits for your signature.", `hx-trigger="every 15s"`, string(a.ID), ">Refresh</a>")
	in.header.Set("HX-Request", "true")
	in.header.Set("HX-Request-Type", "partial")
	in.get("/actions").is(t, http.StatusOK, `id="inbox"`, string(a.ID)).lacks(t, "<html", "<nav class=\"rail\"")
	in.get("/actions/"+string(a.ID)).is(t, http.StatusOK, `id="card"`).lacks(t, "<html")
}

func TestClosedActionsArePaged(t *testing.T) {
	d := newDesk(t)
	d.SQL(`UPDATE runs SET budget = 100`)
	in := d.as("approver@harbor.test")
	seen := map[string]bool{}
	for range 53 {
		a := d.asks("contacts_create", `{"name":"`+identity.NewID("n_")+`","email":"a@example.com"}`, "")
		_, err := d.Actions.CancelByRun(t.Context(), d.Org.ID, d.run.Run.ID, a.ID)
		d.Must(err)
		seen[string(a.ID)] = true
	}
	first := in.get("/actions?tab=closed").is(t, http.StatusOK, "50 actions")
	second := in.get("/actions?tab=closed&before=" + first.between(t, `before=`, `"`))
	second.is(t, http.StatusOK, "3 actions", ">Newest</a>")
	for id := range seen {
		if strings.Contains(first.body, id) == strings.Contains(second.body, `/actions/`+id+`"`) {
			t.Fatalf("%s is on both pages, or on none", id)
		}
	}
	in.get("/actions?tab=closed&before=nonsense").is(t, http.StatusOK, "No action is closed yet.")
}

func TestARunSaysWhatItCanDoAndWhy(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	in := d.as("auditor@harbor.test")
	path := "/runs/" + string(d.run.Run.ID)
	in.get("/runs").is(t, http.StatusOK, "SUP-481", "1 run can call tools right now.")
	in.get(path).is(t, http.StatusOK, "What can it do right now, and why", "Right now: 1 tool only reads, 2 ask a person.", "It changes something, so a person decides.", "It only reads.", string(a.ID), "€240.00</span> to contact c_1042").lacks(t, `data-test="end-run"`)

	d.SQL(`UPDATE profile_uses SET tools = '{contacts_search,refund_issue}'`)
	in.get(path).is(t, http.StatusOK, "The profile leaves this tool out.")
	d.SQL(`UPDATE profile_uses SET tools = NULL, mode = 'read_only'`)
	in.get(path).is(t, http.StatusOK, "The profile makes this connection read only.", "The profile narrows the connection&#39;s own mode.")
	d.SQL(`UPDATE profile_uses SET mode = NULL`)
	d.SQL(`UPDATE runs SET budget = 1`)
	in.get(path).is(t, http.StatusOK, "budget of consequential actions is used up.")
	changed := scene.Search
	changed.Digest = "changed"
	d.grant(changed)
	in.get(path).is(t, http.StatusOK, "The connection does not grant it any more.", "held back until a person has reviewed it")

	chat := d.mint(run.Order{Surface: policy.Chat})
	in.get("/runs/"+string(chat.Run.ID)).is(t, http.StatusOK, "Nobody in particular", "Right now: 1 tool only reads.", "Run started")
}

func TestEndingARun(t *testing.T) {
	d := newDesk(t)
	a := d.refund()
	path := "/runs/" + string(d.run.Run.ID)
	d.as("approver@harbor.test").post(path+"/end").is(t, http.StatusForbidden)
	in := d.as("admin@harbor.test")
	in.get(path).is(t, http.StatusOK, `data-test="end-run"`)
	in.post(path+"/end").goes(t, path)
	in.post(path+"/end").goes(t, path)
	in.get(path).is(t, http.StatusOK, "This run was ended.", "The run is over.").lacks(t, `data-test="end-run"`)
	d.isIn(a.ID, action.StateCancelled)
	in.get("/runs").is(t, http.StatusOK, "No run is live.", "SUP-481")
	in.get("/runs/run_none").is(t, http.StatusNotFound)
}
